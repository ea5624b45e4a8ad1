"""Why a part of a query has no rule for changes: raised while lowering, caught where that part can be recomputed."""

from __future__ import annotations

from seiche.plan.algebra import Reason


class NotIncremental(Exception):
    """A construct has no change rule. Every code has an entry in the documentation."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = Reason(code, sentence)
