"""Records what a real PostgreSQL answers to the conversations below: python -m tests.unit.server.record

Each conversation becomes a file of lines: `>` a message of the client, `<` one of the server, type letter and hex body.
Only messages between the first and the last ReadyForQuery are kept, so nothing of the server's own is in them.
"""

from __future__ import annotations

import socket
import struct
from pathlib import Path

FOLDER = Path(__file__).parent / "transcripts"

Message = tuple[str, bytes]


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def query(sql: str) -> Message:
    return "Q", text(sql)


def parse(sql: str, *oids: int, name: str = "") -> Message:
    return "P", text(name) + text(sql) + struct.pack(f"!H{len(oids)}I", len(oids), *oids)


def bind(*values: bytes | None, format: int = 0, result: int = 0, name: str = "", portal: str = "") -> Message:
    body = text(portal) + text(name) + struct.pack("!HhH", 1, format, len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return "B", body + struct.pack("!Hh", 1, result)


def describe(kind: str, name: str = "") -> Message:
    return "D", kind.encode() + text(name)


def execute(rows: int = 0, portal: str = "") -> Message:
    return "E", text(portal) + struct.pack("!i", rows)


SYNC: Message = ("S", b"")
CONVERSATIONS: dict[str, list[Message]] = {
    "simple": [query("SELECT 7::int AS one, 'x'::varchar AS t, NULL::bigint AS n")],
    "several": [query("SELECT 1::int AS a; SELECT 2::int AS b"), query(""), query("  -- nothing")],
    "error": [query("SELECT 1::int AS a; SELECT 1/0"), query("SELECT 3::int AS c")],
    "extended": [
        parse("SELECT $1::int AS a, $2::varchar AS b"),
        describe("S"),
        bind(struct.pack("!i", 42), b"tide", format=1, result=1),
        describe("P"),
        execute(),
        SYNC,
    ],
    "null_parameter": [parse("SELECT $1::bigint AS a", name="s1"), bind(None, name="s1"), execute(), SYNC],
    "portal": [
        query("BEGIN"),
        parse("SELECT * FROM generate_series(1, 5)", name="p"),
        bind(name="p", portal="c"),
        execute(2, "c"),
        execute(2, "c"),
        execute(2, "c"),
        ("C", b"Pc\0"),
        ("C", b"Sp\0"),
        SYNC,
        query("COMMIT"),
    ],
    "skip_to_sync": [
        parse("SELECT * FROM nowhere"),
        bind(),
        execute(),
        parse("SELECT 1::int AS a"),
        bind(),
        execute(),
        SYNC,
    ],
    "refused_in_transaction": [query("BEGIN"), bind(name="nobody"), SYNC, query("COMMIT")],
    "run_again": [parse("BEGIN"), bind(), execute(), execute(), SYNC, query("ROLLBACK")],
    "several_prepared": [parse("SELECT 1; SELECT 2"), SYNC],
    "unknown_names": [bind(name="nobody"), SYNC, execute(portal="nobody"), SYNC, ("C", b"Snobody\0"), SYNC],
    "failed_transaction": [query("BEGIN"), query("SELECT 1/0"), query("ROLLBACK")],
    "empty_prepared": [parse(""), bind(), describe("P"), execute(), SYNC],
}


def send(link: socket.socket, message: Message) -> None:
    kind, body = message
    link.sendall(kind.encode() + struct.pack("!i", len(body) + 4) + body)


def messages(link: socket.socket, wanted: int) -> list[Message]:
    """All messages up to the `wanted`-th ReadyForQuery."""
    found: list[Message] = []
    stream = link.makefile("rb")
    while sum(kind == "Z" for kind, _ in found) < wanted:
        head = stream.read(5)
        found.append((chr(head[0]), stream.read(struct.unpack("!i", head[1:])[0] - 4)))
    return found


def converse(link: socket.socket, conversation: list[Message]) -> list[Message]:
    for message in conversation:
        send(link, message)
    return messages(link, sum(kind in "QS" for kind, _ in conversation))


def enter(port: int, user: str, database: str) -> socket.socket:
    link = socket.create_connection(("127.0.0.1", port), timeout=20)
    body = struct.pack("!i", 196_608) + text("user") + text(user) + text("database") + text(database) + b"\0"
    link.sendall(struct.pack("!i", len(body) + 4) + body)
    messages(link, 1)
    return link


def written(conversation: list[Message], answers: list[Message]) -> str:
    lines = [f"> {kind} {body.hex()}" for kind, body in conversation]
    return "\n".join([*lines, *(f"< {kind} {body.hex()}" for kind, body in answers)]) + "\n"


def read(path: Path) -> tuple[list[Message], list[Message]]:
    sides: dict[str, list[Message]] = {">": [], "<": []}
    for line in path.read_text().splitlines():
        side, kind, *body = line.split(" ")
        sides[side].append((kind, bytes.fromhex("".join(body))))
    return sides[">"], sides["<"]


def record() -> None:
    from tests.integration.postgres import SUPERUSER, temporary_server

    FOLDER.mkdir(exist_ok=True)
    with temporary_server() as server:
        for name, conversation in CONVERSATIONS.items():
            with enter(server.port, SUPERUSER, "postgres") as link:
                (FOLDER / f"{name}.txt").write_text(written(conversation, converse(link, conversation)))


if __name__ == "__main__":
    record()
