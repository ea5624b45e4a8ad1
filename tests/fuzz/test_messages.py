"""The decoder and the protocol's state machine on bytes that nobody meant: an error or a closed connection, no more.

Bounded and seeded; a failing seed is printed by the assertion's message and stays as a test when found.
"""

from __future__ import annotations

import random
import struct

import pytest

from seiche.errors import ProtocolViolation, SeicheError
from seiche.server.connection import Connection, Hangup, Login, Phase, Prepare, Prepared, Refused, RunPortal, RunText
from seiche.server.copy import reader
from seiche.server.messages import Decoder
from seiche.server.types import decode_binary
from seiche.sql.statements import CopyForm, CopyFormat
from seiche.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSONB,
    NUMERIC,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    array_of,
    struct_of,
)  # fmt: skip
from tests.unit.server.record import FOLDER, read

ROUNDS = 300
TYPES = [
    BIGINT, BOOLEAN, BYTEA, DATE, DOUBLE, INTEGER, INTERVAL, JSONB, NUMERIC, REAL, SMALLINT, TIME, TIMESTAMP,
    TIMESTAMPTZ, VARCHAR, array_of(INTEGER), array_of(array_of(VARCHAR)), struct_of(("a", INTEGER), ("b", VARCHAR)),
]  # fmt: skip


def recorded() -> list[bytes]:
    """What clients sent in each recorded conversation."""
    return [
        b"".join(kind.encode() + struct.pack("!i", len(body) + 4) + body for kind, body in read(path)[0])
        for path in sorted(FOLDER.glob("*.txt"))
    ]


def mutated(random_: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(random_.randint(1, 8)):
        at = random_.randrange(len(changed) + 1)
        match random_.randrange(5):
            case 0 if changed:
                changed[at % len(changed)] = random_.randrange(256)
            case 1:
                changed[at:at] = random_.randbytes(random_.randint(1, 12))
            case 2:
                del changed[at : at + random_.randint(1, 12)]
            case 3:
                changed[at : at + 4] = struct.pack("!i", random_.choice([-1, 0, 3, 4, 2**31 - 1, 70_000]))
            case _:
                changed += changed[at : at + 20]
    return bytes(changed)


def opened() -> Connection:
    connection = Connection()
    body = struct.pack("!i", 196_608) + b"user\0root\0database\0dev\0\0"
    connection.receive(struct.pack("!i", len(body) + 4) + body)
    assert isinstance(connection.step(), Login)
    connection.welcome([], 1, 2)
    return connection


def drive(connection: Connection) -> None:
    """Answers whatever is asked until nothing more is, or the connection ends."""
    for _ in range(10_000):
        match connection.step():
            case None:
                return
            case Hangup():
                assert connection.phase is Phase.ENDED
                return
            case RunText():
                connection.complete("SELECT 0")
                connection.ready()
            case Prepare(name, _, oids):
                connection.prepared(name, Prepared(object(), (INTEGER,) * len(oids), None, oids))
            case RunPortal(portal):
                portal.tag = "SELECT 0"
                connection.complete("SELECT 0")
            case _:
                pass
        connection.take_output()
    raise AssertionError("the connection does not come to an end")


@pytest.mark.parametrize("seed", range(8))
def test_mutated_conversations_end_in_an_error_or_a_hangup(seed: int) -> None:
    random_ = random.Random(seed)
    conversations = recorded()
    for _ in range(ROUNDS):
        connection = opened()
        data = mutated(random_, random_.choice(conversations))
        while data:
            cut = random_.randint(1, len(data))
            connection.receive(data[:cut])
            data = data[cut:]
            drive(connection)


@pytest.mark.parametrize("seed", range(8))
def test_random_bytes_never_start_a_connection_nor_break_it(seed: int) -> None:
    random_ = random.Random(1000 + seed)
    for _ in range(ROUNDS):
        connection = Connection(tls=random_.random() < 0.5)
        connection.receive(random_.randbytes(random_.randint(0, 200)))
        drive_startup(connection)


def drive_startup(connection: Connection) -> None:
    for _ in range(100):
        action = connection.step()
        if action is None or isinstance(action, Hangup | Login):
            return


def test_an_announced_length_is_refused_before_the_bytes_are_taken() -> None:
    connection = opened()
    connection.receive(b"Q" + struct.pack("!i", 2**31 - 1))
    assert isinstance(connection.step(), Hangup)
    assert b"invalid message length" in connection.take_output()


def test_a_decoder_takes_a_conversation_byte_by_byte() -> None:
    for data in recorded():
        whole, single = Decoder(), Decoder()
        whole.feed(data)
        expected = list(iter(whole.next, None))
        found = []
        for byte in data:
            single.feed(bytes([byte]))
            found += iter(single.next, None)
        assert found == expected != []


@pytest.mark.parametrize("seed", range(4))
def test_random_binary_values_are_values_or_errors(seed: int) -> None:
    random_ = random.Random(2000 + seed)
    for _ in range(2000):
        type_ = random_.choice(TYPES)
        raw = random_.randbytes(random_.choice([0, 1, 2, 4, 8, 12, 16, 20, 40]))
        if random_.random() < 0.5:  # a plausible head, so that more than the first check is reached
            raw = struct.pack("!iiIii", 1, 0, 23, random_.randint(-2, 9), 1) + raw
        try:
            decode_binary(raw, type_)
        except SeicheError:
            pass


@pytest.mark.parametrize("form", list(CopyForm))
def test_random_copies_are_rows_or_errors(form: CopyForm) -> None:
    random_ = random.Random(form.value)
    alphabet = b'ab,"\\\n\r\t.N0\x00\xff{}'
    for _ in range(ROUNDS):
        parser = reader(CopyFormat(form=form), ["id", "name"], [INTEGER, VARCHAR])
        data = bytes(random_.choice(alphabet) for _ in range(random_.randint(0, 80)))
        if form is CopyForm.BINARY:
            data = b"PGCOPY\n\xff\r\n\0" + struct.pack("!Ii", 0, 0) + struct.pack("!hi", 2, 4) + data
        try:
            for start in range(0, len(data), 7):
                parser.feed(data[start : start + 7])
            parser.finish()
        except SeicheError:
            pass


def test_a_violation_that_is_not_fatal_leaves_the_next_message_readable() -> None:
    connection = opened()
    connection.take_output()
    connection.receive(
        b"Q" + struct.pack("!i", 4 + 3) + b"\xff\xfe\0" + b"Q" + struct.pack("!i", 4 + 9) + b"SELECT 1\0"
    )
    refused = connection.step()
    assert isinstance(refused, Refused)
    assert refused.ready
    connection.fail(refused.error)
    connection.ready()
    assert connection.step() == RunText("SELECT 1")
    out = connection.take_output()
    assert b"C22021" in out and out.endswith(b"Z\0\0\0\5I")


def test_a_fatal_violation_is_told() -> None:
    decoder = Decoder()
    decoder.feed(b"\x01\0\0\0\4")
    with pytest.raises(ProtocolViolation):
        decoder.next()
