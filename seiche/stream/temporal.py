"""TemporalFilter: rows that come and go as the clock moves.

With C the condition at the old epoch's time and C' at the new one's, the changes of a filtered input A are

    those of dA that fulfil C', and of the old A:  +1 for rows with C' and not C,  -1 for rows with C and not C'

Rows of the second kind lie between the old and the new value of a bound, so they are looked up by that range, and
only when `Horizons` cannot rule out that there are any: it knows the next moments at which a row crosses a bound.

Everything that is asked for is text in SQL, and everything here about moments is in microseconds since 1970.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp, parse_one

from seiche.model import EPOCH, OP, Epoch, RelationId, Segment
from seiche.plan.algebra import ClockBound, TemporalFilter
from seiche.plan.temporal import shift_micros
from seiche.sql.invocations import NOW
from seiche.storage.changes import number_sql
from seiche.storage.versions import RelationVersion

# The next moments that are remembered for a bound. Beyond them the input is asked again.
MOMENTS_MAX = 10_000

# Bounds that are remembered at all; the one that was not asked for the longest is forgotten.
BOUNDS_MAX = 1_000

Moments = npt.NDArray[np.int64]
ENDLESS = 2**63 - 1


class Crossing(Enum):
    """How many rows may cross a bound of a filter between two epochs."""

    NONE = 0
    FEW = 1
    MANY = 2


def held(plan: TemporalFilter, query: str, now_ms: int) -> str:
    """The rows of a query that the filter lets through at a time."""
    return f"SELECT * FROM ({query}) AS x WHERE {condition(plan.bounds, now_ms)}"


def condition(bounds: Sequence[ClockBound], now_ms: int) -> str:
    parts = (f"({each.value.sql('spark')}) {each.comparison} ({at(each.bound, now_ms)})" for each in bounds)
    return " AND ".join(parts)


def crossed(plan: TemporalFilter, old_ms: int, new_ms: int) -> str:
    """A condition that all rows fulfil which one of two times lets through and the other does not."""
    ranges = []
    for each in plan.bounds:
        value, old, new = each.value.sql("spark"), at(each.bound, old_ms), at(each.bound, new_ms)
        if each.comparison == "=":
            ranges.append(f"({value}) IN ({old}, {new})")
        else:
            ranges.append(f"(({value}) >= least({old}, {new}) AND ({value}) <= greatest({old}, {new}))")
    return " OR ".join(ranges)


def crossing_rows(plan: TemporalFilter, rows: str, old_ms: int, new_ms: int) -> str:
    """Of the input's weighted rows at the old epoch those that come or go, with their sign."""
    names = ", ".join(f"`{field.name}`" for field in plan.fields)
    was = f"coalesce({condition(plan.bounds, old_ms)}, false)"
    now = f"coalesce({condition(plan.bounds, new_ms)}, false)"
    sign = f"cast(if({now}, `{OP}`, -`{OP}`) as tinyint) AS `{OP}`"
    return f"SELECT {names}, {sign} FROM ({rows}) AS x WHERE {was} <> {now}"


def at(expression: exp.Expr, now_ms: int, *, stored: bool = False) -> str:
    """An expression at a time, as text for Spark.

    `stored` is for a time that stands in a SELECT list alone: the code that Spark makes for it serves all epochs.
    """
    number = exp.Literal.number(now_ms) if not stored else parse_one(number_sql(now_ms), dialect="spark")

    def moment(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Anonymous) and str(node.this).lower() == NOW:
            return exp.Anonymous(this="timestamp_millis", expressions=[number.copy()])
        return node

    return expression.transform(moment).sql("spark")


# --- which moments come next -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Horizon:
    """The values of a relation at an epoch, from `low` to `until`: sorted, and all that there are.

    Values of rows that left may be among them; that costs a look and nothing else.
    """

    epoch: Epoch
    low: int
    until: int
    moments: Moments

    def count(self, low: int, high: int) -> int:
        first, end = np.searchsorted(self.moments, low, "left"), np.searchsorted(self.moments, high, "right")
        return int(end - first)

    def with_rows(self, values: Moments, epoch: Epoch) -> Horizon:
        """The same with the values of rows that appeared or left until a later epoch."""
        inside = values[(values >= self.low) & (values <= self.until)]
        merged = np.sort(np.concatenate([self.moments, inside])) if len(inside) else self.moments
        return trimmed(Horizon(epoch, self.low, self.until, merged))


def trimmed(horizon: Horizon) -> Horizon:
    """The horizon with as many moments as are kept; it ends before the first one that is not."""
    if len(horizon.moments) <= MOMENTS_MAX:
        return horizon
    until = int(horizon.moments[MOMENTS_MAX]) - 1
    kept = horizon.moments[: np.searchsorted(horizon.moments, until, "right")]
    return replace(horizon, until=until, moments=kept)


class Horizons:
    """Tells whether the clock moves a row across a bound, mostly without Spark.

    What is remembered follows from storage: an epoch that is undone leaves nothing wrong behind, since what it wrote
    is not among the segments of any version that is asked for.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[RelationId, str, str], Horizon] = OrderedDict()

    def crossing(
        self, plan: TemporalFilter, version: RelationVersion, old_ms: int, new_ms: int, asked: Asked
    ) -> Crossing:
        """How many rows of the input, as it is at `version`, may cross a bound between two times."""
        found = [self._crossing(each, version, old_ms, new_ms, asked) for each in plan.bounds]
        return max(found, key=lambda each: each.value)

    def _crossing(
        self, bound: ClockBound, version: RelationVersion, old_ms: int, new_ms: int, asked: Asked
    ) -> Crossing:
        ends = [_moment(bound.bound, each, asked) for each in (old_ms, new_ms)]
        if ends[0] == ends[1]:
            return Crossing.NONE
        if ends[0] is None or ends[1] is None:
            return Crossing.MANY
        low, high = min(ends[0], ends[1]), max(ends[0], ends[1])
        name = (version.relation, bound.value.sql("spark"), bound.bound.sql("spark"))
        with self._lock:
            known = self._known.get(name) or _empty(version, low)
        known = _brought_up(known, bound, version, low, asked) if known is not None else None
        if known is None or known.until < high:
            if asked.values is None:
                return Crossing.MANY
            known = _listed(asked.values(bound.value, low), version.epoch, low)
        with self._lock:
            self._known[name] = known
            self._known.move_to_end(name)
            while len(self._known) > BOUNDS_MAX:
                self._known.popitem(last=False)
        if known.until < high:
            return Crossing.MANY
        return Crossing.FEW if known.count(low, high) else Crossing.NONE


@dataclass(frozen=True, slots=True)
class Asked:
    """What the horizon has to ask storage for.

    `rows` gives the rows of a segment that are in memory, `greatest` the greatest value of a column in a segment's
    file, in microseconds, `values` at most MOMENTS_MAX + 1 values from a moment on in their order, and `moment` what a
    constant expression comes to. Without the two that open files, what memory does not tell counts as many rows.
    """

    rows: Callable[[Segment], pa.Table | None]
    moment: Callable[[str], int | None]
    greatest: Callable[[Segment, str], int | None] | None = None
    values: Callable[[exp.Expr, int], Moments] | None = None


def _moment(bound: exp.Expr, now_ms: int, asked: Asked) -> int | None:
    shift = shift_micros(bound)
    return now_ms * 1000 + shift if shift is not None else asked.moment(at(bound, now_ms))


def _empty(version: RelationVersion, low: int) -> Horizon | None:
    """What is known of a relation that has all its rows in its log: nothing precedes it."""
    if version.base.files:
        return None
    return Horizon(version.base.fold_epoch, low, ENDLESS, np.empty(0, np.int64))


def _brought_up(known: Horizon, bound: ClockBound, version: RelationVersion, low: int, asked: Asked) -> Horizon | None:
    """The horizon at the version's epoch; None when the log does not tell."""
    if known.low > low or known.epoch > version.epoch or (version.base.files and version.base.fold_epoch > known.epoch):
        return None
    found = []
    for segment in version.segments:
        if segment.epoch_hi <= known.epoch:
            continue
        if not isinstance(bound.value, exp.Column):
            return None
        rows = asked.rows(segment)
        if rows is not None:
            found.append(_values(rows, bound.value.name, known.epoch))
            continue
        greatest = asked.greatest(segment, bound.value.name) if asked.greatest is not None else None
        if greatest is None or greatest >= low:
            return None
    kept = replace(known, low=low, moments=known.moments[np.searchsorted(known.moments, low, "left") :])
    return kept.with_rows(np.concatenate(found) if found else np.empty(0, np.int64), version.epoch)


def _values(rows: pa.Table, name: str, after: Epoch) -> Moments:
    fresh = rows.filter(pc.greater(rows[EPOCH], after))[name].drop_null()
    return micros(fresh.combine_chunks() if fresh.num_chunks != 1 else fresh.chunk(0))


def micros(values: pa.Array) -> Moments:
    """Dates and timestamps as microseconds; a column without a zone stands in UTC."""
    stamp = pa.timestamp("us", values.type.tz) if pa.types.is_timestamp(values.type) else pa.timestamp("us")
    counted: Moments = values.cast(stamp).cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.int64)
    return counted


def _listed(values: Moments, epoch: Epoch, low: int) -> Horizon:
    if len(values) > MOMENTS_MAX:
        return trimmed(Horizon(epoch, low, int(values[-1]) - 1, values))
    return Horizon(epoch, low, ENDLESS, values)


__all__ = [
    "MOMENTS_MAX",
    "Asked",
    "Crossing",
    "Horizons",
    "Moments",
    "at",
    "crossed",
    "crossing_rows",
    "held",
    "micros",
]
