"""The names that PostgreSQL gives the columns of a result."""

from __future__ import annotations

from sqlglot import exp

from seiche.sql.calls import call_of

_TYPE_WORDS = {
    "INT": "int4",
    "BIGINT": "int8",
    "SMALLINT": "int2",
    "FLOAT": "float4",
    "DOUBLE": "float8",
    "DECIMAL": "numeric",
    "BOOLEAN": "bool",
    "VARBINARY": "bytea",
}


def output_name(node: exp.Expr) -> str:
    """The name PostgreSQL gives a column of a result."""
    match node:
        case exp.Alias():
            return str(node.alias)
        case exp.Column() | exp.Dot():
            return str(node.name)
        case exp.Paren():
            return output_name(node.this)
        case exp.Cast():
            inner = output_name(node.this)
            return inner if inner != "?column?" else _type_word(node.args["to"])
        case exp.Subquery():
            query = node.unnest()
            if isinstance(query, exp.Select) and len(query.expressions) == 1:
                return output_name(query.expressions[0])
            return "?column?"
        case exp.Case():
            default = node.args.get("default")
            while isinstance(default, exp.Paren | exp.Cast):
                default = default.this
            named = output_name(default) if default is not None else "?column?"
            return "case" if named == "?column?" or isinstance(default, exp.Case | exp.Boolean) else named
        case exp.Window() | exp.Filter() | exp.WithinGroup() | exp.IgnoreNulls():
            return output_name(node.this)
        case exp.Exists():
            return "exists"
        case exp.Array():
            return "array"
        case exp.Bracket():
            return output_name(node.this)
        case exp.AtTimeZone():
            return "timezone"
        case exp.Interval():
            return "interval"
        case exp.CurrentTimestamp():
            return "current_timestamp" if not node.args.get("this") else "now"
        case exp.Tuple():
            return "row"
    if isinstance(node, exp.Connector | exp.Binary | exp.Not | exp.Neg | exp.Boolean | exp.Literal | exp.Null):
        return "bool" if isinstance(node, exp.Boolean) else "?column?"
    found = call_of(node)
    if found is not None and found[0] == "map_of_pairs":
        return "map"
    return found[0] if found is not None else "?column?"


def _type_word(node: exp.Expr) -> str:
    word = node.this.name if isinstance(node, exp.DataType) else str(node.this)
    return _TYPE_WORDS.get(word, word.lower())
