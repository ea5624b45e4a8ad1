"""Names, dependencies and drops, on catalogs as plain values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seiche.catalog.catalog import DETAIL_LINES, Catalog, quoted
from seiche.catalog.objects import CatalogObject, Database, ObjectKind, Schema, User
from seiche.errors import (
    DependentObjects,
    DuplicateObject,
    FeatureNotSupported,
    InvalidDefinition,
    InvariantError,
    UndefinedDatabase,
    UndefinedFunction,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
    WrongObjectType,
)
from seiche.model import ObjectId

SHIPS, ARRIVALS, BUSIEST, REPORT, STATE, BY_NAME = (ObjectId(number) for number in range(100, 106))


def made(id: int, kind: ObjectKind, name: str, *needs: int, schema: str = "public") -> CatalogObject:
    dependencies = frozenset(ObjectId(need) for need in needs)
    return CatalogObject(
        ObjectId(id), kind, name, f"CREATE {kind.sql} {name}", schema=schema, dependencies=dependencies
    )


@pytest.fixture
def harbour() -> Catalog:
    """ships <- busiest (with internal state) <- report; an index on ships; arrivals by itself."""
    return Catalog.default().with_objects(
        made(SHIPS, ObjectKind.TABLE, "ships"),
        made(ARRIVALS, ObjectKind.TABLE, "arrivals"),
        made(BUSIEST, ObjectKind.MATERIALIZED_VIEW, "busiest_ships", SHIPS),
        made(REPORT, ObjectKind.VIEW, "report", BUSIEST),
        replace(made(STATE, ObjectKind.INTERNAL, "__busiest_ships_1", SHIPS), parent=BUSIEST),
        made(BY_NAME, ObjectKind.INDEX, "ships_by_name", SHIPS),
    )


# Finding


def test_a_name_is_found_with_and_without_its_schema_and_database(harbour: Catalog) -> None:
    for parts in (("ships",), ("public", "ships"), ("dev", "public", "ships")):
        assert harbour.find(parts).id == SHIPS


def test_the_first_schema_of_the_search_path_that_has_the_name_wins(harbour: Catalog) -> None:
    both = harbour.with_schema(Schema(ObjectId(200), "dev", "north")).with_objects(
        made(201, ObjectKind.TABLE, "ships", schema="north")
    )
    assert both.find(("ships",), search_path=("north", "public")).id == 201
    assert both.find(("ships",), search_path=("south", "public", "north")).id == SHIPS
    assert both.find(("arrivals",), search_path=("north", "public")).id == ARRIVALS


def test_an_unknown_name_suggests_the_nearest_one(harbour: Catalog) -> None:
    with pytest.raises(UndefinedTable, match='relation "shps" does not exist') as caught:
        harbour.find(("shps",))
    assert caught.value.hint == 'Perhaps you meant "ships".'


def test_an_unknown_name_of_one_kind_names_that_kind_and_suggests_only_it(harbour: Catalog) -> None:
    with pytest.raises(UndefinedTable, match='table "busiest_ship" does not exist') as caught:
        harbour.find(("busiest_ship",), kinds=[ObjectKind.TABLE])
    assert caught.value.hint is None


def test_a_name_in_another_schema_is_suggested_with_its_schema(harbour: Catalog) -> None:
    north = harbour.with_schema(Schema(ObjectId(200), "dev", "north")).with_objects(
        made(201, ObjectKind.TABLE, "tides", schema="north")
    )
    with pytest.raises(UndefinedTable) as caught:
        north.find(("tides",))
    assert caught.value.hint == 'Perhaps you meant "north.tides".'


def test_internal_relations_are_never_suggested(harbour: Catalog) -> None:
    with pytest.raises(UndefinedTable) as caught:
        harbour.find(("__busiest_ships_2",))
    assert caught.value.hint != 'Perhaps you meant "__busiest_ships_1".'


def test_an_unknown_schema_in_a_name_is_told_apart_from_an_unknown_relation(harbour: Catalog) -> None:
    with pytest.raises(UndefinedTable, match='relation "pubic.ships" does not exist') as caught:
        harbour.find(("pubic", "ships"))
    assert caught.value.detail == 'In the catalog: schema not found: "pubic".'
    assert caught.value.hint == 'Perhaps you meant "public".'


def test_another_database_and_a_name_of_too_many_parts_are_refused(harbour: Catalog) -> None:
    with pytest.raises(UndefinedDatabase, match='database "deb" does not exist'):
        harbour.find(("deb", "public", "ships"), anywhere=True)
    abroad = harbour.seen_from("office").with_database(Database(ObjectId(200), "office"))
    with pytest.raises(FeatureNotSupported, match='cross-database references are not implemented: "dev.public.ships"'):
        abroad.find(("dev", "public", "ships"))
    assert abroad.find(("dev", "public", "ships"), anywhere=True).id == SHIPS
    with pytest.raises(UndefinedTable, match="at most three parts"):
        harbour.find(("a", "b", "c", "d"))


def test_names_are_those_of_the_database_that_the_catalog_is_seen_from(harbour: Catalog) -> None:
    office = Database(ObjectId(200), "office")
    both = harbour.with_database(office).with_schema(Schema(ObjectId(201), "office", "public"))
    both = both.with_objects(replace(made(202, ObjectKind.TABLE, "ships"), database="office"))
    there = both.seen_from("office")
    assert (both.find(("ships",)).id, there.find(("ships",)).id) == (SHIPS, 202)
    assert there.find(("office", "public", "ships")).id == there.find(("public", "ships")).id == 202
    assert there.try_find(("arrivals",)) is None
    assert (there.schema("public").id, there.schema("public", database="dev").id) == (201, 2)
    assert [item.id for item in there.at_home()] == [202] and len(there.objects()) == 7
    assert there == both and there.seen_from("dev") is both and both.seen_from("office") is there
    assert there.without([202]).home == "office"


def test_the_wrong_kind_says_which_statement_to_use(harbour: Catalog) -> None:
    with pytest.raises(WrongObjectType, match='materialized view "busiest_ships" is not a table') as caught:
        harbour.find(("busiest_ships",), kinds=[ObjectKind.TABLE], action="DROP")
    assert caught.value.hint == "Use `DROP MATERIALIZED VIEW` for it."
    assert caught.value.detail == 'In the catalog: table not found: "busiest_ships".'


def test_the_wrong_kind_among_several_lists_them(harbour: Catalog) -> None:
    with pytest.raises(WrongObjectType, match='table "ships" is not an index or sink'):
        harbour.find(("ships",), kinds=[ObjectKind.SINK, ObjectKind.INDEX])


def test_try_find_gives_none_for_unknown_names_and_other_kinds(harbour: Catalog) -> None:
    assert harbour.try_find(("tides",)) is None
    assert harbour.try_find(("ships",), kinds=[ObjectKind.VIEW]) is None
    assert harbour.try_find(("ships",), kinds=[ObjectKind.TABLE]) == harbour.get(SHIPS)


def test_a_function_may_be_called_like_a_table(harbour: Catalog) -> None:
    both = harbour.with_objects(made(200, ObjectKind.FUNCTION, "ships"))
    assert both.find(("ships",)).id == SHIPS
    assert both.find(("ships",), kinds=[ObjectKind.FUNCTION]).id == 200
    with pytest.raises(UndefinedFunction, match='function "tides" does not exist'):
        both.find(("tides",), kinds=[ObjectKind.FUNCTION])


def test_unknown_schemas_and_users_suggest_the_nearest(harbour: Catalog) -> None:
    with pytest.raises(UndefinedSchema) as schema:
        harbour.schema("publc")
    with pytest.raises(UndefinedObject) as user:
        harbour.user("rot")
    assert schema.value.hint == 'Perhaps you meant "public".'
    assert user.value.hint == 'Perhaps you meant "root".'


def test_names_are_quoted_only_where_folding_would_change_them() -> None:
    assert [quoted(name) for name in ("ships", "_x1", "Ships", "two words", 'a"b', "1st")] == [
        "ships",
        "_x1",
        '"Ships"',
        '"two words"',
        '"a""b"',
        '"1st"',
    ]


# Changing


def test_changing_a_catalog_leaves_the_old_one_as_it_was(harbour: Catalog) -> None:
    more = harbour.with_objects(made(200, ObjectKind.TABLE, "tides"))
    assert harbour.try_find(("tides",)) is None
    assert more.without([200]) == harbour


def test_a_name_is_taken_by_any_kind_of_relation(harbour: Catalog) -> None:
    with pytest.raises(DuplicateObject, match='table "ships" already exists'):
        harbour.with_objects(made(200, ObjectKind.SINK, "ships"))


def test_an_object_needs_a_schema_an_owner_and_its_dependencies(harbour: Catalog) -> None:
    with pytest.raises(UndefinedSchema):
        harbour.with_objects(made(200, ObjectKind.TABLE, "tides", schema="north"))
    with pytest.raises(UndefinedObject, match='user "ahab"'):
        harbour.with_objects(replace(made(200, ObjectKind.TABLE, "tides"), owner="ahab"))
    with pytest.raises(InvariantError):
        harbour.with_objects(made(200, ObjectKind.VIEW, "tides", 999))


def test_a_view_that_would_refer_to_itself_is_refused(harbour: Catalog) -> None:
    with pytest.raises(InvalidDefinition, match="would refer to itself") as caught:
        harbour.with_objects(replace(harbour.get(BUSIEST), dependencies=frozenset({REPORT})))
    assert '"report"' in str(caught.value.detail)


def test_nothing_is_removed_while_something_depends_on_it(harbour: Catalog) -> None:
    with pytest.raises(InvariantError):
        harbour.without([SHIPS])


def test_databases_schemas_and_users_have_unique_names(harbour: Catalog) -> None:
    with pytest.raises(DuplicateObject, match='schema "public" already exists'):
        harbour.with_schema(Schema(ObjectId(200), "dev", "public"))
    with pytest.raises(DuplicateObject, match='database "dev" already exists'):
        harbour.with_database(Database(ObjectId(200), "dev"))
    with pytest.raises(DuplicateObject, match='user "root" already exists'):
        harbour.with_user(User(ObjectId(200), "root"))


def test_schemas_databases_and_users_in_use_cannot_be_dropped(harbour: Catalog) -> None:
    with pytest.raises(DependentObjects, match='schema "public" cannot be dropped') as caught:
        harbour.without_schema("public")
    assert 'Table "ships" depends on schema "public".' in str(caught.value.detail)
    with pytest.raises(DependentObjects, match='database "dev" cannot be dropped'):
        harbour.without_database("dev")
    with pytest.raises(DependentObjects, match='user "root" cannot be dropped'):
        harbour.without_user("root")
    assert [user.name for user in harbour.without_user("postgres").users] == ["root", "rwadmin"]


# Dropping


def test_a_table_that_nothing_needs_is_dropped_alone(harbour: Catalog) -> None:
    assert harbour.plan_drop([ARRIVALS], cascade=False) == (ARRIVALS,)


def test_dropping_what_others_need_is_refused_and_says_what_they_are(harbour: Catalog) -> None:
    with pytest.raises(DependentObjects, match='table "ships" cannot be dropped because') as caught:
        harbour.plan_drop([SHIPS], cascade=False)
    assert caught.value.detail == (
        'Materialized view "busiest_ships" depends on table "ships".\n'
        'View "report" depends on materialized view "busiest_ships".\n'
        "Permission denied while others depend on it."
    )
    assert caught.value.hint == "Use DROP ... CASCADE to drop the dependent objects too."


def test_a_long_list_of_dependants_is_cut(harbour: Catalog) -> None:
    views = [made(200 + number, ObjectKind.VIEW, f"v{number}", ARRIVALS) for number in range(DETAIL_LINES + 5)]
    with pytest.raises(DependentObjects) as caught:
        harbour.with_objects(*views).plan_drop([ARRIVALS], cascade=False)
    *lines, denied = str(caught.value.detail).splitlines()
    assert denied == "Permission denied while others depend on it."
    assert len(lines) == DETAIL_LINES + 1
    assert lines[-1] == "And 5 more."


def test_cascade_drops_dependants_first_and_internal_relations_with_their_job(harbour: Catalog) -> None:
    plan = harbour.plan_drop([SHIPS], cascade=True)
    assert set(plan) == {SHIPS, BUSIEST, REPORT, STATE, BY_NAME}
    assert plan[-1] == SHIPS
    assert plan.index(REPORT) < plan.index(BUSIEST) < plan.index(STATE)
    assert harbour.without(plan).objects() == (harbour.get(ARRIVALS),)


def test_indexes_go_with_their_table_unasked(harbour: Catalog) -> None:
    alone = harbour.without(harbour.plan_drop([BUSIEST], cascade=True))
    assert alone.plan_drop([SHIPS], cascade=False) == (BY_NAME, SHIPS)


def test_objects_dropped_together_do_not_hold_each_other(harbour: Catalog) -> None:
    assert harbour.plan_drop([BUSIEST, REPORT], cascade=False) == (REPORT, BUSIEST, STATE)


def test_dependants_are_what_the_user_made_on_top(harbour: Catalog) -> None:
    assert [item.id for item in harbour.dependants(BUSIEST)] == [REPORT]
    assert {item.id for item in harbour.dependants(SHIPS)} == {REPORT, BUSIEST, BY_NAME}
    assert [item.id for item in harbour.children(BUSIEST)] == [STATE]


# Temporary tables


@pytest.fixture
def with_temporary(harbour: Catalog) -> Catalog:
    """The harbour while session 7 has a table `ships` of its own, with an index."""
    return harbour.with_schema(Schema(ObjectId(200), "dev", "pg_temp_7")).with_objects(
        made(201, ObjectKind.TABLE, "ships", schema="pg_temp_7"),
        made(202, ObjectKind.INDEX, "own", 201, schema="pg_temp_7"),
    )


def test_pg_temp_is_the_schema_of_the_session_that_says_so(with_temporary: Catalog) -> None:
    assert with_temporary.find(("pg_temp", "ships"), search_path=("pg_temp_7", "public")).id == 201
    assert with_temporary.find(("ships",), search_path=("pg_temp_7", "public")).id == 201
    assert with_temporary.find(("ships",)).id == SHIPS
    with pytest.raises(UndefinedTable):
        with_temporary.find(("pg_temp", "ships"), search_path=("pg_temp_8", "public"))


def test_what_lasts_cannot_use_a_temporary_table(with_temporary: Catalog) -> None:
    with pytest.raises(FeatureNotSupported, match='materialized view "busy" must not use temporary table'):
        with_temporary.with_objects(made(203, ObjectKind.MATERIALIZED_VIEW, "busy", 201))


@pytest.mark.parametrize(("id", "schema"), [(201, "public"), (ARRIVALS, "pg_temp_7")])
def test_no_table_becomes_temporary_and_none_stops_to_be(with_temporary: Catalog, id: int, schema: str) -> None:
    with pytest.raises(FeatureNotSupported, match="into or out of temporary schemas"):
        with_temporary.with_objects(replace(with_temporary.get(id), schema=schema, name="moved"))


def test_temporary_tables_are_forgotten_together(harbour: Catalog, with_temporary: Catalog) -> None:
    assert with_temporary.without_temporary() == harbour
    assert harbour.without_temporary() is harbour
