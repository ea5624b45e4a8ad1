"""`AGGREGATE:f(x ORDER BY y)`: a function of an array, called as an aggregate of the array's elements.

It means `f(array_agg(x ORDER BY y))`, and is read as such: the two words and the colon become one name among the
tokens, and the call is taken apart in the tree. A FILTER behind it belongs to the collecting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

_PREFIX = "aggregate:"
_COLLECT = "array_agg"


def joined_prefixes(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with `AGGREGATE`, `:` and the name of a function as one."""
    made: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        following = tokens[index + 1 : index + 4]
        kinds = [each.token_type for each in following]
        if (
            token.text.lower() == "aggregate"
            and token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)
            and len(following) == 3
            and kinds[0] is TokenType.COLON
            and kinds[2] is TokenType.L_PAREN
        ):
            name = following[1]
            made.append(Token(TokenType.VAR, _PREFIX + name.text, token.line, token.col, token.start, name.end))
            index += 3
            continue
        made.append(token)
        index += 1
    return made


def unwrapped(tree: exp.Expr) -> exp.Expr:
    """The tree with such calls as calls of the function over what `array_agg` collects."""

    def visit(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Filter) and _is_wrapped(node.this):
            return _over(node.this, lambda collected: exp.Filter(this=collected, expression=node.expression))
        return _over(node, lambda collected: collected) if _is_wrapped(node) else node

    return tree.transform(visit, copy=False) if any(map(_is_wrapped, tree.find_all(exp.Anonymous))) else tree


def _is_wrapped(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower().startswith(_PREFIX)


def _over(node: exp.Expr, finished: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    collected = exp.Anonymous(this=_COLLECT, expressions=node.expressions)
    return exp.Anonymous(this=str(node.this)[len(_PREFIX) :], expressions=[finished(collected)])
