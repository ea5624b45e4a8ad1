"""Statements of one text that take effect together.

    INSERT …; UPDATE …; DELETE …; SELECT …; INSERT …
    └──────── together ────────┘            └ alone ┘

As in PostgreSQL an error in one of them undoes those before it. What comes between (a query, a definition, FLUSH) finds
all that was written before it, also in the views that follow it, and so ends what goes together. The tables are held
from the first statement to the commit: others who write wait instead of failing with a conflict.

A statement that is too large for a transaction runs by itself, after those before it were committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby

from seiche.catalog.objects import ObjectKind
from seiche.errors import SeicheError, TransactionTooLarge
from seiche.model import RelationId
from seiche.session.conversation import Conversation
from seiche.session.result import Result
from seiche.session.transaction import Transaction
from seiche.sql import statements as ast

Run = Callable[[ast.ParsedStatement], Result]


def stretches(statements: Sequence[ast.ParsedStatement]) -> Iterator[list[ast.ParsedStatement]]:
    """The statements in their order, those that go together in one list."""
    for writes, found in groupby(statements, lambda each: _writes(each.statement)):
        if writes:
            yield list(found)
        else:
            yield from ([each] for each in found)


def _writes(statement: ast.Statement) -> bool:
    """Rows that RETURNING shows go to a client, who may take its time, while the tables would be held."""
    return isinstance(statement, ast.Insert | ast.Update | ast.Delete) and not statement.returning


def write_together(
    conversation: Conversation,
    statements: Sequence[ast.ParsedStatement],
    done: list[Result],
    run: Run,
    check: Callable[[], None],
) -> None:
    """Runs one of the stretches, and adds the results of those that ran to `done`, also where an error ends it.
    `check` raises when the work is to stop."""
    rest = list(statements)
    while len(rest) > 1:
        rest = _until_too_large(conversation, rest, done, run, check)
    done += [run(each) for each in rest]


def _until_too_large(
    conversation: Conversation,
    statements: list[ast.ParsedStatement],
    done: list[Result],
    run: Run,
    check: Callable[[], None],
) -> list[ast.ParsedStatement]:
    """The statements that are left after one that is too large; none where all of them ran together."""
    made: list[Result] = []
    alone: ast.ParsedStatement | None = None
    with ExitStack() as held:
        tables = _tables(conversation, statements)
        for relation in sorted(tables):  # in the order of every COMMIT, so that nobody waits for each other
            gate = conversation.database.gate(relation)
            held.enter_context(gate.alone(check) if tables[relation] else gate.shared(check))
        transaction = Transaction(conversation.database, conversation.variables, gated=frozenset(tables))
        conversation.transaction = transaction
        try:
            for each in statements:
                try:
                    made.append(run(each))
                except TransactionTooLarge:
                    alone = each
                    break
        except SeicheError:
            done += made
            raise
        finally:
            conversation.transaction = None
            if len(made) < len(statements) and alone is None:
                transaction.close()
        try:
            transaction.commit(check)
        except SeicheError:
            done += made[:-1]
            raise
    done += made
    if alone is None:
        return []
    done.append(run(alone))
    return statements[len(made) + 1 :]


def _tables(conversation: Conversation, statements: Sequence[ast.ParsedStatement]) -> dict[RelationId, bool]:
    """The tables that are written to, and whether they are for more than inserts. One that is not there fails its
    statement when that comes."""
    found: dict[RelationId, bool] = {}
    variables = conversation.variables
    catalog = conversation.database.catalog.seen_from(variables.database)
    for each in statements:
        statement = each.statement
        assert isinstance(statement, ast.Insert | ast.Update | ast.Delete)
        table = catalog.try_find(statement.table.parts, search_path=variables.search_path)
        if table is not None and table.kind is ObjectKind.TABLE:
            relation = RelationId(table.id)
            blind = isinstance(statement, ast.Insert) and statement.on_conflict is None
            found[relation] = found.get(relation, False) or not blind
    return found
