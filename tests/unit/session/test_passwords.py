"""What is kept of a password."""

from __future__ import annotations

import base64
import hashlib
import hmac

from seiche.session.passwords import is_hashed_with_md5, verifier_of

RFC_7677_SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
RFC_7677 = (
    "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$"
    "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
)


def test_the_verifier_is_that_of_the_rfcs_example() -> None:
    assert verifier_of("pencil", salt=RFC_7677_SALT) == RFC_7677


def test_two_users_with_one_password_have_different_verifiers() -> None:
    assert verifier_of("pencil") != verifier_of("pencil")
    assert "pencil" not in str(verifier_of("pencil"))


def test_a_verifier_is_stored_as_it_is() -> None:
    assert verifier_of(RFC_7677) == RFC_7677


def test_nobody_logs_in_with_an_empty_password() -> None:
    assert verifier_of("") is None


def test_nobody_logs_in_by_an_md5_hash() -> None:
    hashed = "md5" + "0" * 32
    assert is_hashed_with_md5(hashed)
    assert not is_hashed_with_md5("md5")
    assert verifier_of(hashed, salt=RFC_7677_SALT) != verifier_of(hashed, salt=RFC_7677_SALT)


def test_letters_that_look_alike_make_the_same_password() -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    assert verifier_of(composed, salt=RFC_7677_SALT) == verifier_of(decomposed, salt=RFC_7677_SALT)


def test_the_stored_key_checks_a_proof() -> None:
    kept = str(verifier_of("tide", salt=b"0123456789abcdef"))
    stored = base64.b64decode(kept.split("$")[2].split(":")[0])
    salted = hashlib.pbkdf2_hmac("sha256", b"tide", b"0123456789abcdef", 4096)
    assert hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest() == stored
