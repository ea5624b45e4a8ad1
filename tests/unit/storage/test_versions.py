"""Which files make up a relation: staged, published, discarded and folded ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seiche.errors import InvariantError
from seiche.model import Base, DataFile, Epoch, Segment
from seiche.storage.fold import slice_width
from seiche.storage.versions import RelationVersion, Versions
from tests.unit.storage.harbour import ARRIVALS, SHIP, SHIPS, TIDE, TIDES, base, segment


@pytest.fixture
def versions() -> Versions:
    versions = Versions()
    versions.load(
        Epoch(10),
        {SHIPS: SHIP, ARRIVALS: SHIP, TIDES: TIDE},
        [base(SHIPS, 5, "r7/base/a")],
        [segment(SHIPS, 8), segment(SHIPS, 6), segment(SHIPS, 4), segment(ARRIVALS, 10)],
    )
    return versions


def spans(segments: tuple[Segment, ...]) -> list[tuple[int, int]]:
    return [(each.epoch_lo, each.epoch_hi) for each in segments]


def test_a_relation_is_its_base_and_the_later_segments_in_order(versions: Versions) -> None:
    version = versions.committed(SHIPS)
    assert version.base.fold_epoch == 5
    assert spans(version.segments) == [(6, 6), (8, 8)]
    assert version.epoch == 10


def test_rows_by_vnode_are_spread_over_the_vnodes_of_each_file() -> None:
    files = (DataFile("a", 1_000, 1, 0, 15), DataFile("b", 200, 1, 16, 255))
    version = RelationVersion(SHIPS, SHIP, Epoch(5), Base(SHIPS, 1, Epoch(5), files), ())
    assert sum(version.rows_by_vnode) == 1_200
    assert {62, 63} == set(version.rows_by_vnode[:16]) and {0, 1} == set(version.rows_by_vnode[16:])
    grown = replace(version, segments=(replace(segment(SHIPS, 6), rows=1_200),))
    assert sum(grown.rows_by_vnode) == 2_400 and {125} == set(grown.rows_by_vnode[:16])
    new = replace(grown, base=Base(SHIPS, None, Epoch(0), ()))
    assert sum(new.rows_by_vnode) == 1_200 and {4, 5} == set(new.rows_by_vnode)


def test_slices_of_a_base_have_about_a_million_rows() -> None:
    def version(rows: int, *files: DataFile) -> RelationVersion:
        base = Base(SHIPS, None, Epoch(0), files)
        return RelationVersion(SHIPS, SHIP, Epoch(9), base, (replace(segment(SHIPS, 8), rows=rows),))

    assert slice_width(version(900_000)) == 256
    assert slice_width(version(30_000_000)) == 8
    assert slice_width(version(10**9)) == 1
    crowded = version(1_000, DataFile("a", 10_000_000, 1, 0, 15))
    assert slice_width(crowded) == 2, "16 vnodes have all of the ten million rows"


def test_an_older_epoch_has_fewer_segments(versions: Versions) -> None:
    assert spans(versions.at(SHIPS, Epoch(7)).segments) == [(6, 6)]
    assert spans(versions.at(SHIPS, Epoch(5)).segments) == []


def test_an_epoch_before_the_fold_cannot_be_read(versions: Versions) -> None:
    with pytest.raises(InvariantError, match="before its fold at 5"):
        versions.at(SHIPS, Epoch(4))


def test_a_segment_of_several_epochs_is_part_of_a_version_that_cuts_it(versions: Versions) -> None:
    versions.replace_segments([], segment(ARRIVALS, 3, 9))
    assert spans(versions.at(ARRIVALS, Epoch(5)).segments) == [(3, 9)]
    assert spans(versions.at(ARRIVALS, Epoch(2)).segments) == []
    versions.set_base(base(ARRIVALS, 6))
    assert spans(versions.at(ARRIVALS, Epoch(7)).segments) == [(3, 9)]
    versions.set_base(base(ARRIVALS, 9))
    assert spans(versions.at(ARRIVALS, Epoch(9)).segments) == []


def test_estimates_count_base_and_log(versions: Versions) -> None:
    version = versions.committed(SHIPS)
    assert (version.base_rows, version.log_rows, version.rows_estimate) == (10, 2, 12)


# --- staging -----------------------------------------------------------------------------------------


def test_what_is_staged_is_seen_at_its_epoch_and_not_by_readers(versions: Versions) -> None:
    versions.stage([segment(SHIPS, 11)])
    assert spans(versions.at(SHIPS, Epoch(11)).segments)[-1] == (11, 11)
    assert spans(versions.committed(SHIPS).segments) == [(6, 6), (8, 8)]
    assert spans(versions.staged()) == [(11, 11)]
    assert spans(versions.segments(SHIPS)) == [(4, 4), (6, 6), (8, 8)]


def test_publishing_makes_it_visible_to_readers_all_at_once(versions: Versions) -> None:
    versions.stage([segment(SHIPS, 11), segment(ARRIVALS, 11)])
    versions.publish(Epoch(11))
    assert versions.committed_epoch == 11
    assert spans(versions.committed(SHIPS).segments)[-1] == (11, 11)
    assert spans(versions.committed(ARRIVALS).segments)[-1] == (11, 11)
    assert versions.staged() == ()


def test_what_is_discarded_is_gone_and_returned(versions: Versions) -> None:
    versions.stage([segment(SHIPS, 11), segment(ARRIVALS, 11)])
    assert {each.relation for each in versions.discard()} == {SHIPS, ARRIVALS}
    assert spans(versions.at(SHIPS, Epoch(11)).segments) == [(6, 6), (8, 8)]
    assert versions.discard() == ()


def test_one_relation_can_be_discarded_by_itself(versions: Versions) -> None:
    versions.stage([segment(SHIPS, 11), segment(ARRIVALS, 11)])
    versions.discard([SHIPS])
    assert [each.relation for each in versions.staged()] == [ARRIVALS]


def test_an_epoch_without_changes_moves_time_on(versions: Versions) -> None:
    versions.publish(Epoch(12))
    assert versions.committed(SHIPS).epoch == 12


# --- independent graphs ------------------------------------------------------------------------------


def test_the_main_graph_neither_publishes_nor_discards_an_independent_relation(versions: Versions) -> None:
    versions.set_independent([TIDES], True)
    versions.stage([segment(SHIPS, 11), segment(TIDES, 9)])
    assert [each.relation for each in versions.staged()] == [SHIPS]
    versions.publish(Epoch(11))
    assert versions.segments(TIDES) == ()
    versions.discard()
    assert [each.relation for each in versions.staged([TIDES])] == [TIDES]


def test_an_independent_graph_publishes_its_own_without_moving_time(versions: Versions) -> None:
    versions.set_independent([TIDES], True)
    versions.stage([segment(TIDES, 9), segment(SHIPS, 11)])
    versions.publish_relations([TIDES])
    assert spans(versions.segments(TIDES)) == [(9, 9)]
    assert versions.committed_epoch == 10
    assert [each.relation for each in versions.staged()] == [SHIPS]


def test_after_the_hand_over_the_main_graph_publishes_it(versions: Versions) -> None:
    versions.set_independent([TIDES], True)
    versions.set_independent([TIDES], False)
    versions.stage([segment(TIDES, 11)])
    versions.publish(Epoch(11))
    assert spans(versions.segments(TIDES)) == [(11, 11)]


# --- the change log ----------------------------------------------------------------------------------


def test_the_log_between_two_epochs_is_every_segment_that_holds_some_of_it(versions: Versions) -> None:
    for joined in (segment(ARRIVALS, 3, 6), segment(ARRIVALS, 7, 8)):
        versions.replace_segments([], joined)
    assert spans(versions.between(ARRIVALS, Epoch(5), Epoch(7))) == [(3, 6), (7, 8)]
    assert spans(versions.between(ARRIVALS, Epoch(6), Epoch(7))) == [(7, 8)]
    assert spans(versions.between(ARRIVALS, Epoch(8), Epoch(9))) == []
    assert spans(versions.between(ARRIVALS, Epoch(9), Epoch(10))) == [(10, 10)]


def test_folded_segments_stay_in_the_log_until_they_are_forgotten(versions: Versions) -> None:
    assert spans(versions.between(SHIPS, Epoch(3), Epoch(6))) == [(4, 4), (6, 6)]
    versions.forget_segments([segment(SHIPS, 4).path])
    assert spans(versions.between(SHIPS, Epoch(3), Epoch(6))) == [(6, 6)]


def test_joined_segments_take_the_place_of_their_parts(versions: Versions) -> None:
    parts = [segment(SHIPS, 6), segment(SHIPS, 8)]
    versions.replace_segments(parts, segment(SHIPS, 6, 8, rows=2, path="r7/seg/joined"))
    assert spans(versions.committed(SHIPS).segments) == [(6, 8)]
    assert spans(versions.segments(SHIPS)) == [(4, 4), (6, 8)]


# --- bases and relations -----------------------------------------------------------------------------


def test_a_new_base_hides_the_segments_that_it_holds(versions: Versions) -> None:
    versions.set_base(base(SHIPS, 8, "r7/base/b"))
    version = versions.committed(SHIPS)
    assert [file.path for file in version.base.files] == ["r7/base/b"]
    assert version.segments == ()


def test_a_base_never_moves_back(versions: Versions) -> None:
    with pytest.raises(InvariantError, match="older base"):
        versions.set_base(base(SHIPS, 4))


def test_a_new_relation_is_empty_and_a_dropped_one_is_gone(versions: Versions) -> None:
    new = ARRIVALS.__class__(99)
    versions.add_relation(new, SHIP)
    assert versions.committed(new).rows_estimate == 0
    versions.drop_relation(new)
    versions.drop_relation(new)
    assert new not in versions
    assert versions.relations() == [SHIPS, ARRIVALS, TIDES]


def test_staged_changes_of_a_dropped_relation_are_forgotten_with_it(versions: Versions) -> None:
    versions.stage([segment(TIDES, 11)])
    versions.drop_relation(TIDES)
    assert versions.discard([TIDES]) == ()
    versions.publish(Epoch(11))
    assert TIDES not in versions


def test_a_version_is_a_value_that_later_changes_do_not_touch(versions: Versions) -> None:
    before = versions.committed(SHIPS)
    versions.stage([segment(SHIPS, 11)])
    versions.publish(Epoch(11))
    versions.set_base(base(SHIPS, 11))
    assert spans(before.segments) == [(6, 6), (8, 8)]
    assert before.base.fold_epoch == 5
