from __future__ import annotations

import base64

import pytest

from seiche.errors import InvalidLogin, InvariantError, ProtocolViolation
from seiche.server.scram import Exchange, Verifier
from seiche.session.passwords import prepared, verifier_of

# The example of RFC 7677.
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)


def verifier(password: str) -> Verifier:
    kept = verifier_of(password, salt=SALT)
    assert kept is not None
    return Verifier.parse(kept)


def exchange(password: str = "pencil") -> Exchange:
    return Exchange(verifier(password), "user", nonce=NONCE)


def test_the_example_of_the_standard_comes_out_as_written_there() -> None:
    login = exchange()
    first = login.first(CLIENT_FIRST)
    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert login.final(CLIENT_FINAL) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_another_password_is_refused() -> None:
    login = exchange("pen")
    login.first(CLIENT_FIRST)
    with pytest.raises(InvalidLogin):
        login.final(CLIENT_FINAL)


@pytest.mark.parametrize("message", [b"", b"n,,", b"p=tls-unique,,n=,r=abc", b"n,,n=u,r=", b"\xff", b"n,,x=1"])
def test_a_malformed_first_message_is_refused(message: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        exchange().first(message)


@pytest.mark.parametrize(
    "message", [b"", b"c=biws,r=other,p=AAAA", CLIENT_FINAL.replace(b"biws", b"eSws"), CLIENT_FINAL + b"!", b"c=,r=,p="]
)
def test_a_final_message_of_another_exchange_is_refused(message: bytes) -> None:
    login = exchange()
    login.first(CLIENT_FIRST)
    with pytest.raises(ProtocolViolation):
        login.final(message)


def test_a_verifier_is_stored_as_text_and_read_back() -> None:
    kept = verifier("tide")
    assert Verifier.parse(str(kept)) == kept
    assert "tide" not in str(kept)
    with pytest.raises(InvariantError):
        Verifier.parse("md5abc")


def test_a_name_that_nobody_has_gets_the_same_salt_each_time() -> None:
    one, other = Verifier.of_nobody("gull", b"pepper"), Verifier.of_nobody("gull", b"pepper")
    assert one.salt == other.salt != Verifier.of_nobody("tern", b"pepper").salt


@pytest.mark.parametrize(
    ("given", "hashed"), [("a\u00a0b", "a b"), ("x\u00ady", "xy"), ("\u2168", "IX"), ("\x07", "\x07")]
)
def test_passwords_are_prepared_as_the_standard_says(given: str, hashed: str) -> None:
    assert prepared(given) == hashed
