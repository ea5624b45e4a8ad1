"""The reference of functions and operators, written from what is registered.

`python -m seiche.sql.reference docs/sql.md` puts it between the two marks in that file; with `--check` it only tells
whether the file is up to date. What is no function to the registry (syntax, windows, operators) is listed here.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from seiche.sql.aggregates import aggregate_names
from seiche.sql.collecting import HYPOTHETICAL, ORDERED
from seiche.sql.functions.registry import Any_, Overload, Parameter, overloads
from seiche.sql.tables import SET_RETURNING
from seiche.sql.windows import window_names

BEGIN, END = "<!-- functions: begin -->", "<!-- functions: end -->"

FAMILIES = {
    "strings": "Text",
    "patterns": "Regular expressions",
    "bytea": "Bytes",
    "ciphers": "Ciphers",
    "maths": "Numbers",
    "gamma": "Numbers",
    "angles": "Trigonometry in degrees",
    "numerals": "Numbers as text",
    "making": "Dates and times",
    "temporal": "Dates and times",
    "spans": "Spans of time",
    "templates": "Dates and times as text",
    "arrays": "Arrays",
    "maps": "Maps",
    "jsonb": "jsonb",
    "json_edit": "jsonb, changed",
    "json_records": "jsonb into structs and maps",
    "jsonpath": "jsonb by path",
    "system": "The rest",
}
OPERATORS: dict[str, str] = {
    "numbers": "+ - * / % ^ |/ ||/ @ & | # ~ << >>",
    "comparison": "= <> != < <= > >= BETWEEN IN ANY ALL IS DISTINCT FROM IS NULL IS TRUE IS UNKNOWN",
    "logic": "AND OR NOT",
    "text": "|| LIKE ILIKE ~~ ~~* !~~ !~~* SIMILAR TO ~ ~* !~ !~* ^@",
    "dates and times": "+ - * / OVERLAPS AT TIME ZONE",
    "arrays": "|| @> <@ && [ ] [ : ]",
    "maps": "[ ]",
    "jsonb": "-> ->> #> #>> @> <@ ? ?| ?& || - #- @? @@ [ ] IS JSON",
}
SYNTAX = (
    "CASE COALESCE NULLIF GREATEST LEAST CAST :: EXTRACT ROW ARRAY EXISTS now() current_timestamp current_date "
    "localtimestamp localtime current_time proctime() current_user array_transform MAP map_filter"
).split(" ")
TIME_WINDOWS = ("tumble(table, column, size [, offset])", "hop(table, column, hop, size [, offset])")
VOLATILE = ("random", "gen_random_uuid")
_SHORT = {
    "character varying": "text",
    "character varying[]": "text[]",
    "double precision": "double",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
}


def _parameter(parameter: Parameter) -> str:
    if isinstance(parameter, Any_):
        return parameter.value
    return _SHORT.get(str(parameter), str(parameter))


def _signature(name: str, overload: Overload) -> str:
    shown = [_parameter(each) for each in overload.parameters]
    required = len(shown) - overload.optional
    text = ", ".join(shown[:required])
    for index, each in enumerate(shown[required:], start=required):
        text += f" [{', ' if index else ''}{each}"
    text += "]" * overload.optional
    return f"{name}({text}{', …' if overload.variadic else ''})"


def _families() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {title: [] for title in FAMILIES.values()}
    for name, made in sorted(overloads().items()):
        for overload in made:
            module = overload.make.__module__.rsplit(".", 1)[-1]
            shown = _signature(name, overload)
            if shown not in found[FAMILIES[module]]:
                found[FAMILIES[module]].append(shown)
    return found


def render() -> str:
    """The whole section between the marks."""

    def listed(items: list[str]) -> str:
        return ", ".join(f"`{item}`" for item in items).replace("|", "\\|")

    lines = [BEGIN, "", "| operators on | |", "|---|---|"]
    lines += [f"| {kind} | {listed(_symbols(symbols))} |" for kind, symbols in OPERATORS.items()]
    lines += ["", "| functions of | |", "|---|---|"]
    lines += [f"| {title} | {listed(signatures)} |" for title, signatures in _families().items()]
    lines += ["", "| other | |", "|---|---|"]
    lines.append(f"| with a grammar of their own | {listed(SYNTAX)} |")
    lines.append(f"| aggregates | {listed(sorted(aggregate_names()))} |")
    ordered = [f"{name}(value ORDER BY …)" for name in sorted(ORDERED)]
    lines.append(f"| aggregates with an order | {listed(ordered)} |")
    hypothetical = [f"{name}(value) WITHIN GROUP (ORDER BY …)" for name in sorted(HYPOTHETICAL)]
    lines.append(f"| ranks of a row that is not there | {listed(hypothetical)} |")
    lines.append(f"| window functions | {listed(sorted(window_names()))} and every aggregate |")
    lines.append(f"| functions that return rows | {listed(sorted(SET_RETURNING))} |")
    lines.append(f"| time windows, in FROM | {listed(list(TIME_WINDOWS))} |")
    lines.append(f"| never the same answer, so not in a materialized view | {listed(list(VOLATILE))} |")
    return "\n".join([*lines, "", END])


def _symbols(symbols: str) -> list[str]:
    """The words of a list; those of one operator stay together."""
    joined = symbols
    for several in (
        "IS DISTINCT FROM",
        "IS NULL",
        "IS TRUE",
        "IS UNKNOWN",
        "IS JSON",
        "SIMILAR TO",
        "AT TIME ZONE",
        "[ ]",
        "[ : ]",
    ):
        joined = joined.replace(several, several.replace(" ", "\0"))
    return [word.replace("\0", " ") for word in joined.split(" ")]


def updated(text: str) -> str:
    """The text with the section between its marks written anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + render() + after


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    text = arguments.file.read_text()
    new = updated(text)
    if arguments.check:
        return 0 if new == text else 1
    arguments.file.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
