"""Views that were held back for long: what happened meanwhile is replayed piece by piece, never as one large plan."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

import seiche
from seiche.model import Epoch
from seiche.storage import relation
from seiche.stream.backfill import snapshot
from seiche.stream.backfill.snapshot import SnapshotBackfill
from tests.integration.conftest import Open

pytestmark = pytest.mark.spark

QUERY = "SELECT berth, count(*) AS n, sum(tons) AS tons, max(id) AS last FROM arrivals GROUP BY berth"
EPOCHS = 12


def rows(db: seiche.Engine, query: str) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row) for row in db.sql(query).rows or [])


def held_back(db: seiche.Engine, large: int = 1) -> None:
    """A view that has not begun to read, and a log of changes that it will have to replay."""
    db.execute("CREATE TABLE arrivals (id int, berth int, tons int)")
    db.execute("INSERT INTO arrivals SELECT i, i % 3, i FROM generate_series(1, 20) AS g(i)")
    db.execute("SET background_ddl = true")
    db.execute(f"CREATE MATERIALIZED VIEW load WITH (backfill_rate_limit = 0) AS {QUERY}")
    for epoch in range(EPOCHS):
        first, last = 100 * (epoch + 1), 100 * (epoch + 1) + 3 * large
        db.execute(f"INSERT INTO arrivals SELECT i, i % 5, i FROM generate_series({first}, {last}) AS g(i)")
        db.execute(f"UPDATE arrivals SET tons = tons + 1, berth = 2 WHERE id = {first}")
        db.execute(f"DELETE FROM arrivals WHERE id = {epoch + 1}")
        db.execute(f"INSERT INTO arrivals VALUES ({first + 50}, 9, 1)")
        db.execute(f"DELETE FROM arrivals WHERE id = {first + 50}")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_long_log_is_replayed_in_pieces_that_become_durable_one_by_one(
    open_database: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "LOG_ROWS_MAX", 5)
    pieces: list[tuple[Epoch, Epoch]] = []
    reached = threading.Event()
    replay = SnapshotBackfill.replay

    def counted(self: SnapshotBackfill, target: Epoch) -> bool:
        pieces.append((self._as_of(), target))
        if len(pieces) == 4:
            reached.set()
            raise SystemExit("the process ends")
        return replay(self, target)

    db = open_database()
    held_back(db)
    monkeypatch.setattr(SnapshotBackfill, "replay", counted)
    db.execute("ALTER MATERIALIZED VIEW load SET BACKFILL_RATE_LIMIT = DEFAULT")
    assert reached.wait(60)
    db.close()
    stopped = pieces[3]
    db = open_database()
    db.execute("WAIT")
    assert rows(db, "SELECT * FROM load") == rows(db, QUERY)
    assert pieces[4][0] == stopped[0], "what was durable is not replayed again"
    assert len(pieces) > 8
    ends = [target for _, target in pieces[4:]]
    assert [start for start, _ in pieces[5:]] == ends[:-1], "one piece begins where the last one ended"


def test_many_bare_segments_are_read_as_one_with_the_epochs_of_their_names(open_database: Open) -> None:
    db = open_database(inline_rows_max=3, fold_min_rows=1_000_000)
    held_back(db, large=4)
    found = db.database.catalog.find(("arrivals",)).id
    bare = {each.epoch_hi for each in db.database.runtime.versions.segments(found) if each.bare}  # type: ignore[arg-type]
    assert len(bare) > relation.BARE_EPOCHS_MAX
    ids = [*range(EPOCHS + 1, 21), *(100 * e + i for e in range(1, EPOCHS + 1) for i in range(13))]
    expected = [(i, i % 3 if i < 100 else 2 if i % 100 == 0 else i % 5, i + (i % 100 == 0)) for i in ids]
    assert rows(db, "SELECT id, berth, tons FROM arrivals") == Counter(expected)
    db.execute("ALTER MATERIALIZED VIEW load SET BACKFILL_RATE_LIMIT = DEFAULT; WAIT")
    assert rows(db, "SELECT * FROM load") == rows(db, QUERY)
    db.execute("ALTER TABLE arrivals ADD COLUMN pilot varchar DEFAULT 'none'")
    assert rows(db, "SELECT DISTINCT pilot FROM arrivals") == Counter([("none",)])


def test_slices_of_vnodes_read_what_is_alive_without_the_rest_of_the_log(open_database: Open) -> None:
    db = open_database(inline_rows_max=100, fold_min_rows=1_000_000)
    db.execute("CREATE TABLE arrivals (id int, berth int)")
    db.execute("INSERT INTO arrivals SELECT i, i % 3 FROM generate_series(1, 500) AS g(i)")
    found = db.database.catalog.find(("arrivals",)).id
    db.database.maintenance.fold_now(found)  # type: ignore[arg-type]
    db.execute("DELETE FROM arrivals WHERE id % 17 = 0; UPDATE arrivals SET berth = 9 WHERE id % 13 = 0")
    db.execute("INSERT INTO arrivals VALUES (1001, 1), (1002, 2), (1003, 3)")
    runtime = db.database.runtime
    version = runtime.versions.at(found, runtime.versions.committed_epoch)  # type: ignore[arg-type]
    assert version.base.files and version.log_rows
    slices: Counter[tuple[object, ...]] = Counter()
    for first, end in ((0, 10), (10, 11), (11, 200), (200, 256)):
        frame = runtime.reader.exact(version, f"`_vnode` >= {first} AND `_vnode` < {end}", vnodes=(first, end))
        slices.update(tuple(row) for row in frame.select("id", "berth").collect())
    assert slices == rows(db, "SELECT * FROM arrivals")
