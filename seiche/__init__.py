"""Seiche keeps SQL views up to date on Apache Spark.

import seiche

with seiche.connect("harbour") as db:
    db.sql("CREATE TABLE arrivals (ship varchar, berth int)")
    db.sql("CREATE MATERIALIZED VIEW load AS SELECT berth, count(*) AS ships FROM arrivals GROUP BY berth")
    db.insert("arrivals", [("Aurora", 1), ("Borealis", 1)])
    db.sql("SELECT * FROM load").rows
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seiche.errors import SeicheError

if TYPE_CHECKING:
    from seiche.config import Config
    from seiche.engine import Engine, connect

__version__ = "0.1.0"

__all__ = ["Config", "Engine", "SeicheError", "__version__", "connect"]


def __getattr__(name: str) -> Any:
    """Loads Spark only when a database is opened: importing a part of the package stays cheap."""
    if name in ("Engine", "connect"):
        from seiche import engine

        return getattr(engine, name)
    if name == "Config":
        from seiche.config import Config

        return Config
    raise AttributeError(f"module 'seiche' has no attribute {name!r}")
