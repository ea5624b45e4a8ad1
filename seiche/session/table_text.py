"""A table or a source as the CREATE that would make it, with the columns that it has now."""

from __future__ import annotations

import re
from collections.abc import Mapping

from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.errors import InvariantError
from seiche.model import Column
from seiche.session.watermarks import TTL, WATERMARKS
from seiche.sql.statements import quote_name
from seiche.types import Kind, SqlType

# As RisingWave prints them; it knows timestamptz by this name alone, and in these letters.
_WORDS = {
    Kind.INTEGER: "INT",
    Kind.DOUBLE: "DOUBLE",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.TIMESTAMPTZ: "timestamptz",
    Kind.TIME: "TIME",
}


def create_table_text(table: CatalogObject) -> str:
    """The statement, with the columns that the table has now."""
    if table.relation is None:
        raise InvariantError(f"{table} has no rows")
    key = tuple(table.properties.get("primary_key", ()))
    items = [_column(column, key) for column in table.columns]
    if len(key) > 1:
        items.append(f"PRIMARY KEY ({', '.join(quote_name(name) for name in key)})")
    ttl = " WITH TTL" if table.properties.get(TTL) else ""
    declared = table.properties.get(WATERMARKS, ())
    items += [f"WATERMARK FOR {quote_name(name)} AS {text}{ttl}" for name, text in declared]
    parts = (table.name,) if table.schema == "public" else (table.schema, table.name)
    name = ".".join(quote_name(part) for part in parts)
    text = f"CREATE {table.kind.sql} {name} ({', '.join(items)})"
    if table.relation.append_only and table.kind is not ObjectKind.SOURCE:
        text += " APPEND ONLY"
    if conflict := table.properties.get("on_conflict"):
        text += f" ON CONFLICT {conflict.upper()}"
    if versions := table.properties.get("version_columns"):
        text += f" WITH VERSION COLUMN ({', '.join(quote_name(name) for name in versions)})"
    text += options_text(table.properties.get("options", {}))
    if "format" in table.properties:
        text += f" FORMAT {table.properties['format']} ENCODE {table.properties['encode']}"
    return text


def options_text(options: Mapping[str, str]) -> str:
    """The WITH clause, with a space before it; nothing where there are no options."""
    if not options:
        return ""
    return " WITH (" + ", ".join(f"{_option(each)} = {_quoted(value)}" for each, value in options.items()) + ")"


def _column(column: Column, key: tuple[str, ...]) -> str:
    parts = [quote_name(column.name), _type(column.type)]
    if not column.nullable:
        parts.append("NOT NULL")
    if key == (column.name,):
        parts.append("PRIMARY KEY")
    if column.default is not None:
        parts.append(f"DEFAULT {column.default}")
    if column.generated is not None:
        parts.append(f"AS {column.generated}")
    return " ".join(parts)


def _type(type_: SqlType) -> str:
    match type_.kind:
        case Kind.ARRAY:
            assert type_.element is not None
            return f"{_type(type_.element)}[]"
        case Kind.STRUCT:
            return "STRUCT<" + ", ".join(f"{quote_name(name)} {_type(each)}" for name, each in type_.fields) + ">"
        case Kind.MAP:
            return f"MAP({', '.join(_type(each) for _, each in type_.fields)})"
        case kind:
            return _WORDS.get(kind, str(type_).upper())


def _option(name: str) -> str:
    """The name of an option, whose parts may be words of the language."""
    return ".".join(part if re.fullmatch(r"[a-z_]\w*", part) else quote_name(part) for part in name.split("."))


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
