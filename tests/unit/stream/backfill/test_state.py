"""What is stored of a backfill is what is found again."""

from __future__ import annotations

import json

import pytest

from seiche.model import VNODES, Epoch, RelationId
from seiche.stream.backfill.arrangement import ArrangementState
from seiche.stream.backfill.protocol import BackfillKind
from seiche.stream.backfill.state import BackfillState

SHIPS, BERTHS = RelationId(101), RelationId(102)


@pytest.mark.parametrize("as_of", [None, Epoch(9)])
def test_a_snapshot_backfill_finds_its_place_limit_and_order_again(as_of: Epoch | None) -> None:
    state = BackfillState(Epoch(7), as_of, 1, 5, True, {SHIPS: (3,) * VNODES}, 50, ((BERTHS, SHIPS),))
    assert BackfillState.from_json(json.loads(json.dumps(state.to_json()))) == state


def test_a_backfill_inside_the_graph_finds_its_limit_and_order_again() -> None:
    counted = {SHIPS: (1, 2, *(0,) * (VNODES - 2))}
    state = ArrangementState(BackfillKind.NO_SHUFFLE, True, {SHIPS: 3}, 0, ((BERTHS, SHIPS),), counted)
    assert ArrangementState.from_json(json.loads(json.dumps(state.to_json()))) == state


def test_a_backfill_that_was_stored_with_the_rows_of_a_vnode_is_found_again() -> None:
    stored = {"version": 1, "kind": "arrangement", "begun": True, "estimates": {"101": 3}, "rate": None, "order": []}
    assert ArrangementState.from_json(stored).estimates == {SHIPS: 3 * VNODES}
