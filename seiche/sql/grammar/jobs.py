"""Statements about jobs: how views are refreshed, throttled, waited for, and moved to other names."""

from __future__ import annotations

import json

from sqlglot.tokenizer_core import TokenType

from seiche.errors import SyntaxError_, nearest
from seiche.sql.grammar.cursor import Cursor
from seiche.sql.statements import (
    AlterRelation,
    ObjectKind,
    ObjectName,
    RefreshView,
    SetBackfillRateLimit,
    SetConfig,
    SetOptions,
    SetParallelism,
    SetQuery,
    SetRetention,
    SetSchema,
    SetSinkRateLimit,
    SwapWith,
    Tended,
    Vacuum,
    Wait,
)

_MOVED = (
    ObjectKind.TABLE,
    ObjectKind.VIEW,
    ObjectKind.MATERIALIZED_VIEW,
    ObjectKind.SOURCE,
    ObjectKind.SINK,
    ObjectKind.SUBSCRIPTION,
    ObjectKind.FUNCTION,
)
_JOBS = (
    ObjectKind.TABLE,
    ObjectKind.MATERIALIZED_VIEW,
    ObjectKind.SOURCE,
    ObjectKind.SINK,
    ObjectKind.INDEX,
)
_BACKFILLED = (ObjectKind.MATERIALIZED_VIEW, ObjectKind.SINK, ObjectKind.INDEX)


def alter_relation(cursor: Cursor, kind: ObjectKind, name: ObjectName) -> AlterRelation | None:
    """What follows ALTER <kind> <name>; None when it is none of ours, with the cursor where it was."""
    if kind in _MOVED:
        if cursor.accept("set", "schema"):
            return AlterRelation(kind, name, SetSchema(cursor.name()))
        if cursor.accept("swap", "with"):
            return AlterRelation(kind, name, SwapWith(cursor.object_name()))
    if kind in _JOBS:
        if cursor.accept("set", "parallelism"):
            return AlterRelation(kind, name, SetParallelism(cursor.setting()))
        if cursor.accept("set", "backfill_parallelism"):
            return AlterRelation(kind, name, SetParallelism(cursor.setting(), backfill=True))
        if cursor.accept("set", "config"):
            values = cursor.in_parentheses(lambda: _config(cursor), comma_may_end=True)
            return AlterRelation(kind, name, SetConfig(values))
        if cursor.accept("reset", "config"):
            names = cursor.in_parentheses(cursor.option_name, comma_may_end=True)
            return AlterRelation(kind, name, SetConfig(tuple((each, None) for each in names)))
    if kind is ObjectKind.SUBSCRIPTION and cursor.accept("set", "retention"):
        if not cursor.accept_symbol(TokenType.EQ):
            cursor.expect("to")
        return AlterRelation(kind, name, SetRetention(cursor.string()))
    if kind in _BACKFILLED and cursor.accept("set", "backfill_rate_limit"):
        return AlterRelation(kind, name, SetBackfillRateLimit(cursor.setting()))
    if kind is ObjectKind.SINK and cursor.accept("set", "sink_rate_limit"):
        return AlterRelation(kind, name, SetSinkRateLimit(cursor.setting()))
    if kind is ObjectKind.MATERIALIZED_VIEW:
        if cursor.accept("as"):
            return AlterRelation(kind, name, SetQuery(cursor.query(cursor.rest())))
        if cursor.sees("set") and cursor.word(1) == "":
            cursor.index += 1
            return AlterRelation(kind, name, SetOptions(cursor.options()))
    return None


def _config(cursor: Cursor) -> tuple[str, str | None]:
    name = cursor.option_name()
    cursor.expect_symbol(TokenType.EQ)
    if cursor.accept("null"):
        return name, None
    plain = cursor.word() in ("true", "false") or not (cursor.word() or _is_text(cursor))
    value = cursor.value()
    return name, value if plain else json.dumps(value)


def _is_text(cursor: Cursor) -> bool:
    return cursor.sees_symbol(TokenType.STRING) or cursor.sees_symbol(TokenType.IDENTIFIER)


def refresh(cursor: Cursor) -> RefreshView:
    cursor.expect("materialized", "view")
    return RefreshView(cursor.object_name())


_VACUUM_OPTIONS = (
    "full", "freeze", "verbose", "analyze", "disable_page_skipping", "skip_locked", "index_cleanup", "process_main",
    "process_toast", "truncate", "parallel", "skip_database_stats", "only_database_stats", "buffer_usage_limit",
)  # fmt: skip
_ANALYZE_OPTIONS = ("verbose", "skip_locked", "buffer_usage_limit")
_OFF = ("false", "off", "0")


def vacuum(cursor: Cursor, *, folds: bool) -> Vacuum:
    """VACUUM [(option, …) | FULL FREEZE VERBOSE ANALYZE] [relation [(columns)], …], and ANALYZE likewise."""
    given: set[str] = set()
    known = _VACUUM_OPTIONS if folds else _ANALYZE_OPTIONS

    def option() -> None:
        position, word = cursor.position(), cursor.word().replace("analyse", "analyze")
        if word not in known:
            verb = "VACUUM" if folds else "ANALYZE"
            raise SyntaxError_(f'unrecognized {verb} option "{word}"', hint=nearest(word, known), position=position)
        cursor.index += 1
        ends = cursor.sees_symbol(TokenType.COMMA) or cursor.sees_symbol(TokenType.R_PAREN)
        if ends or cursor.value().lower() not in _OFF:
            given.add(word)

    if cursor.sees_symbol(TokenType.L_PAREN):
        cursor.in_parentheses(option)
    else:
        for word in ("full", "freeze", "verbose", "analyze", "analyse") if folds else ("verbose",):
            if cursor.accept(word):
                given.add(word.replace("analyse", "analyze"))
    relations = cursor.comma_separated(lambda: _tended(cursor)) if cursor.peek() is not None else ()
    return Vacuum(relations, folds, not folds or "analyze" in given, "verbose" in given)


def _tended(cursor: Cursor) -> Tended:
    return Tended(cursor.object_name(), cursor.column_names())


def wait(cursor: Cursor) -> Wait:
    if cursor.accept("materialized", "view"):
        return Wait(cursor.object_name())
    return Wait()
