"""SELECT, INSERT, UPDATE and DELETE: statements that read and change rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from seiche.errors import SyntaxError_
from seiche.sql.grammar.cursor import Cursor
from seiche.sql.places import begin_as
from seiche.sql.statements import (
    Assignment,
    Delete,
    Insert,
    OnConflict,
    Select,
    SqlExpression,
    SqlQuery,
    Statement,
    Update,
)
from seiche.sql.tokens import source_of
from seiche.sql.trees import read_tree

# What may follow FROM in a query, and may not in UPDATE and DELETE.
_AFTER_FROM = ("group", "having", "windows", "order", "limit", "offset", "fetch", "locks", "qualify")


def select(cursor: Cursor, prefix: Sequence[Token] = ()) -> Select:
    return Select(cursor.query(cursor.rest(), prefix))


def with_query(cursor: Cursor) -> Statement:
    """WITH leads a query, the query of an INSERT, or an UPDATE or DELETE."""
    start = cursor.index
    leads = cursor.at_word("select", "values", "table", "insert", "update", "delete", "merge")
    # Where AS follows, such a word is the name of one of the queries.
    main = cursor.region(lambda index: leads(index) and cursor.word(index + 1 - cursor.index) != "as")
    verb = cursor.word(main - cursor.index)
    writing: dict[str, Callable[[Cursor, Sequence[Token]], Statement]] = {
        "insert": insert, "update": update, "delete": delete
    }  # fmt: skip
    if verb in writing:
        prefix = cursor.tokens[start:main]
        cursor.index = main + 1
        return writing[verb](cursor, prefix)
    if verb == "merge":
        cursor.index = main
        raise cursor.unsupported("MERGE")
    return select(cursor)


def insert(cursor: Cursor, prefix: Sequence[Token] = ()) -> Insert:
    cursor.expect("into")
    table = cursor.object_name()
    alias = cursor.name() if cursor.accept("as") else None
    # `(` may open the column list or a query in parentheses.
    columns = () if cursor.word(1) in ("select", "values", "with", "table") else cursor.placed_names()
    if cursor.sees("overriding"):
        raise cursor.unsupported("OVERRIDING")
    source: SqlQuery | None = None
    if not cursor.accept("default", "values"):
        source = cursor.query(cursor.region(partial(_ends_insert_query, cursor)), prefix)
    conflict = _on_conflict(cursor)
    return Insert(table, columns, source, _returning(cursor), alias, conflict)


def _on_conflict(cursor: Cursor) -> OnConflict | None:
    place = cursor.position()
    if not cursor.accept("on", "conflict"):
        return None
    columns: tuple[str, ...] = ()
    constraint = None
    if cursor.sees_symbol(TokenType.L_PAREN):
        columns = cursor.placed_names()
        if cursor.sees("where"):
            raise cursor.unsupported("a conflict with a part of an index", hint="Leave out the WHERE before DO.")
    elif cursor.accept("on", "constraint"):
        constraint = cursor.name()
    cursor.expect("do")
    if cursor.accept("nothing"):
        return OnConflict(columns, constraint)
    cursor.expect("update")
    cursor.expect("set")
    if not columns and constraint is None:
        raise SyntaxError_(
            "ON CONFLICT DO UPDATE requires inference specification or constraint name",
            hint="For example, ON CONFLICT (column_name).",
            position=place,
        )
    return OnConflict(columns, constraint, _assignments(cursor), _where(cursor))


def _ends_insert_query(cursor: Cursor, index: int) -> bool:
    word = cursor.word(index - cursor.index)
    return word == "returning" or (word == "on" and cursor.word(index - cursor.index + 1) == "conflict")


def _returning(cursor: Cursor) -> tuple[exp.Expr, ...]:
    if not cursor.accept("returning"):
        return ()
    select = Token(TokenType.SELECT, "SELECT")
    tree, _source_text = cursor.take(cursor.region(cursor.at_word("from", "where")), None, [select])
    return tuple(tree.expressions)


def _alias(cursor: Cursor, before: str) -> str | None:
    if cursor.accept("as"):
        return cursor.name()
    return None if cursor.peek() is None or cursor.word() in (before, "where", "returning", "using") else cursor.name()


def _common(cursor: Cursor, prefix: Sequence[Token]) -> SqlQuery | None:
    """The queries of the WITH before a statement, as those of a query that uses none of them."""
    if not prefix:
        return None
    query = [*prefix, Token(TokenType.SELECT, "SELECT"), Token(TokenType.NUMBER, "1")]
    return SqlQuery(read_tree(cursor.text, query, None, cursor.peek()), f"{source_of(cursor.text, prefix)} SELECT 1")


def update(cursor: Cursor, prefix: Sequence[Token] = ()) -> Update:
    common = _common(cursor, prefix)
    cursor.accept("only")
    table = cursor.object_name()
    alias = _alias(cursor, "set")
    cursor.expect("set")
    assignments = _assignments(cursor)
    others = _others(cursor, "from")
    return Update(table, alias, assignments, _where(cursor), _returning(cursor), others, common)


def _assignments(cursor: Cursor) -> tuple[Assignment, ...]:
    assignments: list[Assignment] = []
    while True:
        assignments.extend(_assignment(cursor))
        if not cursor.accept_symbol(TokenType.COMMA):
            break
    seen: set[str] = set()
    for assignment in assignments:
        if assignment.column in seen:
            raise SyntaxError_(
                f'multiple assignments to same column "{assignment.column}"',
                detail="An UPDATE cannot have multiple assignments to the same column.",
            )
        seen.add(assignment.column)
    return tuple(assignments)


def _others(cursor: Cursor, word: str) -> SqlQuery | None:
    """The relations beside the target, as a query for all of their columns."""
    if not cursor.accept(word):
        return None
    prefix = [Token(TokenType.SELECT, "SELECT"), Token(TokenType.STAR, "*"), Token(TokenType.FROM, "FROM")]
    tree, source = cursor.take(cursor.region(cursor.at_word("where", "returning")), None, prefix)
    if not isinstance(tree, exp.Select) or any(tree.args.get(part) for part in _AFTER_FROM):
        raise cursor.error()
    return SqlQuery(tree, f"SELECT * FROM {source}")


def _assignment(cursor: Cursor) -> list[Assignment]:
    if not cursor.sees_symbol(TokenType.L_PAREN):
        column = cursor.placed_name()
        cursor.expect_symbol(TokenType.EQ)
        return [Assignment(column, _assigned(cursor, partial(_ends_assignment, cursor)))]
    columns = cursor.in_parentheses(cursor.placed_name)
    cursor.expect_symbol(TokenType.EQ)
    position = cursor.position()
    written_as_row = cursor.accept("row")
    if not cursor.sees_symbol(TokenType.L_PAREN):
        raise SyntaxError_(
            "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression", position=position
        )
    if cursor.word(1) in ("select", "with", "values", "table") and not written_as_row:
        values = _columns_of_subquery(cursor)
    else:
        values = cursor.in_parentheses(lambda: _assigned(cursor, cursor.at_comma))
    if len(values) != len(columns):
        raise SyntaxError_("number of columns does not match number of values", position=position)
    return [Assignment(column, value) for column, value in zip(columns, values, strict=True)]


def _columns_of_subquery(cursor: Cursor) -> tuple[SqlExpression, ...]:
    """The subquery in parentheses once for each of its columns, each with that column alone."""
    cursor.expect_symbol(TokenType.L_PAREN)
    query = cursor.query(cursor.region(lambda _: False))
    cursor.expect_symbol(TokenType.R_PAREN)
    tree = query.tree
    if not isinstance(tree, exp.Select) or tree.is_star:
        raise cursor.unsupported(
            "assigning several columns from this form of subquery", hint="Give each column its own subquery."
        )
    places = range(len(tree.expressions))
    values = [begin_as(exp.Subquery(this=_only(tree, place)), tree.expressions[place]) for place in places]
    return tuple(SqlExpression(value, f"({query.text})") for value in values)


def _only(tree: exp.Select, place: int) -> exp.Select:
    """The query with the column at `place` alone."""
    if not any(tree.args.get(clause) for clause in ("distinct", "group", "order")):
        alone = tree.copy()
        alone.set("expressions", [alone.expressions[place]])
        return alone
    # These clauses may mean columns by their place or their alias, so all of them have to stay.
    names = [exp.to_identifier(f"column{n}") for n in range(1, len(tree.expressions) + 1)]
    source = exp.Subquery(this=tree.copy(), alias=exp.TableAlias(this=exp.to_identifier("source"), columns=names))
    return exp.Select(expressions=[exp.column(f"column{place + 1}", "source")]).from_(source)


def _assigned(cursor: Cursor, stop: Callable[[int], bool]) -> SqlExpression:
    if cursor.sees("default"):
        token = cursor.tokens[cursor.index]
        cursor.index += 1
        return SqlExpression(exp.Var(this="DEFAULT"), source_of(cursor.text, [token]))
    return cursor.expression(stop)


def _ends_assignment(cursor: Cursor, index: int) -> bool:
    ahead = index - cursor.index
    word = cursor.word(ahead)
    if word == "from":  # `a IS DISTINCT FROM b` goes on
        return ahead == 0 or cursor.word(ahead - 1) != "distinct"
    return word in ("where", "returning") or cursor.at_comma(index)


def _where(cursor: Cursor) -> SqlExpression | None:
    if not cursor.accept("where"):
        return None
    if cursor.sees("current", "of"):
        raise cursor.unsupported("WHERE CURRENT OF")
    return cursor.expression(cursor.at_word("returning"))


def delete(cursor: Cursor, prefix: Sequence[Token] = ()) -> Delete:
    common = _common(cursor, prefix)
    cursor.expect("from")
    cursor.accept("only")
    table = cursor.object_name()
    alias = _alias(cursor, "using")
    others = _others(cursor, "using")
    return Delete(table, alias, _where(cursor), _returning(cursor), others=others, common=common)


def truncate(cursor: Cursor) -> Delete:
    """Without sequences and foreign keys, what may follow the name changes nothing."""
    cursor.accept("table")
    cursor.accept("only")
    table = cursor.object_name()
    if cursor.sees_symbol(TokenType.COMMA):
        raise cursor.unsupported(
            "TRUNCATE of several tables", hint="Write one for each, in one BEGIN block if need be."
        )
    cursor.accept("restart", "identity") or cursor.accept("continue", "identity")
    cursor.accept("cascade") or cursor.accept("restrict")
    return Delete(table, None, truncating=True)
