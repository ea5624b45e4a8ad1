"""The ISO year of an interval, as PostgreSQL counts it: its years, months and days taken for a date as they are."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from seiche.sql.nodes import let, typed
from seiche.types import BIGINT


def _day(year: str, month: str, day: str) -> str:
    """The Julian day, by integer arithmetic that cuts towards zero; a year begins in March of 4800 BC."""
    leap = f"{year} DIV 4 - {year} DIV 100 + {year} DIV 400"
    return f"({year} * 365 - 32167 + {leap} + (7834 * {month}) DIV 256 + {day})"


def _start(year: str) -> str:
    """The Monday of the week that the fourth of January is in."""
    fourth = _day(f"({year} + 4799)", "14", "4")
    return f"({fourth} - pmod({fourth}, 7))"


def iso_year(years: exp.Expr, months: exp.Expr, days: exp.Expr) -> exp.Expr:
    late = f"(n - {_start('b')}) DIV 7 + 1 >= 52 AND n >= {_start('(b + 1)')}"
    year = _let("b", f"CASE WHEN n < {_start('y')} THEN y - 1 ELSE y END", f"CASE WHEN {late} THEN b + 1 ELSE b END")
    shifted = "(y + CASE WHEN m > 2 THEN 4800 ELSE 4799 END)"
    number = _formula(_day(shifted, "(CASE WHEN m > 2 THEN m + 1 ELSE m + 13 END)", "d"))
    counted = let("n", number, BIGINT, year)
    return let("y", years, BIGINT, let("m", months, BIGINT, let("d", days, BIGINT, counted)))


def _let(name: str, value: str, body: str) -> exp.Expr:
    return let(name, _formula(value), BIGINT, _formula(body))


def _formula(sql: str) -> exp.Expr:
    return typed(sqlglot.parse_one(sql, dialect="spark"), BIGINT)
