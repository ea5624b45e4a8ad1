"""Binding without Spark: shapes of bound queries, and the errors of wrong ones."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from seiche.errors import (
    AmbiguousColumn,
    DatatypeMismatch,
    DuplicateAlias,
    DuplicateColumn,
    FeatureNotSupported,
    GroupingError,
    InvalidColumnReference,
    InvalidDefinition,
    InvalidParameter,
    InvalidText,
    NumericOutOfRange,
    SeicheError,
    StatementTooComplex,
    SyntaxError_,
    UndefinedColumn,
    UndefinedFunction,
    UndefinedTable,
    nearest,
)
from seiche.model import Column
from seiche.sql.bind import (
    Beside,
    BoundQuery,
    BoundRelation,
    Settings,
    bind_delete,
    bind_expression,
    bind_insert,
    bind_query,
    bind_returning,
    bind_update,
)
from seiche.sql.dialect import Seiche
from seiche.sql.nodes import type_of
from seiche.types import BIGINT, BOOLEAN, INTEGER, NUMERIC, TIMESTAMP, TIMESTAMPTZ, VARCHAR, Kind, numeric

MONEY = numeric(10, 2, declared=True)
SHIPS = BoundRelation(
    7,
    "ships",
    (
        Column("id", INTEGER),
        Column("name", VARCHAR),
        Column("tons", INTEGER, default="1 + 1"),
        Column("fee", MONEY),
        Column("arrived", TIMESTAMP),
        Column("doubled", INTEGER, generated="tons * 2"),
        Column("_row_id", BIGINT, hidden=True),
    ),
    None,
    "r7",
)
BERTHS = BoundRelation(
    8, "berths", (Column("id", INTEGER), Column("ship", INTEGER), Column("quay", VARCHAR)), None, "r8"
)


class Harbour:
    def __init__(self, **views: str) -> None:
        self._relations = {"ships": SHIPS, "berths": BERTHS}
        for name, text in views.items():
            self._relations[name] = BoundRelation(None, name, (), parsed(text))

    def relation(self, parts: tuple[str, ...]) -> BoundRelation:
        found = self._relations.get(parts[-1])
        if found is None:
            raise UndefinedTable(f'relation "{parts[-1]}" does not exist', hint=nearest(parts[-1], self._relations))
        return found


def parsed(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, dialect=Seiche)


def selected(text: str) -> exp.Select:
    tree = parsed(text)
    assert isinstance(tree, exp.Select)
    return tree


def expression(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, dialect=Seiche)


def bound(text: str, settings: Settings | None = None, **views: str) -> BoundQuery:
    return bind_query(parsed(text), Harbour(**views), settings or Settings(now_ms=0))


def names(query: BoundQuery) -> list[str]:
    return [column.name for column in query.columns]


def test_star_shows_visible_columns_only() -> None:
    assert names(bound("SELECT * FROM ships")) == ["id", "name", "tons", "fee", "arrived", "doubled"]


def test_star_leaves_out_what_except_names() -> None:
    assert names(bound("SELECT * EXCEPT (ship, b.quay) FROM berths b")) == ["id"]
    assert names(bound("SELECT a.* EXCEPT (id), b.quay FROM berths a, berths b")) == ["ship", "quay", "quay"]
    assert names(bound("SELECT * EXCEPT (id) FROM berths JOIN berths other USING (id)")) == ["ship", "quay"] * 2


def test_tables_of_two_schemas_may_share_a_name() -> None:
    query = bound("SELECT north.berths.quay, south.berths.ship FROM north.berths JOIN south.berths ON "
                  "north.berths.id = south.berths.id")  # fmt: skip
    assert names(query) == ["quay", "ship"]


def test_a_literal_in_a_row_takes_the_type_of_the_struct_it_becomes() -> None:
    made = bound("SELECT (NULL, ('5', 1))::struct<a int, b struct<c int, d bigint>> AS r").ast.sql("spark")
    assert "CAST(NULL AS INT)" in made
    assert "'5'" not in made


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    ("condition", "micros"),
    [
        ("arrived - timestamp '2024-01-01' <= interval '1 day 2 seconds'", 86_402_000_000),
        ("interval '1 month' > (arrived - date '2024-01-01')", 30 * 86_400_000_000),
        ("arrived - timestamp '2024-01-01' < timestamp '2024-01-03' - arrived", None),
    ],
)
def test_how_far_moments_are_apart_is_compared_as_a_number(condition: str, micros: int | None, strict: bool) -> None:
    shown = bound(f"SELECT {condition} FROM ships", Settings(now_ms=0, strict=strict)).ast.sql("spark").lower()
    assert "named_struct" not in shown
    assert "unix_micros(cast(`ships`.`arrived` as timestamp))" in shown
    assert micros is None or f"{micros} as bigint" in shown


@pytest.mark.parametrize("other", ["interval '178956970 years'", "doubled * interval '1 day'"])
def test_how_far_moments_are_apart_is_compared_whole_with_what_may_be_longer(other: str) -> None:
    shown = bound(f"SELECT arrived - timestamp '2024-01-01' < {other} FROM ships").ast.sql("spark").lower()
    assert "decimal(12, 0)" in shown


def test_hidden_column_answers_to_its_name() -> None:
    assert names(bound("SELECT _row_id FROM ships")) == ["_row_id"]


def test_every_table_is_named_by_its_source_and_every_column_by_its_alias() -> None:
    query = bound("SELECT s.name FROM ships s JOIN berths b ON b.ship = s.id WHERE tons > 3")
    assert {table.name for table in query.ast.find_all(exp.Table)} == {"r7", "r8"}
    assert all(column.table in ("s", "b") for column in query.ast.find_all(exp.Column))
    assert query.relations == {7, 8}


def test_aliases_are_unique_in_the_whole_query() -> None:
    query = bound("SELECT id FROM ships WHERE EXISTS (SELECT 1 FROM ships WHERE ships.tons > 1)")
    aliases = [table.alias for table in query.ast.find_all(exp.Table)]
    assert sorted(aliases) == ["ships", "ships_2"]


def test_what_shows_no_columns_still_has_rows() -> None:
    query = bound("SELECT count(*) FROM (SELECT FROM ships) x WHERE EXISTS (SELECT FROM berths)")
    assert all(select.expressions for select in query.ast.find_all(exp.Select))


def test_projections_get_unique_names_and_keep_the_users() -> None:
    query = bound("SELECT s.id, b.id, 1 + 1 FROM ships s, berths b")
    assert names(query) == ["id", "id", "?column?"]
    assert [column.alias for column in query.columns] == ["id", "id_1", "column"]


def test_every_node_of_a_projection_knows_its_type() -> None:
    query = bound("SELECT tons + 1 > 2 FROM ships")
    projection = query.ast.expressions[0]
    assert type_of(projection) == BOOLEAN
    assert type_of(projection.this) == BOOLEAN


def test_common_tables_and_views_become_derived_tables() -> None:
    query = bound("WITH heavy AS (SELECT id FROM big) SELECT * FROM heavy h", big="SELECT * FROM ships WHERE tons > 9")
    assert query.ast.find(exp.With) is None
    assert [table.name for table in query.ast.find_all(exp.Table)] == ["r7"]
    assert query.relations == {7}


def test_view_that_refers_to_itself_is_refused() -> None:
    with pytest.raises(InvalidDefinition, match='view "tides" refers to itself'):
        bound("SELECT * FROM tides", tides="SELECT * FROM tides")


def test_using_merges_the_joined_columns() -> None:
    query = bound("SELECT * FROM ships JOIN berths USING (id)")
    assert names(query) == ["id", "name", "tons", "fee", "arrived", "doubled", "ship", "quay"]


def test_nulls_are_placed_in_every_order() -> None:
    query = bound("SELECT id, row_number() OVER (ORDER BY fee DESC) FROM ships ORDER BY name")
    assert [o.args["nulls_first"] for o in query.ast.find_all(exp.Ordered)].count(True) == 1
    assert "`name` ASC NULLS LAST" in query.sql
    assert "`fee` DESC NULLS FIRST" in query.sql


def test_aggregates_come_down_to_the_core() -> None:
    query = bound("SELECT avg(tons), stddev(tons), count(*) FILTER (WHERE tons > 1) FROM ships")
    kinds = {type(node) for node in query.ast.walk() if node.meta.get("aggregate")}
    assert kinds == {exp.Sum, exp.Count}


def test_sum_types_are_those_of_postgres() -> None:
    query = bound("SELECT sum(tons), sum(_row_id), sum(fee), avg(tons) FROM ships")
    assert [column.type for column in query.columns] == [BIGINT, numeric(38, 0), numeric(38, 2, declared=True), NUMERIC]


def test_distinct_on_becomes_row_number() -> None:
    query = bound("SELECT DISTINCT ON (name) name, tons FROM ships ORDER BY name, tons DESC")
    assert "ROW_NUMBER() OVER (PARTITION BY `ships`.`name`" in query.sql
    assert names(query) == ["name", "tons"]


def test_set_operation_unifies_types() -> None:
    query = bound("SELECT id FROM ships UNION ALL SELECT fee FROM ships UNION ALL SELECT NULL")
    assert query.columns[0].type == numeric(12, 2)
    assert query.sql.count("UNION ALL") == 2


def test_now_is_a_constant_in_a_statement_and_a_marker_in_a_view() -> None:
    assert "1970-01-01 00:00:00Z" in bound("SELECT now()").sql
    query = bound("SELECT * FROM ships WHERE arrived > now() - interval '1 day'", Settings(now_ms=None, strict=False))
    assert query.uses_now
    assert "SEICHE_NOW()" in query.sql


def test_volatile_functions_are_reported() -> None:
    assert bound("SELECT random() FROM ships").volatile == ("random",)
    assert bound("SELECT id FROM ships").volatile == ()


def test_tolerant_expressions_do_not_raise() -> None:
    sql = bound("SELECT 1 / tons, name::int, tons + 1 FROM ships", Settings(strict=False)).sql
    assert "NULLIF(`ships`.`tons`, 0)" in sql
    assert "TRY_CAST(`ships`.`name` AS INT)" in sql
    assert "TRY_ADD" in sql


def test_untyped_literals_take_the_type_of_their_context() -> None:
    sql = bound("SELECT * FROM ships WHERE arrived > '2024-01-02' AND fee = '1.5' AND tons IN ('3')").sql
    assert "CAST('2024-01-02 00:00:00' AS TIMESTAMP_NTZ)" in sql
    assert "'3'" not in sql


def test_offsets_of_window_functions_are_computed_where_they_are_constants() -> None:
    calls = (
        "lag(tons, 0 + 1) OVER w, nth_value(tons, 2 * (3 - 1)) OVER w, ntile(1 + 1) OVER w, lead(tons, 1 - 3) OVER w"
    )
    sql = bound(f"SELECT {calls} FROM ships WINDOW w AS (ORDER BY id)", Settings(strict=False)).sql
    for made in ("LAG(`ships`.`tons`, 1)", "NTH_VALUE(`ships`.`tons`, 4)", "NTILE(2)", "LEAD(`ships`.`tons`, -2)"):
        assert made in sql


def test_a_frame_that_ends_before_it_begins_has_no_rows() -> None:
    frame = "(ORDER BY id ROWS BETWEEN 1 PRECEDING AND 2 PRECEDING)"
    sql = bound(f"SELECT count(*) OVER {frame}, first_value(tons) OVER {frame}, lag(tons) OVER {frame} FROM ships").sql
    assert "COUNT(CASE WHEN FALSE THEN 1 END) OVER" in sql
    assert "ROWS BETWEEN CURRENT ROW AND CURRENT ROW" in sql
    assert "CAST(NULL AS INT)" in sql
    assert "LAG(`ships`.`tons`) OVER" in sql


def test_time_windows_add_their_bounds() -> None:
    query = bound(
        "SELECT window_start, window_end, count(*) FROM tumble(ships, arrived, interval '1 hour') GROUP BY 1, 2"
    )
    assert names(query)[:2] == ["window_start", "window_end"]
    assert query.columns[0].type == TIMESTAMP


ERRORS: list[tuple[str, type[SeicheError], str]] = [
    (
        "SELECT nam FROM ships",
        UndefinedColumn,
        'column "nam" does not exist\nDETAIL: Failed to bind expression: nam.',
    ),
    (
        "SELECT s.nam FROM ships s",
        UndefinedColumn,
        'column s.nam does not exist\nDETAIL: Failed to bind expression: s.nam.\nHINT: Perhaps you meant "name".',
    ),
    ("SELECT id AS a, a AS b FROM ships WHERE b > 0", UndefinedColumn, 'column "a" does not exist'),
    (
        "SELECT id FROM ships UNION SELECT id FROM ships ORDER BY id + 1",
        FeatureNotSupported,
        "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
    ),
    ("SELECT x.id FROM ships", UndefinedTable, 'missing FROM-clause entry for table "x"'),
    ("SELECT * FROM shps", UndefinedTable, 'relation "shps" does not exist\nHINT: Perhaps you meant "ships".'),
    ("SELECT id FROM ships, berths", AmbiguousColumn, 'column reference "id" is ambiguous'),
    (
        "WITH a AS (SELECT 1), a AS (SELECT 2) SELECT * FROM a",
        DuplicateAlias,
        'WITH query name "a" specified more than once',
    ),
    ("SELECT * FROM ships, ships", DuplicateAlias, 'table name "ships" specified more than once'),
    ("SELECT * EXCEPT (nam) FROM ships", UndefinedColumn, 'column "nam" does not exist'),
    ("SELECT * EXCEPT (id, id) FROM ships", DuplicateColumn, 'column "id" is left out twice'),
    ("SELECT ships.id FROM north.ships, south.ships", AmbiguousColumn, 'table reference "ships" is ambiguous'),
    ("SELECT port.s.id FROM port.ships s", UndefinedTable, 'missing FROM-clause entry for table "s"'),
    (
        "SELECT 1 FROM ships a, ships b JOIN berths c ON a.id = c.ship",
        UndefinedTable,
        'invalid reference to FROM-clause entry for table "a"',
    ),
    ("SELECT array_to_string(NULL, ',')", DatatypeMismatch, "could not determine polymorphic type"),
    ("SELECT tons IS UNKNOWN FROM ships", DatatypeMismatch, "argument of IS UNKNOWN must be type boolean"),
    ("SELECT array_transform(tons, 1) FROM ships", SyntaxError_, "array_transform takes an array and a function"),
    ("SELECT nosuch(id) FROM ships", UndefinedFunction, "function nosuch(integer) does not exist"),
    ("SELECT lowr(name) FROM ships", UndefinedFunction, 'Perhaps you meant "lower"'),
    ("SELECT lower(id) FROM ships", UndefinedFunction, "function lower(integer) does not exist"),
    ("SELECT id + true FROM ships", UndefinedFunction, "operator does not exist: integer + boolean"),
    ("SELECT id = name FROM ships", UndefinedFunction, "operator does not exist: integer = character varying"),
    ("SELECT * FROM ships WHERE id", DatatypeMismatch, "argument of WHERE must be type boolean, not type integer"),
    ("SELECT 1 LIMIT '1'::jsonb", DatatypeMismatch, "argument of LIMIT must be type bigint, not type jsonb"),
    ("SELECT 1 OFFSET true", DatatypeMismatch, "argument of OFFSET must be type bigint, not type boolean"),
    ("SELECT name FROM ships LIMIT '-2'", InvalidParameter, "LIMIT must not be negative"),
    ("SELECT name FROM ships OFFSET '-2'::bigint", InvalidParameter, "OFFSET must not be negative"),
    ("SELECT regexp_count(name, 'a', 1, 'g') FROM ships", InvalidParameter, "does not support the global option"),
    ("SELECT * FROM ships WHERE id AND true", DatatypeMismatch, "argument of AND must be type boolean"),
    (
        "SELECT id FROM ships UNION SELECT name FROM ships",
        DatatypeMismatch,
        "UNION types integer and character varying cannot be matched",
    ),
    (
        "SELECT id, 1 FROM ships UNION SELECT id FROM ships",
        SyntaxError_,
        "each UNION query must have the same number of columns",
    ),
    (
        "SELECT CASE WHEN true THEN 1 ELSE now() END",
        DatatypeMismatch,
        "CASE types timestamp with time zone and integer cannot be matched",
    ),
    ("SELECT name, count(*) FROM ships", GroupingError, 'column "ships.name" must appear in the GROUP BY clause'),
    ("SELECT tons FROM ships GROUP BY name", GroupingError, 'column "ships.tons" must appear in the GROUP BY clause'),
    ("SELECT * FROM ships WHERE count(*) > 1", GroupingError, "aggregate functions are not allowed in WHERE"),
    ("SELECT sum(count(*)) FROM ships", GroupingError, "aggregate function calls cannot be nested"),
    ("SELECT 1 FROM ships WHERE row_number() OVER () = 1", GroupingError, "window functions are not allowed in WHERE"),
    ("SELECT id FROM ships ORDER BY 3", InvalidColumnReference, "ORDER BY position 3 is not in select list"),
    (
        "SELECT DISTINCT name FROM ships ORDER BY tons",
        InvalidColumnReference,
        "for SELECT DISTINCT, ORDER BY expressions must appear",
    ),
    ("SELECT 'x'::integer", InvalidText, 'invalid input syntax for type integer: "x"'),
    ("SELECT coalesce('x'::integer, 1)", InvalidText, 'invalid input syntax for type integer: "x"'),
    ("SELECT * FROM ships WHERE arrived > 'soon'", InvalidText, 'invalid input syntax for type timestamp: "soon"'),
    ("SELECT '40000'::smallint", NumericOutOfRange, 'value "40000" is out of range for type smallint'),
    ("SELECT (SELECT id, name FROM ships)", SyntaxError_, "subquery must return only one column"),
    ("SELECT * FROM ships WHERE id IN (SELECT id, name FROM ships)", SyntaxError_, "subquery has too many columns"),
    ("SELECT true::date", DatatypeMismatch, "cannot cast type boolean to date"),
    ("SELECT * FROM (VALUES (1, 2), (3)) v", SyntaxError_, "VALUES lists must all be the same length"),
    (
        "SELECT * FROM ships s (a, b, c, d, e, f, g)",
        InvalidColumnReference,
        'table "s" has 6 columns available but 7 columns specified',
    ),
    (
        "SELECT * FROM ships JOIN berths USING (tons)",
        UndefinedColumn,
        'column "tons" specified in USING clause does not exist in right table',
    ),
    ("SELECT *", SyntaxError_, "SELECT * with no tables specified is not valid"),
]


@pytest.mark.parametrize(("text", "kind", "message"), ERRORS, ids=[text for text, _, _ in ERRORS])
def test_wrong_query_gets_the_error_of_postgres(text: str, kind: type[SeicheError], message: str) -> None:
    with pytest.raises(kind) as caught:
        bound(text)
    assert message in str(caught.value)


def insert(columns: list[str] | None, text: str | None) -> BoundQuery:
    return bind_insert(SHIPS, columns, parsed(text) if text else None, Harbour(), Settings(now_ms=0))


def test_insert_fills_defaults_and_computes_generated_columns() -> None:
    query = insert(["id", "name"], "VALUES (1, 'Ada')")
    assert names(query) == ["id", "name", "tons", "fee", "arrived", "doubled"]
    assert "AS `tons`" in query.sql
    assert query.columns[3].type == MONEY


def test_insert_assigns_literals_as_the_columns_type() -> None:
    sql = insert(["id", "fee", "arrived"], "VALUES ('1', 2, '2024-01-01'), (2, '3.14', NULL)").sql
    assert "CAST('3.14' AS DECIMAL(10, 2))" in sql
    assert "TIMESTAMP_NTZ" in sql


def test_insert_without_a_column_list_skips_generated_columns() -> None:
    assert insert(None, "VALUES (1, 'Ada', 3, 4, NULL)").columns[5].name == "doubled"


def test_insert_takes_default_in_values() -> None:
    assert "NULL" in insert(["id", "name"], "VALUES (1, DEFAULT), (2, 'x')").sql


def test_insert_of_default_values_is_one_row() -> None:
    assert names(insert(None, None))[2] == "tons"


@pytest.mark.parametrize(
    ("columns", "text", "kind", "message"),
    [
        (["id"], "VALUES (1, 2)", SyntaxError_, "INSERT has more expressions than target columns"),
        (["id", "name"], "VALUES (1)", SyntaxError_, "INSERT has more target columns than expressions"),
        (["nam"], "VALUES (1)", UndefinedColumn, 'column "nam" of relation "ships" does not exist'),
        (["id", "id"], "VALUES (1, 2)", DuplicateColumn, 'column "id" specified more than once'),
        (["doubled"], "VALUES (1)", SyntaxError_, 'cannot write to generated column "doubled"'),
        (["id"], "VALUES (true)", DatatypeMismatch, 'column "id" is of type integer but expression is of type boolean'),
        (
            ["id"],
            "SELECT name FROM ships",
            DatatypeMismatch,
            'column "id" is of type integer but expression is of type character varying',
        ),
        (None, "VALUES (1, 'a', 3, 4, NULL, 6)", SyntaxError_, "INSERT has more expressions than target columns"),
    ],
)
def test_wrong_insert_gets_the_error_of_postgres(
    columns: list[str] | None, text: str, kind: type[SeicheError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        insert(columns, text)
    assert message in str(caught.value)


def test_update_selects_old_and_new_values_of_all_columns() -> None:
    query = bind_update(
        SHIPS, "s", [("tons", expression("s.tons + 1"))], expression("id = 3"), Harbour(), Settings(now_ms=0)
    )
    assert names(query) == [p + c.name for p in ("old_", "new_") for c in SHIPS.columns]
    assert "(`s`.`tons` + 1) AS `new_tons`" in query.sql
    assert "((`s`.`tons` + 1) * 2) AS `new_doubled`" in query.sql
    assert query.sql.endswith("WHERE (`s`.`id` = 3)")


def test_delete_selects_all_columns_of_the_rows_that_match() -> None:
    query = bind_delete(SHIPS, None, expression("tons > (SELECT avg(id) FROM berths)"), Harbour(), Settings(now_ms=0))
    assert names(query) == [column.name for column in SHIPS.columns]
    assert query.relations == {7, 8}


def test_update_from_changes_a_row_once_however_many_rows_it_meets() -> None:
    beside = Beside(selected("SELECT * FROM berths b LEFT JOIN ships s ON s.id = b.ship"), ("_row_id",))
    assignments = [("name", expression("b.quay"))]
    where = expression("b.ship = ships.id")
    query = bind_update(SHIPS, None, assignments, where, Harbour(), Settings(now_ms=0), beside)
    assert names(query) == [p + c.name for p in ("old_", "new_") for c in SHIPS.columns]
    assert "`b`.`quay` AS `new_name`" in query.sql
    assert "FROM `r8` AS `b` LEFT JOIN `r7` AS `s` ON (`s`.`id` = `b`.`ship`) CROSS JOIN `r7` AS `ships`" in query.sql
    assert "PARTITION BY `all_rows`.`old__row_id` ORDER BY `all_rows`.`new_name`" in query.sql
    assert query.relations == {7, 8}


def test_delete_using_takes_a_row_once_however_many_rows_it_meets() -> None:
    beside = Beside(selected("SELECT * FROM berths, ships AS other"), ("id",))
    query = bind_delete(SHIPS, "s", expression("s.id = ship"), Harbour(), Settings(now_ms=0), beside)
    assert names(query) == [column.name for column in SHIPS.columns]
    assert "PARTITION BY `all_rows`.`id`" in query.sql
    assert query.relations == {7, 8}


@pytest.mark.parametrize(
    ("others", "where", "kind", "message"),
    [
        ("SELECT * FROM ships", "true", DuplicateAlias, 'table name "ships" specified more than once'),
        ("SELECT * FROM berths", "id = 1", AmbiguousColumn, 'column reference "id" is ambiguous'),
        ("SELECT * FROM berths b JOIN berths c ON c.ship = ships.id", "true", UndefinedTable, '"ships"'),
    ],
)
def test_delete_using_refuses_what_postgres_refuses(
    others: str, where: str, kind: type[SeicheError], message: str
) -> None:
    beside = Beside(selected(others), ("id",))
    with pytest.raises(kind, match=message):
        bind_delete(SHIPS, None, expression(where), Harbour(), Settings(now_ms=0), beside)


def test_queries_of_with_are_seen_in_every_clause_of_a_statement_that_writes() -> None:
    common = parsed("WITH moored AS (SELECT ship FROM berths) SELECT 1")
    where = expression("ships.id = m.ship AND m.ship IN (SELECT ship FROM moored)")
    beside = Beside(selected("SELECT * FROM moored m"), ("id",), common)
    query = bind_delete(SHIPS, None, where, Harbour(), Settings(now_ms=0), beside)
    assert query.sql.count("FROM `r8`") == 2
    tons = [("tons", expression("(SELECT max(ship) FROM moored)"))]
    query = bind_update(SHIPS, None, tons, None, Harbour(), Settings(now_ms=0), Beside(None, ("id",), common))
    assert "FROM `r8`" in query.sql
    wrong = parsed("WITH moored AS (SELECT pier FROM berths) SELECT 1")
    with pytest.raises(UndefinedColumn, match="pier"):
        bind_delete(SHIPS, None, None, Harbour(), Settings(now_ms=0), Beside(None, ("id",), wrong))


def test_returning_reads_the_written_rows() -> None:
    query = bind_returning([exp.Star(), expression("tons * 2 AS t")], SHIPS, None, Harbour(), Settings(now_ms=0))
    assert "FROM `returning_rows` AS `ships`" in query.sql
    assert names(query)[-1] == "t"


def test_expression_over_bare_columns_is_typed() -> None:
    made = bind_expression("tons * 2 + 1", SHIPS.columns, Settings(now_ms=0))
    assert made.type == INTEGER
    assert made.ast.sql("spark") == "((`tons` * 2) + 1)"


def test_expression_notes_that_it_uses_the_time() -> None:
    made = bind_expression("now()", (), Settings(now_ms=0))
    assert made.uses_now
    assert made.type == TIMESTAMPTZ


def test_struct_fields_and_whole_rows_are_typed() -> None:
    query = bound("SELECT (row(1, 'a')).f2, b FROM berths b")
    assert query.columns[0].type == VARCHAR
    assert query.columns[1].type.kind is Kind.STRUCT


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(unnest(ARRAY[1, 2])) FROM ships",
        "SELECT max(unnest(ARRAY[1, 2])) OVER () FROM ships",
        "SELECT id FROM ships WHERE unnest(ARRAY[1]) = 1",
    ],
)
def test_a_set_returning_function_where_rows_cannot_become_more_is_refused(query: str) -> None:
    with pytest.raises(FeatureNotSupported):
        bound(query)


def test_a_set_returning_function_follows_the_groups_of_its_query() -> None:
    query = bound("SELECT id, count(*), generate_series(1, count(*)) AS n FROM ships GROUP BY 1")
    groups, _, rows = query.sql.partition("CROSS JOIN LATERAL")
    assert "GROUP BY `ships`.`id`) AS `groups" in groups
    assert "SEQUENCE" in rows and "COUNT" not in rows
    assert [column.name for column in query.columns] == ["id", "count", "n"]


def test_a_set_returning_function_in_a_select_list_is_a_map_of_each_row() -> None:
    query = bound("SELECT id, unnest(ARRAY[1, tons]) + 1 AS n FROM ships")
    assert query.sql == (
        "SELECT `ships`.`id` AS `id`, (`rows`.`item` + 1) AS `n` FROM `r7` AS `ships` "
        "CROSS JOIN LATERAL (SELECT EXPLODE(ARRAY(1, `ships`.`tons`)) AS `item`) AS `rows`"
    )


def test_several_set_returning_functions_go_side_by_side() -> None:
    query = bound("SELECT unnest(ARRAY[1, 2]) AS a, unnest(ARRAY['x']), * FROM ships")
    assert names(query)[:3] == ["a", "unnest", "id"]
    assert "ARRAYS_ZIP" in query.sql.upper()


def test_a_column_two_levels_out_is_taken_from_the_equal_one_in_between() -> None:
    made = bound(
        "SELECT 1 FROM ships WHERE EXISTS (SELECT 1 FROM berths WHERE berths.ship = ships.id AND berths.id IN "
        "(SELECT b.id FROM berths b WHERE b.ship = ships.id))"
    ).ast.sql("spark")
    assert "`b`.`ship` = `berths`.`ship`" in made


def test_grouping_by_a_column_of_the_query_around_is_one_group() -> None:
    made = bound("SELECT 1 FROM ships WHERE tons IN (SELECT count(*) FROM berths GROUP BY ships.tons)").ast.sql("spark")
    assert "GROUP BY CAST(0 AS INT)" in made


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM generate_series('infinity'::numeric, 10)", "start value cannot be infinity"),
        ("SELECT * FROM range(1, '-inf'::numeric)", "stop value cannot be infinity"),
        ("SELECT generate_series(1, 2, 'NaN'::numeric)", "step value cannot be NaN"),
        ("SELECT * FROM generate_series(1, 2, 0)", "step size cannot equal zero"),
    ],
)
def test_an_endless_series_is_refused(query: str, message: str) -> None:
    with pytest.raises(SeicheError, match=message):
        bound(query)


def test_the_word_user_is_who_asks_and_a_quoted_one_a_column() -> None:
    query = bound('SELECT user, "user" FROM pilots', pilots="SELECT 'x' AS \"user\"")
    assert query.ast.sql("spark").startswith("SELECT 'root' AS `user`, `pilots`.`user`")


@pytest.mark.parametrize("call", ["abs({})", "left({}, 3)", "right({}, 3)"])
def test_calls_in_calls_grow_with_what_is_written(call: str) -> None:
    def parts(levels: int) -> int:
        text = "tons" if "abs" in call else "name"
        for _ in range(levels):
            text = call.format(text)
        return sum(1 for _ in bound(f"SELECT {text} FROM ships").ast.walk())

    assert parts(24) - parts(18) <= 2 * (parts(18) - parts(12))


def test_an_expression_that_grows_by_powers_is_refused_before_it_takes_all_memory() -> None:
    text = "name"
    for _ in range(20):
        text = f"quote_ident({text})"
    with pytest.raises(StatementTooComplex, match="nested too deeply"):
        bound(f"SELECT {text} FROM ships")


def test_a_long_list_that_somebody_wrote_is_no_growth() -> None:
    assert bound(f"SELECT cardinality(ARRAY[{', '.join(['1'] * 110_000)}])").columns
