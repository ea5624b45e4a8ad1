"""PostgreSQL's scalar functions as Spark expressions, one module a family.

Importing this package registers them all; `invoke` renders a call.
"""

from __future__ import annotations

from seiche.sql.functions import (
    angles,
    arrays,
    bytea,
    ciphers,
    gamma,
    json_edit,
    json_records,
    jsonb,
    jsonpath,
    making,
    maps,
    maths,
    numerals,
    patterns,
    spans,
    strings,
    system,
    templates,
    temporal,
)
from seiche.sql.functions.registry import invoke, is_function, undefined

__all__ = [
    "angles", "arrays", "bytea", "ciphers", "gamma", "invoke", "is_function", "json_edit", "json_records", "jsonb",
    "jsonpath", "making", "maps", "maths", "numerals", "patterns", "spans", "strings", "system", "templates",
    "temporal", "undefined",
]  # fmt: skip
