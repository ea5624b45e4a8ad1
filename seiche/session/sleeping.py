"""`pg_sleep(seconds)`: the statement waits before it is answered, and can be stopped meanwhile.

The function itself gives nothing, so that queries about the system, which run one at a time, never wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

from sqlglot import exp

from seiche.session.work import Work
from seiche.sql.calls import call_of
from seiche.sql.statements import SqlQuery

SLEEP = "pg_sleep"


def sleep_for(query: SqlQuery, work: Work) -> None:
    """Waits as long as the calls in the query say, once for each that is written. Raises QueryCanceled."""
    if SLEEP not in query.text.lower():
        return
    for seconds in _pauses(query.tree):
        never: Future[Any] = Future()
        work.wait_at_most(never, seconds)
        work.stop_if_told()


def _pauses(tree: exp.Expr) -> Iterator[float]:
    for node in tree.walk():
        called = call_of(node)
        if called is None or called[0] != SLEEP or len(called[1]) != 1:
            continue
        seconds = called[1][0]
        if isinstance(seconds, exp.Literal) and not seconds.is_string:
            yield float(seconds.this)
