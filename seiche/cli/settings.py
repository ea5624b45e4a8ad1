"""`seiche config`: each setting with its value, where that came from, and what it means."""

from __future__ import annotations

import json
import os
from typing import Any, TextIO

from seiche import config as configuration
from seiche.config import Config


def show(config: Config, *, as_json: bool, out: TextIO, err: TextIO) -> int:
    for variable in configuration.unknown_variables(os.environ):
        err.write(f"WARNING:  environment variable {variable} names no setting\n")
    if as_json:
        json.dump([_entry(*item) for item in config.items()], out, indent=2)
        out.write("\n")
        return 0
    rows = [(name, str(value), str(origin), meaning) for name, value, origin, meaning in config.items()]
    heads = ("name", "value", "origin", "meaning")
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(3)]
    for row in (heads, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        out.write("  ".join([*cells, row[3]]).rstrip() + "\n")
    return 0


def _entry(name: str, value: configuration.Value, origin: configuration.Origin, meaning: str) -> dict[str, Any]:
    setting = configuration.SETTING.get(name)
    return {
        "name": name,
        "value": value if isinstance(value, (int, float, str)) else str(value),
        "origin": str(origin),
        "unit": setting.unit if setting else "",
        "default": str(setting.default) if setting else "",
        "mutable": setting.mutable if setting else False,
        "meaning": meaning,
    }
