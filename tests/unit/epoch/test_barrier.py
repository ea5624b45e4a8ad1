from __future__ import annotations

import pytest

from seiche.epoch.barrier import Barrier, BarrierKind
from seiche.errors import InvariantError
from seiche.model import Epoch


@pytest.mark.parametrize(
    ("kind", "durable"),
    [(BarrierKind.INITIAL, True), (BarrierKind.BARRIER, False), (BarrierKind.CHECKPOINT, True)],
)
def test_initial_barriers_and_checkpoints_are_made_durable(kind: BarrierKind, durable: bool) -> None:
    assert Barrier(Epoch(2), Epoch(1), kind).is_checkpoint is durable


def test_an_epoch_does_not_follow_itself() -> None:
    with pytest.raises(InvariantError):
        Barrier(Epoch(2), Epoch(2), BarrierKind.BARRIER)
