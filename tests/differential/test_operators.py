"""Each operator alone, with the cases that are known to go wrong: chosen by hand, checked after every statement."""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import Any

import pytest

from seiche.model import RelationId
from tests.differential import domains
from tests.differential.domains import Domain
from tests.differential.harbour_tables import Conflict, Contents, Row, Table, TableColumn, Write
from tests.differential.scenario import Harbour, Port

pytestmark = [pytest.mark.spark]


def table(name: str, key: str = "", **columns: Domain) -> Table:
    keys = tuple(key.split())
    return Table(name, tuple(TableColumn(n, d, n not in keys) for n, d in columns.items()), keys)


ARRIVALS = table(
    "arrivals", "id", id=domains.INTEGER, ship=domains.VARCHAR, berth=domains.INTEGER, tons=domains.INTEGER
)
BERTHS = table("berths", "berth", berth=domains.INTEGER, pier=domains.VARCHAR)
LOGBOOK = table("logbook", ship=domains.VARCHAR, tons=domains.INTEGER)
TIDES = table("tides", "id", id=domains.INTEGER, gauge=domains.VARCHAR, level=domains.DOUBLE)


class Quay:
    """Statements on a harbour, with the rows that they should leave given by hand or worked out from the model."""

    def __init__(self, harbour: Harbour, *tables: Table) -> None:
        self.harbour = harbour
        for each in tables:
            harbour.create_table(each)

    def view(self, name: str, query: str) -> None:
        self.harbour.create_view(name, query)

    def insert(self, name: str, *rows: Row) -> None:
        self.write(self._insert(name, *rows))

    def _insert(self, name: str, *rows: Row) -> Write:
        after = Contents(self.harbour.contents[name].table, list(self.harbour.contents[name].rows))
        after.insert(list(rows))
        values = ", ".join("(" + ", ".join(_literal(value) for value in row) + ")" for row in rows)
        return Write(name, f"INSERT INTO {name} VALUES {values}", after.rows)

    def delete(self, name: str, column: str, value: Any) -> None:
        self.write(self._delete(name, column, value))

    def _delete(self, name: str, column: str, value: Any) -> Write:
        contents = self.harbour.contents[name]
        index = contents.table.index(column)
        left = [row for row in contents.rows if row[index] is None or row[index] != value]
        return Write(name, f"DELETE FROM {name} WHERE {column} = {_literal(value)}", left)

    def update(self, name: str, column: str, old: Any, set_column: str, new: Any) -> None:
        """UPDATE name SET set_column = new WHERE column = old (IS NULL for None)."""
        self.write(self._update(name, column, old, set_column, new))

    def _update(self, name: str, column: str, old: Any, set_column: str, new: Any) -> Write:
        contents = self.harbour.contents[name]
        index, target = contents.table.index(column), contents.table.index(set_column)
        after = [(*row[:target], new, *row[target + 1 :]) if row[index] == old else row for row in contents.rows]
        where = f"{column} IS NULL" if old is None else f"{column} = {_literal(old)}"
        return Write(name, f"UPDATE {name} SET {set_column} = {_literal(new)} WHERE {where}", after)

    def write(self, *writes: Write) -> None:
        """Carries the statements out in one epoch, and checks everything."""
        self.harbour.write(*writes)
        self.harbour.check()

    def rows(self, name: str) -> list[Row]:
        return sorted(self.harbour.rows(name), key=repr)


def _literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case float():
            return (
                f"'{value!r}'::double precision" if value == value and abs(value) != float("inf") else _special(value)
            )
        case list():
            return f"ARRAY[{', '.join(_literal(each) for each in value)}]::integer[]"
        case _:
            return "'" + str(value).replace("'", "''") + "'"


def _special(value: float) -> str:
    name = "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return f"'{name}'::double precision"


# --- filter and project ----------------------------------------------------------------------------------


def test_filter_follows_rows_that_begin_and_cease_to_match(port: Port) -> None:
    quay = Quay(port(), ARRIVALS)
    quay.view("heavy", "SELECT id, tons FROM arrivals WHERE tons > 10")
    quay.insert("arrivals", (1, "Aurora", 1, 5), (2, "Borealis", 1, 50), (3, None, None, None))
    quay.update("arrivals", "id", 1, "tons", 11)
    quay.update("arrivals", "id", 2, "tons", None)
    quay.delete("arrivals", "id", 1)
    assert quay.rows("heavy") == []


def test_bare_boolean_column_is_a_condition(port: Port) -> None:
    ships = table("ships", "id", id=domains.INTEGER, afloat=domains.BOOLEAN)
    quay = Quay(port(), ships)
    quay.view("fleet", "SELECT id FROM ships WHERE afloat")
    quay.view("any_afloat", "SELECT count(*) AS n FROM ships HAVING bool_or(afloat)")
    quay.insert("ships", (1, True), (2, False), (3, None))
    assert quay.rows("fleet") == [(1,)]
    quay.update("ships", "id", 2, "afloat", True)
    quay.write(Write("ships", "DELETE FROM ships WHERE afloat", [(3, None)]))
    assert quay.rows("fleet") == quay.rows("any_afloat") == []


def test_projection_without_the_key_keeps_duplicates_apart(port: Port) -> None:
    quay = Quay(port(), ARRIVALS)
    quay.view("ships", "SELECT ship FROM arrivals")
    quay.insert("arrivals", (1, "Aurora", 1, 5), (2, "Aurora", 1, 5), (3, "Aurora", 2, 5))
    assert quay.rows("ships") == [("Aurora",)] * 3
    quay.delete("arrivals", "id", 2)
    assert quay.rows("ships") == [("Aurora",)] * 2


def test_failing_expression_is_null_and_the_stream_goes_on(port: Port) -> None:
    quay = Quay(port(), ARRIVALS)
    quay.view("rates", "SELECT id, tons / berth AS rate, ship::integer AS number FROM arrivals")
    quay.view("sums", "SELECT sum(tons / berth) AS rates, count(ship::integer) AS numbers FROM arrivals")
    quay.insert("arrivals", (1, "12", 0, 5), (2, "x", 2, 5), (3, None, None, 5))
    assert quay.rows("rates") == [(1, None, 12), (2, 2, None), (3, None, None)]
    quay.update("arrivals", "id", 1, "berth", 5)
    quay.update("arrivals", "id", 2, "ship", "7")
    quay.delete("arrivals", "id", 1)


def test_update_that_changes_nothing_leaves_the_view_alone(port: Port) -> None:
    quay = Quay(port(), ARRIVALS)
    quay.view("ships", "SELECT ship, count(*) AS n FROM arrivals GROUP BY ship")
    quay.insert("arrivals", (1, "Aurora", 1, 5))
    quay.update("arrivals", "id", 1, "ship", "Aurora")
    quay.insert("arrivals", (1, "Aurora", 1, 5))
    assert quay.rows("ships") == [("Aurora", 1)]


# --- joins -----------------------------------------------------------------------------------------------


def test_join_sees_both_sides_changed_in_one_epoch(port: Port) -> None:
    quay = Quay(port(), ARRIVALS, BERTHS)
    quay.view("moored", "SELECT a.id, b.pier FROM arrivals a JOIN berths b ON a.berth = b.berth")
    quay.insert("berths", (1, "north"), (2, "south"))
    quay.insert("arrivals", (1, "Aurora", 1, 5), (2, "Borealis", 2, 5))
    quay.write(quay._insert("arrivals", (3, "Castor", 3, 5)), quay._insert("berths", (3, "east")))
    quay.write(quay._delete("arrivals", "id", 1), quay._delete("berths", "berth", 1))
    quay.write(quay._insert("arrivals", (2, "Borealis", 3, 5)), quay._insert("berths", (3, "west")))
    assert quay.rows("moored") == [(2, "west"), (3, "west")]


def test_join_on_a_nullable_column_never_matches_nulls(port: Port) -> None:
    quay = Quay(port(), LOGBOOK, ARRIVALS)
    quay.view("same", "SELECT l.tons, a.id FROM logbook l JOIN arrivals a ON l.ship = a.ship")
    quay.view("safe", "SELECT l.tons, a.id FROM logbook l JOIN arrivals a ON l.ship IS NOT DISTINCT FROM a.ship")
    quay.insert("logbook", (None, 1), ("Aurora", 2), (None, 1))
    quay.insert("arrivals", (1, None, 1, 5), (2, "Aurora", 1, 5))
    assert quay.rows("same") == [(2, 2)]
    assert quay.rows("safe") == [(1, 1), (1, 1), (2, 2)]
    quay.update("arrivals", "id", 2, "ship", None)
    quay.update("logbook", "ship", None, "ship", "Aurora")


def test_self_join_counts_each_pair_once_as_rows_come_and_go(port: Port) -> None:
    quay = Quay(port(), LOGBOOK)
    quay.view("pairs", "SELECT a.tons AS x, b.tons AS y FROM logbook a JOIN logbook b ON a.ship = b.ship")
    quay.view(
        "triples", "SELECT count(*) AS n FROM logbook a, logbook b, logbook c WHERE a.ship = b.ship AND b.ship = c.ship"
    )
    quay.insert("logbook", ("Aurora", 1), ("Aurora", 2), ("Borealis", 3))
    assert quay.rows("pairs") == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3)]
    quay.insert("logbook", ("Aurora", 1), ("Aurora", 1))
    quay.update("logbook", "tons", 2, "ship", "Borealis")
    quay.delete("logbook", "ship", "Aurora")
    assert quay.rows("triples") == [(8,)]


def test_joins_without_an_equality_follow_both_sides(port: Port) -> None:
    quay = Quay(port(), ARRIVALS, BERTHS)
    quay.view("below", "SELECT a.id, b.berth FROM arrivals a JOIN berths b ON a.tons < b.berth")
    quay.view("every", "SELECT a.id, b.pier FROM arrivals a CROSS JOIN berths b")
    quay.insert("berths", (1, "north"), (10, "south"))
    quay.insert("arrivals", (1, "Aurora", 1, 5), (2, "Borealis", 2, None))
    quay.write(quay._insert("arrivals", (1, "Aurora", 1, 0)), quay._delete("berths", "berth", 10))
    quay.delete("berths", "berth", 1)
    assert quay.rows("every") == []


def test_join_of_four_inputs_changed_in_turn_and_together(port: Port) -> None:
    quay = Quay(port(), ARRIVALS, BERTHS, LOGBOOK)
    quay.view(
        "chain",
        "SELECT a.id, b.pier, l.tons, c.id AS other FROM arrivals a JOIN berths b ON a.berth = b.berth"
        " JOIN logbook l ON l.ship = a.ship JOIN arrivals c ON c.berth = b.berth AND c.id <> a.id",
    )
    quay.insert("arrivals", (1, "Aurora", 1, 5), (2, "Borealis", 1, 6), (3, "Aurora", 2, 7))
    quay.insert("berths", (1, "north"), (2, "south"))
    quay.insert("logbook", ("Aurora", 1), ("Aurora", 1), ("Borealis", 2))
    quay.write(
        quay._insert("arrivals", (3, "Aurora", 1, 7), (4, "Borealis", 2, 1)),
        quay._insert("berths", (1, "west")),
        quay._delete("logbook", "ship", "Borealis"),
    )
    quay.update("arrivals", "berth", 1, "berth", 2)


# --- aggregates ------------------------------------------------------------------------------------------


def test_group_vanishes_with_its_last_row_and_comes_back(port: Port) -> None:
    quay = Quay(port(), ARRIVALS)
    quay.view("load", "SELECT berth, count(*) AS n, sum(tons) AS tons, min(ship) AS first FROM arrivals GROUP BY berth")
    quay.insert("arrivals", (1, "Aurora", 1, 5), (2, "Borealis", None, 6))
    quay.delete("arrivals", "id", 1)
    quay.delete("arrivals", "id", 2)
    assert quay.rows("load") == []
    quay.insert("arrivals", (3, None, 1, None), (4, "Castor", None, 7))
    assert quay.rows("load") == [(1, 1, None, None), (None, 1, 7, "Castor")]


def test_update_moves_a_row_between_groups(port: Port) -> None:
    quay = Quay(port(), ARRIVALS)
    quay.view("load", "SELECT berth, count(*) AS n, sum(tons) AS tons, max(tons) AS top FROM arrivals GROUP BY berth")
    quay.insert("arrivals", (1, "Aurora", 1, 5), (2, "Borealis", 1, 6), (3, "Castor", 2, 9))
    quay.update("arrivals", "id", 2, "berth", 2)
    quay.update("arrivals", "id", 3, "berth", None)
    quay.update("arrivals", "berth", None, "berth", 1)
    assert quay.rows("load") == [(1, 2, 14, 9), (2, 1, 6, 6)]


def test_extremes_survive_the_leaving_of_the_extreme(port: Port) -> None:
    quay = Quay(port(), ARRIVALS)
    quay.view("span", "SELECT berth, min(tons) AS low, max(tons) AS high FROM arrivals GROUP BY berth")
    quay.view("total", "SELECT min(tons) AS low, max(ship) AS high FROM arrivals")
    quay.insert("arrivals", (1, "a", 1, 5), (2, "b", 1, 5), (3, "c", 1, 7), (4, "d", 1, 9), (5, "e", 2, None))
    quay.delete("arrivals", "id", 1)  # another row has the same least value
    quay.delete("arrivals", "id", 2)
    quay.update("arrivals", "id", 4, "tons", 8)
    quay.update("arrivals", "id", 3, "tons", None)
    quay.delete("arrivals", "id", 4)
    assert quay.rows("span") == [(1, None, None), (2, None, None)]


def test_extremes_do_not_see_pairs_that_never_met(port: Port) -> None:
    quay = Quay(port(), ARRIVALS, BERTHS, LOGBOOK)
    pairs = "SELECT a.ship, a.tons FROM arrivals a JOIN berths b ON a.berth = b.berth"
    quay.view("moored", f"SELECT max(tons) AS top FROM ({pairs}) p")
    quay.view("known", f"SELECT max(tons) AS top FROM ({pairs} UNION ALL SELECT ship, tons FROM logbook) p")
    quay.insert("berths", (1, "north"), (2, "south"))
    quay.insert("arrivals", (1, "Aurora", 2, 5))
    quay.insert("logbook", ("Borealis", 7))
    # The heavy ship arrives in the epoch in which its berth is closed.
    quay.write(quay._insert("arrivals", (2, "Castor", 1, 99)), quay._delete("berths", "berth", 1))
    quay.write(quay._insert("berths", (1, "north")), quay._delete("arrivals", "id", 2))
    assert (quay.rows("moored"), quay.rows("known")) == ([(5,)], [(7,)])


def test_extremes_of_floats_order_nan_above_infinity(port: Port) -> None:
    quay = Quay(port(), TIDES)
    quay.view("span", "SELECT gauge, min(level) AS low, max(level) AS high FROM tides GROUP BY gauge")
    nan, inf = float("nan"), float("inf")
    quay.insert("tides", (1, "a", nan), (2, "a", inf), (3, "a", -inf), (4, "b", nan), (5, "b", None))
    quay.delete("tides", "id", 1)
    quay.delete("tides", "id", 2)
    quay.insert("tides", (6, "b", nan), (7, "b", 1.5))
    quay.delete("tides", "id", 4)
    quay.delete("tides", "id", 6)
    assert quay.rows("span") == [("a", -inf, -inf), ("b", 1.5, 1.5)]


def test_sums_of_floats_recover_from_huge_tiny_and_special_values(port: Port) -> None:
    quay = Quay(port(), TIDES)
    quay.view(
        "mean", "SELECT gauge, sum(level) AS total, avg(level) AS mean, count(level) AS n FROM tides GROUP BY gauge"
    )
    quay.insert("tides", (1, "a", 0.1), (2, "a", 0.2), (3, "b", 1e-300), (4, "c", 1e300))
    quay.insert("tides", (5, "a", 1e17))
    quay.delete("tides", "id", 5)
    assert next(row for row in quay.rows("mean") if row[0] == "a")[1] == pytest.approx(0.3, rel=1e-15)
    for special in (float("nan"), float("inf"), -1e300, 5e-324):
        quay.insert("tides", (6, "a", special), (7, "b", special), (8, "c", special))
        quay.delete("tides", "id", 6)
        quay.insert("tides", (7, "b", None))
    quay.insert("tides", (9, "d", float("inf")), (10, "d", float("-inf")))
    quay.delete("tides", "id", 10)
    assert [row for row in quay.rows("mean") if row[0] == "d"] == [("d", float("inf"), float("inf"), 1)]


def test_sums_of_floats_may_grow_beyond_any_decimal(port: Port) -> None:
    quay = Quay(port(), TIDES)
    quay.view("total", "SELECT gauge, sum(level) AS total FROM tides GROUP BY gauge")
    quay.insert("tides", *((i, "a", 9e17) for i in range(1, 6)))
    quay.insert("tides", *((i, "a", 9e17) for i in range(6, 30)))
    quay.delete("tides", "id", 3)
    assert quay.rows("total") == [("a", pytest.approx(28 * 9e17))]


def test_sum_of_integers_beyond_its_type_does_not_stop_the_stream(port: Port) -> None:
    cargo = table("cargo", "id", id=domains.INTEGER, kilos=domains.BIGINT)
    quay = Quay(port(), cargo)
    quay.view("total", "SELECT sum(kilos) AS total, avg(kilos) AS mean FROM cargo")
    quay.insert("cargo", (1, 9_223_372_036_854_775_807), (2, 9_223_372_036_854_775_807), (3, -1))
    quay.delete("cargo", "id", 2)
    assert quay.rows("total")[0][0] == 9_223_372_036_854_775_806


def test_sum_beyond_any_numeric_is_null_until_it_fits_again(port: Port) -> None:
    quay = Quay(port(), table("cargo", "id", id=domains.INTEGER, kilos=domains.NUMERIC))
    quay.view("total", "SELECT sum(kilos) AS total, count(*) AS n FROM cargo")
    quay.view("different", "SELECT sum(DISTINCT kilos) AS total, count(*) AS n FROM cargo")
    most = Decimal(10**20 - 1)
    quay.insert("cargo", (1, most), (2, most - 1))
    assert quay.rows("total") == quay.rows("different") == [(None, 2)]
    quay.insert("cargo", (3, Decimal(1)))
    quay.delete("cargo", "id", 1)
    assert quay.rows("total") == quay.rows("different") == [(most, 2)]


def test_aggregate_of_everything_has_one_row_even_over_nothing(port: Port) -> None:
    quay = Quay(port(), ARRIVALS)
    quay.view(
        "total", "SELECT count(*) AS n, sum(tons) AS tons, max(ship) AS last, bool_and(tons > 1) AS every FROM arrivals"
    )
    quay.view("several", "SELECT count(*) AS n FROM arrivals HAVING count(*) > 1")
    quay.harbour.check()
    assert quay.rows("total") == [(0, None, None, None)]
    quay.insert("arrivals", (1, "Aurora", 1, 5), (2, "Borealis", 1, 0))
    assert quay.rows("several") == [(2,)]
    quay.delete("arrivals", "berth", 1)
    assert quay.rows("total") == [(0, None, None, None)]
    quay.harbour.restart()
    quay.harbour.check()


def test_truth_of_all_and_of_any_follows_false_true_and_null(port: Port) -> None:
    quay = Quay(port(), ARRIVALS)
    quay.view(
        "truth", "SELECT berth, bool_and(tons > 1) AS every, bool_or(tons > 1) AS any_ FROM arrivals GROUP BY berth"
    )
    quay.insert("arrivals", (1, "a", 1, None), (2, "b", 1, 5), (3, "c", 2, None))
    quay.insert("arrivals", (1, "a", 1, 0))
    quay.delete("arrivals", "id", 2)
    quay.delete("arrivals", "id", 1)
    quay.update("arrivals", "id", 3, "tons", 2)
    assert quay.rows("truth") == [(2, True, True)]


def test_having_lets_groups_in_and_out(port: Port) -> None:
    quay = Quay(port(), ARRIVALS)
    quay.view(
        "busy", "SELECT berth, sum(tons) AS tons FROM arrivals GROUP BY berth HAVING count(*) > 1 AND sum(tons) < 20"
    )
    quay.insert("arrivals", (1, "a", 1, 5), (2, "b", 1, 6), (3, "c", 2, 7))
    assert quay.rows("busy") == [(1, 11)]
    quay.insert("arrivals", (4, "d", 2, 7), (5, "e", 1, 10))
    assert quay.rows("busy") == [(2, 14)]
    quay.delete("arrivals", "id", 5)
    quay.delete("arrivals", "id", 3)
    assert quay.rows("busy") == [(1, 11)]


def test_filter_clauses_and_expressions_as_keys(port: Port) -> None:
    quay = Quay(port(), ARRIVALS)
    quay.view(
        "classes",
        "SELECT tons / 10 AS class, count(*) FILTER (WHERE ship LIKE 'A%') AS a,"
        " sum(tons) FILTER (WHERE berth = 1) AS t, max(tons) FILTER (WHERE berth = 2) AS m FROM arrivals"
        " GROUP BY tons / 10, coalesce(ship, '-') = '-'",
    )
    quay.insert("arrivals", (1, "Aurora", 1, 5), (2, None, 1, 6), (3, "Castor", 2, 17), (4, "Aurora", 2, None))
    quay.update("arrivals", "id", 3, "tons", 7)
    quay.update("arrivals", "id", 2, "ship", "Argo")
    quay.delete("arrivals", "id", 3)


def test_variance_follows_values_that_leave(port: Port) -> None:
    quay = Quay(port(), ARRIVALS, TIDES)
    quay.view(
        "spread",
        "SELECT berth, var_pop(tons) AS p, var_samp(tons) AS s, stddev_samp(tons) AS d FROM arrivals GROUP BY berth",
    )
    quay.view("swell", "SELECT gauge, var_pop(level) AS p, stddev_pop(level) AS d FROM tides GROUP BY gauge")
    quay.insert("arrivals", (1, "a", 1, 5), (2, "b", 1, 5), (3, "c", 1, 7), (4, "d", 2, 7), (5, "e", 3, None))
    quay.insert("tides", (1, "a", 0.1), (2, "a", 1e9), (3, "a", 0.3), (4, "b", None))
    quay.delete("arrivals", "id", 3)
    quay.delete("tides", "id", 2)


def test_nan_and_signed_zero_are_one_group_each(port: Port) -> None:
    quay = Quay(port(), TIDES)
    quay.view("levels", "SELECT level, count(*) AS n FROM tides GROUP BY level")
    quay.view("different", "SELECT DISTINCT level FROM tides")
    nan = float("nan")
    quay.insert("tides", (1, "a", nan), (2, "a", nan), (3, "a", 0.0), (4, "a", -0.0), (5, "a", None))
    quay.insert("tides", (6, "a", -0.0), (7, "a", nan), (8, "a", None))
    quay.delete("tides", "id", 3)
    quay.delete("tides", "id", 1)
    assert len(quay.rows("levels")) == 3
    quay.delete("tides", "id", 4)
    quay.delete("tides", "id", 6)
    assert len(quay.rows("different")) == 2


@pytest.mark.parametrize("inline_rows_max", [50_000, 10])
def test_many_equal_rows_count_as_many(port: Port, inline_rows_max: int) -> None:
    quay = Quay(port(inline_rows_max=inline_rows_max), LOGBOOK)
    quay.view("top", "SELECT ship, max(tons) AS top, count(*) AS n, sum(tons) AS tons FROM logbook GROUP BY ship")
    quay.view("ships", "SELECT DISTINCT ship FROM logbook")
    quay.view("rows", "SELECT ship FROM logbook")
    quay.insert("logbook", *[("Aurora", 1)] * 300, ("Borealis", 2))
    quay.delete("logbook", "ship", "Borealis")
    quay.delete("logbook", "ship", "Aurora")
    assert quay.rows("top") == quay.rows("ships") == quay.rows("rows") == []


# --- distinct, unions, views on views --------------------------------------------------------------------


def test_distinct_keeps_a_row_until_its_last_copy_leaves(port: Port) -> None:
    quay = Quay(port(), LOGBOOK)
    quay.view("seen", "SELECT DISTINCT ship, tons FROM logbook")
    quay.insert("logbook", ("Aurora", 1), ("Aurora", 1), (None, None), (None, None))
    assert quay.rows("seen") == [("Aurora", 1), (None, None)]
    quay.update("logbook", "ship", None, "tons", 1)
    quay.delete("logbook", "ship", "Aurora")
    assert quay.rows("seen") == [(None, 1)]


def test_union_all_of_a_table_with_itself_has_every_row_twice(port: Port) -> None:
    quay = Quay(port(), LOGBOOK)
    quay.view("twice", "SELECT ship, tons FROM logbook UNION ALL SELECT ship, tons FROM logbook")
    quay.view("once", "SELECT ship FROM logbook UNION SELECT ship FROM logbook WHERE tons > 1")
    quay.view(
        "sums",
        "SELECT ship, count(*) AS n FROM (SELECT ship FROM logbook UNION ALL SELECT ship FROM logbook) u GROUP BY ship",
    )
    quay.insert("logbook", ("Aurora", 1), ("Aurora", 1), (None, 2))
    assert quay.rows("twice") == [("Aurora", 1)] * 4 + [(None, 2)] * 2
    quay.update("logbook", "tons", 1, "tons", 2)
    quay.delete("logbook", "ship", "Aurora")
    assert quay.rows("sums") == [(None, 2)]


def test_views_on_views_move_in_the_same_epoch(port: Port) -> None:
    quay = Quay(port(), ARRIVALS, BERTHS)
    quay.view("load", "SELECT berth, sum(tons) AS tons, count(*) AS n FROM arrivals GROUP BY berth")
    quay.view("piers", "SELECT b.pier, l.tons FROM load l JOIN berths b ON l.berth = b.berth")
    quay.view("peak", "SELECT max(tons) AS top, count(*) AS n FROM piers")
    quay.view("at_peak", "SELECT p.pier FROM piers p JOIN peak k ON p.tons = k.top")
    quay.view("sizes", "SELECT n, count(*) AS berths FROM load GROUP BY n")
    quay.insert("berths", (1, "north"), (2, "south"), (3, "north"))
    quay.insert("arrivals", (1, "a", 1, 5), (2, "b", 2, 6), (3, "c", 3, 6))
    assert quay.rows("at_peak") == [("north",), ("south",)]
    quay.write(quay._insert("arrivals", (2, "b", 1, 6)), quay._insert("berths", (1, "west")))
    assert quay.rows("at_peak") == [("west",)]
    quay.delete("arrivals", "berth", 1)
    quay.delete("arrivals", "berth", 3)
    assert quay.rows("peak") == [(None, 0)]


def test_table_rules_for_repeated_keys_reach_the_views(port: Port) -> None:
    for rule in Conflict:
        plain = table("berths", "berth", berth=domains.INTEGER, pier=domains.VARCHAR, depth=domains.INTEGER)
        quay = Quay(port(), Table(plain.name, plain.columns, plain.key, conflict=rule))
        quay.view(
            "piers", "SELECT pier, count(*) AS n, sum(depth) AS depth, min(depth) AS least FROM berths GROUP BY pier"
        )
        quay.insert("berths", (1, "north", 5), (1, None, 7), (2, "south", None))
        quay.insert("berths", (2, None, 3), (1, "east", None), (3, "east", 1), (3, "east", 1))


def test_change_of_a_primary_key_moves_the_row(port: Port) -> None:
    quay = Quay(port(), ARRIVALS, BERTHS)
    quay.view("moored", "SELECT a.id, b.berth FROM arrivals a JOIN berths b ON a.berth = b.berth")
    quay.insert("arrivals", (1, "Aurora", 1, 5), (2, "Borealis", 2, 5))
    quay.insert("berths", (1, "north"), (2, "south"))
    after = [(berth + 1, pier) for berth, pier in quay.harbour.contents["berths"].rows]
    quay.write(Write("berths", "UPDATE berths SET berth = berth + 1", after))
    assert quay.rows("moored") == [(2, 2)]


# --- storage in between ----------------------------------------------------------------------------------


def test_folds_restarts_and_joined_segments_do_not_show(port: Port) -> None:
    harbour = port(fold_min_rows=0, fold_ratio=0.001, segments_max_per_relation=2)
    quay = Quay(harbour, ARRIVALS, LOGBOOK)
    quay.view("load", "SELECT berth, count(*) AS n, min(tons) AS low, sum(tons) AS tons FROM arrivals GROUP BY berth")
    quay.view("pairs", "SELECT a.id, l.tons FROM arrivals a JOIN logbook l ON a.ship = l.ship")
    for round_ in range(4):
        quay.insert("arrivals", (round_, "Aurora", round_ % 2, round_), (10, "Borealis", round_, -round_))
        quay.insert("logbook", ("Aurora", round_), ("Aurora", 7))
        harbour.db.database.maintenance.settle()
        if round_ == 2:
            harbour.restart()
        quay.delete("arrivals", "tons", round_ - 1)
    assert harbour.db.database.maintenance.folds > 0


def test_frame_stays_readable_while_its_relation_is_folded_away(port: Port) -> None:
    harbour = port()
    quay = Quay(harbour, ARRIVALS)
    quay.view("ships", "SELECT ship FROM arrivals")
    quay.insert("arrivals", (1, "Aurora", 1, 5), (2, "Borealis", 1, 6))
    maintenance = harbour.db.database.maintenance
    fold = [RelationId(each.id) for each in harbour.db.database.catalog.objects() if each.relation is not None]
    for relation in fold:
        maintenance.fold_now(relation)
    frame = harbour.db.table("ships")
    quay.insert("arrivals", (2, "Castor", 1, 6), (3, "Deneb", 1, 6))
    for relation in fold:
        maintenance.fold_now(relation)
    maintenance.note(fold)
    maintenance.settle()
    assert sorted(row[0] for row in frame.collect()) == ["Aurora", "Borealis"]


def test_view_created_over_rows_while_others_are_written_is_complete(port: Port) -> None:
    harbour = port()
    quay = Quay(harbour, ARRIVALS)
    quay.insert("arrivals", *((i, "Aurora", i % 3, i) for i in range(20)))
    done = threading.Event()
    written: list[Row] = []

    def keep_writing() -> None:
        session = harbour.db.session()
        number = 100
        while not done.is_set():
            session.execute(f"INSERT INTO arrivals VALUES ({number}, 'Borealis', {number % 5}, {number})")
            written.append((number, "Borealis", number % 5, number))
            number += 1

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        quay.view("load", "SELECT berth, count(*) AS n, max(tons) AS top FROM arrivals GROUP BY berth")
        quay.view("pairs", "SELECT a.id FROM arrivals a JOIN load l ON a.berth = l.berth AND a.tons = l.top")
    finally:
        done.set()
        writer.join()
    harbour.contents["arrivals"].insert(written)
    harbour.check()


def test_changes_too_many_for_the_driver_take_the_executors_path(port: Port) -> None:
    quay = Quay(port(inline_rows_max=0), ARRIVALS, BERTHS)
    quay.view(
        "load",
        "SELECT b.pier, count(*) AS n, min(tons) AS low FROM arrivals a JOIN berths b ON a.berth = b.berth"
        " GROUP BY b.pier",
    )
    quay.view("heavy", "SELECT id, ship FROM arrivals WHERE tons > 5")
    quay.view("ranked", "SELECT id, rank() OVER (PARTITION BY berth ORDER BY tons) AS place FROM arrivals")
    quay.insert("berths", (1, "north"), (2, "south"))
    quay.insert("arrivals", *((i, "Aurora", i % 3, i) for i in range(10)))
    quay.insert("arrivals", (1, "Borealis", 2, 0), (11, None, None, None))
    quay.update("arrivals", "berth", 2, "berth", 1)
    quay.delete("arrivals", "id", 1)


def test_views_without_a_change_rule_follow_too(port: Port) -> None:
    quay = Quay(port(), ARRIVALS, BERTHS)
    quay.view("all_berths", "SELECT b.berth, a.ship FROM berths b LEFT JOIN arrivals a ON a.berth = b.berth")
    quay.view("last", "SELECT id, ship FROM arrivals ORDER BY id DESC LIMIT 2")
    quay.view("empty", "SELECT berth FROM berths EXCEPT SELECT berth FROM arrivals")
    quay.view("kinds", "SELECT count(DISTINCT ship) AS n FROM arrivals")
    quay.view("on_top", "SELECT ship, count(*) AS n FROM all_berths GROUP BY ship")
    quay.insert("berths", (1, "north"), (2, "south"))
    quay.insert("arrivals", (1, "Aurora", 1, 5), (2, "Aurora", 1, 6))
    assert quay.rows("all_berths") == [(1, "Aurora"), (1, "Aurora"), (2, None)]
    quay.update("arrivals", "id", 2, "berth", 2)
    quay.delete("arrivals", "id", 1)
    assert quay.rows("on_top") == [("Aurora", 1), (None, 1)]
