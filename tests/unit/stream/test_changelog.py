"""Changes on the driver as rows of a change log."""

from __future__ import annotations

import pyarrow as pa

from seiche.model import CHANGELOG_ROW_ID, EPOCH, OP, VNODE, Column, RelationId, RelationSchema
from seiche.plan.algebra import ChangeLog, Scan
from seiche.stream.changelog import logged
from seiche.types import INTEGER, VARCHAR

SHIPS = RelationSchema((Column("id", INTEGER), Column("name", VARCHAR)), ("id",))


def test_both_images_of_a_row_are_told_from_rows_that_come_and_leave() -> None:
    changes = pa.table(
        {
            "id": pa.array([1, 1, 2, 3], pa.int32()),
            "name": ["Aurora", "Boreas", "Castor", "Draco"],
            VNODE: pa.array([7, 7, 9, 11], pa.int16()),
            OP: pa.array([1, -1, -1, 1], pa.int8()),
            EPOCH: pa.array([5] * 4, pa.int64()),
        }
    )
    log = logged(ChangeLog(Scan(RelationId(1), SHIPS)), changes, first=10)
    found = {(row["id"], row["name"]): row for row in log.to_pylist()}
    assert {key: row["changelog_op"] for key, row in found.items()} == {
        (1, "Boreas"): 4,
        (1, "Aurora"): 3,
        (2, "Castor"): 2,
        (3, "Draco"): 1,
    }
    assert sorted(row[CHANGELOG_ROW_ID] for row in found.values()) == [10, 11, 12, 13]
    assert found[1, "Boreas"][CHANGELOG_ROW_ID] < found[1, "Aurora"][CHANGELOG_ROW_ID]
    assert all(row[OP] == 1 for row in found.values())
