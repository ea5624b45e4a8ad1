"""Window functions over rows that a watermark has closed: which of their answers are final.

The rows of a partition come in the order of the watermarked column, and later ones come behind all that are closed. So
an answer over rows up to the current one is final at once. One over k rows that follow is when that many do; one over
a session is when a row follows that the gap parts from it. Until then a row is kept back. What GAP_FILL puts behind a
row comes when the next one is closed, and the row itself before that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from seiche.errors import FeatureNotSupported
from seiche.plan.algebra import Keyed, input_column
from seiche.plan.keyed import meaning
from seiche.plan.marks import reach
from seiche.sql.frames import SESSION_GAP
from seiche.sql.gap_fill import NEXT
from seiche.sql.literals import constant_integer

_RANKS = frozenset(("row_number", "rank", "dense_rank"))
_OF_PARTITION = frozenset(("percent_rank", "cume_dist", "ntile"))
_ROW, _PART, _LEFT, _STEP = "_at", "_part", "_ahead", "_step"


@dataclass(frozen=True, slots=True)
class _Needed:
    """What has to be there for an answer to be final: rows that follow, or a gap that does."""

    rows: int = 0
    gap: exp.Expr | None = None


def final_rows(plan: Keyed, bounds: Mapping[str, exp.Expr]) -> tuple[str, exp.Query]:
    """The field that all windows of a Keyed are ordered by and that has a bound, and a query for its final rows.

    The query is over rows that are closed. Raises FeatureNotSupported where an answer never is final.
    """
    inner = _innermost(plan.body)
    windows = list(inner.find_all(exp.Window))
    names = {_ordered_by(each, bounds) for each in windows}
    if len(names) != 1:
        raise _refused("Its window functions are ordered by different columns.")
    name = names.pop()
    ahead = {name for name in (field.name for field in plan.columns) if name.startswith(NEXT)}
    filled = [each for name in ahead for each in meaning(plan.body, name).find_all(exp.Window)]
    needed = [_needed(each) for each in windows if each not in filled] or [_Needed()]
    body = _with_ties_told(plan)
    windows = list(_innermost(body).find_all(exp.Window))
    rows = max(each.rows for each in needed)
    gaps = list(dict.fromkeys(each.gap for each in needed if each.gap is not None))
    if not rows and not gaps:
        return name, body
    place = _innermost(body)
    filtered = _kept(place.copy(), windows[0], rows, gaps)
    if place is body:
        return name, filtered
    place.replace(filtered)
    return name, body


def _with_ties_told(plan: Keyed) -> exp.Query:
    """The query with rows of the same moment in the order of their keys, so that an answer stays what it was."""
    body = plan.body.copy()
    source = plan.inputs[0]
    for window in _innermost(body).find_all(exp.Window):
        spec = window.args.get("spec")
        name = str(window.this.this).lower() if isinstance(window.this, exp.Anonymous) else window.this.key
        if name in ("row_number", "lag", "lead") or (spec is not None and str(spec.args.get("kind")).upper() == "ROWS"):
            told = [exp.Ordered(this=input_column(0, each), desc=False, nulls_first=True) for each in source.key]
            window.args["order"].set("expressions", [*window.args["order"].expressions, *told])
    return body


def _innermost(body: exp.Query) -> exp.Select:
    current = body
    while isinstance(current, exp.Select) and isinstance(current.args["from_"].this, exp.Subquery):
        current = current.args["from_"].this.this
    assert isinstance(current, exp.Select)
    return current


def _ordered_by(window: exp.Window, bounds: Mapping[str, exp.Expr]) -> str:
    order = window.args.get("order")
    first = order.expressions[0] if order is not None else None
    followed = reach(first.this) if first is not None else None
    if first is None or followed is None or not followed.exact or followed.column.name not in bounds:
        raise _refused("A window function is neither partitioned nor ordered by a column with a watermark.")
    if first.args.get("desc"):
        raise _refused("A window function is ordered by the latest rows first, and later ones may always come.")
    return str(followed.column.name)


def _needed(window: exp.Window) -> _Needed:
    function = window.this
    if isinstance(function, exp.IgnoreNulls):
        raise _refused("A window function passes over NULLs, and it is not known how far.")
    name = str(function.this).lower() if isinstance(function, exp.Anonymous) else function.key
    if name in _OF_PARTITION:
        raise _refused(f"The answer of {name} depends on all rows of its partition.")
    if name in _RANKS:
        return _Needed()
    if name in ("lag", "lead"):
        steps = _offset(function)
        return _Needed(max(steps if name == "lead" else -steps, 0))
    if window.meta.get(SESSION_GAP) is not None:
        return _Needed(gap=window.meta[SESSION_GAP])
    return _Needed(_following(window.args.get("spec")))


def _offset(function: exp.Expr) -> int:
    given = function.expressions if isinstance(function, exp.Anonymous) else []
    number = constant_integer(given[1]) if len(given) > 1 else 1
    if number is None:
        raise _refused("The distance of lead or lag is not a constant.")
    return number


def _following(spec: exp.WindowSpec | None) -> int:
    end = spec.args.get("end") if spec is not None else "CURRENT ROW"
    if end == "CURRENT ROW" or (spec is not None and spec.args.get("end_side") == "PRECEDING"):
        return 0
    number = constant_integer(end) if isinstance(end, exp.Expr) else None
    if spec is None or number is None or str(spec.args.get("kind")).upper() != "ROWS":
        raise _refused("The frame of a window function reaches beyond a number of rows that follow.")
    return number


def _kept(body: exp.Select, window: exp.Window, rows: int, gaps: Sequence[exp.Expr]) -> exp.Select:
    """The query without rows that lack some that follow, or whose session is the last of its partition.

    A session has ended when, at the current row or behind it, a step to the next row is wider than the gap.
    """
    shown = [exp.column(each.alias_or_name, quoted=True) for each in body.expressions]
    moment = window.args["order"].expressions[0].this
    parts = [exp.alias_(each.copy(), f"{_PART}{n}") for n, each in enumerate(window.args.get("partition_by") or ())]
    following = exp.Anonymous(this="lead", expressions=[moment.copy(), exp.Literal.number(1)])
    step = exp.Anonymous(this="try_subtract", expressions=[_over(following, window), moment.copy()])
    added: list[exp.Expr] = [*parts, exp.alias_(moment.copy(), _ROW)]
    conditions: list[exp.Expr] = []
    if rows:
        ahead = exp.Anonymous(this="lead", expressions=[exp.true(), exp.Literal.number(rows)])
        added.append(exp.alias_(_over(ahead, window), _LEFT))
        conditions.append(exp.Is(this=exp.column(_LEFT), expression=exp.Null()).not_())
    if gaps:
        added.append(exp.alias_(step, _STEP))
    body.set("expressions", [*body.expressions, *added])
    if not gaps:
        return exp.select(*shown).from_(body.subquery("l0"), copy=False).where(*conditions, copy=False)
    widest = exp.Window(
        this=exp.Max(this=exp.column(_STEP)),
        partition_by=[exp.column(each.alias) for each in parts],
        order=exp.Order(expressions=[exp.Ordered(this=exp.column(_ROW), desc=False, nulls_first=True)]),
        spec=exp.WindowSpec(kind="ROWS", start="CURRENT ROW", end="UNBOUNDED", end_side="FOLLOWING"),
        over="OVER",
    )
    middle = exp.select("*", exp.alias_(widest, "_widest")).from_(body.subquery("l0"), copy=False)
    conditions += [exp.GT(this=exp.column("_widest"), expression=gap.copy()) for gap in gaps]
    return exp.select(*shown).from_(middle.subquery("l0"), copy=False).where(*conditions, copy=False)


def _over(function: exp.Expr, window: exp.Window) -> exp.Window:
    made = exp.Window(
        this=function, partition_by=[each.copy() for each in window.args.get("partition_by") or ()], over="OVER"
    )
    made.set("order", window.args["order"].copy())
    return made


def _refused(sentence: str) -> FeatureNotSupported:
    return FeatureNotSupported(
        "the query cannot be emitted on window close",
        detail=sentence,
        hint="Order window functions by a column with a watermark, over frames that end with the current row, a number "
        "of rows behind it, or its session.",
    )


__all__ = ["final_rows"]
