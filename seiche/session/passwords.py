"""What is kept of a password: a SCRAM-SHA-256 verifier in PostgreSQL's spelling, from which it cannot be had back.

SCRAM-SHA-256$4096:<salt>$<stored key>:<server key>          (RFC 5802, RFC 7677)
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import stringprep
import unicodedata

ITERATIONS = 4096
SALT_BYTES = 16

_VERIFIER = re.compile(r"SCRAM-SHA-256\$\d+:[A-Za-z0-9+/=]+\$[A-Za-z0-9+/=]{44}:[A-Za-z0-9+/=]{44}")
_MD5 = re.compile(r"md5[0-9a-f]{32}")

_FORBIDDEN = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def verifier_of(password: str, *, salt: bytes | None = None) -> str | None:
    """The verifier of a password; a text that is a verifier already stays what it is. None for no password at all."""
    if _VERIFIER.fullmatch(password):
        return password
    if not password:
        return None  # as in PostgreSQL, nobody logs in with an empty password
    if is_hashed_with_md5(password):
        password = secrets.token_urlsafe()  # that nobody knows
    salt = salt or secrets.token_bytes(SALT_BYTES)
    salted = hashlib.pbkdf2_hmac("sha256", prepared(password).encode(), salt, ITERATIONS)
    stored = hashlib.sha256(_hmac(salted, b"Client Key")).digest()
    return f"SCRAM-SHA-256${ITERATIONS}:{_text(salt)}${_text(stored)}:{_text(_hmac(salted, b'Server Key'))}"


def is_hashed_with_md5(password: str) -> bool:
    """Whether it is a hash of the old kind, by which nobody can be let in here: what was hashed is not known."""
    return _MD5.fullmatch(password) is not None


def prepared(password: str) -> str:
    """SASLprep (RFC 4013). A password that it refuses is used as it is, as PostgreSQL does."""
    if password.isascii():
        return password
    mapped = "".join(" " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c))
    normal = unicodedata.normalize("NFKC", mapped)
    if not normal or any(check(c) for c in normal for check in _FORBIDDEN):
        return password
    if any(stringprep.in_table_d1(c) for c in normal):
        mixed = any(stringprep.in_table_d2(c) for c in normal)
        if mixed or not (stringprep.in_table_d1(normal[0]) and stringprep.in_table_d1(normal[-1])):
            return password
    return normal


def _hmac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
