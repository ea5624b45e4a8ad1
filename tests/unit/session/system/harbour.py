"""A small catalog, and a way to ask it. A PostgreSQL server that ran SETUP has the same relations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seiche.catalog.catalog import Catalog
from seiche.catalog.facts import Facts
from seiche.catalog.objects import CatalogObject, Grant, ObjectKind, Privilege, Schema, User
from seiche.catalog.oids import oid_of
from seiche.model import Column, ObjectId, RelationSchema
from seiche.session.system.evaluate import SystemQueries
from seiche.session.system.state import Asking
from seiche.session.variables import Variables
from seiche.sql.parse import parse_query
from seiche.types import BIGINT, DATE, INTEGER, TIMESTAMPTZ, VARCHAR, SqlType, numeric

SETUP = """
CREATE TABLE ships (imo bigint PRIMARY KEY, name varchar NOT NULL, flag varchar DEFAULT 'NO', built date);
CREATE TABLE arrivals (ship bigint NOT NULL, berth integer, at timestamptz, draught numeric(6,2));
CREATE VIEW norwegian AS SELECT imo, name FROM ships WHERE flag = 'NO';
CREATE MATERIALIZED VIEW visits AS SELECT ship, count(*) AS visits FROM arrivals GROUP BY ship;
CREATE INDEX by_ship ON arrivals (ship);
CREATE SCHEMA port;
COMMENT ON TABLE ships IS 'every ship';
COMMENT ON COLUMN ships.flag IS 'two letters';
"""
RELATIONS = ("ships", "arrivals", "norwegian", "visits", "by_ship")
QUERIES = Path(__file__).parent / "queries"


def _column(name: str, type_: SqlType, *, nullable: bool = True, default: str | None = None) -> Column:
    return Column(name, type_, nullable=nullable, default=default)


def catalog() -> Catalog:
    ships = (
        _column("imo", BIGINT, nullable=False),
        _column("name", VARCHAR, nullable=False),
        _column("flag", VARCHAR, default="'NO'"),
        _column("built", DATE),
    )
    arrivals = (
        _column("ship", BIGINT, nullable=False),
        _column("berth", INTEGER),
        _column("at", TIMESTAMPTZ),
        _column("draught", numeric(6, 2, declared=True)),
    )
    visits = (_column("ship", BIGINT), _column("visits", BIGINT))
    row_id = Column("_row_id", BIGINT, hidden=True, nullable=False)
    definitions = [statement.strip() for statement in SETUP.split(";")]
    objects = (
        CatalogObject(
            ObjectId(100),
            ObjectKind.TABLE,
            "ships",
            definitions[0],
            columns=ships,
            relation=RelationSchema(ships, ("imo",)),
            properties={"primary_key": ["imo"]},
        ),
        CatalogObject(
            ObjectId(101),
            ObjectKind.TABLE,
            "arrivals",
            definitions[1],
            columns=arrivals,
            relation=RelationSchema((*arrivals, row_id), ("_row_id",)),
            properties={"primary_key": []},
        ),
        CatalogObject(
            ObjectId(102),
            ObjectKind.VIEW,
            "norwegian",
            definitions[2],
            columns=(_column("imo", BIGINT), _column("name", VARCHAR)),
            dependencies=frozenset({ObjectId(100)}),
        ),
        CatalogObject(
            ObjectId(103),
            ObjectKind.MATERIALIZED_VIEW,
            "visits",
            definitions[3],
            columns=visits,
            relation=RelationSchema(visits, ("ship",)),
            dependencies=frozenset({ObjectId(101)}),
        ),
        CatalogObject(
            ObjectId(104),
            ObjectKind.INDEX,
            "by_ship",
            definitions[4],
            columns=arrivals,
            relation=RelationSchema(arrivals, ("ship",)),
            properties={"columns": ["ship"]},
            dependencies=frozenset({ObjectId(101)}),
        ),
    )
    made = Catalog.default().with_schema(Schema(ObjectId(98), "dev", "port")).with_user(User(ObjectId(99), "pilot"))
    made = made.with_objects(*objects).with_comment(100, None, "every ship").with_comment(100, "flag", "two letters")
    return made.with_grants(Grant(ObjectId(99), ObjectId(100), Privilege.SELECT))


class Office:
    """Answers questions about the catalog."""

    def __init__(self, facts: Facts | None = None) -> None:
        self.facts = facts or Facts(catalog(), sizes={100: 20_000}, counts={100: 3})
        self.queries = SystemQueries()

    def ask(self, text: str, *, user: str = "root", search_path: tuple[str, ...] = ("public",)) -> Any:
        """The answer to a query about the system; raises NotForUs where it is not one that DuckDB can answer."""
        return self.queries.answer(parse_query(text).tree, self.asking(user, search_path), lambda stop: None)

    def asking(self, user: str = "root", search_path: tuple[str, ...] = ("public",)) -> Asking:
        who = self.facts.catalog.user(user)
        return Asking(self.facts, who, search_path, 7, Variables().get, 0, 0)

    def rows(self, text: str, **who: Any) -> list[tuple[Any, ...]]:
        found = self.ask(text, **who)
        return list(zip(*found.table.to_pydict().values(), strict=True))

    def value(self, text: str, **who: Any) -> Any:
        ((value,),) = self.rows(text, **who)
        return value

    def close(self) -> None:
        self.queries.close()


@contextmanager
def office(facts: Facts | None = None) -> Iterator[Office]:
    opened = Office(facts)
    try:
        yield opened
    finally:
        opened.close()


def client_queries(*files: str) -> dict[str, str]:
    """Queries that clients send, by a title; `{ships}` stands for the oid of a relation."""
    found: dict[str, str] = {}
    for file in files:
        text = (QUERIES / f"{file}.sql").read_text()
        for title, query in re.findall(r"^--- (.*)\n((?:(?!--- ).*\n?)*)", text, re.MULTILINE):
            found[title] = query.strip()
    return found


def with_oids(query: str, oids: dict[str, int]) -> str:
    return re.sub(r"\{(\w+)\}", lambda name: str(oids[name.group(1)]) if name.group(1) in oids else name.group(), query)


def own_oids() -> dict[str, int]:
    return {name: oid_of(100 + number) for number, name in enumerate(RELATIONS)}
