"""How many tasks a job may use: what users write, what is stored with the object, and the number it stands for.

    6             at most six tasks
    adaptive      as many as Spark sees fit; 0 and auto mean the same
    bounded(16)   adaptive, up to sixteen
    ratio(0.5)    half of the cores, at least one

A job whose session says nothing gets the default of its kind. Rows are kept by vnode, of which there are 256, so the
number may change at any time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.errors import InvalidParameter
from seiche.model import VNODES

PARALLELISM = "parallelism"
BACKFILL_PARALLELISM = "backfill_parallelism"
MAX_PARALLELISM = "max_parallelism"
ADAPTIVE = "adaptive"

_DEFAULTS = {"table": "bounded(4)", "source": "bounded(4)", "sink": "bounded(8)"}
_DEFAULT = "bounded(64)"
_BOUNDED = re.compile(r"bounded\(\s*([1-9]\d*)\s*\)")
_RATIO = re.compile(r"ratio\(\s*(0?\.\d+|1(?:\.0*)?)\s*\)")


@dataclass(frozen=True, slots=True)
class Parallelism:
    """`text` is the canonical form of what the user wrote."""

    text: str

    def tasks(self, cores: int) -> int | None:
        """At most so many tasks; None for as many as there are."""
        if self.text.isdecimal():
            return int(self.text)
        if bounded := _BOUNDED.fullmatch(self.text):
            return int(bounded[1]) if int(bounded[1]) < cores else None
        if ratio := _RATIO.fullmatch(self.text):
            return max(math.floor(cores * float(ratio[1])), 1)
        return None

    @property
    def fixed(self) -> int | None:
        """The number of tasks that was asked for; None for a rule."""
        return int(self.text) if self.text.isdecimal() else None

    def shown(self, cores: int) -> int:
        """The number of tasks on so many cores."""
        return self.tasks(cores) or cores


def read_parallelism(text: str, *, where: str) -> Parallelism | None:
    """None for DEFAULT. Raises InvalidParameter."""
    word = text.strip().lower()
    if word == "default":
        return None
    if word.isdecimal():
        return Parallelism(str(int(word)) if int(word) else ADAPTIVE)
    if word in (ADAPTIVE, "auto"):
        return Parallelism(ADAPTIVE)
    if _BOUNDED.fullmatch(word) or _RATIO.fullmatch(word):
        return Parallelism(re.sub(r"\s", "", word))
    raise InvalidParameter(
        f'{where} cannot be "{text}"', hint="Write a number of tasks, ADAPTIVE, 'bounded(n)' or 'ratio(f)'."
    )


def given(kind: ObjectKind, setting: Callable[[str], str]) -> dict[str, Any]:
    """What is stored with a new object of a kind, of the session's variables. Raises InvalidParameter."""
    of_kind = f"streaming_parallelism_for_{kind.value.replace(' ', '_')}"
    found: dict[str, Any] = {}
    for name in (of_kind, "streaming_parallelism"):
        wanted = read_parallelism(setting(name), where=name)
        if wanted is not None:
            found[PARALLELISM] = wanted.text
            break
    backfill = read_parallelism(setting("streaming_parallelism_for_backfill"), where=BACKFILL_PARALLELISM)
    if backfill is not None and kind is not ObjectKind.TABLE:
        found[BACKFILL_PARALLELISM] = backfill.text
    most = setting("streaming_max_parallelism")
    if most.lower() != "default":
        if not most.isdecimal() or not 1 <= int(most) <= VNODES:
            raise InvalidParameter(f'streaming_max_parallelism cannot be "{most}"', hint=f"Write 1 to {VNODES}.")
        found[MAX_PARALLELISM] = int(most)
    if PARALLELISM in found:
        check(Parallelism(found[PARALLELISM]), found)
    return found


def check(wanted: Parallelism, properties: Mapping[str, Any]) -> None:
    """Raises InvalidParameter for more tasks than the object may ever have."""
    most = properties.get(MAX_PARALLELISM, VNODES)
    if wanted.text.isdecimal() and int(wanted.text) > most:
        raise InvalidParameter(
            f"specified parallelism {wanted.text} should not exceed max parallelism {most}",
            hint=f"Write at most {most}, or ADAPTIVE.",
        )


def parallelism_of(item: CatalogObject) -> Parallelism:
    return Parallelism(item.properties.get(PARALLELISM) or _DEFAULTS.get(item.kind.value, _DEFAULT))


def backfill_parallelism_of(item: CatalogObject) -> Parallelism:
    """What holds while it is created: its own, or what it has ever after."""
    own = item.properties.get(BACKFILL_PARALLELISM)
    return parallelism_of(item) if own is None else Parallelism(own)


def max_parallelism_of(item: CatalogObject) -> int:
    return int(item.properties.get(MAX_PARALLELISM, VNODES))
