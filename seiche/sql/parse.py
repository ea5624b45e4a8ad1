"""Text to statements: `parse` for programs, `split` for a prompt that is still being typed at.

    text ── tokens ── cut at semicolons ── one small descent per statement ── Statement
                                              └─ query and expression parts ── sqlglot ── tree, names folded

The statements' own grammar is read token by token in `seiche.sql.grammar`; only queries and scalar expressions go
to sqlglot, in `seiche.sql.trees`. Here is the table of verbs that leads from one to the other.

Every syntax error names the token it stopped at, in PostgreSQL's words, with its 1-based position in the text.
Names are folded as PostgreSQL folds them: lower case unless quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlglot.tokenizer_core import Token, TokenType

from seiche.errors import FeatureNotSupported, InvalidParameter, nearest
from seiche.sql.grammar import access, conversation, definitions, jobs, rows, session
from seiche.sql.grammar.cursor import Cursor
from seiche.sql.grammar.type_names import read_type
from seiche.sql.places import unplaced
from seiche.sql.statements import (
    Commit,
    Execute,
    Explain,
    ExplainFormat,
    ExplainJob,
    Flush,
    ObjectName,
    ParsedStatement,
    Pause,
    Prepare,
    Recover,
    Resume,
    Rollback,
    SqlExpression,
    SqlQuery,
    Statement,
)
from seiche.sql.tokens import Split, refuse_deep_nesting, source_of, split, statement_tokens, tokenize, too_deep
from seiche.types import SqlType

__all__ = ["Split", "parse", "parse_expression", "parse_name", "parse_query", "parse_type", "split"]

T = TypeVar("T")


def parse(text: str) -> list[ParsedStatement]:
    """The statements of a text, in order. Empty statements are skipped.

    Raises SyntaxError_ for what is not a statement, FeatureNotSupported for one that is known but not
    offered, UndefinedObject for an unknown type. All or nothing: one bad statement fails the whole text.
    """
    statements: list[ParsedStatement] = []
    for tokens, following in statement_tokens(text):
        statement = _read(text, tokens, following, _statement)
        statements.append(ParsedStatement(statement, source_of(text, tokens), tokens[0].start))
    return statements


def parse_query(text: str) -> SqlQuery:
    """A single query that is no statement of the user's: what is wrong with it has no position."""
    query = _whole(text, lambda cursor: cursor.query(cursor.rest()))
    return SqlQuery(unplaced(query.tree), query.text)


def parse_expression(text: str) -> SqlExpression:
    """A single scalar expression, for instance the stored default of a column."""
    return _whole(text, lambda cursor: cursor.expression(lambda _index: False))


def parse_type(text: str) -> SqlType:
    """A type as CREATE TABLE spells it. Raises UndefinedObject for an unknown one."""
    return _whole(text, read_type)


def parse_name(text: str) -> ObjectName:
    """A name, qualified or not, as a statement spells it: `public."My Table"`. SyntaxError_ for anything else."""
    return _whole(text, Cursor.object_name)


def _whole(text: str, read: Callable[[Cursor], T]) -> T:
    return _read(text, tokenize(text), None, read)


def _read(text: str, tokens: Sequence[Token], following: Token | None, read: Callable[[Cursor], T]) -> T:
    """What `read` makes of the tokens, all of which it must use."""
    refuse_deep_nesting(tokens)
    cursor = Cursor(text, tokens, following)
    try:
        value = read(cursor)
    except RecursionError as cause:
        # Long chains of NOT or of signs nest without a bracket, and the stack may be part used already.
        raise too_deep("It has more levels than can be read.") from cause
    cursor.finish()
    return value


_EXPLAIN_FLAGS = frozenset(
    {"verbose", "trace", "analyze", "logical", "physical", "distsql", "backfill", "costs", "timing", "summary"}
)
_EXPLAIN_VALUES = frozenset({"format", "type", "duration_secs"})
_ANALYZED_SECONDS = 10
_JOBS = ("table", "source", "sink", "index")
_NOT_OFFERED: dict[str, str | None] = {
    "merge": "Use INSERT: a repeated primary key overwrites the row.",
    "call": None,
    "do": None,
    "lock": None,
    "listen": None,
    "notify": None,
    "kill": None,
    "use": None,
}


def _statement(cursor: Cursor) -> Statement:
    if cursor.sees_symbol(TokenType.L_PAREN):
        return rows.select(cursor)
    verb = cursor.word()
    query = _QUERIES.get(verb)
    if query is not None:
        return query(cursor)
    read = _VERBS.get(verb)
    if read is not None:
        cursor.index += 1
        return read(cursor)
    if verb in _NOT_OFFERED:
        raise FeatureNotSupported(
            f"{verb.upper()} is not supported", hint=_NOT_OFFERED[verb], position=cursor.position()
        )
    raise cursor.error(hint=nearest(verb, (*_QUERIES, *_VERBS)) if verb else None)


def _explain(cursor: Cursor) -> Explain | ExplainJob:
    flags: set[str] = set()
    seconds = _ANALYZED_SECONDS
    format_ = ExplainFormat.TEXT
    while cursor.word() in ("analyze", "verbose"):
        flags.add(cursor.word())
        cursor.index += 1
    if cursor.sees_symbol(TokenType.L_PAREN) and cursor.word(1) in _EXPLAIN_FLAGS | _EXPLAIN_VALUES:

        def option() -> None:
            nonlocal format_, seconds
            if cursor.accept("duration_secs"):
                seconds = cursor.integer()
                return
            if cursor.accept("format"):
                spelled = cursor.word()
                if spelled not in [member.value for member in ExplainFormat]:
                    raise InvalidParameter(
                        f'unrecognized value for EXPLAIN option "format": "{spelled}"',
                        hint="Use TEXT, JSON or DOT.",
                        position=cursor.position(),
                    )
                cursor.index += 1
                format_ = ExplainFormat(spelled)
                return
            cursor.accept("type")
            word = cursor.word()
            if word not in _EXPLAIN_FLAGS:
                raise cursor.error(hint=nearest(word, (*_EXPLAIN_FLAGS, "format")))
            cursor.index += 1
            if cursor.word() in ("true", "on", "false", "off"):
                wanted = cursor.word() in ("true", "on")
                cursor.index += 1
            else:
                wanted = True
            flags.discard(word)
            if wanted:
                flags.add(word)

        cursor.in_parentheses(option)
    if "analyze" in flags and (cursor.word() in _JOBS or cursor.sees("materialized", "view")):
        return ExplainJob(cursor.kind(), cursor.object_name(), seconds)
    start = cursor.index
    statement = _statement(cursor)
    source = source_of(cursor.text, cursor.tokens[start : cursor.index])
    return Explain(statement, source, "verbose" in flags, "analyze" in flags, format_)


def _prepare(cursor: Cursor) -> Prepare:
    """PREPARE name [(type, …)] AS statement"""
    name = cursor.name()
    listed = cursor.sees_symbol(TokenType.L_PAREN)
    types = cursor.in_parentheses(lambda: read_type(cursor)) if listed else ()
    cursor.expect("as")
    start = cursor.index
    if cursor.word() not in (*_QUERIES, "insert", "update", "delete") and not cursor.sees_symbol(TokenType.L_PAREN):
        raise cursor.error(hint="SELECT, VALUES, INSERT, UPDATE and DELETE can be prepared.")
    statement = _statement(cursor)
    return Prepare(name, types, statement, source_of(cursor.text, cursor.tokens[start : cursor.index]))


def _execute(cursor: Cursor) -> Execute:
    """EXECUTE name [(value, …)]"""
    name = cursor.name()
    if not cursor.sees_symbol(TokenType.L_PAREN):
        return Execute(name)
    return Execute(name, cursor.in_parentheses(lambda: cursor.expression(cursor.at_comma)))


# A query is read from its first word on, any other statement from the word after its verb.
_QUERIES: dict[str, Callable[[Cursor], Statement]] = {
    "select": rows.select,
    "values": rows.select,
    "table": rows.select,
    "with": rows.with_query,
}
_VERBS: dict[str, Callable[[Cursor], Statement]] = {
    "create": definitions.create,
    "drop": definitions.drop,
    "alter": definitions.alter,
    "comment": definitions.comment,
    "grant": access.grant,
    "revoke": access.revoke,
    "insert": rows.insert,
    "update": rows.update,
    "delete": rows.delete,
    "flush": lambda _cursor: Flush(),
    "wait": jobs.wait,
    "pause": lambda _cursor: Pause(),
    "resume": lambda _cursor: Resume(),
    "truncate": rows.truncate,
    "refresh": jobs.refresh,
    "recover": lambda _cursor: Recover(),
    "begin": session.begin,
    "start": session.begin,
    "commit": lambda cursor: session.end_transaction(cursor, Commit()),
    "end": lambda cursor: session.end_transaction(cursor, Commit()),
    "rollback": lambda cursor: session.end_transaction(cursor, Rollback()),
    "abort": lambda cursor: session.end_transaction(cursor, Rollback()),
    "set": session.set_,
    "reset": session.reset,
    "show": session.show,
    "describe": session.describe,
    "desc": session.describe,
    "explain": _explain,
    "cancel": session.cancel,
    "savepoint": conversation.savepoint,
    "release": conversation.release,
    "declare": conversation.declare,
    "fetch": conversation.fetch,
    "move": conversation.move,
    "close": conversation.close,
    "prepare": _prepare,
    "execute": _execute,
    "deallocate": conversation.deallocate,
    "discard": conversation.discard,
    "unlisten": conversation.unlisten,
    "copy": conversation.copy,
    "vacuum": lambda cursor: jobs.vacuum(cursor, folds=True),
    "analyze": lambda cursor: jobs.vacuum(cursor, folds=False),
    "analyse": lambda cursor: jobs.vacuum(cursor, folds=False),
}
