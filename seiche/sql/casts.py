"""Casts: which type becomes which, where, and the Spark expression that gives PostgreSQL's answer.

`coerce` is what an operator, a comparison or a function argument does by itself, `assign` what storing into a
column does, `convert` what `::` does. `common_type` is the rule of UNION, CASE, COALESCE, VALUES and ARRAY[].
All three cast through one table of renderings, so the same conversion means the same everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from enum import IntEnum

from sqlglot import exp

from seiche.errors import CannotCast, DatatypeMismatch, FeatureNotSupported
from seiche.sql import lengths, readings
from seiche.sql.attempts import attempted
from seiche.sql.eras import with_era
from seiche.sql.literals import MICROS_PER_DAY, decimal_literal, literal, numeric_literal
from seiche.sql.nodes import (
    Settings,
    attempt,
    bigint,
    binary,
    boolean,
    call,
    case,
    checked_cast,
    comparison,
    conjunction,
    equal,
    field,
    guarded,
    integer,
    is_null,
    is_unknown,
    negation,
    not_null,
    null,
    once,
    raising,
    spark_cast,
    text,
    transform,
    type_of,
    typed,
    variable,
)
from seiche.sql.parameters import PARAMETER
from seiche.sql.places import place_of, reading
from seiche.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    MAX_PRECISION,
    NUMERIC,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Kind,
    SqlType,
    array_of,
    map_of,
    numeric,
    struct_of,
)


class Context(IntEnum):
    """How willingly a cast happens; each includes the ones before it."""

    IMPLICIT = 1
    ASSIGNMENT = 2
    EXPLICIT = 3


_RANK = {
    Kind.SMALLINT: 1,
    Kind.INTEGER: 2,
    Kind.BIGINT: 3,
    Kind.NUMERIC: 4,
    Kind.REAL: 5,
    Kind.DOUBLE: 6,
}
_UNTYPED = "untyped"  # on text that was an untyped literal: the literal
_MOMENTS = {Kind.DATE: 1, Kind.TIMESTAMP: 2, Kind.TIMESTAMPTZ: 3}
_DIGITS = {Kind.SMALLINT: 5, Kind.INTEGER: 10, Kind.BIGINT: 19}

_E, _A = Context.EXPLICIT, Context.ASSIGNMENT
_OTHERS: dict[tuple[Kind, Kind], Context] = {
    (Kind.INTEGER, Kind.BOOLEAN): _E,
    (Kind.BOOLEAN, Kind.INTEGER): _E,
    (Kind.TIME, Kind.INTERVAL): Context.IMPLICIT,
    (Kind.INTERVAL, Kind.TIME): _A,
    (Kind.TIMESTAMP, Kind.TIME): _A,
    (Kind.TIMESTAMPTZ, Kind.TIME): _A,
    (Kind.JSONB, Kind.BOOLEAN): _E,
    (Kind.JSONB, Kind.SMALLINT): _E,
    (Kind.JSONB, Kind.INTEGER): _E,
    (Kind.JSONB, Kind.BIGINT): _E,
    (Kind.JSONB, Kind.NUMERIC): _E,
    (Kind.JSONB, Kind.REAL): _E,
    (Kind.JSONB, Kind.DOUBLE): _E,
}


def context_of(source: SqlType, target: SqlType) -> Context | None:
    """The least explicit context in which `source` becomes `target`; None if never."""
    if source == target or source.kind is Kind.NULL:
        return Context.IMPLICIT
    match source.kind, target.kind:
        case a, b if a in _RANK and b in _RANK:
            return Context.IMPLICIT if _RANK[a] <= _RANK[b] else Context.ASSIGNMENT
        case a, b if a in _MOMENTS and b in _MOMENTS:
            return Context.IMPLICIT if _MOMENTS[a] <= _MOMENTS[b] else Context.ASSIGNMENT
        case Kind.ARRAY, Kind.ARRAY:
            assert source.element is not None and target.element is not None
            return context_of(source.element, target.element)
        case Kind.STRUCT, Kind.STRUCT:
            if len(source.fields) != len(target.fields):
                return None
            found = [context_of(a, b) for (_, a), (_, b) in zip(source.fields, target.fields, strict=True)]
            return None if None in found else max((c for c in found if c), default=Context.IMPLICIT)
        case Kind.MAP, Kind.MAP:
            return context_of(struct_of(*source.fields), struct_of(*target.fields))
        case Kind.VARCHAR, _:
            return Context.EXPLICIT
        case _, Kind.VARCHAR:
            return Context.ASSIGNMENT
        case pair:
            return _OTHERS.get(pair)


def castable(source: SqlType, target: SqlType, context: Context) -> bool:
    needed = context_of(source, target)
    return needed is not None and needed <= context


def coerce(node: exp.Expr, target: SqlType, settings: Settings) -> exp.Expr:
    """What happens by itself; the caller has made sure that it may."""
    return convert(node, target, settings)


def assign(node: exp.Expr, target: SqlType, column: str, settings: Settings) -> exp.Expr:
    source = type_of(node)
    if not _becomes(node, target.bare, Context.ASSIGNMENT):
        raise DatatypeMismatch(
            f'column "{column}" is of type {target.bare} but expression is of type {source}',
            detail=f'Storing it would cast it: cannot cast type "{source}" to "{target.bare}" in Assign context.',
            hint="You will need to rewrite or cast the expression.",
            position=place_of(node),
        )
    return lengths.stored(convert(node, target.bare, settings), target)


def cast(node: exp.Expr, target: SqlType, settings: Settings) -> exp.Expr:
    """What the user asked for with `::`."""
    source = type_of(node)
    if not _becomes(node, target.bare, Context.EXPLICIT):
        raise CannotCast(f"cannot cast type {source} to {target.bare}")
    if target.bare == NUMERIC and source.kind is Kind.NUMERIC and not _fits_free(source):
        return typed(exp.Paren(this=node), replace(source, declared=False))  # a numeric without limits loses nothing
    if target == NUMERIC and (written := _as_written(node)) is not None:
        return written
    return lengths.cut(convert(node, target.bare, settings), target)


def _as_written(node: exp.Expr) -> exp.Expr | None:
    """A constant with digits that a numeric without limits keeps, and the decimal behind it would not; else None."""
    if is_unknown(node) and isinstance(node, exp.Literal):
        with reading(node):
            node = numeric_literal(node.this)
    type_ = type_of(node)
    if not isinstance(node, exp.Cast) or not isinstance(node.this, exp.Literal) or type_.kind is not Kind.NUMERIC:
        return None
    return typed(exp.Paren(this=node), type_) if type_.scale or not _fits_free(type_) else None


def _fits_free(type_: SqlType) -> bool:
    """Whether the decimal behind a numeric without a precision holds all values of this one."""
    return type_.scale <= NUMERIC.scale and type_.precision - type_.scale <= NUMERIC.precision - NUMERIC.scale


def settle(node: exp.Expr, settings: Settings) -> exp.Expr:
    """A literal that no context has typed becomes text. It remembers what it was: a row may be given types later."""
    if not is_unknown(node):
        return node
    settled = convert(node, VARCHAR, settings)
    if PARAMETER not in node.meta:
        settled.meta[_UNTYPED] = node
    return settled


def _becomes(node: exp.Expr, target: SqlType, context: Context) -> bool:
    """As `castable`, where literals in a row still take any type."""
    cells = _row_cells(node)
    if cells is None or target.kind is not Kind.STRUCT or len(cells) != len(target.fields):
        return castable(type_of(node), target, context)
    return all(
        _UNTYPED in cell.meta or _becomes(cell, type_, context)
        for cell, (_, type_) in zip(cells, target.fields, strict=True)
    )


def _row_cells(node: exp.Expr) -> list[exp.Expr] | None:
    """The values of a ROW that stands here itself."""
    if isinstance(node, exp.Anonymous) and node.this == "named_struct" and type_of(node).kind is Kind.STRUCT:
        return list(node.expressions[1::2])
    return None


def common_type(types: Sequence[SqlType], what: str, places: Sequence[int | None] = ()) -> SqlType:
    """The type that all of them become, unknown ones last; `what` names the construct in the error, which points at
    the place of the first that does not fit those before it."""
    known = [index for index, type_ in enumerate(types) if type_.kind is not Kind.NULL]
    if not known:
        return VARCHAR
    result = types[known[0]]
    for index in known[1:]:
        joined = _wider(result, types[index])
        if joined is None:
            raise DatatypeMismatch(
                f"{what} types {result} and {types[index]} cannot be matched",
                position=places[index] if places else None,
            )
        result = joined
    return result


def _wider(left: SqlType, right: SqlType) -> SqlType | None:
    if left == right:
        return left
    if left.is_number and right.is_number:
        if Kind.NUMERIC in (left.kind, right.kind) and not (left.is_float or right.is_float):
            return _wider_numeric(as_numeric(left), as_numeric(right))
        return left if _RANK[left.kind] >= _RANK[right.kind] else right
    if left.kind is Kind.ARRAY and right.kind is Kind.ARRAY:
        assert left.element is not None and right.element is not None
        element = _wider(left.element, right.element)
        return None if element is None else array_of(element)
    if left.kind is Kind.MAP and right.kind is Kind.MAP:
        wider = [_wider(a, b) for (_, a), (_, b) in zip(left.fields, right.fields, strict=True)]
        return map_of(wider[0], wider[1]) if wider[0] is not None and wider[1] is not None else None
    if left.kind is Kind.STRUCT and right.kind is Kind.STRUCT and len(left.fields) == len(right.fields):
        parts = [_wider(a, b) for (_, a), (_, b) in zip(left.fields, right.fields, strict=True)]
        names = [name for name, _ in left.fields]
        known = [(name, part) for name, part in zip(names, parts, strict=True) if part is not None]
        return struct_of(*known) if len(known) == len(parts) else None
    if castable(left, right, Context.IMPLICIT):
        return right
    if castable(right, left, Context.IMPLICIT):
        return left
    return None


def as_numeric(type_: SqlType) -> SqlType:
    """The decimal that holds every value of an integer or numeric type."""
    return type_ if type_.kind is Kind.NUMERIC else numeric(_DIGITS[type_.kind], 0, declared=True)


def _wider_numeric(left: SqlType, right: SqlType) -> SqlType:
    if NUMERIC in (left, right):
        return NUMERIC
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    declared = left.declared and right.declared and left.scale == right.scale
    return numeric(min(MAX_PRECISION, whole + scale), scale, declared=declared)


# --- renderings --------------------------------------------------------------------------------------


def convert(node: exp.Expr, target: SqlType, settings: Settings) -> exp.Expr:
    """The node as `target`; the caller has checked that such a cast exists."""
    if type_of(node) == target:
        return node
    made = _converted(node, target, settings)
    told = target.kind is Kind.VARCHAR and settings.timezone == "UTC"  # every value has a text
    return made if settings.strict or told or is_unknown(node) else attempted(made, [node])


def _converted(node: exp.Expr, target: SqlType, settings: Settings) -> exp.Expr:
    source = type_of(node)
    if source.kind is Kind.NULL:
        if isinstance(node, exp.Null):
            if settings.parameters is not None and PARAMETER in node.meta:
                settings.parameters.infer(node.meta[PARAMETER], target)
            return null(target)
        assert isinstance(node, exp.Literal), node
        with reading(node):
            return literal(node.this, target, settings)
    match source.kind, target.kind:
        case _, Kind.VARCHAR:
            return to_text(node, settings)
        case Kind.VARCHAR, _:
            return _from_text(node, target, settings)
        case Kind.JSONB, Kind.BOOLEAN:
            return _json_as(node, BOOLEAN, target, settings)
        case Kind.JSONB, Kind.REAL | Kind.DOUBLE:
            return convert(_json_as(node, DOUBLE, target, settings), target, settings)
        case Kind.JSONB, Kind.NUMERIC:
            return convert(_json_as(node, NUMERIC, target, settings), target, settings)
        case Kind.JSONB, _:  # half to even, since a number in json is a float8 to RisingWave
            number = _json_as(node, NUMERIC, target, settings)
            return checked_cast(call(NUMERIC, "bround", number, integer(0)), target, settings)
        case Kind.BOOLEAN, _:
            return spark_cast(node, target)
        case _, Kind.BOOLEAN:
            return comparison(exp.NEQ, node, integer(0))
        case Kind.ARRAY, Kind.ARRAY:
            assert source.element is not None and target.element is not None
            item = convert(variable("x", source.element), target.element, settings)
            return transform(node, "x", item, target)
        case Kind.STRUCT, Kind.STRUCT:
            return _struct(node, source, target, settings)
        case Kind.MAP, Kind.MAP:
            return typed(convert(typed(node, source.entries), target.entries, settings), target)
        case a, b if a in _RANK and b in _RANK:
            return _number(node, source, target, settings)
        case a, b if a in _MOMENTS and b in _MOMENTS:
            return _moment(node, source, target, settings)
        case Kind.TIME, Kind.INTERVAL:
            made = _interval(integer(0), integer(0), typed(node.copy(), BIGINT))
            return spark_cast(case(INTERVAL, [(not_null(node), made)]), INTERVAL)
        case Kind.INTERVAL, Kind.TIME:
            return call(TIME, "pmod", field(node, "micros", BIGINT), bigint(MICROS_PER_DAY))
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ, Kind.TIME:
            local = convert(node, TIMESTAMP, settings)
            return call(TIME, "pmod", micros_of(local), bigint(MICROS_PER_DAY))
    raise CannotCast(f"cannot cast type {source} to {target}")


def _interval(months: exp.Expr, days: exp.Expr, micros: exp.Expr) -> exp.Expr:
    return call(INTERVAL, "named_struct", text("months"), months, text("days"), days, text("micros"), micros)


def _struct(node: exp.Expr, source: SqlType, target: SqlType, settings: Settings) -> exp.Expr:
    arguments: list[exp.Expr] = []
    cells = _row_cells(node)
    if cells is not None:
        for cell, (name, type_) in zip(cells, target.fields, strict=True):
            arguments += [text(name), convert(cell.meta.get(_UNTYPED, cell), type_, settings)]
        return spark_cast(call(target, "named_struct", *arguments), target)
    for (name, type_), (new_name, new_type) in zip(source.fields, target.fields, strict=True):
        arguments += [text(new_name), convert(field(node.copy(), name, type_), new_type, settings)]
    made = call(target, "named_struct", *arguments)
    return spark_cast(case(target, [(not_null(node), made)]), target)


def _number(node: exp.Expr, source: SqlType, target: SqlType, settings: Settings) -> exp.Expr:
    if target.kind is Kind.NUMERIC:
        if source.is_float:
            return once(node, target, lambda number: _decimal(number, source, target, settings))
        narrow = as_numeric(source)
        fits = narrow.precision - narrow.scale <= target.precision - target.scale and narrow.scale <= target.scale
        if not fits and settings.strict and isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
            return decimal_literal(Decimal(node.this.name), target)  # Spark words the overflow of a constant otherwise
        return spark_cast(node, target) if fits else checked_cast(node, target, settings)
    if target.is_float:
        return spark_cast(node, target)
    if source.kind is Kind.NUMERIC:
        rounded = call(source, "round", node, integer(0)) if source.scale else node
        return checked_cast(rounded, target, settings)
    if source.is_float:  # half to even, as the machine rounds
        rounded = call(DOUBLE, "rint", spark_cast(node, DOUBLE) if source.kind is Kind.REAL else node)
        return checked_cast(rounded, target, settings)
    return (
        spark_cast(node, target) if _RANK[source.kind] <= _RANK[target.kind] else checked_cast(node, target, settings)
    )


def _decimal(node: exp.Expr, source: SqlType, target: SqlType, settings: Settings) -> exp.Expr:
    """A floating-point number as numeric. Of NaN, which compares greater than all, and of infinity Spark would make
    NULL, without an error."""
    if not settings.strict:
        return checked_cast(node, target, settings)
    infinity = spark_cast(exp.Literal.string("Infinity"), source)
    odd = comparison(exp.GTE, call(source, "abs", node.copy()), infinity)
    message = "numeric out of range: NaN and infinity have no decimal form"
    return case(target, [(odd, raising(message, target))], spark_cast(node, target))


def micros_of(node: exp.Expr) -> exp.Expr:
    """Microseconds since 1970 of a timestamp, with or without time zone, or a date."""
    instant = node if type_of(node).kind is Kind.TIMESTAMPTZ else spark_cast(node, TIMESTAMPTZ)
    return call(BIGINT, "unix_micros", instant)


def local_time(node: exp.Expr, zone: exp.Expr) -> exp.Expr:
    """The wall-clock time of a timestamptz in a zone."""
    return _zoned(text("UTC"), zone, spark_cast(node, TIMESTAMP))


def instant(node: exp.Expr, zone: exp.Expr) -> exp.Expr:
    """The timestamptz at which clocks in a zone show a timestamp; where they show it twice, the later one."""
    utc = text("UTC")
    first = _zoned(zone, utc, node)
    if zone == utc:
        return spark_cast(first, TIMESTAMPTZ)
    later = call(TIMESTAMP, "timestampadd", exp.var("HOUR"), integer(1), first.copy())
    again = equal(_zoned(utc, zone.copy(), later), node.copy())
    return spark_cast(case(TIMESTAMP, [(again, later.copy())], first), TIMESTAMPTZ)


def _zoned(source: exp.Expr, target: exp.Expr, node: exp.Expr) -> exp.Expr:
    if source == target:  # the session of Spark runs in UTC
        return node
    return call(TIMESTAMP, "convert_timezone", source, target, node)


def _moment(node: exp.Expr, source: SqlType, target: SqlType, settings: Settings) -> exp.Expr:
    zone = text(settings.timezone)
    match source.kind, target.kind:
        case Kind.TIMESTAMPTZ, _:
            local = local_time(node, zone)
            return local if target == TIMESTAMP else spark_cast(local, DATE)
        case Kind.DATE, Kind.TIMESTAMPTZ:
            return instant(spark_cast(node, TIMESTAMP), zone)
        case _, Kind.TIMESTAMPTZ:
            return instant(node, zone)
        case _:
            return spark_cast(node, target)


def _json_as(node: exp.Expr, first: SqlType, target: SqlType, settings: Settings) -> exp.Expr:
    """A json number or boolean as the type `first`, on its way to `target`; what else it may be is refused by name."""
    plain = _without_json_null(node)
    begins = call(VARCHAR, "substr", typed(node.copy(), VARCHAR), integer(1), integer(1))
    kinds = {'"': "string", "[": "array", "{": "object", "t": "boolean", "f": "boolean"}
    pairs = [text(part) for pair in kinds.items() for part in pair]
    kind = call(VARCHAR, "decode", begins, *pairs, text("numeric"))
    wanted = "[tfn]" if first == BOOLEAN else "[-0-9n]"
    other = negation(call(BOOLEAN, "rlike", begins.copy(), text(wanted)))
    told = call(VARCHAR, "concat", text("cannot cast jsonb "), kind, text(f" to type {target}"))
    if first != BOOLEAN:
        reason = [text(". In jsonb: cannot cast jsonb "), kind.copy(), text(" to type number.")]
        told = call(VARCHAR, "concat", told, *reason)
    return guarded(checked_cast(plain, first, settings), other, told, settings)


def _without_json_null(node: exp.Expr) -> exp.Expr:
    """A JSON value, with SQL's NULL for JSON's."""
    return call(type_of(node), "nullif", node, text("null"))


def _from_text(node: exp.Expr, target: SqlType, settings: Settings) -> exp.Expr:
    match target.kind:
        case Kind.BOOLEAN:
            word = call(VARCHAR, "lower", call(VARCHAR, "trim", node.copy()))
            return case(
                BOOLEAN,
                [
                    (_one_of(word, "on", "tr", "tru", "ye"), boolean(True)),
                    (_one_of(word, "off", "of", "fa", "fal", "fals"), boolean(False)),
                ],
                checked_cast(node, BOOLEAN, settings),
            )
        case Kind.TIMESTAMPTZ:
            plain = checked_cast(node, TIMESTAMPTZ, settings)
            if settings.timezone == "UTC":
                return plain
            has_zone = call(
                BOOLEAN,
                "rlike",
                node.copy(),
                text(r"(:\d\d(\.\d+)?|[^-:]) ?([zZ]|[+-]\d\d?(:?\d\d)?|[A-Za-z]+(/[A-Za-z_]+)*)$"),
            )
            local = instant(checked_cast(node.copy(), TIMESTAMP, settings), text(settings.timezone))
            return case(TIMESTAMPTZ, [(has_zone, plain)], local)
        case Kind.TIME:
            dated = call(VARCHAR, "concat", text("1970-01-01 "), node)
            return typed(micros_of(checked_cast(dated, TIMESTAMP, settings)), TIME)
        case Kind.JSONB:
            parsed = call(VARCHAR, "parse_json", node) if settings.strict else attempt(VARCHAR, "try_parse_json", node)
            return call(target, "to_json", parsed)
        case Kind.BYTEA:
            tail = call(VARCHAR, "substr", node.copy(), integer(3))
            decoded = (
                call(target, "to_binary", tail, text("hex"))
                if settings.strict
                else attempt(target, "try_to_binary", tail, text("hex"))
            )
            prefixed = call(BOOLEAN, "startswith", node.copy(), text("\\x"))
            return case(target, [(prefixed, decoded)], call(target, "encode", node, text("UTF-8")))
        case Kind.INTERVAL:
            return readings.interval(node, settings)
        case Kind.ARRAY if target.element is not None and _levels(target)[1].kind is not Kind.STRUCT:
            levels, _ = _levels(target)
            nested = levels > 1
            items = readings.nested_items(node, levels, settings) if nested else readings.array_items(node, settings)
            item = convert(variable("x", VARCHAR), target.element, settings)
            return items if target.element == VARCHAR else transform(items, "x", item, target)
        case Kind.ARRAY | Kind.STRUCT | Kind.MAP:
            raise FeatureNotSupported(
                f"cast of a text expression to {target} is not supported",
                detail="Only a quoted constant can be read as this type.",
                hint=f"Write the constant itself, as in '...'::{target}.",
            )
        case _:
            return checked_cast(node, target, settings)


def _levels(type_: SqlType) -> tuple[int, SqlType]:
    """How many arrays are inside each other, and what the innermost holds."""
    levels = 0
    while type_.element is not None:
        levels, type_ = levels + 1, type_.element
    return levels, type_


def _one_of(node: exp.Expr, *words: str) -> exp.Expr:
    return typed(exp.In(this=node.copy(), expressions=[text(word) for word in words]), BOOLEAN)


# --- text forms --------------------------------------------------------------------------------------


def to_text(node: exp.Expr, settings: Settings) -> exp.Expr:
    """The value as PostgreSQL prints it."""
    type_ = type_of(node)
    match type_.kind:
        case Kind.VARCHAR:
            return node
        case Kind.NULL:
            return convert(node, VARCHAR, settings)
        case Kind.NUMERIC if not type_.declared and type_.scale:
            plain = spark_cast(node, VARCHAR)
            return call(VARCHAR, "rtrim", text("."), call(VARCHAR, "rtrim", text("0"), plain))
        case Kind.REAL | Kind.DOUBLE:
            return _float_text(node, type_)
        case Kind.BYTEA:
            return call(VARCHAR, "concat", text("\\x"), call(VARCHAR, "lower", call(VARCHAR, "hex", node)))
        case Kind.TIME:
            moment = spark_cast(call(TIMESTAMPTZ, "timestamp_micros", node), TIMESTAMP)
            return call(VARCHAR, "substr", _moment_text(moment), integer(12))
        case Kind.DATE:
            return once(node, VARCHAR, lambda day: with_era(day, spark_cast(day, VARCHAR)))
        case Kind.TIMESTAMP:
            return once(node, VARCHAR, lambda moment: with_era(moment, _moment_text(moment)))
        case Kind.TIMESTAMPTZ:
            return once(node, VARCHAR, lambda moment: with_era(moment, _timestamptz_text(moment, settings)))
        case Kind.INTERVAL:
            return _interval_text(node)
        case Kind.JSONB:
            return json_text(node)
        case Kind.ARRAY:
            assert type_.element is not None
            item = _item_text(variable("x", type_.element), "NULL", settings, brackets="{}")
            items = transform(node, "x", item, array_of(VARCHAR))
            return call(VARCHAR, "concat", text("{"), call(VARCHAR, "array_join", items, text(",")), text("}"))
        case Kind.STRUCT:
            parts = [_item_text(field(node.copy(), n, t), "", settings, brackets="()") for n, t in type_.fields]
            items = call(array_of(VARCHAR), "array", *parts)
            made = call(VARCHAR, "concat", text("("), call(VARCHAR, "array_join", items, text(",")), text(")"))
            return case(VARCHAR, [(not_null(node), made)])
        case Kind.MAP:
            entry = variable("e", struct_of(*type_.fields))
            sides = [_entry_text(field(entry.copy(), name, part), settings) for name, part in type_.fields]
            told = [typed(exp.Coalesce(this=each, expressions=[text("NULL")]), VARCHAR) for each in sides]
            pair = call(VARCHAR, "concat", told[0], text(":"), told[1])
            items = transform(typed(node, type_.entries), "e", pair, array_of(VARCHAR))
            return call(VARCHAR, "concat", text("{"), call(VARCHAR, "array_join", items, text(",")), text("}"))
        case _:
            return spark_cast(node, VARCHAR)


def json_text(node: exp.Expr) -> exp.Expr:
    """The stored text with PostgreSQL's spaces: one after each colon and comma that is not in a string."""
    separated = r"""\G((?:[^",:]++|"(?:[^"\\]++|\\.)*+")*+)([,:])"""
    return call(VARCHAR, "regexp_replace", typed(node.copy(), VARCHAR), text(separated), text("$1$2 "))


def _entry_text(node: exp.Expr, settings: Settings) -> exp.Expr:
    """A key or a value of a map, where a boolean is a letter."""
    if type_of(node).kind is not Kind.BOOLEAN:
        return to_text(node, settings)
    return case(VARCHAR, [(node, text("t")), (negation(node.copy()), text("f"))])


def _item_text(node: exp.Expr, missing: str, settings: Settings, *, brackets: str) -> exp.Expr:
    plain = to_text(node, settings)
    branches = [(is_null(node.copy()), text(missing))]
    nested_array = brackets == "{}" and type_of(node).kind is Kind.ARRAY
    if type_of(node).kind not in _RANK and type_of(node).kind is not Kind.BOOLEAN and not nested_array:
        special = r"""^$|[\s,"\\{}]|^(?i:null)$""" if brackets == "{}" else r"""^$|[\s,"\\()]"""
        escaped = call(VARCHAR, "regexp_replace", plain.copy(), text(r"""(["\\])"""), text(r"\\$1"))
        quoted = call(VARCHAR, "concat", text('"'), escaped, text('"'))
        branches.append((call(BOOLEAN, "rlike", plain.copy(), text(special)), quoted))
    return case(VARCHAR, branches, plain)


def _float_text(node: exp.Expr, type_: SqlType) -> exp.Expr:
    """Shortest digits that read back the same; an exponent below 1e-5 and from 1e16 (for real 1e-6 and 1e13) on."""
    java = spark_cast(node, VARCHAR)
    lowest, limit = ("1E-5", "1E16") if type_.kind is Kind.DOUBLE else ("1E-6", "1E13")
    size = call(type_, "abs", node.copy())
    large = comparison(exp.GTE, size, spark_cast(exp.Literal.string(limit), type_))
    small = comparison(exp.LT, size.copy(), spark_cast(exp.Literal.string(lowest), type_))
    nonzero = comparison(exp.NEQ, node.copy(), spark_cast(integer(0), type_))
    odd = _one_of(java, "NaN", "Infinity", "-Infinity", "-0.0")
    mantissa = call(
        VARCHAR,
        "regexp_replace",
        call(VARCHAR, "substring_index", java.copy(), text("E"), integer(1)),
        text(r"\.0$"),
        text(""),
    )
    exponent = spark_cast(call(VARCHAR, "substring_index", java.copy(), text("E"), integer(-1)), INTEGER)
    sign = case(VARCHAR, [(comparison(exp.LT, exponent.copy(), integer(0)), text("-"))], text("+"))
    digits = spark_cast(call(INTEGER, "abs", exponent), VARCHAR)
    padded = case(
        VARCHAR,
        [
            (
                equal(call(INTEGER, "length", digits.copy()), integer(1)),
                call(VARCHAR, "concat", text("0"), digits.copy()),
            )
        ],
        digits,
    )
    scientific = call(VARCHAR, "concat", mantissa, text("e"), sign, padded)
    fixed = spark_cast(spark_cast(java.copy(), numeric(38, 22)), VARCHAR)
    trimmed = call(VARCHAR, "rtrim", text("."), call(VARCHAR, "rtrim", text("0"), fixed))
    return case(
        VARCHAR,
        [
            (odd, call(VARCHAR, "replace", java.copy(), text(".0"), text(""))),
            (large, scientific),
            (conjunction([small, nonzero]), scientific.copy()),
        ],
        trimmed,
    )


def _moment_text(node: exp.Expr) -> exp.Expr:
    """A timestamp's text, with a fraction of three or six digits, as RisingWave has it."""
    longer = call(VARCHAR, "regexp_replace", spark_cast(node, VARCHAR), text(r"(\.\d+)$"), text("$1000000"))
    return call(VARCHAR, "regexp_replace", longer, text(r"(\.\d{3})0*$|(\.\d{6})0*$"), text("$1$2"))


def _timestamptz_text(node: exp.Expr, settings: Settings) -> exp.Expr:
    if settings.timezone == "UTC":
        return call(VARCHAR, "concat", _moment_text(spark_cast(node, TIMESTAMP)), text("+00:00"))
    local = local_time(node, text(settings.timezone))
    shift = binary(exp.Sub, BIGINT, micros_of(local.copy()), micros_of(node.copy()))
    minutes = call(BIGINT, "abs", binary(exp.IntDiv, BIGINT, shift, bigint(60_000_000)))
    sign = case(VARCHAR, [(comparison(exp.LT, shift.copy(), bigint(0)), text("-"))], text("+"))
    hours = _two_digits(binary(exp.IntDiv, BIGINT, minutes, bigint(60)))
    rest = _two_digits(binary(exp.Mod, BIGINT, minutes.copy(), bigint(60)))
    return call(VARCHAR, "concat", _moment_text(local), sign, hours, text(":"), rest)


def _two_digits(node: exp.Expr) -> exp.Expr:
    digits = spark_cast(node, VARCHAR)
    short = comparison(exp.LT, call(INTEGER, "length", digits.copy()), integer(2))
    return case(VARCHAR, [(short, call(VARCHAR, "concat", text("0"), digits.copy()))], digits)


def _interval_text(node: exp.Expr) -> exp.Expr:
    months, days = field(node, "months", INTEGER), field(node.copy(), "days", INTEGER)
    micros = field(node.copy(), "micros", BIGINT)
    years = binary(exp.IntDiv, BIGINT, months, integer(12))
    rest = binary(exp.Mod, INTEGER, months.copy(), integer(12))

    def part(amount: exp.Expr, singular: str, plural: str, before: list[exp.Expr]) -> exp.Expr:
        """`-1 years +2 mons`: a positive part after a negative one shows its sign."""
        zero = integer(0)
        unit = case(VARCHAR, [(equal(amount.copy(), integer(1)), text(singular))], text(plural))
        words: list[exp.Expr] = [spark_cast(amount.copy(), VARCHAR), unit]
        if before:
            after_negative = conjunction(
                [comparison(exp.LT, before[-1].copy(), zero), comparison(exp.GT, amount.copy(), zero.copy())]
            )
            words.insert(0, case(VARCHAR, [(after_negative, text("+"))], text("")))
        return case(VARCHAR, [(comparison(exp.NEQ, amount, zero.copy()), call(VARCHAR, "concat", *words))])

    # Without its sign the smallest number of microseconds would not fit: the hours and the rest do.
    hour = bigint(3_600_000_000)
    hours = _two_digits(call(BIGINT, "abs", binary(exp.IntDiv, BIGINT, micros.copy(), hour)))
    rest_of_hour = call(BIGINT, "abs", binary(exp.Mod, BIGINT, micros.copy(), hour.copy()))
    within = call(TIMESTAMPTZ, "timestamp_micros", rest_of_hour)
    clock = call(VARCHAR, "substr", spark_cast(spark_cast(within, TIMESTAMP), VARCHAR), integer(14))
    signed = case(
        VARCHAR,
        [
            (comparison(exp.LT, micros.copy(), bigint(0)), text("-")),
            (comparison(exp.LT, days.copy(), integer(0)), text("+")),
            (conjunction([equal(days.copy(), integer(0)), comparison(exp.LT, months.copy(), integer(0))]), text("+")),
        ],
        text(""),
    )
    shown = comparison(exp.NEQ, micros.copy(), bigint(0))
    time = case(VARCHAR, [(shown, call(VARCHAR, "concat", signed, hours, clock))])
    words = [
        part(years, " year", " years", []),
        part(rest, " mon", " mons", [months]),
        part(days, " day", " days", [months]),
        time,
    ]
    joined = call(VARCHAR, "concat_ws", text(" "), *words)
    nothing = conjunction(
        [equal(months.copy(), integer(0)), equal(days.copy(), integer(0)), equal(micros.copy(), bigint(0))]
    )
    return case(VARCHAR, [(is_null(node.copy()), null(VARCHAR)), (nothing, text("00:00:00"))], joined)
