"""Tables and sources that fill themselves: when rows come, and that each comes once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from seiche.errors import FeatureNotSupported, InvalidDefinition, InvalidParameter
from seiche.model import Epoch, RelationId
from seiche.session.feeds import Pace
from seiche.storage.files import DataFolder
from tests.unit.session.port import Port, open_port

TIDES = (
    "(level int) WITH (connector = 'datagen', fields.level.kind = 'sequence', fields.level.start = '1',"
    " fields.level.end = '1500', datagen.rows.per.second = '1000', datagen.split.num = '3')"
)


def feeding(port: Port) -> None:
    """Lets connectors work from where they were left."""
    database = port.database
    database.config = database.config.with_parameter("barrier_interval_ms", "10")
    database.coordinator.add_listener(database.on_epoch)
    database.recover().result()
    database.feeds.start(database.store.load().offsets)


def levels(port: Port, path: Path, name: str) -> list[int]:
    """The values that are durable, in the order of the rows."""
    state = port.database.store.load()
    (item,) = [each for each in state.catalog.objects() if each.name == name]
    paths = [each.path for each in state.segments if each.relation == RelationId(item.id)]
    folder = DataFolder(str(path))
    return [value for each in paths for value in folder.read_table(each)["level"].to_pylist()]


def until(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


def test_a_table_goes_on_where_it_was_left_and_ends_with_its_sequence(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        feeding(port)
        port.execute(f"CREATE TABLE tides {TIDES}")
        until(lambda: len(levels(port, tmp_path, "tides")) > 0)
        port.database.feeds.stop()
        before = levels(port, tmp_path, "tides")
        assert before == list(range(1, len(before) + 1))
    with open_port(tmp_path) as port:
        feeding(port)
        until(lambda: len(levels(port, tmp_path, "tides")) >= 1500)
        port.database.feeds.stop()
        assert levels(port, tmp_path, "tides") == list(range(1, 1501))
        (offsets,) = port.database.store.load().offsets.values()
        assert offsets == {"0": "500", "1": "500", "2": "500"}


def test_the_end_does_not_wait_for_a_checkpoint_that_is_far_away(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        feeding(port)
        coordinator = port.database.coordinator
        coordinator.set_checkpoint_frequency(10_000)
        coordinator.set_barrier_interval_ms(10)
        port.execute(f"CREATE TABLE tides {TIDES}")
        barriers: list[Epoch] = []
        coordinator.add_listener(lambda report: barriers.append(report.barrier.epoch))
        until(lambda: len(barriers) > 3)
        before = coordinator.committed_epoch
        stopping = threading.Thread(target=port.database.feeds.stop, daemon=True)
        stopping.start()
        until(lambda: not stopping.is_alive())
        assert coordinator.committed_epoch > before, "what was taken is durable"
        found = levels(port, tmp_path, "tides")
        assert found == list(range(1, len(found) + 1))


def test_a_source_waits_for_somebody_who_follows_it(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        feeding(port)
        port.execute(f"CREATE SOURCE tides {TIDES}")
        port.execute(f"CREATE TABLE others {TIDES}")
        until(lambda: len(levels(port, tmp_path, "others")) >= 1500)
        assert levels(port, tmp_path, "tides") == []
        port.database.feeds.stop()


def test_a_dropped_table_is_not_fed_any_more(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        feeding(port)
        for _ in range(3):
            port.execute(f"CREATE TABLE tides {TIDES}")
            port.execute("DROP TABLE tides")
        port.execute("FLUSH")
        assert port.database.store.load().offsets == {}
        port.database.feeds.stop()


def test_definitions_of_sources_are_listed_shown_and_renamed(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        port.execute(
            "CREATE SOURCE tides (level int, low boolean AS level < 2)"
            " WITH (connector = 'datagen', fields.level.max = '9') FORMAT PLAIN ENCODE JSON"
        )
        port.execute("ALTER SOURCE tides RENAME TO waves")
        assert port.rows("SHOW SOURCES") == [("public.waves",)]
        ((_, shown),) = port.rows("SHOW CREATE SOURCE waves")
        assert shown == (
            "CREATE SOURCE waves (level INT, low BOOLEAN AS level < 2)"
            " WITH (connector = 'datagen', fields.level.max = '9') FORMAT PLAIN ENCODE JSON"
        )
        port.execute("CREATE TABLE fed (level int) WITH (connector = 'datagen')")
        assert sorted(port.rows("SELECT name, connector FROM rw_sources")) == [("fed", "DATAGEN"), ("waves", "DATAGEN")]
        port.execute("DROP SOURCE waves")
        assert port.rows("SHOW SOURCES") == []


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("CREATE SOURCE s (a int) WITH (topic = 'x')", InvalidDefinition),
        ("CREATE SOURCE s (a int) WITH (connector = 'kafka')", FeatureNotSupported),
        ("CREATE TABLE s (a int) WITH (connector = 'datagen') FORMAT DEBEZIUM ENCODE AVRO", InvalidDefinition),
        ("CREATE TABLE s (a int) FORMAT PLAIN ENCODE JSON", InvalidDefinition),
        ("CREATE TABLE s (a int) WITH (connector = 'datagen', fields.a.mast = 'random')", InvalidParameter),
    ],
)
def test_connectors_that_cannot_be_are_refused(tmp_path: Path, text: str, error: type[Exception]) -> None:
    with open_port(tmp_path) as port, pytest.raises(error):
        port.execute(text)


def test_rows_are_due_in_proportion_to_time_and_lost_time_is_not_made_up_for() -> None:
    pace = Pace(10, since=100.0)
    assert pace.due(100.05, 1000) == 0
    assert pace.due(100.25, 1000) == 2
    assert pace.due(100.31, 1000) == 1
    assert pace.due(200.0, 50) == 50
    assert pace.due(200.15, 50) == 1
