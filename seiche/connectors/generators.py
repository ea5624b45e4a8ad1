"""The connectors that make rows up, by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from seiche.connectors import datagen, nexmark
from seiche.errors import FeatureNotSupported
from seiche.model import Column

CONNECTOR = "connector"


class Generator(Protocol):
    """Makes the rows of one source: what is in a row follows from its number, counted from 0."""

    @property
    def rows_per_second(self) -> int: ...

    @property
    def rows(self) -> int | None:
        """How many there are in all; None: no end."""
        ...

    def table(self, first: int, count: int, *, created_ms: int, now_ms: int) -> pa.Table:
        """The rows with the numbers `first` and up; fewer than `count` at the end."""
        ...

    def offsets(self, rows: int) -> dict[str, str]:
        """How far each split is after so many rows."""
        ...


_MAKERS: Mapping[str, Callable[[Sequence[Column], Mapping[str, str]], Generator]] = {
    datagen.NAME: datagen.generator,
    nexmark.NAME: nexmark.nexmark,
}


def generator_of(columns: Sequence[Column], options: Mapping[str, str]) -> Generator:
    """The generator that the options of a source name, of columns that are not computed. Raises what is wrong there."""
    connector = options[CONNECTOR]
    maker = _MAKERS.get(connector.lower())
    if maker is None:
        raise FeatureNotSupported(
            f'connector "{connector}" is not supported',
            hint=f"{' and '.join(_MAKERS)} make up rows, to try things out.",
        )
    return maker(columns, options)


__all__ = ["Generator", "generator_of"]
