"""What must hold of the disk after any crash, one function a property. `ledger` is what the callers were told."""

from __future__ import annotations

from collections import Counter
from enum import Enum

from seiche.errors import CommitOutcomeUnknown
from tests.simulation.world import (
    ALWAYS,
    GAUGE,
    TABLES,
    Delete,
    Disk,
    Dropped,
    Entry,
    Insert,
    Ledger,
    River,
    ViewSpec,
    recompute,
)


class Told(Enum):
    DONE = "done"
    DENIED = "denied"
    UNKNOWN = "unknown"


def told(entry: Entry) -> Told:
    """What the caller may conclude. An error means that nothing remains, an unknown outcome excepted."""
    if not entry.future.done():
        return Told.UNKNOWN
    if entry.future.cancelled():
        return Told.DENIED
    match entry.future.exception():
        case None:
            return Told.DONE
        case CommitOutcomeUnknown():
            return Told.UNKNOWN
        case _:
            return Told.DENIED


def check_acknowledged_rows_are_there_exactly_once(disk: Disk, ledger: Ledger) -> None:
    possible: dict[int, set[int]] = {}
    tables: dict[int, int] = {}
    for entry in ledger.entries:
        match entry.what:
            case Insert(uid):
                tables[uid] = entry.job
                possible[uid] = {Told.DONE: {1}, Told.DENIED: {0}, Told.UNKNOWN: {0, 1}}[told(entry)]
            case Delete(uid):
                match told(entry):
                    case Told.DONE:
                        possible[uid] = {0}
                    case Told.UNKNOWN:
                        possible[uid] = possible[uid] | {0}
                    case Told.DENIED:
                        pass
            case ViewSpec() | Dropped():
                pass
    found = {(table, row[0]): weight for table in TABLES for row, weight in disk.rows(table).items()}
    for uid, weights in possible.items():
        weight = found.pop((tables[uid], uid), 0)
        assert weight in weights, f"arrival {uid} is there {weight} times, its callers allow {weights}"
    assert not found, f"rows that nobody sent: {found}"


def check_acknowledged_commands_took_effect(disk: Disk, ledger: Ledger) -> None:
    possible: dict[int, set[bool]] = {}
    for entry in ledger.entries:
        match entry.what:
            case ViewSpec(id=view):
                done = True
            case Dropped(view):
                done = False
            case Insert() | Delete():
                continue
        before = possible.get(view, {False})
        match told(entry):
            case Told.DONE:
                possible[view] = {done}
            case Told.DENIED:
                possible[view] = before
            case Told.UNKNOWN:
                possible[view] = before | {done}
    for view, states in possible.items():
        assert (view in disk.registry.views) in states, f"view {view} should exist: {states}"


def check_epochs_are_there_wholly_or_not_at_all(disk: Disk) -> None:
    registered = {segment.path for segment in disk.registry.segments}
    alive = {*ALWAYS, *disk.registry.views}
    by_epoch: dict[tuple[int, int], list[bool]] = {}
    for segment in disk.attempts:
        if segment.relation in alive:
            by_epoch.setdefault((segment.life, segment.epoch), []).append(segment.path in registered)
    for (_, epoch), parts in by_epoch.items():
        assert len(set(parts)) == 1, f"epoch {epoch} is half there"
        assert epoch <= disk.registry.epoch or not parts[0], f"epoch {epoch} is there before its checkpoint"


def check_views_equal_their_query(disk: Disk) -> None:
    for spec in disk.registry.views.values():
        kept, expected = disk.rows(spec.id), recompute(spec, disk.rows)
        assert kept == expected, f"view {spec.id} holds {kept}, its query gives {expected}"


def check_source_is_read_exactly_once(disk: Disk, river: River) -> None:
    rows = disk.rows(GAUGE)
    expected = Counter((place, "river", reading) for place, reading in enumerate(river.readings[: rows.total()]))
    assert rows == expected, "the gauge skipped or repeated a reading"


def check_no_orphan_survives_the_sweep(disk: Disk) -> None:
    disk.sweep()
    assert disk.files.keys() == {segment.path for segment in disk.registry.segments}


def check_epochs_only_grow(disk: Disk) -> None:
    assert disk.epochs == sorted(set(disk.epochs)), "an epoch was committed twice or out of order"


def check_no_one_hangs(ledger: Ledger) -> None:
    """Holds once the coordinator has ended, well or not."""
    assert all(entry.future.done() for entry in ledger.entries)


def check_all(disk: Disk, river: River, ledger: Ledger) -> None:
    """Everything that must hold of the disk alone, at any moment and after any crash."""
    check_acknowledged_rows_are_there_exactly_once(disk, ledger)
    check_acknowledged_commands_took_effect(disk, ledger)
    check_epochs_are_there_wholly_or_not_at_all(disk)
    check_views_equal_their_query(disk)
    check_source_is_read_exactly_once(disk, river)
    check_epochs_only_grow(disk)
