"""Parameters of a statement, `$1` and its followers: their types, found while the statement is bound, and their values.

A value is never pasted into the text of a statement. The tree keeps its parameter until binding meets it and puts a
constant of the parameter's type in its place, read from the value's text as a quoted literal would be.

A type that the client does not name is what the first place that needs one makes of it, as PostgreSQL has it for a
quoted literal: the other side of a comparison, a column to insert into, a function's argument. Where nothing needs
one it is `character varying`.
"""

from __future__ import annotations

from collections.abc import Sequence

from seiche.errors import ProtocolViolation, UndefinedParameter
from seiche.types import VARCHAR, Kind, SqlType

PARAMETER = "parameter"  # the mark on a node that stands for a parameter without a type yet
_NUMBER_MAX = 65_535


class Parameters:
    """The types known so far and, once the statement is to run, the values as text (None is NULL)."""

    def __init__(self, types: Sequence[SqlType | None] = (), values: Sequence[str | None] | None = None) -> None:
        if values is not None and len(values) != len(types):
            raise ProtocolViolation(f"{len(values)} values were given for {len(types)} parameters", fatal=False)
        self._types: list[SqlType | None] = list(types)
        self._values = values

    def type(self, number: int) -> SqlType | None:
        """The type of a parameter; None while nothing has needed one."""
        if not 1 <= number <= _NUMBER_MAX:
            raise UndefinedParameter(f"there is no parameter ${number}")
        if number > len(self._types):
            if self._values is not None:
                raise UndefinedParameter(f"there is no parameter ${number}")
            self._types.extend([None] * (number - len(self._types)))
        return self._types[number - 1]

    def infer(self, number: int, type_: SqlType) -> None:
        """The first place that needs a type decides."""
        if self.type(number) is None and type_.kind is not Kind.NULL:
            self._types[number - 1] = type_

    @property
    def has_values(self) -> bool:
        return self._values is not None

    def value(self, number: int) -> str | None:
        assert self._values is not None
        return self._values[number - 1]

    def values(self) -> dict[int, str | None] | None:
        """All values by their numbers; None before the statement is to run."""
        return dict(enumerate(self._values, start=1)) if self._values is not None else None

    def types(self) -> tuple[SqlType, ...]:
        """All types, after binding."""
        return tuple(each or VARCHAR for each in self._types)
