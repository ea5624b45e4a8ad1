"""Recorded texts: what a test produces is compared with a file that a person has read.

SEICHE_GOLDEN=rewrite writes the files anew instead; read the difference before committing it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Read when the tests are collected: while one runs, no SEICHE_* of the developer's shell is visible.
_REWRITE = os.environ.get("SEICHE_GOLDEN") == "rewrite"
_FOLDER = Path(__file__).parent


def check(name: str, actual: str) -> None:
    """Fails when `actual` is not the text of the file `name` below this folder."""
    path = _FOLDER / name
    text = actual.rstrip() + "\n"
    if _REWRITE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    if not path.exists():
        pytest.fail(f"{name} is not recorded yet; run with SEICHE_GOLDEN=rewrite and read it")
    assert text == path.read_text(encoding="utf-8"), f"{name} differs; SEICHE_GOLDEN=rewrite records it anew"


def recorded(folder: str) -> set[str]:
    """The names of the files in a folder, without their endings."""
    return {path.stem for path in (_FOLDER / folder).iterdir()}
