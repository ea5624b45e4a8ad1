"""Names that operators use beside the columns of a relation are names that no user's column can have."""

from __future__ import annotations

import re
from pathlib import Path

import seiche
from seiche.model import RESERVED_COLUMNS

# Part of a stored schema, where a clash is found when the view is planned.
STORED = {"_count", "_n", "_branch"}
_IN_SQL = re.compile(r"`(_[a-z0-9_]+)`| AS (_[a-z0-9_]+)\b|^_?[A-Z_]+ = \"(_[a-z0-9_]+)\"", re.MULTILINE)


def test_every_name_that_the_sql_of_operators_makes_up_is_reserved() -> None:
    root = Path(seiche.__file__).parent
    texts = [path.read_text(encoding="utf-8") for part in ("stream", "storage") for path in (root / part).rglob("*.py")]
    used = {
        name
        for text in texts
        for found in _IN_SQL.findall(text)
        for name in found
        if name and f"def {name}(" not in text  # a function that a docstring mentions
    }
    assert "_op" in used
    assert used - STORED <= RESERVED_COLUMNS
