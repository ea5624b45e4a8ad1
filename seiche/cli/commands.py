"""The shell's backslash commands, as values: `read` turns a line into one, `session.py` carries it out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from seiche.errors import SyntaxError_, nearest


@dataclass(frozen=True, slots=True)
class RunSql:
    """A command that stands for a statement, such as \\dt for SHOW TABLES."""

    sql: str


@dataclass(frozen=True, slots=True)
class ListRelations:
    """\\d without a name: all relations with their kinds, from one SHOW statement a kind."""


@dataclass(frozen=True, slots=True)
class Toggle:
    option: str  # "timing" or "expanded"
    value: bool | None  # None: the opposite of what it is


@dataclass(frozen=True, slots=True)
class Include:
    path: Path


@dataclass(frozen=True, slots=True)
class Print:
    text: str


@dataclass(frozen=True, slots=True)
class Quit:
    pass


Command = RunSql | ListRelations | Toggle | Include | Print | Quit

# Kind as \d names it, and the statement that lists its relations.
RELATION_LISTS = (
    ("table", "SHOW TABLES"),
    ("materialized view", "SHOW MATERIALIZED VIEWS"),
    ("view", "SHOW VIEWS"),
)

_LISTS = {
    "dt": "SHOW TABLES",
    "dm": "SHOW MATERIALIZED VIEWS",
    "dv": "SHOW VIEWS",
    "dn": "SHOW SCHEMAS",
    "du": "SHOW USERS",
}

HELP = r"""General
  \q                     leave (also Ctrl-D)
  \? or \h [STATEMENT]   this list; syntax of a statement
  \i FILE                run the statements of a file
  \timing [on|off]       show how long each statement took
  \x [on|off]            one line a value, for wide rows

What exists (PATTERN: a name, with * for any characters)
  \d                     all relations
  \d NAME                columns of a relation
  \dt [PATTERN]          tables
  \dm [PATTERN]          materialized views
  \dv [PATTERN]          views
  \dn [PATTERN]          schemas
  \du [PATTERN]          users

A statement ends with a semicolon and may take several lines. Ctrl-C clears the
line, or cancels the statement that runs."""

STATEMENTS = {
    "ALTER": "ALTER { TABLE | VIEW | MATERIALIZED VIEW } name RENAME TO name",
    "ALTER SYSTEM": "ALTER SYSTEM SET parameter { = | TO } { value | DEFAULT }",
    "CREATE MATERIALIZED VIEW": "CREATE MATERIALIZED VIEW [ IF NOT EXISTS ] name [ ( column [, ...] ) ] AS query",
    "CREATE SCHEMA": "CREATE SCHEMA [ IF NOT EXISTS ] name",
    "CREATE TABLE": """CREATE TABLE [ IF NOT EXISTS ] name (
    column type [ NOT NULL ] [ DEFAULT expression ] [ AS expression ] [ PRIMARY KEY ] [, ...]
    [, PRIMARY KEY ( column [, ...] ) ]
) [ APPEND ONLY ] [ ON CONFLICT { OVERWRITE | IGNORE | DO UPDATE IF NOT NULL } ]""",
    "CREATE USER": "CREATE USER name [ WITH option [ ... ] ]",
    "CREATE VIEW": "CREATE VIEW [ IF NOT EXISTS ] name [ ( column [, ...] ) ] AS query",
    "DELETE": "DELETE FROM table [ WHERE condition ] [ RETURNING expression [, ...] ]",
    "DESCRIBE": "DESCRIBE relation",
    "DROP": """DROP { TABLE | MATERIALIZED VIEW | VIEW | SCHEMA | USER }
    [ IF EXISTS ] name [, ...] [ CASCADE | RESTRICT ]""",
    "EXPLAIN": "EXPLAIN [ ( option [, ...] ) ] statement",
    "FLUSH": "FLUSH\n\nReturns when everything written before it is visible in every view.",
    "INSERT": """INSERT INTO table [ ( column [, ...] ) ] { VALUES ( expression [, ...] ) [, ...] | query }
    [ RETURNING expression [, ...] ]""",
    "SELECT": """[ WITH name AS ( query ) [, ...] ]
SELECT [ DISTINCT ] expression [ [ AS ] name ] [, ...]
    [ FROM relation [ [ AS ] alias ] [ [ INNER | LEFT | RIGHT | FULL ] JOIN relation ON condition ] [, ...] ]
    [ WHERE condition ] [ GROUP BY expression [, ...] ] [ HAVING condition ]
    [ { UNION | INTERSECT | EXCEPT } [ ALL ] query ]
    [ ORDER BY expression [ ASC | DESC ] [ NULLS { FIRST | LAST } ] [, ...] ] [ LIMIT n ] [ OFFSET n ]""",
    "SET": "SET variable { = | TO } { value | DEFAULT }",
    "SHOW": """SHOW { variable | ALL | PARAMETERS }
SHOW { TABLES | MATERIALIZED VIEWS | VIEWS | SCHEMAS | USERS | JOBS } [ FROM schema ] [ LIKE pattern ]
SHOW CREATE { TABLE | MATERIALIZED VIEW | VIEW } name""",
    "UPDATE": """UPDATE table SET column = expression [, ...] [ WHERE condition ]
    [ RETURNING expression [, ...] ]""",
}

NAMES = ("q", "?", "h", "i", "timing", "x", "d", *_LISTS)

_IDENTIFIER = r'(?:"(?:[^"]|"")+"|[\w$]+)'
_NAME = re.compile(rf"{_IDENTIFIER}(?:\.{_IDENTIFIER}){{0,2}}")


def read(line: str) -> Command:
    """The command on a line that begins with a backslash. Raises SyntaxError_ for one that is none."""
    name, argument = _split(line)
    match name:
        case "q":
            return Quit()
        case "?":
            return Print(HELP)
        case "h":
            return Print(_syntax(argument) if argument else f"{HELP}\n\nSyntax of: {', '.join(STATEMENTS)}")
        case "i":
            if not argument:
                raise SyntaxError_(r"\i needs a file", hint=r"Type \i path/to/file.sql")
            return Include(Path(_unquoted(argument)).expanduser())
        case "timing":
            return Toggle("timing", _on_off(name, argument))
        case "x":
            return Toggle("expanded", _on_off(name, argument))
        case "d":
            if not argument:
                return ListRelations()
            if not _NAME.fullmatch(argument):
                raise SyntaxError_(f"\\d needs one name, not: {argument}", hint='Put unusual names in "double quotes".')
            return RunSql(f"DESCRIBE {argument}")
        case _ if name in _LISTS:
            return RunSql(_LISTS[name] + _like(argument))
        case _:
            raise SyntaxError_(
                f"invalid command \\{name}", hint=nearest(name, NAMES) if len(name) > 2 else r"Try \? for help."
            )


def _split(line: str) -> tuple[str, str]:
    name, _, argument = line.strip().removeprefix("\\").partition(" ")
    # Typing a semicolon after everything is a habit that should not hurt.
    return name.rstrip(";"), argument.strip().rstrip(";").rstrip()


def _on_off(name: str, argument: str) -> bool | None:
    match argument.lower():
        case "":
            return None
        case "on" | "true" | "1":
            return True
        case "off" | "false" | "0":
            return False
        case _:
            raise SyntaxError_(f"\\{name} can be on or off, not: {argument}", hint=f"Type \\{name} on or \\{name} off")


def _unquoted(argument: str) -> str:
    if len(argument) > 1 and argument[0] == argument[-1] and argument[0] in "'\"":
        return argument[1:-1]
    return argument


def _like(pattern: str) -> str:
    """The LIKE clause of a psql pattern: `*` is any characters, `?` one, and unquoted letters fold to lower case."""
    if not pattern:
        return ""
    text = pattern[1:-1] if re.fullmatch('".*"', pattern) else pattern.lower()
    escaped = re.sub(r"([\\%_])", r"\\\1", text).replace("*", "%").replace("?", "_").replace("'", "''")
    return f" LIKE '{escaped}'"


def _syntax(topic: str) -> str:
    wanted = " ".join(topic.upper().split())
    found = [f"{name}\n\n{text}" for name, text in STATEMENTS.items() if name.startswith(wanted)]
    if not found:
        return f'No help for "{topic}". There is help for: {", ".join(STATEMENTS)}'
    return "\n\n".join(found)
