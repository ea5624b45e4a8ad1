"""Which names of a query mean queries of its WITH."""

from __future__ import annotations

from sqlglot import exp


def is_common_table(table: exp.Table) -> bool:
    """Whether a name in FROM means a query of WITH: one of a WITH around it, and of its own WITH one
    written before, or any if that is RECURSIVE."""
    if table.db:
        return False
    node: exp.Expr = table
    while node.parent is not None:
        above, known = node.parent, []
        if isinstance(above, exp.With):
            known = above.expressions if above.recursive else above.expressions[: above.expressions.index(node)]
        else:
            with_ = above.args.get("with_") or above.args.get("with")
            if with_ is not None and with_ is not node:
                known = with_.expressions
        if any(each.alias == table.name for each in known):
            return True
        node = above
    return False


__all__ = ["is_common_table"]
