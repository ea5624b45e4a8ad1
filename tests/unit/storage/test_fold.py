"""Which files of a log a fold takes over into the base as they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seiche.model import Column, RelationSchema
from seiche.storage.fold import is_like_a_base
from seiche.types import BIGINT, VARCHAR

BY_NUMBER = RelationSchema((Column("ship", BIGINT), Column("flag", VARCHAR, stored="flag#2")), ("ship",))


def written(folder: Path, numbers: Sequence[int | None], **others: pa.Array) -> pq.FileMetaData:
    """A file of row groups of three rows each."""
    path = folder / "file.parquet"
    pq.write_table(pa.table({"ship": pa.array(numbers, pa.int64()), **others}), path, row_group_size=3)
    return pq.ParquetFile(path).metadata


def vnodes(rows: int) -> dict[str, pa.Array]:
    return {"_vnode": pa.array([7] * rows, pa.int16())}


@pytest.mark.parametrize(
    ("numbers", "like"),
    [
        ([1, 2, 3, 4, 5, 6, 7], True),
        ([3, 1, 2, 6, 5, 4], True),  # within a row group any order will do
        ([1, 2, 3, 3, 3, 3, 3, 4], True),
        ([1, 2, 9, 4, 5, 6], False),
        ([4, 5, 6, 1, 2, 3], False),
        ([None, None, None, 1, 2, 3], False),  # no bounds to go by
    ],
)
def test_row_groups_follow_each_other_in_the_order_of_the_key(
    tmp_path: Path, numbers: Sequence[int | None], like: bool
) -> None:
    assert is_like_a_base(written(tmp_path, numbers, **vnodes(len(numbers))), BY_NUMBER) is like


def test_a_file_that_does_not_tell_vnodes_is_not_like_one_of_a_base(tmp_path: Path) -> None:
    assert not is_like_a_base(written(tmp_path, [1, 2, 3]), BY_NUMBER)


def test_a_key_is_looked_for_under_the_name_that_files_have_for_it(tmp_path: Path) -> None:
    by_flag = RelationSchema(BY_NUMBER.columns, ("flag",))
    flags = {"flag#2": pa.array(["a", "b", "c", "d"])}
    assert is_like_a_base(written(tmp_path, [4, 3, 2, 1], **flags, **vnodes(4)), by_flag)
    assert not is_like_a_base(written(tmp_path, [1, 2, 3, 4], **vnodes(4)), by_flag)
