"""Exact sums as the executors add them up: in machine words, put together once a group.

A decimal of 38 digits is an object that Spark makes anew for every row it adds. So a row's value is told in whole
numbers that fit a word, each is summed by itself, and the sums are put together when the group is done:

    bigint    high * 2^32 + low
    float     high * 2^32 + low + first * 10^-10 + second * 10^-20: what decimal(38, 20) holds of the value

A float with at most six decimals and below a billion, which is what most people store, is told by arithmetic alone:
the integer q nearest to x * 10^6 is the one if q / 10^6 is x. Such a decimal has at most 15 digits, and no two of
these are the same float, so it is the one that x prints as. Others take the way over their decimal. In the same way a
sum of such values is shown as a float without making a decimal of it: q / 10^6 is rounded right while q is below 2^53.

Where a view is built no row leaves, and mostly every value is told by arithmetic alone. Then three words are enough:
the two halves of q, and how many values there are, with those of another kind counted above bit 32. A group that has
any of these is in doubt: all are evaluated anew, with all words.

No word outgrows its type before a group has 900 million rows. All of it is Spark SQL text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from seiche.model import OP

_LOW_BITS = "4294967295L"  # 2^32 - 1
_SPLIT = "4294967296BD"
_TEN_DIGITS = "10000000000BD"

_HALF_BITS, _HALF = 24, "16777216BD"  # 2^24
_LOW_HALF = "16777215L"
_OTHER_KIND = "4294967297L"  # a value, and one of another kind

Columns = Mapping[str, str]  # names and what they are


@dataclass(frozen=True, slots=True)
class HastySum:
    """The sum of a column of floats over rows none of which leaves, if all are told by arithmetic alone."""

    prepared: Columns  # columns beside a row's own
    words: Columns  # the sums of a group of prepared rows
    combined: tuple[Columns, ...]  # columns beside these, step by step; the last step is the state of the group
    shown: str  # then the sum as a float, where there are values
    doubt: str  # whether it is not the sum after all


@dataclass(frozen=True, slots=True)
class FloatSum:
    """How the sum of a column of floats is made."""

    prepared: tuple[Columns, ...]  # columns beside a row's own, step by step: each may use those of the steps before
    exact: str  # a prepared row's value as decimal(38, 20); NULL where it has none
    fits: str  # whether that is the value, neither more nor less
    words: Columns  # the sums of a group of prepared rows
    whole: Columns  # the same where no row leaves
    combined: tuple[
        Columns, ...
    ]  # columns beside these, step by step; the last is the sum, NULL where it has outgrown it
    shown: str  # then the sum as a float, where there is one
    hasty: HastySum


def bigint_sum(value: str, *, whole: bool = False) -> str:
    """The sum of a bigint column as decimal(38, 0); 0 for no values. With `whole` no row leaves."""
    sum_of = _added if whole else _summed
    high, low = sum_of(f"shiftright({value}, 32)"), sum_of(f"({value} & {_LOW_BITS})")
    return f"cast(cast({high} as decimal(19,0)) * {_SPLIT} + {low} as decimal(38,0))"


def float_sum(name: str, type_: str, total: str, present: str, unfit: str) -> FloatSum:
    """The sum of a column of floats of a Spark type as a decimal(38, 20) named `total`.

    Beside it the state of a group has how many values are `present`, and how many are `unfit` for a decimal.
    """
    value, quick, slow = f"`{name}`", f"`_q_{name}`", f"`_e_{name}`"
    nearest = f"rint({value} * 1e6D)"
    is_quick = f"if({nearest} / 1e6D = {value}, cast({nearest} as bigint), null)"
    fraction = f"({slow} % 1BD) * {_TEN_DIGITS}"
    rest = f"(({fraction}) % 1BD) * {_TEN_DIGITS}"
    words = {
        f"_w0_{name}": f"shiftright(cast({slow} as bigint), 32)",
        f"_w1_{name}": f"coalesce({quick} div 1000000L, cast({slow} as bigint) & {_LOW_BITS})",
        f"_w2_{name}": f"coalesce({quick} % 1000000L * 10000L, cast({fraction} as bigint))",
        f"_w3_{name}": f"cast({rest} as bigint)",
    }
    high, low, first, second = (f"`{word}`" for word in words)
    no_more = f"{high} = 0 AND {second} = 0 AND {first} % 10000L = 0"
    small = f"abs({low}) < 9000000000L AND abs({first}) < 70000000000000000L"
    millionths = f"`_k_{name}`"
    # As a whole number of units of 10^-20: in decimals with a fraction Spark would give up digits when it adds them.
    wholes = f"try_cast(cast({high} as decimal(19,0)) * {_SPLIT} + {low} as decimal(18,0))"
    upper = f"try_multiply({wholes}, cast('100000000000000000000' as decimal(21,0)))"
    lower = f"cast(cast({first} as decimal(19,0)) * {_TEN_DIGITS} + {second} as decimal(38,0))"
    units = f"concat(cast(try_add({upper}, {lower}) as string), 'E-20')"
    summed = f"coalesce(cast({millionths} * 0.000001BD as decimal(38,20)), try_cast({units} as decimal(38,20)))"
    told_quickly = {f"_q_{name}": f"if(abs({value}) < 1e9D, {is_quick}, null)"}
    return FloatSum(
        prepared=(
            told_quickly,
            {f"_e_{name}": f"if({quick} is null, try_cast({value} as decimal(38,20)), null)"},
        ),
        exact=f"coalesce(cast({quick} * 0.000001BD as decimal(38,20)), {slow})",
        fits=f"({quick} is not null or cast({slow} as {type_}) <=> {value})",
        words={word: _summed(value) for word, value in words.items()},
        whole={word: _added(value) for word, value in words.items()},
        combined=(
            {f"_k_{name}": f"if({no_more} AND {small}, {low} * 1000000L + {first} div 10000L, null)"},
            {total: summed},
        ),
        shown=_shown(name, total),
        hasty=_hasty_sum(name, told_quickly, total, present, unfit),
    )


def _hasty_sum(name: str, told_quickly: Columns, total: str, present: str, unfit: str) -> HastySum:
    value, quick, values, high, low = (f"`{prefix}{name}`" for prefix in ("", "_q_", "_p_", "_h_", "_l_"))
    small = f"abs({high}) < {1 << 28}L AND {low} < {1 << 52}L"
    millionths = f"if({small}, shiftleft({high}, {_HALF_BITS}) + {low}, null)"
    large = f"(cast({high} as decimal(19,0)) * {_HALF} + cast({low} as decimal(19,0))) * 0.000001BD"
    return HastySum(
        prepared=told_quickly,
        words={
            f"_p_{name}": f"coalesce(sum(if({value} is null, 0L, if({quick} is null, {_OTHER_KIND}, 1L))), 0)",
            f"_h_{name}": _added(f"shiftright({quick}, {_HALF_BITS})"),
            f"_l_{name}": _added(f"({quick} & {_LOW_HALF})"),
        },
        combined=(
            {f"_k_{name}": millionths},
            {
                total: f"cast(coalesce(`_k_{name}` * 0.000001BD, {large}) as decimal(38,20))",
                present: f"{values} & {_LOW_BITS}",
                unfit: "0L",
            },
        ),
        shown=_shown(name, total),
        doubt=f"{values} > {_LOW_BITS}",
    )


def _shown(name: str, total: str) -> str:
    """A sum as a float: by a division where it is few millionths, else by way of its decimal."""
    return f"coalesce(cast(`_k_{name}` as double) / 1e6D, cast(`{total}` as double))"


def with_columns(rows: str, steps: Iterable[Columns]) -> str:
    """The rows of a query with more columns beside theirs, step by step."""
    for step in steps:
        rows = f"SELECT *, {', '.join(f'{value} AS `{name}`' for name, value in step.items())} FROM ({rows})"
    return rows


def _summed(word: str) -> str:
    """The sum of a word over the rows that come, less those that leave; 0 for no values."""
    return f"coalesce(sum({word} * `{OP}`), 0)"


def _added(word: str) -> str:
    """The sum of a word over rows none of which leaves. Spark would multiply each by one, and look for an overflow."""
    return f"coalesce(sum({word}), 0)"
