"""A tree is written as the words that it was read from."""

from __future__ import annotations

import pytest
import sqlglot

import seiche.sql.dialect  # noqa: F401  (registers the dialect)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT berths[1], berths[2:3], berths[:last], berths[last:] FROM ships",
        "SELECT MAP {'north': 2, 'south': depth + 1}, MAP {} FROM tides",
        "SELECT map_filter(berths, |k, v| v > 2), array_transform(loads, |x| x + 1) FROM ships",
        "SELECT INTERVAL '1 day 02:00', INTERVAL '3' HOUR, INTERVAL '1-2' YEAR TO MONTH",
        "SELECT moored IS UNKNOWN, moored IS NULL FROM ships",
        "SELECT count(*) OVER (ORDER BY at SESSION WITH GAP INTERVAL '5' MINUTE) FROM arrivals",
        "SELECT * FROM arrivals JOIN ships FOR SYSTEM_TIME AS OF proctime() ON ship = ships.id",
    ],
)
def test_what_is_read_is_written_in_the_same_words(text: str) -> None:
    assert sqlglot.parse_one(text, read="seiche").sql("seiche", normalize_functions=False) == text
