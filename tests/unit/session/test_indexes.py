"""What CREATE INDEX makes of a table, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from seiche import errors
from seiche.catalog.objects import CatalogObject, ObjectId, ObjectKind
from seiche.session.indexes import default_name, indexed_columns, plan_of, stored_plan, with_names
from seiche.sql.parse import parse
from seiche.sql.statements import CreateIndex
from tests.unit.plan.harbour import ARRIVALS, SHIPS, Harbour
from tests.unit.session.port import open_port


def statement(text: str) -> CreateIndex:
    (parsed,) = parse(text)
    assert isinstance(parsed.statement, CreateIndex)
    return parsed.statement


def planned(text: str, relation: int = SHIPS) -> tuple[list[str], list[str], tuple[str, ...]]:
    """The visible columns, the hidden ones and the key of the copy."""
    plan = plan_of(statement(text), Harbour().catalog.get(relation))
    shown = [field.name for field in plan.fields if not field.hidden]
    return shown, [field.name for field in plan.fields if field.hidden], plan.key


def test_included_columns_are_told_apart_from_those_of_the_key(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        port.execute("CREATE TABLE calls (id int, ship int, berth int); CREATE INDEX i ON calls (ship) INCLUDE (id)")
        query = "SELECT indnatts, indnkeyatts, indkey, indoption FROM pg_index WHERE indexrelid = 'i'::regclass"
        assert port.rows(query) == [(2, 1, "2 1", "0")]


def test_an_index_copies_all_columns_and_is_keyed_by_its_own_first() -> None:
    assert planned("CREATE INDEX i ON ships (flag, tons DESC)") == (
        ["flag", "tons", "id", "name", "draught", "fee"],
        [],
        ("flag", "tons", "id"),
    )


def test_include_names_the_columns_to_copy_and_the_key_stays_hidden() -> None:
    assert planned("CREATE INDEX i ON ships (flag) INCLUDE (tons)") == (["flag", "tons"], ["id"], ("flag", "id"))


def test_rows_of_a_table_without_a_key_stay_apart() -> None:
    _, hidden, key = planned("CREATE INDEX i ON arrivals (berth)", ARRIVALS)
    assert key == ("berth", hidden[0])


def test_an_expression_becomes_a_column_of_its_own() -> None:
    shown, _, key = planned("CREATE INDEX i ON ships (lower(name), flag)")
    assert shown[:2] == ["lower", "flag"] and key == ("lower", "flag", "id")
    assert indexed_columns(statement("CREATE INDEX i ON ships (flag, lower(name), tons)")) == ["flag"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("CREATE INDEX i ON ships (flat)", errors.UndefinedColumn),
        ("CREATE INDEX i ON ships (flag) INCLUDE (tonnes)", errors.UndefinedColumn),
        ("CREATE INDEX i ON ships (now())", errors.FeatureNotSupported),
        ("CREATE INDEX i ON ships (flag, tons) DISTRIBUTED BY (tons)", errors.InvalidDefinition),
        ("CREATE INDEX i ON ships (flag) DISTRIBUTED BY (flag, tons)", errors.InvalidDefinition),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        planned(text)


def test_a_column_that_has_no_order_cannot_be_indexed() -> None:
    with pytest.raises(errors.InvalidDefinition, match="cannot be indexed"):
        planned("CREATE INDEX i ON arrivals (crew)", ARRIVALS)


def test_an_index_without_a_name_is_named_after_what_it_indexes() -> None:
    harbour = Harbour()
    asked = statement("CREATE INDEX ON ships (flag, lower(name))")
    assert default_name(asked, "public", harbour.catalog) == "ships_flag_expr_idx"
    taken = CatalogObject(
        ObjectId(99), ObjectKind.INDEX, "ships_flag_expr_idx", "", dependencies=frozenset({ObjectId(1)})
    )
    assert default_name(asked, "public", harbour.catalog.with_objects(taken)) == "ships_flag_expr_idx1"


@pytest.mark.parametrize(
    "text",
    [
        "CREATE INDEX i ON ships (flag)",
        "CREATE INDEX i ON ships (flag DESC NULLS LAST, lower(name)) INCLUDE (tons) DISTRIBUTED BY (flag)",
    ],
)
def test_an_index_follows_a_renamed_table_with_the_same_plan(text: str) -> None:
    harbour = Harbour()
    ships = harbour.catalog.get(SHIPS)
    index = CatalogObject(ObjectId(99), ObjectKind.INDEX, "i", text, dependencies=frozenset({ships.id}))
    renamed = with_names(index, "by_flag", ships)
    assert "by_flag" in renamed.definition and "public.ships" in renamed.definition
    assert stored_plan(renamed, harbour.catalog) == stored_plan(index, harbour.catalog)
