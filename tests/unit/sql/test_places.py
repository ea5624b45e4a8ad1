"""Where errors point, beyond what `tests/integration/test_postgres_positions.py` compares with PostgreSQL."""

from __future__ import annotations

import copy
import pickle

import pytest
from sqlglot import exp

from seiche.errors import InvalidText, UndefinedColumn, UndefinedFunction, UndefinedTable, UserError
from seiche.model import Column
from seiche.session.run import Session
from seiche.sql.bind import BoundRelation, Settings, bind_insert, bind_query, check_function
from seiche.sql.parse import parse, parse_query
from seiche.sql.places import PlacedName, begin_of, place_of
from seiche.sql.statements import Insert, Select, Update
from seiche.sql.user_functions import UserFunction
from seiche.types import INTEGER, VARCHAR
from tests.golden.session import harbour_session

SHIPS = BoundRelation(1, "ships", (Column("id", INTEGER), Column("name", VARCHAR)), None, "ships")


class Harbour:
    """Ships, and a view that was right once."""

    def relation(self, parts: tuple[str, ...]) -> BoundRelation:
        if parts == ("ships",):
            return SHIPS
        if parts == ("broken",):
            (parsed,) = parse("CREATE VIEW broken AS SELECT id, name + 1 AS more FROM ships")
            return BoundRelation(2, "broken", SHIPS.columns, parsed.statement.query.tree)  # type: ignore[union-attr]
        raise UndefinedTable(f'relation "{parts[-1]}" does not exist')


@pytest.fixture(scope="module")
def session() -> Session:
    return harbour_session()


def _expression(text: str) -> exp.Expr:
    (parsed,) = parse(f"SELECT {text}")
    assert isinstance(parsed.statement, Select)
    expression = parsed.statement.query.tree.expressions[0]
    assert isinstance(expression, exp.Expr)
    return expression


@pytest.mark.parametrize(
    ("text", "place", "begin"),
    [
        ("a + b", "+", "a"),
        ("(a + b) * c", "*", "a"),
        ("a IN (1)", "IN", "a"),
        ("a NOT LIKE b", "NOT", "a"),
        ("a::int", "::", "a"),
        ("CAST(a AS int)", "CAST", "CAST"),
        ("f(a)", "f", "f"),
        ("f(a) OVER (ORDER BY b)", "f", "f"),
        ("f(a) FILTER (WHERE b)", "f", "f"),
        ("a || b || c", "|| c", "a"),
        ("CASE WHEN a THEN b END", "CASE", "CASE"),
        ("ARRAY[a]", "ARRAY", "ARRAY"),
        ("a AT TIME ZONE b", "AT", "a"),
        ("-a", "-", "-"),
        ("s.a", "s", "s"),
        ("NULL", "NULL", "NULL"),
        ("(SELECT 1)", "(", "("),
    ],
)
def test_a_node_is_placed_at_what_makes_it(text: str, place: str, begin: str) -> None:
    node = _expression(text)
    first = len("SELECT ") + 1
    assert place_of(node) == first + text.index(place)
    assert begin_of(node) == first + text.index(begin)


def test_names_of_targets_know_their_places() -> None:
    insert = parse("INSERT INTO ships (id, name) VALUES (1, 'Ada')")[0].statement
    update = parse("UPDATE ships SET id = 1, (name, flag) = (1, 2)")[0].statement
    assert isinstance(insert, Insert) and isinstance(update, Update)
    assert (insert.table.place, [place_of(name) for name in insert.columns]) == (13, [20, 24])
    assert [place_of(each.column) for each in update.assignments] == [18, 27, 33]


def test_a_placed_name_is_copied_and_pickled_as_the_name_it_is() -> None:
    name = PlacedName("name", 7)
    assert name == "name" and hash(name) == hash("name") and type(str(name)) is str
    for again in (copy.deepcopy(name), pickle.loads(pickle.dumps(name))):
        assert again == name


def test_a_mistake_in_the_text_of_a_view_points_at_the_name_of_the_view() -> None:
    (parsed,) = parse("SELECT id FROM broken WHERE id = 1")
    assert isinstance(parsed.statement, Select)
    with pytest.raises(UndefinedFunction) as caught:
        bind_query(parsed.statement.query.tree, Harbour(), Settings())
    assert caught.value.position == 16


def test_a_mistake_in_a_stored_default_has_no_position() -> None:
    target = BoundRelation(1, "ships", (Column("id", INTEGER), Column("name", VARCHAR, default="gone(1)")))
    (parsed,) = parse("INSERT INTO ships (id) VALUES (1)")
    assert isinstance(parsed.statement, Insert) and parsed.statement.source is not None
    with pytest.raises(UndefinedFunction) as caught:
        bind_insert(target, parsed.statement.columns, parsed.statement.source.tree, Harbour(), Settings())
    assert caught.value.position is None


def test_a_mistake_in_the_body_of_a_function_has_no_position() -> None:
    function = UserFunction("f", (("x", INTEGER),), INTEGER, "SELECT gone(x)")
    with pytest.raises(UndefinedFunction) as caught:
        check_function(function, Harbour(), Settings())
    assert caught.value.position is None


def test_a_query_that_nobody_wrote_has_no_places() -> None:
    with pytest.raises(UndefinedColumn) as caught:
        bind_query(parse_query("SELECT nosuch FROM ships").tree, Harbour(), Settings())
    assert caught.value.position is None


@pytest.mark.parametrize("statement", ["SELECT 1 / 0", "SELECT 'a' || 1::smallint"])
def test_what_fails_only_when_it_runs_binds(statement: str) -> None:
    (parsed,) = parse(statement)
    assert isinstance(parsed.statement, Select)
    bind_query(parsed.statement.query.tree, Harbour(), Settings())


def test_what_is_wrong_with_a_value_that_is_no_literal_has_no_position(session: Session) -> None:
    with pytest.raises(UserError) as caught:
        session.execute("SELECT name FROM ships LIMIT -1")
    assert caught.value.position is None


def test_a_position_counts_in_the_whole_text_of_several_statements(session: Session) -> None:
    text = "SET timezone = 'UTC'; SET timezone = 'UTC'; DELETE FROM nosuch"
    with pytest.raises(UndefinedTable) as caught:
        session.execute(text)
    assert caught.value.position == text.index("nosuch") + 1


def test_a_mistake_in_the_arguments_of_execute_has_no_position_in_the_text_of_prepare(session: Session) -> None:
    session.execute("PREPARE sunk (int) AS DELETE FROM ships WHERE id = $1")
    with pytest.raises(InvalidText) as caught:
        session.execute("EXECUTE sunk ('x')")
    assert caught.value.position is None
