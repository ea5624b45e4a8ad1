"""Functions that users wrote in Python, made known to Spark.

The body defines a function of the same name, or the steps of an aggregate, which is called with the rows of a group.
Spark calls it on the executors, over Arrow batches. One that returns rows yields them, or returns a list of them, and
Spark gets them as an array. Each is registered in
two forms: one that raises, for queries, and one that gives NULL where it raises, for views. Both are made of source
text alone and travel with the query, so executors need nothing of this package.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import ObjectKind
from seiche.errors import FeatureNotSupported, InvalidDefinition
from seiche.session.names import user_function
from seiche.sql.parse import parse
from seiche.sql.statements import CreateFunction
from seiche.sql.user_functions import UserFunction
from seiche.storage.python_workers import use_this_python
from seiche.types import Kind, SqlType

_REFUSED = (Kind.INTERVAL, Kind.MAP, Kind.TIME)
_STEPS = ("create_state", "accumulate", "finish")  # of an aggregate

_CALLS = """

import datetime as _datetime
import decimal as _decimal
import json as _json
import operator as _operator

_seiche_bits = {"SMALLINT": 15, "INTEGER": 31, "BIGINT": 63}
_seiche_classes = {
    "BYTEA": (bytes, bytearray),
    "DATE": _datetime.date,
    "TIMESTAMP": _datetime.datetime,
    "TIMESTAMPTZ": _datetime.datetime,
}
_seiche_exactly = _decimal.Context(prec=76)  # Python's own would round a number of 38 digits to 28

def _seiche_in(value, kind):
    if value is None:
        return None
    if kind == "NUMERIC":  # without the zeros that only the column's scale asks for
        whole = value.to_integral_value()
        return whole if value == whole else value.normalize(_seiche_exactly)
    return _json.loads(value) if kind == "JSONB" else value


def _seiche_out(value, form):
    # What Arrow would refuse is refused here already, where the tolerant form gives NULL for it.
    if value is None:
        return None
    kind, precision, scale, parts = form
    if kind in _seiche_bits:
        number = _operator.index(value)
        if number.bit_length() > _seiche_bits[kind] and number != -1 << _seiche_bits[kind]:
            raise OverflowError(f"{number} is out of range for type {kind.lower()}")
        return number
    if kind in ("REAL", "DOUBLE"):
        return float(value)
    if kind == "NUMERIC":
        exponent = _decimal.Decimal(1).scaleb(-scale)
        number = _decimal.Decimal(str(value)).quantize(exponent, context=_seiche_exactly)
        if not number.is_finite() or number.adjusted() >= precision - scale:
            raise OverflowError(f"{number} is out of range for type numeric({precision}, {scale})")
        return number
    if kind == "JSONB":
        return _seiche_text(
            _json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        )
    if kind == "BOOLEAN":
        return bool(value)
    if kind == "STRUCT":
        return _seiche_row(value, parts)
    if kind == "ARRAY":
        return [_seiche_out(each, parts) for each in value]
    if kind == "VARCHAR":
        return _seiche_text(str(value))
    if kind in _seiche_classes and not isinstance(value, _seiche_classes[kind]):
        raise TypeError(f"{value!r} is no value of type {kind.lower()}")
    return value


def _seiche_text(text):
    text.encode()  # raises for half a character
    return text


def _seiche_row(value, fields):
    if isinstance(value, (tuple, list)):
        if len(value) != len(fields):
            raise ValueError(f"a row of {len(fields)} columns was expected, and {len(value)} values were given")
        values = value
    elif isinstance(value, dict):
        values = [value.get(name) for name, _ in fields]
    else:
        values = [getattr(value, name) for name, _ in fields]
    return tuple(_seiche_out(each, form) for each, (_, form) in zip(values, fields))


def _seiche_given(values):
    return [_seiche_in(value, kind) for value, kind in zip(values, _seiche_kinds)]


{call}


def _seiche_tolerant(*values):
    try:
        return _seiche_strict(*values)
    except (Exception, SystemExit):
        return None


_seiche_kinds = {kinds}
_seiche_form = {form}
"""

_FUNCTION = """
def _seiche_strict(*values):
    if {null_for_null} and any(value is None for value in values):
        return None
    return _seiche_out({name}(*_seiche_given(values)), _seiche_form)
"""

_AGGREGATE = """
def _seiche_strict(rows):
    state = create_state()
    for row in () if rows is None else rows:
        state = accumulate(state, *_seiche_given(row))
    return _seiche_out(finish(state), _seiche_form)
"""


def register_all(spark: SparkSession, catalog: Catalog) -> None:
    """Every Python function of a catalog, as a database does when it is opened."""
    for item in catalog.objects(ObjectKind.FUNCTION):
        (parsed,) = parse(item.definition)
        if isinstance(parsed.statement, CreateFunction) and parsed.statement.language == "python":
            register(spark, user_function(parsed.statement))


def register(spark: SparkSession, function: UserFunction) -> None:
    """Makes both forms known to Spark; raises where the body does not define the function."""
    for _, type_ in (*function.parameters, ("", function.returns)):
        if type_.kind in _REFUSED:
            raise FeatureNotSupported(f"type {type_} is not supported in Python functions")
    namespace = _loaded(function)
    use_this_python(spark.sparkContext)
    for raises in (True, False):
        called = namespace["_seiche_strict" if raises else "_seiche_tolerant"]
        made = udf(called, returnType=_result(function.returns), useArrow=True)
        if function.volatile:
            made = made.asNondeterministic()
        spark.udf.register(function.spark_name(raises=raises), made)


def _result(type_: SqlType) -> Any:
    return type_.spark


def _form(type_: SqlType) -> tuple[str, int, int, Any]:
    """What a value has to become: its kind, its digits, and the same of its element or, by name, of its fields."""
    parts = tuple((name, _form(part)) for name, part in type_.fields)
    return type_.kind.name, type_.precision, type_.scale, _form(type_.element) if type_.element is not None else parts


def _loaded(function: UserFunction) -> dict[str, Any]:
    kinds = json.dumps([type_.kind.name for _, type_ in function.parameters])
    calls = (
        _CALLS.replace("{call}", _AGGREGATE if function.aggregate else _FUNCTION)
        .replace("{name}", function.name)
        .replace("{null_for_null}", str(function.strict))
        .replace("{form}", repr(_form(function.returns)))
        .replace("{kinds}", kinds)
    )
    # No module of this name can be imported, so the functions are pickled by value.
    namespace: dict[str, Any] = {"__name__": f"seiche_function_{function.name}"}
    if not function.name.isidentifier():
        raise InvalidDefinition(f'"{function.name}" is no name of a Python function')
    try:
        exec(compile(function.body.strip("\n") + calls, f"<function {function.name}>", "exec"), namespace)  # noqa: S102
    except Exception as cause:  # whatever the user's module does when it is loaded
        raise InvalidDefinition(
            f'body of function "{function.name}" cannot be loaded', detail=f"{type(cause).__name__}: {cause}"
        ) from cause
    missing = [step for step in _STEPS if not callable(namespace.get(step))] if function.aggregate else []
    if missing:
        raise InvalidDefinition(
            f'body of aggregate "{function.name}" does not define {missing[0]}', hint=f"It defines {', '.join(_STEPS)}."
        )
    if not function.aggregate and not callable(namespace.get(function.name)):
        raise InvalidDefinition(
            f'body of function "{function.name}" does not define it', hint=f"Write def {function.name}(...): in it."
        )
    return namespace
