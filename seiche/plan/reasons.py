"""Why a part of a query has no rule for changes: raised while lowering, caught where that part can be recomputed."""

from __future__ import annotations

from seiche.plan.algebra import Reason


class NotIncremental(Exception):
    """A construct has no change rule. Every code has an entry in the documentation."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = Reason(code, sentence)


# What to write instead, by reason code. The documentation says more about each.
REMEDIES = {
    "aggregate": "Group by a column, or keep the rows in the view and aggregate when reading.",
    "constant": "Nothing has to be done.",
    "grouping_sets": "Put the grouping into a derived table, and join it.",
    "lateral": "Group by the column that ties the two, and join.",
    "limit": "Leave OFFSET and large limits to the query that reads the view.",
    "pivot": "Write aggregates with FILTER (WHERE …), one for each column, or a UNION ALL.",
    "recursion": "Join the table with itself as often as there are levels, or leave the recursion to the query that "
    "reads the view.",
    "shape": "Write plain tables and derived tables, joined by JOIN … ON.",
    "subquery": "Write a join with a derived table that is grouped by the columns that tie the two.",
    "table_function": "Store the elements as rows of a table of their own.",
    "time": "Compare a value of a row alone with now(), as in at > now() - INTERVAL '1 hour'.",
    "untyped": "Write a cast around the expression.",
    "using": "Write JOIN … ON.",
    "window": "Add PARTITION BY, or ask for the first rows with ORDER BY … LIMIT.",
    "with": "Write derived tables or views.",
}


def what_to_write(reasons: tuple[Reason, ...]) -> str:
    """The remedies for reasons, in sentences."""
    return " ".join(dict.fromkeys(REMEDIES[each.code] for each in reasons))
