"""What PostgreSQL answered, byte for byte: the same conversations with our server in its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.server.harbour import FakeBackend, RunningServer, running_server
from tests.unit.server.record import CONVERSATIONS, FOLDER, Message, converse, enter, read


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(FakeBackend(tmp_path_factory.mktemp("harbour"))) as server:
        yield server


def comparable(message: Message) -> object:
    """Of errors only the class that clients act upon: the words are ours."""
    kind, body = message
    if kind != "E":
        return message
    fields = {part[:1]: part[1:] for part in body.split(b"\0") if part}
    return kind, fields[b"S"], fields[b"C"]


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.txt")))
def test_a_recorded_conversation_goes_the_same_way_here(running: RunningServer, name: str) -> None:
    asked, answered = read(FOLDER / f"{name}.txt")
    with enter(running.port, "root", "dev") as link:
        given = converse(link, asked)
    assert [comparable(message) for message in given] == [comparable(message) for message in answered]


def test_every_conversation_is_recorded() -> None:
    assert {path.stem for path in Path(FOLDER).glob("*.txt")} == set(CONVERSATIONS)
