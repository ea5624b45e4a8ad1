"""Keyed digests and ciphers, in the forms that RisingWave has of pgcrypto's.

Spark encrypts with AES, always with a padding, and writes the vector that a chain of blocks starts from before them.
It has no keyed digest: one is made of two plain ones, and a key of which each byte is changed by XOR.
"""

from __future__ import annotations

import re

from sqlglot import exp

from seiche.errors import FeatureNotSupported, InvalidParameter
from seiche.sql.functions.registry import function
from seiche.sql.nodes import (
    Settings,
    binary,
    call,
    case,
    comparison,
    disjunction,
    equal,
    guarded,
    integer,
    lambda_,
    negation,
    not_null,
    text,
    typed,
    variable,
)
from seiche.types import BOOLEAN, BYTEA, INTEGER, VARCHAR, array_of

Nodes = list[exp.Expr]

_BLOCK = 64  # bytes that both digests take at a time
_INNER, _OUTER = 0x36, 0x5C
_DIGITS = "0123456789ABCDEF"
_KIND = re.compile(r"aes(?:-(?P<mode>cbc|ecb))?(?:/pad:(?P<padding>pkcs|none))?", re.I)
_CIPHER_BLOCK = 16
_KEY_SIZES = (16, 24, 32)


def _constant(node: exp.Expr, name: str, what: str) -> str:
    if not isinstance(node, exp.Literal):
        raise FeatureNotSupported(f"function {name} needs a constant {what}")
    return str(node.this)


# --- keyed digests -----------------------------------------------------------------------------------


@function("hmac", takes=[VARCHAR, BYTEA, VARCHAR])
def _hmac(arguments: Nodes, settings: Settings) -> exp.Expr:
    secret, payload, kind = arguments
    name = _constant(kind, "hmac", "digest").lower()
    if name not in ("sha1", "sha256"):
        raise InvalidParameter(f'digest "{name}" is not known to hmac', hint="It takes sha1 and sha256.")

    def digest(node: exp.Expr) -> exp.Expr:
        told = call(VARCHAR, "sha1", node) if name == "sha1" else call(VARCHAR, "sha2", node, integer(256))
        return call(BYTEA, "unhex", told)

    key = call(BYTEA, "encode", secret, text("UTF-8"))
    long = comparison(exp.GT, call(INTEGER, "octet_length", key.copy()), integer(_BLOCK))
    short = case(BYTEA, [(long, digest(key.copy()))], key)
    digits = call(VARCHAR, "rpad", call(VARCHAR, "hex", short), integer(2 * _BLOCK), text("0"))
    inside = digest(call(BYTEA, "concat", _changed(digits, _INNER), payload))
    made = digest(call(BYTEA, "concat", _changed(digits.copy(), _OUTER), inside))
    return case(BYTEA, [(not_null(secret.copy()), made)])  # digits that are NULL would be left out


def _changed(digits: exp.Expr, by: int) -> exp.Expr:
    """Bytes given as hexadecimal digits, each changed by XOR, which works on every digit by itself."""
    place = variable("i", INTEGER)
    first, second = (text("".join(f"{each ^ bits:X}" for each in range(16))) for bits in (by >> 4, by & 15))
    odd = equal(binary(exp.Mod, INTEGER, place, integer(2)), integer(1))
    digit = call(VARCHAR, "substr", digits, place.copy(), integer(1))
    changed = call(VARCHAR, "translate", digit, text(_DIGITS), case(VARCHAR, [(odd, first)], second))
    places = call(array_of(INTEGER), "sequence", integer(1), integer(2 * _BLOCK))
    made = call(array_of(VARCHAR), "transform", places, lambda_(changed, "i"))
    return call(BYTEA, "unhex", call(VARCHAR, "array_join", made, text("")))


# --- ciphers -----------------------------------------------------------------------------------------


@function("encrypt", takes=[BYTEA, BYTEA, VARCHAR])
def _encrypt(arguments: Nodes, settings: Settings) -> exp.Expr:
    data, key, kind = arguments
    mode, padded = _cipher(kind, "encrypt")
    made = _encrypted(data, key, mode, _vector())
    if not padded:  # what Spark adds to whole blocks is one block
        size = call(INTEGER, "octet_length", data.copy())
        made = guarded(call(BYTEA, "substr", made, integer(1), size), _uneven(data), _UNEVEN, settings)
    return guarded(made, _odd_key(key), _KEY, settings)


@function("decrypt", takes=[BYTEA, BYTEA, VARCHAR])
def _decrypt(arguments: Nodes, settings: Settings) -> exp.Expr:
    data, key, kind = arguments
    mode, padded = _cipher(kind, "decrypt")
    whole = data
    if not padded:  # a block of padding is put behind, since Spark wants to see one
        last = call(BYTEA, "substr", data.copy(), integer(-_CIPHER_BLOCK)) if mode == "CBC" else _vector()
        start = case(BYTEA, [(_is_empty(data), _vector())], last) if mode == "CBC" else last
        whole = call(BYTEA, "concat", data, _encrypted(_bytes(""), key.copy(), mode, start))
    if mode == "CBC":
        whole = call(BYTEA, "concat", _vector(), whole)
    made = call(BYTEA, "aes_decrypt", whole, key, text(mode), text("PKCS"))
    bad = disjunction([_uneven(data), _is_empty(data)]) if padded else _uneven(data)
    return guarded(guarded(made, bad, _PADDING if padded else _UNEVEN, settings), _odd_key(key), _KEY, settings)


_KEY = "invalid key length: AES takes a key of 16, 24 or 32 bytes"
_PADDING = "data was not encrypted with a padding"
_UNEVEN = "data is not a multiple of 16 bytes, and there is no padding"


def _cipher(node: exp.Expr, name: str) -> tuple[str, bool]:
    """Spark's name of the mode, and whether the data is padded."""
    kind = _constant(node, name, "cipher")
    found = _KIND.fullmatch(kind)
    if found is None:
        raise InvalidParameter(
            f'cipher "{kind}" is not known to {name}',
            hint="Write aes, aes-cbc or aes-ecb, maybe with /pad:pkcs or /pad:none.",
        )
    return (found["mode"] or "cbc").upper(), (found["padding"] or "pkcs").lower() == "pkcs"


def _encrypted(data: exp.Expr, key: exp.Expr, mode: str, start: exp.Expr) -> exp.Expr:
    if mode == "ECB":
        return call(BYTEA, "aes_encrypt", data, key, text(mode), text("PKCS"))
    made = call(BYTEA, "aes_encrypt", data, key, text(mode), text("PKCS"), start)
    return call(BYTEA, "substr", made, integer(_CIPHER_BLOCK + 1))


def _vector() -> exp.Expr:
    return _bytes("00" * _CIPHER_BLOCK)


def _bytes(digits: str) -> exp.Expr:
    return call(BYTEA, "unhex", text(digits))


def _size(node: exp.Expr) -> exp.Expr:
    return call(INTEGER, "octet_length", node.copy())


def _is_empty(node: exp.Expr) -> exp.Expr:
    return equal(_size(node), integer(0))


def _uneven(data: exp.Expr) -> exp.Expr:
    return negation(equal(binary(exp.Mod, INTEGER, _size(data), integer(_CIPHER_BLOCK)), integer(0)))


def _odd_key(key: exp.Expr) -> exp.Expr:
    sizes = [integer(each) for each in _KEY_SIZES]
    return negation(typed(exp.In(this=_size(key), expressions=sizes), BOOLEAN))
