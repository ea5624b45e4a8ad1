"""What a database keeps on disk, as tests look at it."""

from __future__ import annotations

import os
from pathlib import Path


def relation_files(folder: Path) -> set[str]:
    """Every file below the folders of relations, also while some of them go away."""
    return {
        os.path.relpath(os.path.join(inside, name), folder)
        for relation in folder.glob("r[0-9]*")
        for inside, _, names in os.walk(relation)
        for name in names
    }
