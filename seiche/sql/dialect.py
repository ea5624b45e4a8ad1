"""The grammar: RisingWave's through sqlglot, minus the rewriting that sqlglot does while it parses.

sqlglot turns many calls into its own nodes and loses part of what was written: format strings of `to_char`
become strftime, array subscripts move by one, `interval '1 day 02:00'` forgets its hours. Here a call stays a
call by its name, and an interval stays the text between its quotes, so that binding sees the user's words. Written
as text again, a tree has the words that it was read from: errors and `SHOW CREATE` quote it to the user.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.risingwave import RisingWave
from sqlglot.generators.risingwave import RisingWaveGenerator
from sqlglot.tokenizer_core import TokenType

from seiche.sql.places import PlacingParser

# Calls whose arguments have a grammar of their own (FROM, FOR, PLACING, AS, IN, ORDER BY).
UNKNOWN = "unknown"  # marks the NULL of `IS UNKNOWN`
CHANGE_LOG = "change_log"  # marks the relation of `WITH name AS CHANGELOG FROM relation`
_KEPT = ("CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "STRING_AGG", "SUBSTRING", "TRIM")


class Seiche(RisingWave):
    """Registered with sqlglot as dialect "seiche"."""

    INDEX_OFFSET = 0

    class Tokenizer(RisingWave.Tokenizer):
        # `oid` and its kin are names of types like any other: sqlglot's own kind of node knows no arrays of them.
        # `lock` is a name like any other too: what it begins elsewhere, LOCK IN SHARE MODE, is none of PostgreSQL's.
        KEYWORDS = {
            word: kind
            for word, kind in RisingWave.Tokenizer.KEYWORDS.items()
            if kind not in (TokenType.OBJECT_IDENTIFIER, TokenType.LOCK)
        }

    class Parser(PlacingParser):
        FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {}
        FUNCTION_PARSERS = {name: parser for name, parser in PlacingParser.FUNCTION_PARSERS.items() if name in _KEPT}

        FUNCTION_PARSERS["TRIM"] = lambda self: self._parse_trimmed()

        # `:name` is no parameter: the colon in `a[:n]` is that of a slice.
        PLACEHOLDER_PARSERS = {
            token: parser for token, parser in PlacingParser.PLACEHOLDER_PARSERS.items() if token is not TokenType.COLON
        }

        # `->` takes json apart; it never starts a lambda.
        LAMBDAS = {token: parser for token, parser in PlacingParser.LAMBDAS.items() if token is not TokenType.ARROW}

        def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
            """`DATE '<text>'::timestamp` is a date that becomes a timestamp; sqlglot would read the text as one."""
            if self._curr is not None and self._curr.token_type is TokenType.MAP and self._sees_brace():
                return self._parse_map_of_pairs()
            typed = self._curr is not None and self._curr.token_type in self.TYPE_TOKENS
            tree = super()._parse_type(parse_interval, fallback_to_identifier)
            if not typed or not isinstance(tree, exp.Cast):
                return tree
            written = tree.this
            while isinstance(written, exp.Cast):
                written = written.this
            if written is tree.this or not isinstance(written, exp.Literal) or not written.is_string:
                return tree
            written.replace(exp.Cast(this=written.copy(), to=tree.args["to"]))
            outer: exp.Expr = tree.this.pop()
            return outer

        def _sees_brace(self) -> bool:
            return self._next is not None and self._next.token_type is TokenType.L_BRACE

        def _parse_map_of_pairs(self) -> exp.Expr | None:
            """`MAP {key: value, …}` as a call with keys and values in turn."""
            self._advance(2)
            parts: list[exp.Expr | None] = []
            while not self._match(TokenType.R_BRACE):
                if parts and not self._match(TokenType.COMMA):
                    self.raise_error("Expected , or } in a map")
                parts.append(self._parse_disjunction())
                if not self._match(TokenType.COLON):
                    self.raise_error("Expected : after a key of a map")
                parts.append(self._parse_disjunction())
            return self._parse_column_ops(exp.Anonymous(this="map_of_pairs", expressions=parts))

        def _parse_partition_and_order(self) -> tuple[list[exp.Expr], exp.Expr | None]:
            """Also `SESSION WITH GAP <gap>` after ORDER BY, which is kept with the order until binding."""
            partition, order = super()._parse_partition_and_order()
            if order is not None and self._match_text_seq("SESSION", "WITH", "GAP"):
                gap = self._parse_bitwise()
                is_text = isinstance(gap, exp.Literal) and gap.is_string
                order.set("session_gap", exp.Interval(this=gap) if is_text else gap)
            return partition, order

        def _parse_cte(self) -> exp.CTE | exp.FunctionSpecification | None:
            """Also `name AS CHANGELOG FROM relation`, kept as a query over the relation, which is marked."""
            index = self._index
            alias = self._parse_table_alias(self.ID_VAR_TOKENS)
            if not alias or not self._match(TokenType.ALIAS) or not self._match_text_seq("CHANGELOG", "FROM"):
                self._retreat(index)
                return super()._parse_cte()
            relation = self._parse_table_parts()
            if not isinstance(relation, exp.Table):
                self.raise_error("Expected a relation after CHANGELOG FROM")
            assert isinstance(relation, exp.Table)  # that raised
            relation.meta[CHANGE_LOG] = True
            return exp.CTE(this=exp.select("*").from_(relation, copy=False), alias=alias)

        def _parse_lateral(self) -> exp.Lateral | None:
            """`LATERAL ROWS FROM (…)` is `ROWS FROM (…)`, which sees what stands before it anyway."""
            index = self._index
            if self._match_text_seq("LATERAL", "ROWS", "FROM"):
                self._retreat(index + 1)
                return None
            return super()._parse_lateral()

        def _parse_version(self) -> exp.Version | None:
            """`FOR SYSTEM_TIME AS OF now() - '5' SECOND`: the unit may follow the text without the word INTERVAL."""
            version = super()._parse_version()
            moved = version.expression if version is not None else None
            if isinstance(moved, exp.Add | exp.Sub) and isinstance(moved.expression, exp.Literal):
                if self._curr and self._curr.text.upper().rstrip("S") in _UNITS:
                    self._advance()
                    moved.set("expression", exp.Interval(this=moved.expression, unit=exp.var(self._prev.text.upper())))
            return version

        def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
            """`|x| x + 1`, RisingWave's way to write a function of one element."""
            if not self._match(TokenType.PIPE):
                return super()._parse_lambda(alias)
            names = self._parse_csv(self._parse_id_var)
            if not self._match(TokenType.PIPE):
                self.raise_error("Expected | after the names")
            return exp.Lambda(this=self._parse_disjunction(), expressions=names)

        def _parse_is_rhs(self, distinct: bool = False) -> exp.Expr | None:
            """`IS UNKNOWN` is `IS NULL` for truth values only, so the word is kept."""
            unknown = not distinct and self._curr is not None and self._curr.token_type is TokenType.UNKNOWN
            tree = super()._parse_is_rhs(distinct)
            if unknown and isinstance(tree, exp.Null):
                tree.meta[UNKNOWN] = True
            return tree

        def _parse_using_identifiers(self) -> list[exp.Expr]:
            """Bare names: sqlglot would drop what a column is qualified with."""
            return self._parse_wrapped_csv(self._parse_id_var)

        def _parse_trimmed(self) -> exp.Trim:
            """`TRIM([BOTH | LEADING | TRAILING] [[characters] FROM] text [, characters])`."""
            index = self._index
            position = self._prev.text.upper() if self._match_texts(self.TRIM_TYPES) else None
            if not self._match(TokenType.FROM):
                self._retreat(index)
                return self._parse_trim()
            this = self._parse_bitwise()
            characters = self._parse_bitwise() if self._match(TokenType.COMMA) else None
            return exp.Trim(this=this, position=position, expression=characters)

        def _parse_interval(
            self, require_interval: bool = True, parse_function_unit: bool = True
        ) -> exp.Add | exp.Interval | None:
            """`INTERVAL '<text>' [unit [TO unit]]`, the text untouched."""
            index = self._index
            if not self._match(TokenType.INTERVAL):
                return None
            if not self._match(TokenType.STRING):
                self._retreat(index)  # the word is a column's name here
                return None
            interval = exp.Interval(this=exp.Literal.string(self._prev.text).update_positions(self._prev))
            if self._curr and self._curr.text.upper().rstrip("S") in _UNITS:
                self._advance()
                unit: exp.Expr = exp.var(self._prev.text.upper())
                if self._match_text_seq("TO"):
                    self._advance()
                    unit = exp.IntervalSpan(this=unit, expression=exp.var(self._prev.text.upper()))
                interval.set("unit", unit)
            return interval

    class Generator(RisingWaveGenerator):
        SINGLE_STRING_INTERVAL = False  # the unit stays behind the text

        def anonymous_sql(self, expression: exp.Anonymous) -> str:
            if expression.this != "map_of_pairs":
                return super().anonymous_sql(expression)
            parts = [self.sql(part) for part in expression.expressions]
            pairs = (f"{key}: {value}" for key, value in zip(parts[::2], parts[1::2], strict=True))
            return f"MAP {{{', '.join(pairs)}}}"

        def lambda_sql(self, expression: exp.Lambda, arrow_sep: str = "->", wrap: bool = True) -> str:
            return f"|{self.expressions(expression, flat=True)}| {self.sql(expression, 'this')}"

        def null_sql(self, expression: exp.Null) -> str:
            return "UNKNOWN" if expression.meta.get(UNKNOWN) else "NULL"

        def order_sql(self, expression: exp.Order, flat: bool = False) -> str:
            text = super().order_sql(expression, flat)
            gap = expression.args.get("session_gap")
            return f"{text} SESSION WITH GAP {self.sql(gap)}" if gap is not None else text

        def version_sql(self, expression: exp.Version) -> str:
            return f"FOR SYSTEM_TIME {expression.text('kind')} {self.sql(expression, 'expression')}"


_UNITS = frozenset(("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"))
