"""The options of a WITH clause, as a connector reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from seiche.errors import InvalidParameter, nearest


class Options:
    """The options of a WITH clause, each taken once: what is left at the end nobody knows."""

    def __init__(self, given: Mapping[str, str], connector: str) -> None:
        self._given = given
        self._connector = connector
        self._taken: set[str] = set()

    def text(self, name: str, default: str) -> str:
        self._taken.add(name)
        return self._given.get(name, default)

    def has(self, name: str) -> bool:
        self._taken.add(name)
        return name in self._given

    def number(self, name: str, default: int, low: int, high: int) -> int:
        text = self.text(name, str(default))
        try:
            value = int(text)
        except ValueError:
            raise InvalidParameter(f'option "{name}" is not a whole number: {text}') from None
        if not low <= value <= high:
            raise InvalidParameter(f'option "{name}" is out of range: {text}', hint=f"Choose {low} to {high}.")
        return value

    def decimal(self, name: str, default: float) -> float:
        text = self.text(name, str(default))
        try:
            return float(text)
        except ValueError:
            raise InvalidParameter(f'option "{name}" is not a number: {text}') from None

    def one_of(self, name: str, default: str, *known: str) -> str:
        value = self.text(name, default).lower()
        if value not in known:
            raise InvalidParameter(f'option "{name}" cannot be {value}', hint=f"Choose {' or '.join(known)}.")
        return value

    def refuse_others(self, *, read_over: Callable[[str], bool] = lambda option: False) -> None:
        for name in self._given:
            if name not in self._taken and not read_over(name):
                raise InvalidParameter(
                    f'option "{name}" is not known to the connector {self._connector}',
                    detail="There are unexpected options in WITH clause.",
                    hint=nearest(name, self._taken),
                )
