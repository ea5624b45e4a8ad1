"""What CREATE SINK may say, and which table it may fill, without Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.errors import DependentObjects, FeatureNotSupported, InvalidDefinition, SeicheError, UndefinedColumn
from seiche.model import ObjectId
from seiche.plan.fragments import fragment_schema
from seiche.session.deliveries import INTO, upstream_of
from seiche.session.rename import renamed
from seiche.session.sink_options import explained_options, read_sink_options
from seiche.session.sinks import filling
from seiche.sql.parse import parse
from seiche.sql.statements import CreateSink
from tests.unit.plan.harbour import ARRIVALS, BERTHS, SCHEMAS, SHIPS, TIDES, Harbour


class Port(Harbour):
    """The harbour with sinks."""

    def sink(self, text: str) -> CatalogObject:
        (parsed,) = parse(text)
        assert isinstance(parsed.statement, CreateSink)
        shape = fragment_schema(self.plan(parsed.statement.query.text))
        number = max(self.catalog.by_id) + 1
        mentioned = frozenset(ObjectId(each) for each in self.bound(parsed.statement.query.text).relations)
        options = {"options": dict(parsed.statement.options)}
        made = CatalogObject(
            ObjectId(number), ObjectKind.SINK, parsed.statement.name.name, text, shape.visible, shape,
            properties=options, dependencies=mentioned,
        )  # fmt: skip
        made = filling(made, parsed.statement, self.catalog, ("public",))
        self.catalog = self.catalog.with_objects(made)
        return made


@pytest.fixture
def port() -> Port:
    return Port()


def test_a_sink_into_a_table_depends_on_what_it_reads_and_on_what_it_fills(port: Port) -> None:
    sink = port.sink("CREATE SINK s INTO berths (id, quay) AS SELECT id, name FROM ships")
    assert sink.properties[INTO] == BERTHS
    assert sink.dependencies == {SHIPS, BERTHS}
    assert upstream_of(port.catalog, [BERTHS]) == {BERTHS, sink.id, SHIPS}


def test_what_feeds_a_table_cannot_come_from_it(port: Port) -> None:
    with pytest.raises(InvalidDefinition) as caught:
        port.sink("CREATE SINK s INTO ships (id) AS SELECT id FROM ships")
    assert "circular dependency" in str(caught.value.detail)
    port.sink("CREATE SINK one INTO berths (id) AS SELECT id FROM ships")
    port.sink("CREATE SINK two INTO arrivals (ship) AS SELECT id FROM berths WITH (ignore_delete = 'true')")
    with pytest.raises(InvalidDefinition):
        port.sink("CREATE SINK three INTO ships (id) AS SELECT ship FROM arrivals")


@pytest.mark.parametrize(
    "text",
    [
        "CREATE SINK s INTO arrivals (ship) AS SELECT id FROM ships",
        "CREATE SINK s INTO arrivals (ship) AS SELECT id FROM ships WITH (connector = 'blackhole')",
        "CREATE SINK s INTO berths (id, nothing) AS SELECT id, name FROM ships",
        "CREATE SINK s INTO berths (id) AS SELECT id, name FROM ships",
        "CREATE SINK s INTO berths (id) AS SELECT crew FROM arrivals",
    ],
)
def test_what_does_not_fit_the_table_is_refused(port: Port, text: str) -> None:
    with pytest.raises(SeicheError):
        port.sink(text)


def test_a_table_without_a_key_takes_what_only_appears(port: Port) -> None:
    assert SCHEMAS[TIDES].append_only
    assert port.sink("CREATE SINK s INTO arrivals (at) AS SELECT at::timestamp FROM tides").properties[INTO] == ARRIVALS


def test_a_sink_goes_with_its_table_but_not_with_what_it_reads(port: Port) -> None:
    sink = port.sink("CREATE SINK s INTO berths (id) AS SELECT id FROM ships")
    assert set(port.catalog.plan_drop([BERTHS], cascade=False)) == {BERTHS, sink.id}
    with pytest.raises(DependentObjects):
        port.catalog.plan_drop([SHIPS], cascade=False)


def test_the_names_of_both_sides_follow(port: Port) -> None:
    sink = port.sink("CREATE SINK s INTO berths (id) AS SELECT id FROM ships")
    tables = {SHIPS: "ships", BERTHS: "berths"}
    catalog: Catalog = port.catalog.with_objects(
        *(_defined(port.catalog.get(each), f"CREATE TABLE {name} (id int)") for each, name in tables.items())
    )
    catalog = renamed(renamed(catalog, SHIPS, "boats"), BERTHS, "quays")
    assert catalog.get(sink.id).definition == "CREATE SINK s INTO quays (id) AS SELECT id FROM boats AS ships"


def _defined(item: CatalogObject, text: str) -> CatalogObject:
    return replace(item, definition=text)


def test_options_tell_whether_deletes_are_handed_on() -> None:
    plain = read_sink_options((("connector", "blackhole"),), into_table=False)
    assert (plain.append_only, plain.drops_deletes, plain.snapshot) == (False, False, True)
    assert read_sink_options((("connector", "blackhole"), ("force_compaction", "true")), into_table=False) == plain
    forced = read_sink_options((("type", "append-only"), ("force_append_only", "true")), into_table=True)
    assert forced.drops_deletes
    forced.check(SCHEMAS[SHIPS])
    with pytest.raises(InvalidDefinition):
        read_sink_options((("type", "append-only"),), into_table=True).check(SCHEMAS[SHIPS])
    with pytest.raises(UndefinedColumn):
        read_sink_options((("primary_key", "imo"),), into_table=True).check(SCHEMAS[SHIPS])


def test_what_a_plan_depends_on_is_told_for_any_connector() -> None:
    given = (("connector", "kafka"), ("topic", "ships"), ("type", "append-only"), ("force_append_only", "true"))
    assert read_sink_options(explained_options(given), into_table=False).drops_deletes


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ((), InvalidDefinition),
        ((("connector", "kafka"),), FeatureNotSupported),
        ((("connector", "blackhole"), ("topic", "ships")), FeatureNotSupported),
        ((("connector", "blackhole"), ("connector", "blackhole")), InvalidDefinition),
        ((("connector", "blackhole"), ("type", "sideways")), InvalidDefinition),
        ((("connector", "blackhole"), ("snapshot", "perhaps")), InvalidDefinition),
        ((("connector", "blackhole"), ("force_compaction", "perhaps")), InvalidDefinition),
    ],
)
def test_options_that_no_sink_has_are_refused(options: tuple[tuple[str, str], ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        read_sink_options(options, into_table=False)
