"""A function call as its name and arguments, whatever node the parser made of it.

sqlglot gives some calls a node of their own, because their arguments have a grammar (`SUBSTRING(x FROM 2)`) or
because it knows the function. This module gives every one of them back its PostgreSQL name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

# Nodes whose sqlglot name is not PostgreSQL's.
_NAMES: dict[str, str] = {
    "ApproxDistinct": "approx_count_distinct",
    "ArrayConcat": "array_cat",
    "ArraySize": "array_length",
    "BitwiseAndAgg": "bit_and",
    "BitwiseOrAgg": "bit_or",
    "BitwiseXorAgg": "bit_xor",
    "Ceil": "ceil",
    "Chr": "chr",
    "CurrentDatabase": "current_database",
    "CurrentCatalog": "current_database",
    "CurrentSchema": "current_schema",
    "CurrentVersion": "version",
    "Decode": "decode",
    "Encode": "encode",
    "Explode": "unnest",
    "GroupConcat": "string_agg",
    "Hex": "to_hex",
    "JSONBObjectAgg": "jsonb_object_agg",
    "Length": "length",
    "LogicalAnd": "bool_and",
    "LogicalOr": "bool_or",
    "MD5": "md5",
    "Pow": "power",
    "Rand": "random",
    "SHA": "sha1",
    "StartsWith": "starts_with",
    "StddevSamp": "stddev_samp",
    "StrPosition": "strpos",
    "TimeFromParts": "make_time",
    "TimestampFromParts": "make_timestamp",
    "UnixToTime": "to_timestamp",
    "Uuid": "gen_random_uuid",
    "Variance": "variance",
    "VariancePop": "var_pop",
}
# Bookkeeping of sqlglot among the arguments of a node.
_NOT_ARGUMENTS = frozenset(
    (
        "safe",
        "coalesce",
        "big_int",
        "null_propagation",
        "single_replace",
        "ignore_nulls",
        "value_constructor",
        "charset",
        "is_left",
    )
)


def call_of(node: exp.Expr) -> tuple[str, list[exp.Expr]] | None:
    """The name and the arguments of a call, or None where the node is no call."""
    match node:
        case exp.Anonymous():
            return str(node.this).lower(), list(node.expressions)
        case exp.Trim():
            name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.args.get("position") or "", "btrim")
            return name, _present(node.this, node.args.get("expression"))
        case exp.Substring():
            return "substring", _present(node.this, node.args.get("start"), node.args.get("length"))
        case exp.Overlay():
            return "overlay", _present(node.this, node.expression, node.args.get("from_"), node.args.get("for_"))
        case exp.StrPosition():
            return "strpos", [node.this, node.args["substr"]]
        case exp.Pad():
            name = "lpad" if node.args.get("is_left") else "rpad"
            return name, _present(node.this, node.expression, node.args.get("fill_pattern"))
        case exp.Extract():
            return "extract", [exp.Literal.string(node.name), node.expression]
        case exp.TimestampTrunc():
            return "date_trunc", _present(exp.Literal.string(node.args["unit"].name), node.this, node.args.get("zone"))
        case exp.TimeToStr() | exp.StrToTime() | exp.StrToDate():
            name = {exp.TimeToStr: "to_char", exp.StrToTime: "to_timestamp", exp.StrToDate: "to_date"}[type(node)]
            return name, [node.this, exp.Literal.string(_postgres_format(node))]
        case exp.CurrentTimestamp():
            return "now", []
        case exp.CurrentDate():
            return "current_date", []
        case exp.Localtimestamp():
            return "localtimestamp", []
        case exp.CurrentTime() | exp.Localtime():
            return "localtime", []
        case exp.CurrentUser() | exp.SessionUser() | exp.CurrentRole():
            return "current_user", []
        case exp.Initcap():
            return "initcap", [node.this]
        case exp.RegexpReplace():
            return "regexp_replace", _present(
                node.this, node.expression, node.args.get("replacement"), node.args.get("modifiers")
            )
        case exp.ExplodingGenerateSeries():
            return "generate_series", _present(node.args["start"], node.args["end"], node.args.get("step"))
        case exp.Log() if node.expression:
            return "log", [node.this, node.expression]
        case exp.Func() if not isinstance(
            node,
            exp.Cast
            | exp.Case
            | exp.Connector
            | exp.Array
            | exp.Any
            | exp.Exists
            | exp.JSONExtract
            | exp.JSONExtractScalar
            | exp.JSONBExtract
            | exp.JSONBExtractScalar,
        ):
            return _known(node)
    return None


def _known(node: exp.Func) -> tuple[str, list[exp.Expr]]:
    name = _NAMES.get(type(node).__name__) or node.sql_names()[0].lower()
    arguments: list[exp.Expr] = []
    for key in node.arg_types:
        value = node.args.get(key)
        if key in _NOT_ARGUMENTS or value is None or isinstance(value, bool | str):
            continue
        arguments += value if isinstance(value, list) else [value]
    return name, arguments


def _present(*arguments: exp.Expr | None) -> list[exp.Expr]:
    return [argument for argument in arguments if argument is not None]


def _postgres_format(node: exp.Expr) -> str:
    """The format string before sqlglot turned it into strftime's."""
    rendered = node.copy()
    call = rendered.sql("seiche")
    return call[call.rindex(", '") + 3 : -2].replace("''", "'")


def row_parts(node: exp.Expr) -> Sequence[exp.Expr] | None:
    """The parts of a row that is written as `(a, b)` or `ROW(a, b)`."""
    if isinstance(node, exp.Tuple):
        return node.expressions
    if isinstance(node, exp.Anonymous) and str(node.this).lower() == "row":
        return node.expressions
    return None


def own_nodes(node: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of an expression without those of its subqueries."""
    return node.walk(prune=lambda part: isinstance(part, exp.Query))
