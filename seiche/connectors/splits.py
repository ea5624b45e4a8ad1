"""Splits that take turns: row n is row n // splits of split n % splits."""

from __future__ import annotations

from collections.abc import Mapping


def split_offsets(rows: int, splits: int) -> dict[str, str]:
    """How far each split is after so many rows."""
    return {str(split): str((rows - split + splits - 1) // splits) for split in range(splits)}


def rows_before(offsets: Mapping[str, str]) -> int:
    """How many rows were made when the splits are so far."""
    return sum(int(offset) for offset in offsets.values())
