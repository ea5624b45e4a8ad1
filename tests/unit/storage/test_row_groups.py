"""Rows of a base that are read from few of its row groups."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark import SparkContext, cloudpickle

from seiche.clock import SimulatedClock
from seiche.errors import StorageUnavailable
from seiche.model import (
    EPOCH_SHIFT,
    VNODE,
    VNODES,
    Base,
    Column,
    DataFile,
    Epoch,
    RelationId,
    RelationSchema,
    Segment,
    Spread,
)
from seiche.storage.column_memory import ColumnMemory
from seiche.storage.far_groups import REST_SECONDS, FarGroups
from seiche.storage.files import DataFolder
from seiche.storage.group_task import wanted_rows
from seiche.storage.row_groups import RowGroups
from seiche.storage.versions import RelationVersion
from seiche.storage.vnodes import vnodes_of
from seiche.types import BIGINT, DATE, INTEGER, VARCHAR

CALLS = RelationId(7)
CALL = RelationSchema(
    (Column("number", BIGINT), Column("day", DATE), Column("ship", VARCHAR), Column("berth", INTEGER)), key=("number",)
)
FIRST = date(2026, 1, 1)
NOW = 1_800_000_000


class Executors:
    """Stands for Spark's: runs tasks here, each sent as it would be."""

    defaultParallelism = 3  # noqa: N815 - Spark's name
    master = "spark://elsewhere"

    def __init__(self, fault: str | None = None) -> None:
        self.tasks: list[Any] = []
        self.fault = fault

    def parallelize(self, tasks: list[Any], slices: int) -> Executors:
        assert slices == len(tasks)
        self.tasks = pickle.loads(pickle.dumps(tasks))
        return self

    def map(self, function: Any) -> Executors:
        sent = pickle.loads(cloudpickle.dumps(function))
        self.answers = [self.fault or sent(task) for task in self.tasks]
        return self

    def collect(self) -> list[Any]:
        return self.answers


class Folder(DataFolder):
    """Counts the rows that are read of each column: all, and those that somebody waits for."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.read: Counter[str] = Counter()
        self.awaited: Counter[str] = Counter()

    def read_group(self, path: str, metadata: pq.FileMetaData, group: int, names: Sequence[str]) -> pa.Table:
        found = super().read_group(path, metadata, group, names)
        rows = dict.fromkeys(found.column_names, found.num_rows)
        self.read.update(rows)
        if threading.current_thread() is threading.main_thread():
            self.awaited.update(rows)
        return found


class Log:
    """Calls of ships in the order of their numbers, in files: by turns, or with `sliced` by vnode."""

    def __init__(
        self,
        folder: Path,
        numbers: list[int],
        *,
        files: int = 2,
        group: int = 5,
        bytes_max: int = 1 << 20,
        sliced: bool = False,
        executors: Executors | None = None,
        memory: int = 1 << 20,
    ) -> None:
        self.data = Folder(str(folder))
        self.clock = SimulatedClock()
        far = FarGroups(cast(SparkContext, executors), self.data, self.clock) if executors is not None else None
        self.reader = RowGroups(self.data, ColumnMemory(memory, self.clock), bytes_max, far)
        self.rows = pa.table(
            {
                "number": pa.array(sorted(numbers), pa.int64()),
                "day": pa.array([FIRST + timedelta(days=number % 50) for number in sorted(numbers)], pa.date32()),
                "ship": pa.array([None if n % 7 == 0 else f"Æ{n % 13}" for n in sorted(numbers)], pa.string()),
                "berth": pa.array([n % 3 for n in sorted(numbers)], pa.int32()),
                VNODE: pa.array(np.arange(len(numbers)) % 4, pa.int16()),
            }
        )
        found = vnodes_of(self.rows, CALL)
        assert found is not None
        parts = np.asarray(found) * files // VNODES if sliced else np.arange(len(numbers)) % files
        width = VNODES // files
        made = []
        for number in range(files):
            part = self.rows.filter(pa.array(parts == number))
            path = f"r7/base/{number}.parquet"
            (folder / "r7" / "base").mkdir(parents=True, exist_ok=True)
            pq.write_table(part, folder / path, row_group_size=group)
            held = (number * width, (number + 1) * width - 1) if sliced else (0, VNODES - 1)
            made.append(DataFile(path, part.num_rows, 1_000, *held))
        self.version = RelationVersion(CALLS, CALL, Epoch(5), Base(CALLS, 1, Epoch(5), tuple(made)), ())

    def changes(self, *, rows: int, seconds: int) -> None:
        """Lets epochs bring so many changes in so many seconds."""
        first, last = (Epoch((moment * 1_000) << EPOCH_SHIFT) for moment in (NOW, NOW + seconds))
        segment = Segment(CALLS, "r7/seg/1.parquet", first, last, rows=rows, bytes=100, fresh=False)
        self.version = replace(self.version, epoch=last, segments=(segment,))

    def around(self, names: list[str], **wanted: list[Any]) -> pa.Table | None:
        values = {name: pa.array(each, self.rows[name].type) for name, each in wanted.items()}
        return self.reader.around(self.version, names, values)


def of(rows: pa.Table, **wanted: list[Any]) -> list[dict[str, Any]]:
    for name, values in wanted.items():
        rows = rows.filter(pc.is_in(rows[name], value_set=pa.array(values, rows[name].type)))
    return sorted(rows.to_pylist(), key=lambda row: row["number"])


def test_only_row_groups_that_may_hold_a_value_are_read(tmp_path: Path) -> None:
    log = Log(tmp_path, list(range(100)))
    found = log.around(["number", "ship"], number=[3, 4])
    assert found is not None
    assert log.data.read == {"number": 10, "ship": 10}, "one row group of five rows of each file"
    assert of(found) == [{"number": 3, "ship": "Æ3"}, {"number": 4, "ship": "Æ4"}]


def test_a_key_is_looked_for_in_the_file_of_its_vnode_only(tmp_path: Path) -> None:
    log = Log(tmp_path, list(range(100)), files=4, sliced=True)
    found = log.around(["number"], number=[50])
    assert found is not None
    assert log.data.read["number"] <= 5, "one row group of one file"
    assert of(found) == [{"number": 50}]


def keyed_by_berth(folder: Path, spread: Spread) -> Log:
    """The log with another key, in four files."""
    log = Log(folder, list(range(100)), files=4)
    schema = replace(CALL, key=("berth", "number"), spread=spread)
    numbers = vnodes_of(log.rows, schema)
    assert numbers is not None
    files = []
    for number, file in enumerate(log.version.base.files):
        here = log.rows.filter(pa.array(np.asarray(numbers) // 64 == number))
        pq.write_table(here.sort_by([("berth", "ascending"), ("number", "ascending")]), folder / file.path)
        files.append(replace(file, vnode_lo=number * 64, vnode_hi=number * 64 + 63))
    log.version = replace(log.version, schema=schema, base=replace(log.version.base, files=tuple(files)))
    return log


@pytest.mark.parametrize("spread", Spread)
def test_a_key_of_two_columns_is_looked_for_where_it_can_be(tmp_path: Path, spread: Spread) -> None:
    log = keyed_by_berth(tmp_path, spread)
    all_rows = log.rows.num_rows
    for asked in ({"berth": [2], "number": [50]}, {"berth": [2], "number": [50, 53, 98]}):
        found = log.around(["number", "berth"], **asked)  # type: ignore[arg-type]
        assert found is not None
        assert of(found, **asked) == of(log.rows.select(["number", "berth"]), **asked)  # type: ignore[arg-type]
        assert log.data.read["berth"] < all_rows
    for asked in ({"berth": [1, 2], "number": [50, 52, 53]}, {"berth": [2]}, {"berth": [0, 1]}):
        log = keyed_by_berth(tmp_path, spread)
        found = log.around(["number", "berth"], **asked)
        assert found is not None
        assert of(found, **asked) == of(log.rows.select(["number", "berth"]), **asked)
        if spread is Spread.NEIGHBOURS and len(asked["berth"]) == 1:
            assert log.data.read["berth"] < all_rows, "not all files may hold them"


def test_values_that_lie_between_row_groups_read_nothing(tmp_path: Path) -> None:
    log = Log(tmp_path, [*range(10), *range(1_000, 1_010)], files=1)
    found = log.around(["number", VNODE], number=[-5, 500, 2_000])
    assert found is not None
    assert found.num_rows == 0
    assert found.schema == pa.schema([("number", pa.int64()), (VNODE, pa.int16())])


def test_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    log = Log(tmp_path, list(range(100)))
    first = log.around(["number", "ship"], number=[50])
    for file in log.version.base.files:
        log.data.delete(file.path)
    assert log.around(["number", "ship"], number=[50]) == first
    with pytest.raises(Exception, match="cannot be read"):
        log.around(["number", "berth"], number=[50])


def test_a_column_that_files_lack_has_its_constant(tmp_path: Path) -> None:
    log = Log(tmp_path, list(range(20)))
    crew = Column("crew", INTEGER, missing="12")
    log.version = replace(log.version, schema=replace(CALL, columns=(*CALL.columns, crew)))
    found = log.around(["number", "crew"], number=[7])
    assert found is not None
    assert of(found, number=[7]) == [{"number": 7, "crew": 12}]
    assert log.around(["crew"], number=[7]) is not None


def test_a_lookup_that_would_read_much_is_left_to_spark(tmp_path: Path) -> None:
    log = Log(tmp_path, list(range(100)), bytes_max=1_000)
    assert log.around(["number"], number=[3]) is not None
    assert log.around(["number"], number=list(range(100))) is None


def test_days_that_python_does_not_know_are_found(tmp_path: Path) -> None:
    log = Log(tmp_path, list(range(4)), files=1)
    days = pa.array([-1_000_000, 0, 1, 5_000_000], pa.int32()).cast(pa.date32())
    rows = log.rows.set_column(1, "day", days)
    pq.write_table(rows, tmp_path / log.version.base.files[0].path, row_group_size=1)
    found = log.reader.around(log.version, ["number"], {"day": days.take([0, 3])})
    assert found is not None
    assert found["number"].to_pylist() == [0, 3]


def test_without_a_column_whose_bounds_tell_something_spark_is_asked(tmp_path: Path) -> None:
    log = Log(tmp_path, list(range(20)))
    assert log.around(["number"], number=[3, None]) is None
    assert log.around(["number"]) is None


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-30, 60), unique=True, max_size=60),
    st.lists(st.integers(-40, 70), max_size=5),
    st.lists(st.integers(0, 49).map(lambda days: FIRST + timedelta(days=days)), max_size=5),
    st.lists(st.sampled_from([f"Æ{n}" for n in range(14)] + ["", "A", "Ææ", "zz"]), max_size=5),
    st.sampled_from([1, 2, 4]),
    st.integers(1, 9),
    st.booleans(),
    st.sampled_from([1, 400, 1 << 20]),
    st.sampled_from([0, 500, 1 << 20]),
)
def test_all_wanted_rows_are_there(
    tmp_path_factory: pytest.TempPathFactory,
    numbers: list[int],
    wanted: list[int],
    days: list[date],
    ships: list[str],
    files: int,
    group: int,
    sliced: bool,
    bytes_max: int,
    memory: int,
) -> None:
    """Whether the driver reads them, remembers them, or has executors read some or all of them."""
    log = Log(
        tmp_path_factory.mktemp("log"),
        numbers,
        files=files,
        group=group,
        sliced=sliced,
        bytes_max=bytes_max,
        executors=Executors(),
        memory=memory,
    )
    for asked in 2 * (
        {"number": wanted},
        {"day": days},
        {"ship": ships},
        {"number": wanted, "ship": ships, "day": days},
    ):
        found = log.around(log.rows.column_names, **asked)  # type: ignore[arg-type]
        assert found is not None
        assert of(found, **asked) == of(log.rows, **asked)  # type: ignore[arg-type]
        log.reader.settle()


def test_executors_bring_the_wanted_rows_and_no_others(tmp_path: Path) -> None:
    executors = Executors()
    log = Log(tmp_path, list(range(200)), files=4, bytes_max=1, sliced=True, executors=executors)
    found = log.around(["number", "ship"], number=[3, 50, 199, 1_000])
    assert found is not None
    assert of(found) == of(log.rows.select(["number", "ship"]), number=[3, 50, 199])
    (task,) = executors.tasks
    assert sum(len(groups) for _, _, groups in task[4]) <= 4, "row groups that cannot hold them are left out"


def asked_of(executors: Executors) -> int:
    """The row groups that tasks were given since the last time."""
    found = sum(len(groups) for task in executors.tasks for _, _, groups in task[4])
    executors.tasks = []
    return found


def test_a_base_that_rests_is_read_beside_and_remembered(tmp_path: Path) -> None:
    executors = Executors()
    log = Log(tmp_path, list(range(200)), files=2, group=50, bytes_max=1_000, executors=executors)
    wanted = list(range(0, 200, 3))
    asked = []
    for _ in range(3):
        found = log.around(["number", "ship"], number=wanted)
        assert found is not None
        assert of(found) == of(log.rows.select(["number", "ship"]), number=wanted)
        asked.append(asked_of(executors))
        log.reader.settle()
    assert asked == [4, 0, 0]
    assert log.data.read == {"number": 200, "ship": 200}, "each row group once"


def test_what_is_partly_remembered_is_looked_for_in_both_places(tmp_path: Path) -> None:
    executors = Executors()
    log = Log(tmp_path, list(range(400)), files=2, group=50, bytes_max=1_100, executors=executors)
    assert log.around(["number"], number=[3]) is not None
    assert log.data.read == {"number": 100}, "a row group of each file"
    wanted = list(range(0, 400, 3))
    found = log.around(["number"], number=wanted)
    assert found is not None
    assert of(found) == of(log.rows.select(["number"]), number=wanted)
    assert asked_of(executors) == 6


def test_the_driver_reads_what_little_it_does_not_remember(tmp_path: Path) -> None:
    executors = Executors()
    log = Log(tmp_path, list(range(200)), files=2, group=50, bytes_max=1_100, executors=executors)
    assert log.around(["number"], number=[3]) is not None
    wanted = list(range(0, 200, 3))
    found = log.around(["number"], number=wanted)
    assert found is not None
    assert of(found) == of(log.rows.select(["number"]), number=wanted)
    assert asked_of(executors) == 0
    assert log.data.read == {"number": 200}, "each row group once"


def test_a_file_of_which_much_is_wanted_is_remembered_whole(tmp_path: Path) -> None:
    """Also where few of its row groups are asked for afterwards, and by a column that has no order in the file."""
    executors = Executors()
    log = Log(tmp_path, list(range(200)), files=2, group=10, bytes_max=500, executors=executors)
    asked = []
    for wanted in ({"number": list(range(0, 200, 25))}, {"number": [3, 4, 5, 199]}, {"berth": [2]}, {"berth": [0, 1]}):
        found = log.around(["number", "ship", "berth"], **wanted)
        assert found is not None
        assert of(found, **wanted) == of(log.rows.select(["number", "ship", "berth"]), **wanted)
        asked.append(asked_of(executors))
        log.reader.settle()
    assert 10 <= asked[0] < 20, "more than half of the row groups, but not all"
    assert asked[1] == 0
    assert asked[2] == 20, "berths are not in order yet, and to put them in order is not for whoever waits"
    assert asked[3] == 0
    assert log.data.read == {"number": 200, "ship": 200, "berth": 200}, "each row group once"


def test_a_column_comes_to_those_of_a_file_that_is_remembered(tmp_path: Path) -> None:
    executors = Executors()
    log = Log(tmp_path, list(range(2_000)), files=1, group=10, bytes_max=2_000, executors=executors)
    awaited = []
    for names, wanted in (
        (["number"], list(range(0, 2_000, 15))),
        (["number", "ship"], [7, 999]),
        (["number", "ship"], [1, 600, 1_200]),
    ):
        found = log.around(names, number=wanted)
        assert found is not None
        assert of(found, number=wanted) == of(log.rows.select(names), number=wanted)
        log.reader.settle()
        awaited.append(log.data.awaited.copy())
    assert awaited[0] == {}, "executors look through what is too much"
    assert awaited[1] == {"number": 20, "ship": 20}, "two row groups by the driver"
    assert awaited[2] == awaited[1]
    assert log.data.read == {"number": 2_020, "ship": 2_020}, "and all of them beside"


def test_a_file_that_is_gone_is_no_trouble_beside(tmp_path: Path) -> None:
    log = Log(tmp_path, list(range(200)), files=2, group=50, bytes_max=1_000, executors=Executors())
    wanted = list(range(0, 200, 3))
    reading = log.data.read_group

    def fail(*_: Any) -> pa.Table:
        raise StorageUnavailable("the file is gone")

    log.data.read_group = fail  # type: ignore[method-assign]
    assert log.around(["number", "ship"], number=wanted) is not None
    log.reader.settle()
    log.data.read_group = reading  # type: ignore[method-assign]
    assert log.around(["number", "ship"], number=wanted) is not None


def test_a_base_that_changes_much_is_left_to_executors(tmp_path: Path) -> None:
    executors = Executors()
    log = Log(tmp_path, list(range(200)), files=2, group=50, bytes_max=1_000, executors=executors)
    log.changes(rows=3, seconds=4)
    for _ in range(3):
        assert log.around(["number", "ship"], number=list(range(0, 200, 3))) is not None
        assert asked_of(executors) == 4
        log.reader.settle()
    assert not log.data.read


def test_a_base_that_changes_slowly_is_remembered_in_spite_of_its_log(tmp_path: Path) -> None:
    executors = Executors()
    log = Log(tmp_path, list(range(200)), files=2, group=50, bytes_max=1_000, executors=executors)
    log.changes(rows=3, seconds=5)
    asked = []
    for _ in range(2):
        assert log.around(["number", "ship"], number=list(range(0, 200, 3))) is not None
        asked.append(asked_of(executors))
        log.reader.settle()
    assert asked == [4, 0]


@pytest.mark.parametrize("memory", [800, 3_000])
def test_without_room_in_memory_executors_are_asked(tmp_path: Path, memory: int) -> None:
    """What would take more than half of it does not begin to be read."""
    executors = Executors()
    log = Log(tmp_path, list(range(200)), files=2, group=50, bytes_max=1_000, executors=executors, memory=memory)
    for _ in range(3):
        assert log.around(["number", "ship"], number=list(range(0, 200, 3))) is not None
        assert asked_of(executors) == 4
        log.reader.settle()
    assert not log.data.read


def test_row_groups_are_shared_out_among_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seiche.storage.far_groups.BYTES_PER_TASK", 100)
    executors = Executors()
    log = Log(tmp_path, list(range(300)), files=2, bytes_max=1, executors=executors)
    wanted = list(range(0, 300, 2))
    found = log.around(["number"], number=wanted)
    assert found is not None
    assert of(found) == [{"number": number} for number in wanted]
    shares = [sum(len(groups) for _, _, groups in task[4]) for task in executors.tasks]
    assert len(shares) == 3
    assert sum(shares) == 60, "every row group once"
    assert max(shares) - min(shares) <= 2


def test_executors_fill_in_a_column_that_files_lack(tmp_path: Path) -> None:
    log = Log(tmp_path, list(range(20)), bytes_max=1, executors=Executors(), memory=0)
    crew = Column("crew", INTEGER, missing="12")
    log.version = replace(log.version, schema=replace(CALL, columns=(*CALL.columns, crew)))
    found = log.around(["crew", "number"], number=[7])
    assert found is not None
    assert found.to_pylist() == [{"crew": 12, "number": 7}]
    by_crew = log.reader.around(log.version, ["number"], {"crew": pa.array([12], pa.int32())})
    assert by_crew is None, "what is not in the files they cannot look for"


def test_where_executors_cannot_read_spark_is_asked_for_some_minutes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    executors = Executors(fault="ModuleNotFoundError: No module named 'pyarrow'")
    log = Log(tmp_path, list(range(20)), bytes_max=1, executors=executors, memory=0)
    with caplog.at_level(logging.WARNING):
        assert log.around(["number"], number=[7]) is None
    assert "No module named 'pyarrow'" in caplog.text
    executors.tasks = []
    assert log.around(["number"], number=[7]) is None
    assert executors.tasks == [], "it is not tried again at once"
    executors.fault = None
    log.clock.advance(int(REST_SECONDS * 1000))
    assert log.around(["number"], number=[7]) is not None


def test_more_rows_than_the_driver_should_have_are_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seiche.storage.far_groups.FOUND_BYTES_MAX", 100)
    log = Log(tmp_path, list(range(100)), bytes_max=1, executors=Executors())
    assert log.around(["number"], number=list(range(100))) is None
    assert log.around(["number"], number=[7]) is not None, "executors are asked again"


def test_a_task_says_why_it_could_not_read(tmp_path: Path) -> None:
    log = Log(tmp_path, list(range(20)))
    files, wanted = pickle.dumps(log.data.filesystem), pickle.dumps({"number": pa.array([7], pa.int64())})
    answer = wanted_rows((files, wanted, ["number"], 1_000, [(0, str(tmp_path / "gone.parquet"), [0])]))
    assert isinstance(answer, str)
    assert "gone.parquet" in answer


def test_a_task_needs_nothing_of_seiche(tmp_path: Path) -> None:
    log = Log(tmp_path, list(range(20)), files=1)
    files, wanted = pickle.dumps(log.data.filesystem), pickle.dumps({"number": pa.array([7], pa.int64())})
    task = (files, wanted, ["number", "berth"], 1_000, [(0, log.data.absolute(log.version.base.files[0].path), [0, 1])])
    code = (
        "import pickle, sys; sys.modules['seiche'] = None;"
        "function, task = pickle.load(sys.stdin.buffer); sys.stdout.buffer.write(pickle.dumps(function(task)))"
    )
    sent = cloudpickle.dumps((wanted_rows, task))
    ended = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True)
    ((number, stream),) = pickle.loads(ended.stdout)
    assert number == 0
    assert pa.ipc.open_stream(stream).read_all().to_pylist() == [{"number": 7, "berth": 1}]
