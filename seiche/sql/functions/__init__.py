"""PostgreSQL's scalar functions as Spark expressions, one module a family.

Importing this package registers them all; `invoke` renders a call.
"""

from __future__ import annotations

from seiche.sql.functions import arrays, jsonb, maths, strings, system, temporal
from seiche.sql.functions.registry import invoke, is_function, undefined

__all__ = ["arrays", "invoke", "is_function", "jsonb", "maths", "strings", "system", "temporal", "undefined"]
