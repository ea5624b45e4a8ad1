"""SCRAM-SHA-256 as PostgreSQL speaks it, from the server's side.

    client-first  n,,n=,r=<client nonce>
    server-first  r=<both nonces>,s=<salt>,i=<iterations>
    client-final  c=biws,r=<both nonces>,p=<proof>
    server-final  v=<signature>

A verifier is all that is stored of a password, in PostgreSQL's own spelling, so verifiers can be moved between the two:
`SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>`. A user who does not exist, or has no password, goes
through the same steps with a verifier that no password fits, so an attacker learns nothing about names.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field

from seiche.errors import InvalidLogin, InvariantError, ProtocolViolation
from seiche.session.passwords import ITERATIONS, SALT_BYTES

MECHANISM = "SCRAM-SHA-256"
_VERIFIER = re.compile(r"SCRAM-SHA-256\$(\d+):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)")


@dataclass(frozen=True, slots=True)
class Verifier:
    iterations: int
    salt: bytes
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    def __str__(self) -> str:
        return (
            f"{MECHANISM}${self.iterations}:{_base64(self.salt)}${_base64(self.stored_key)}:{_base64(self.server_key)}"
        )

    @staticmethod
    def parse(text: str) -> Verifier:
        found = _VERIFIER.fullmatch(text)
        if found is None:
            raise InvariantError("a stored password verifier is not of the form SCRAM-SHA-256$…")
        iterations, salt, stored, server = found.groups()
        return Verifier(int(iterations), *(base64.b64decode(part) for part in (salt, stored, server)))

    @staticmethod
    def of_nobody(name: str, pepper: bytes) -> Verifier:
        """One that no password fits, the same each time the same name is tried."""
        salt = hmac.digest(pepper, name.encode(), "sha256")[:SALT_BYTES]
        return Verifier(ITERATIONS, salt, secrets.token_bytes(32), secrets.token_bytes(32))


class Exchange:
    """One login. `first` and `final` answer the client's two messages; `final` raises unless the proof fits."""

    def __init__(self, verifier: Verifier, user: str, *, nonce: str | None = None) -> None:
        self._verifier = verifier
        self._user = user
        self._nonce = nonce or _base64(secrets.token_bytes(18))
        self._client_first = ""
        self._server_first = ""
        self._header = ""

    def first(self, message: bytes) -> bytes:
        text = _ascii(message)
        found = re.fullmatch(r"([nyp])(=[^,]*)?,(a=[^,]*)?,(n=[^,]*,r=([!-+\--~]+)(?:,.*)?)", text)
        if found is None:
            raise ProtocolViolation("malformed SCRAM message")
        if found[1] == "p":
            raise ProtocolViolation("channel binding is not offered")
        self._header = text[: found.start(4)]
        self._client_first = found[4]
        self._nonce = found[5] + self._nonce
        self._server_first = f"r={self._nonce},s={_base64(self._verifier.salt)},i={self._verifier.iterations}"
        return self._server_first.encode()

    def final(self, message: bytes) -> bytes:
        text = _ascii(message)
        found = re.fullmatch(r"(c=([A-Za-z0-9+/=]*),r=([!-+\--~]+)(?:,.*)?),p=([A-Za-z0-9+/=]+)", text)
        if found is None:
            raise ProtocolViolation("malformed SCRAM message")
        try:
            header, proof = base64.b64decode(found[2], validate=True), base64.b64decode(found[4], validate=True)
        except binascii.Error as error:
            raise ProtocolViolation("malformed SCRAM message") from error
        if header != self._header.encode() or found[3] != self._nonce:
            raise ProtocolViolation("SCRAM message does not belong to this exchange")
        signed = f"{self._client_first},{self._server_first},{found[1]}".encode()
        signature = _hmac(self._verifier.stored_key, signed)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=False))
        right = hmac.compare_digest(hashlib.sha256(client_key).digest(), self._verifier.stored_key)
        if not right or len(proof) != len(signature):
            raise InvalidLogin(f'password authentication failed for user "{self._user}"')
        return b"v=" + _base64(_hmac(self._verifier.server_key, signed)).encode()


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _ascii(message: bytes) -> str:
    try:
        return message.decode("ascii")
    except UnicodeDecodeError as error:
        raise ProtocolViolation("malformed SCRAM message") from error
