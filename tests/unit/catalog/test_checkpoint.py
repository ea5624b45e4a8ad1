"""Merging checkpoints: committing the merged one is committing one after the other."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import Checkpoint, Event, VnodeProgress
from seiche.catalog.store import MetadataStore
from seiche.clock import SimulatedClock
from seiche.errors import InvariantError
from seiche.model import Base, DataFile, Epoch, JobId, ObjectId, Pin, RelationId, Segment
from tests.unit.catalog.contract import ARRIVALS, BUSY, HOLDER, SHIPS, STATE, TTL_MS, harbour, table

OBJECTS = (SHIPS, ARRIVALS)


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    """A database that holds the harbour, to be copied."""
    folder = Path(tempfile.mkdtemp(prefix="seiche-merge-"))
    store = MetadataStore.open(f"sqlite:///{folder}/metadata.db", clock=SimulatedClock())
    store.acquire_lease(HOLDER, TTL_MS)
    store.commit(Checkpoint.between(Catalog.default(), harbour()))
    store.release_lease()
    store.close()  # the last connection moves everything into the one file
    yield folder
    shutil.rmtree(folder)


@st.composite
def parts(draw: st.DrawFn) -> list[Checkpoint]:
    """A few checkpoints that follow each other, each of which may contradict those before it."""
    count = draw(st.integers(2, 4))
    dropped: set[int] = set()
    out = []
    for number in range(count):
        alive = [it for it in (*OBJECTS, BUSY) if it not in dropped]
        fresh = ObjectId(200 + number)
        gone: set[ObjectId] = set()
        if alive and draw(st.integers(0, 3)) == 0:
            doomed = harbour().plan_drop([draw(st.sampled_from(alive))], cascade=True)
            gone = {it for it in doomed if it not in dropped}
            dropped |= gone
            alive = [it for it in alive if it not in gone]
        some = st.lists(st.sampled_from(alive), unique=True) if alive else st.just([])
        holders = st.sets(st.sampled_from(["archive", "query"]))
        numbers = st.integers(0, 9)
        out.append(
            Checkpoint(
                epoch=Epoch(number + 1) if draw(st.booleans()) else None,
                put_objects=tuple(table(it, f"name {number} {it}") for it in (*draw(some), fresh) if it != BUSY),
                drop_objects=frozenset(gone),
                add_segments=tuple(
                    Segment(RelationId(it), f"{it}/{number}", Epoch(number), Epoch(number), 1, 1) for it in draw(some)
                ),
                remove_segments=frozenset(f"{it}/{draw(st.integers(0, number - 1))}" for it in draw(some) if number),
                put_bases=tuple(
                    Base(RelationId(it), number, Epoch(number), (DataFile(f"{it}/b{number}", 1, 1, 0, 255),))
                    for it in draw(some)
                ),
                put_pins=tuple(
                    Pin(holder, RelationId(it), Epoch(draw(numbers))) for it in draw(some) for holder in draw(holders)
                ),
                drop_pins=frozenset(draw(holders)),
                put_progress={JobId(it): draw(st.sampled_from([None, {"step": number}])) for it in draw(some)},
                put_backfill=tuple(
                    VnodeProgress(JobId(it), RelationId(it), draw(st.integers(0, 1)), None, number, False)
                    for it in draw(some)
                ),
                drop_backfill=frozenset(JobId(it) for it in draw(some)),
                source_offsets={it: {str(draw(st.integers(0, 1))): str(number)} for it in draw(some)},
                row_counters={RelationId(it): number for it in draw(some)},
                settings={name: draw(st.sampled_from([None, "1", "2"])) for name in draw(holders)},
                events=(Event(number, "tide"),),
            )
        )
    return out


@given(checkpoints=parts())
@settings(max_examples=40, deadline=None)
def test_a_merged_checkpoint_does_what_its_parts_do_in_order(template: Path, checkpoints: list[Checkpoint]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        states = []
        merged = Checkpoint()
        for checkpoint in checkpoints:
            merged = merged.merge(checkpoint)
        for name, commits in (("one by one", checkpoints), ("merged", [merged])):
            path = Path(folder) / f"{name}.db"
            shutil.copy(template / "metadata.db", path)
            store = MetadataStore.open(f"sqlite:///{path}", clock=SimulatedClock())
            store.acquire_lease(HOLDER, TTL_MS)
            for checkpoint in commits:
                store.commit(checkpoint)
            states.append((store.load(), store.events(100)))
            store.close()
        assert states[0] == states[1]


def test_an_object_made_and_dropped_within_a_checkpoint_leaves_nothing_to_put() -> None:
    made = Checkpoint(
        put_objects=(table(SHIPS, "ships"),),
        add_segments=(Segment(RelationId(SHIPS), "a", Epoch(1), Epoch(1), 1, 1),),
        row_counters={RelationId(SHIPS): 3},
    )
    merged = made.merge(Checkpoint(drop_objects=frozenset({SHIPS})))
    assert merged == Checkpoint(drop_objects=frozenset({SHIPS}))


def test_parts_of_epochs_merge_forwards_only() -> None:
    assert Checkpoint(epoch=Epoch(1)).merge(Checkpoint(epoch=Epoch(2))).epoch == 2
    assert Checkpoint(epoch=Epoch(1)).merge(Checkpoint()).epoch == 1
    with pytest.raises(InvariantError):
        Checkpoint(epoch=Epoch(2)).merge(Checkpoint(epoch=Epoch(1)))


def test_the_difference_of_equal_catalogs_is_empty() -> None:
    assert Checkpoint.between(harbour(), harbour()).is_empty
    assert not Checkpoint(epoch=Epoch(1)).is_empty


def test_the_difference_of_catalogs_names_what_changed_only() -> None:
    renamed = harbour().with_objects(replace(harbour().get(SHIPS), name="vessels"))
    without = renamed.without(renamed.plan_drop([BUSY], cascade=True))
    difference = Checkpoint.between(harbour(), without)
    assert [item.name for item in difference.put_objects] == ["vessels"]
    assert difference.drop_objects == {BUSY, STATE}
