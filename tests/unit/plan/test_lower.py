"""Each shape of SQL and the plan that it is lowered to."""

from __future__ import annotations

import pytest

from seiche.plan.algebra import (
    Aggregate,
    Function,
    Keyed,
    Plan,
    Recompute,
    Scan,
    Select,
    TopN,
    UnionAll,
    recomputed,
)
from tests.unit.plan.harbour import ARRIVALS, BERTHS, SHIPS, Harbour


@pytest.fixture(scope="module")
def harbour() -> Harbour:
    harbour = Harbour()
    harbour.add_materialized_view("heavy", "SELECT id, name, tons FROM ships WHERE tons > 1000")
    harbour.add_view("calls", "SELECT s.name, a.at, a.tons FROM ships s JOIN arrivals a ON a.ship = s.id")
    return harbour


def select(plan: Plan) -> Select:
    assert isinstance(plan, Select), plan
    return plan


def aggregate(plan: Plan) -> Aggregate:
    assert isinstance(plan, Aggregate), plan
    return plan


def relations(plan: Select) -> list[int]:
    found = []
    for child in plan.inputs:
        assert isinstance(child, Scan)
        found.append(child.relation)
    return found


def conditions(plan: Select) -> list[str]:
    return [each.sql("spark").replace("`", "") for each in plan.conjuncts]


def outputs(plan: Select | Aggregate) -> dict[str, str]:
    return {item.field.name: item.expr.sql("spark").replace("`", "") for item in plan.items if not item.field.hidden}


def hidden(plan: Plan) -> list[str]:
    return [field.name for field in plan.fields if field.hidden]


# --- selects -----------------------------------------------------------------------------------------


def test_what_every_side_of_an_or_demands_is_a_condition_of_its_own(harbour: Harbour) -> None:
    either = "(s.id = a.ship AND s.tons > 5 AND a.berth = 1) OR (a.berth = 2 AND s.id = a.ship)"
    plan = select(harbour.plan(f"SELECT s.name FROM ships s, arrivals a WHERE {either}"))
    assert conditions(plan) == ["l0.id = l1.ship", "((l0.tons > 5) AND (l1.berth = 1)) OR (l1.berth = 2)"]


def test_a_side_of_an_or_that_demands_no_more_than_the_others_is_all_there_is(harbour: Harbour) -> None:
    plan = select(harbour.plan("SELECT id FROM ships WHERE tons > 5 OR (tons > 5 AND flag = 'NO')"))
    assert conditions(plan) == ["l0.tons > 5"]


def test_an_or_whose_sides_have_nothing_in_common_stays_as_it_is(harbour: Harbour) -> None:
    plan = select(harbour.plan("SELECT id FROM ships WHERE tons > 5 OR flag = 'NO'"))
    assert conditions(plan) == ["(l0.tons > 5) OR (l0.flag = 'NO')"]


def test_a_filter_keeps_its_conditions_apart(harbour: Harbour) -> None:
    plan = select(harbour.plan("SELECT id, name FROM ships WHERE tons > 10 AND (flag = 'NO' AND draught < 3)"))
    assert relations(plan) == [SHIPS]
    assert len(plan.conjuncts) == 3
    assert conditions(plan)[0] == "l0.tons > 10"
    assert outputs(plan) == {"id": "l0.id", "name": "l0.name"}


def test_or_is_one_condition(harbour: Harbour) -> None:
    assert len(select(harbour.plan("SELECT id FROM ships WHERE tons > 10 OR flag = 'NO'")).conjuncts) == 1


def test_a_shown_key_is_the_key(harbour: Harbour) -> None:
    plan = harbour.plan("SELECT name, id FROM ships")
    assert plan.key == ("id",)
    assert hidden(plan) == []


def test_a_renamed_key_is_the_key_under_its_new_name(harbour: Harbour) -> None:
    assert harbour.plan("SELECT id AS number FROM ships").key == ("number",)


def test_a_key_that_is_not_shown_is_carried_hidden(harbour: Harbour) -> None:
    plan = harbour.plan("SELECT name FROM ships")
    assert plan.key == ("_k0_id",)
    assert hidden(plan) == ["_k0_id"]


def test_a_key_inside_an_expression_does_not_count_as_shown(harbour: Harbour) -> None:
    assert harbour.plan("SELECT id + 0 AS id FROM ships").key == ("_k0_id",)


def test_a_table_without_a_primary_key_lends_its_row_id(harbour: Harbour) -> None:
    plan = harbour.plan("SELECT tons FROM arrivals")
    assert plan.key == ("_k0_row_id",)


def test_star_over_a_table_is_a_projection_of_its_visible_columns(harbour: Harbour) -> None:
    plan = select(harbour.plan("SELECT * FROM arrivals"))
    assert [field.name for field in plan.fields if not field.hidden] == ["ship", "berth", "day", "at", "tons", "crew"]
    assert plan.key == ("_k0_row_id",)


def test_a_column_named_like_a_hidden_key_does_not_take_its_place(harbour: Harbour) -> None:
    plan = harbour.plan("SELECT name AS _k0_id FROM ships")
    assert plan.key == ("_k0_id_",)


# --- joins -------------------------------------------------------------------------------------------


def test_inner_joins_are_one_join_of_all_inputs_keyed_by_all_their_keys(harbour: Harbour) -> None:
    plan = select(
        harbour.plan(
            "SELECT s.name, b.quay FROM arrivals a JOIN ships s ON a.ship = s.id JOIN berths b ON a.berth = b.id"
        )
    )
    assert relations(plan) == [ARRIVALS, SHIPS, BERTHS]
    assert conditions(plan) == ["l0.ship = l1.id", "l0.berth = l2.id"]
    assert plan.key == ("_k0_row_id", "_k1_id", "_k2_id")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT s.name FROM ships s JOIN arrivals a ON a.ship = s.id",
        "SELECT s.name FROM ships s, arrivals a WHERE a.ship = s.id",
        "SELECT s.name FROM ships s CROSS JOIN arrivals a WHERE a.ship = s.id",
        "SELECT s.name FROM ships s JOIN (SELECT * FROM arrivals) a ON a.ship = s.id",
        "SELECT name FROM calls",
        "WITH c AS (SELECT * FROM calls) SELECT name FROM c",
    ],
)
def test_a_join_has_one_plan_however_it_is_written(harbour: Harbour, query: str) -> None:
    plan = select(harbour.plan(query))
    assert relations(plan) == [SHIPS, ARRIVALS]
    assert conditions(plan) == ["l1.ship = l0.id"]


def test_a_join_by_using_compares_the_columns(harbour: Harbour) -> None:
    plan = select(harbour.plan("SELECT id, s.name FROM ships s JOIN berths b USING (id)"))
    assert conditions(plan) == ["l0.id = l1.id"]


def test_a_self_join_scans_its_relation_twice(harbour: Harbour) -> None:
    plan = select(harbour.plan("SELECT a.name, b.name AS other FROM ships a JOIN ships b ON a.flag = b.flag"))
    assert relations(plan) == [SHIPS, SHIPS]
    assert outputs(plan) == {"name": "l0.name", "other": "l1.name"}


def test_nested_selects_are_merged_with_their_conditions_and_expressions(harbour: Harbour) -> None:
    plan = select(
        harbour.plan(
            "SELECT x.n || '!' AS n FROM berths b JOIN"
            " (SELECT upper(name) AS n, id FROM ships WHERE tons > 1) x ON x.id = b.id WHERE x.n <> 'A'"
        )
    )
    assert relations(plan) == [BERTHS, SHIPS]
    assert conditions(plan) == ["l1.tons > 1", "l1.id = l0.id", "(UPPER(l1.name)) <> 'A'"]
    assert outputs(plan) == {"n": "CONCAT((UPPER(l1.name)), '!')"}


def test_a_view_on_a_materialized_view_scans_what_is_stored(harbour: Harbour) -> None:
    (heavy,) = relations(select(harbour.plan("SELECT name FROM heavy")))
    assert harbour.name_of(heavy) == "heavy"


# --- aggregates --------------------------------------------------------------------------------------


def test_groups_are_made_of_projected_keys_and_arguments(harbour: Harbour) -> None:
    plan = aggregate(harbour.plan("SELECT upper(flag) AS f, sum(tons) FROM ships WHERE tons > 1 GROUP BY upper(flag)"))
    source = select(plan.input)
    assert outputs(source) == {"g0": "UPPER(l0.flag)", "a0": "l0.tons"}
    assert conditions(source) == ["l0.tons > 1"]
    assert [field.name for field in plan.keys] == ["g0"]
    assert [(call.function, call.argument and call.argument.name) for call in plan.calls] == [(Function.SUM, "a0")]
    assert outputs(plan) == {"f": "g0", "sum": "c0"}
    assert plan.key == ("f",)


@pytest.mark.parametrize(
    ("call", "function"),
    [
        ("count(*)", Function.COUNT_ROWS),
        ("count(tons)", Function.COUNT),
        ("sum(tons)", Function.SUM),
        ("min(tons)", Function.MIN),
        ("max(tons)", Function.MAX),
        ("bool_and(tons > 1)", Function.BOOL_AND),
        ("bool_or(tons > 1)", Function.BOOL_OR),
        ("min(DISTINCT tons)", Function.MIN),
    ],
)
def test_a_core_aggregate_is_one_call(harbour: Harbour, call: str, function: Function) -> None:
    plan = aggregate(harbour.plan(f"SELECT flag, {call} AS x FROM ships GROUP BY flag"))
    assert [each.function for each in plan.calls] == [function]


def test_an_average_is_a_sum_and_a_count_of_one_argument(harbour: Harbour) -> None:
    plan = aggregate(harbour.plan("SELECT flag, avg(tons) AS mean FROM ships GROUP BY flag"))
    assert {each.function for each in plan.calls} == {Function.SUM, Function.COUNT}
    assert {each.argument for each in plan.calls if each.argument} == {plan.calls[0].argument}


def test_a_call_that_appears_twice_is_kept_once(harbour: Harbour) -> None:
    plan = aggregate(harbour.plan("SELECT flag, sum(tons) AS a, sum(tons) + 1 AS b FROM ships GROUP BY flag"))
    assert len(plan.calls) == 1


def test_filter_moves_into_the_argument(harbour: Harbour) -> None:
    plan = aggregate(harbour.plan("SELECT count(name) FILTER (WHERE tons > 1) FROM ships"))
    assert outputs(select(plan.input))["a0"] == "CASE WHEN (l0.tons > 1) THEN l0.name END"


def test_a_group_key_that_is_not_shown_is_carried_hidden(harbour: Harbour) -> None:
    plan = harbour.plan("SELECT count(*) FROM ships GROUP BY flag")
    assert plan.key == ("_g_g0",)
    assert hidden(plan) == ["_g_g0"]


def test_an_expression_over_a_key_and_a_call_is_computed_from_both(harbour: Harbour) -> None:
    plan = aggregate(harbour.plan("SELECT flag || count(*)::varchar AS x FROM ships GROUP BY flag"))
    assert "g0" in outputs(plan)["x"] and "c0" in outputs(plan)["x"]
    assert plan.key == ("_g_g0",)


def test_without_group_by_there_is_one_group_that_always_exists(harbour: Harbour) -> None:
    plan = aggregate(harbour.plan("SELECT count(*), sum(tons) FROM ships"))
    assert plan.total
    assert outputs(select(plan.input))["g0"] == "CAST(0 AS SMALLINT)"
    assert plan.key == ("_g_g0",)


def test_group_by_without_aggregates_is_not_total(harbour: Harbour) -> None:
    plan = aggregate(harbour.plan("SELECT flag FROM ships GROUP BY flag"))
    assert not plan.total and not plan.calls


def test_having_filters_groups_that_are_all_kept(harbour: Harbour) -> None:
    plan = select(harbour.plan("SELECT flag FROM ships GROUP BY flag HAVING count(*) > 1 AND max(tons) < 9"))
    groups = aggregate(plan.inputs[0])
    assert [each.function for each in groups.calls] == [Function.COUNT_ROWS, Function.MAX]
    assert conditions(plan) == ["l0.c0 > CAST(1 AS BIGINT)", "l0.c1 < 9"]
    assert outputs(plan) == {"flag": "l0.g0"}
    assert plan.key == ("flag",)


def test_having_alone_makes_a_total_aggregate(harbour: Harbour) -> None:
    plan = select(harbour.plan("SELECT 1 AS one FROM ships HAVING count(*) > 1"))
    assert aggregate(plan.inputs[0]).total


def test_distinct_groups_by_all_shown_columns(harbour: Harbour) -> None:
    plan = aggregate(harbour.plan("SELECT DISTINCT flag, tons FROM ships"))
    assert [field.name for field in plan.keys] == ["flag", "tons"]
    assert plan.key == ("flag", "tons")
    assert plan.calls == ()


def test_distinct_over_groups_groups_again(harbour: Harbour) -> None:
    plan = aggregate(harbour.plan("SELECT DISTINCT count(*) AS n FROM ships GROUP BY flag"))
    assert plan.key == ("n",)
    assert isinstance(plan.input, Aggregate)


# --- unions ------------------------------------------------------------------------------------------


def test_a_union_keeps_the_branch_and_the_key_of_each_branch(harbour: Harbour) -> None:
    plan = harbour.plan("SELECT name FROM ships UNION ALL SELECT quay FROM berths")
    assert isinstance(plan, UnionAll)
    assert plan.key == ("_branch", "_u0_k0_id", "_u1_k0_id")
    first, second = (outputs_with_hidden(each) for each in plan.inputs)
    assert first == {
        "name": "l0.name",
        "_branch": "CAST(0 AS SMALLINT)",
        "_u0_k0_id": "l0.id",
        "_u1_k0_id": "CAST(NULL AS INT)",
    }
    assert second["name"] == "l0.quay"
    assert (second["_u0_k0_id"], second["_u1_k0_id"]) == ("CAST(NULL AS INT)", "l0.id")


def outputs_with_hidden(plan: Plan) -> dict[str, str]:
    return {item.field.name: item.expr.sql("spark").replace("`", "") for item in select(plan).items}


def test_branches_of_other_types_are_brought_to_one(harbour: Harbour) -> None:
    plan = harbour.plan("SELECT tons AS x FROM ships UNION ALL SELECT depth FROM berths")
    assert isinstance(plan, UnionAll)
    assert {str(each.fields[0].type) for each in plan.inputs} == {"double precision"}


def test_union_without_all_is_distinct_over_the_union(harbour: Harbour) -> None:
    plan = aggregate(harbour.plan("SELECT name FROM ships UNION SELECT quay FROM berths"))
    assert isinstance(plan.input, UnionAll)
    assert plan.key == ("name",)


# --- affected keys -----------------------------------------------------------------------------------


def keyed(plan: Plan) -> Keyed:
    assert isinstance(plan, Keyed), plan
    return plan


def body(plan: Keyed) -> str:
    return plan.body.sql("spark").replace("`", "")


@pytest.mark.parametrize(
    ("query", "title", "keys"),
    [
        ("SELECT s.name, a.at FROM ships s LEFT JOIN arrivals a ON a.ship = s.id", "Left join", [("id",), ("ship",)]),
        ("SELECT s.name FROM arrivals a RIGHT JOIN ships s ON a.ship = s.id", "Right join", [("ship",), ("id",)]),
        ("SELECT s.name FROM ships s FULL JOIN arrivals a ON a.ship = s.id", "Full join", [("id",), ("ship",)]),
        ("SELECT name FROM ships WHERE id IN (SELECT ship FROM arrivals)", "Semi join", [("id",), ("ship",)]),
        (
            "SELECT name FROM ships s WHERE NOT EXISTS (SELECT 1 FROM arrivals a WHERE a.ship = s.id AND a.tons > 3)",
            "Anti join",
            [("id",), ("ship",)],
        ),
        ("SELECT name, rank() OVER (PARTITION BY flag ORDER BY tons) AS n FROM ships", "Window", [("flag",)]),
        ("SELECT DISTINCT ON (flag) flag, name FROM ships ORDER BY flag, tons", "Window", [("flag",)]),
        ("SELECT flag, string_agg(name, ',') AS n FROM ships GROUP BY flag", "Aggregate", [("flag",)]),
        ("SELECT a.day, c FROM arrivals a, unnest(a.crew) c", "Unnest", [("_k0_row_id",)]),
        ("SELECT name FROM ships INTERSECT ALL SELECT quay FROM berths", "Copies", [("name",)]),
    ],
)
def test_what_falls_apart_by_a_key_says_by_which(
    harbour: Harbour, query: str, title: str, keys: list[tuple[str, ...]]
) -> None:
    plan = keyed(harbour.plan(query))
    assert (plan.title, list(plan.keys), plan.reason) == (title, keys, None)
    assert set(plan.partition) <= {field.name for field in plan.fields}
    assert recomputed(plan) == ()


def test_a_filter_on_a_row_number_goes_into_the_window(harbour: Harbour) -> None:
    plan = keyed(
        harbour.plan(
            "SELECT name FROM (SELECT name, row_number() OVER (PARTITION BY flag ORDER BY tons) AS n FROM ships) x"
            " WHERE n <= 3"
        )
    )
    assert "l0.n <= CAST(3 AS BIGINT)" in body(plan)
    assert hidden(plan) == ["_k0_id", "_p0_flag"]
    assert plan.key == ("_k0_id",)


def test_windows_over_columns_that_share_nothing_follow_each_other(harbour: Harbour) -> None:
    plan = keyed(
        harbour.plan(
            "SELECT sum(tons) OVER (PARTITION BY flag) AS a, rank() OVER (PARTITION BY name ORDER BY tons) AS b"
            " FROM ships"
        )
    )
    assert [each.keys for each in (plan, keyed(plan.inputs[0]))] == [(("name",),), (("flag",),)]


def test_a_recomputed_value_of_several_rows_is_null_and_no_failure(harbour: Harbour) -> None:
    plan = harbour.plan(
        "SELECT (SELECT tons FROM arrivals) AS tons FROM berths"
        " WHERE (SELECT count(*) FROM arrivals) IN (SELECT id FROM ships)"
    )
    assert isinstance(plan, Recompute)
    sql = plan.query.sql("spark")
    assert "CASE WHEN NOT (COUNT(*) > 1) THEN ANY_VALUE(single.`tons`) END" in sql
    assert sql.count("ANY_VALUE(single.`tons`)") == 1, "the rows of IN are no value"
    assert "ANY_VALUE(single.`id`)" not in sql


def test_a_condition_in_parentheses_is_a_key_like_any_other(harbour: Harbour) -> None:
    key = "((name IS NULL OR flag LIKE 'q%'))"
    plan = harbour.plan(f"SELECT {key} AS odd, count(*) AS n FROM ships GROUP BY {key}")
    assert isinstance(plan, Aggregate)


def test_a_constant_partition_is_none_and_frames_keep_their_numbers(harbour: Harbour) -> None:
    frame = "(PARTITION BY 1::int ORDER BY at ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)"
    plan = harbour.plan(f"SELECT ship, sum(tons) OVER {frame} AS s FROM arrivals")
    assert isinstance(plan, Keyed)
    assert plan.reason is not None and plan.reason.code == "window"
    assert "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING" in plan.body.sql("spark")


def test_a_finer_window_is_evaluated_with_a_coarser_one(harbour: Harbour) -> None:
    plan = keyed(
        harbour.plan(
            "SELECT sum(tons) OVER (PARTITION BY flag, name) AS a, count(*) OVER (PARTITION BY flag) AS b FROM ships"
        )
    )
    assert plan.keys == (("flag",),)
    assert isinstance(plan.inputs[0], Select)


def test_conditions_of_the_left_side_go_below_a_left_join(harbour: Harbour) -> None:
    plan = keyed(
        harbour.plan("SELECT s.name FROM ships s LEFT JOIN arrivals a ON a.ship = s.id AND a.tons > 3 WHERE s.tons > 5")
    )
    assert [conditions(select(each)) for each in plan.inputs] == [["l0.tons > 5"], ["l0.tons > 3"]]


def test_conditions_stay_above_a_join_that_adds_rows(harbour: Harbour) -> None:
    plan = keyed(harbour.plan("SELECT s.name FROM ships s FULL JOIN arrivals a ON a.ship = s.id WHERE s.tons > 5"))
    assert [conditions(select(each)) for each in plan.inputs] == [[], []]
    assert "l0.tons > 5" in body(plan)


def test_probes_of_the_same_columns_are_one_step(harbour: Harbour) -> None:
    plan = keyed(
        harbour.plan(
            "SELECT name FROM ships s WHERE EXISTS (SELECT 1 FROM arrivals a WHERE a.ship = s.id)"
            " AND id NOT IN (SELECT id FROM berths)"
        )
    )
    assert plan.title == "Semi and anti join"
    assert plan.keys == (("id",), ("ship",), ("id",))


def test_not_in_over_columns_that_may_be_null_asks_whether_any_is(harbour: Harbour) -> None:
    plan = keyed(harbour.plan("SELECT name FROM ships WHERE tons NOT IN (SELECT tons FROM arrivals)"))
    assert "l0.is_empty OR (l0.is_complete AND NOT (l0.tons IS NULL))" in body(plan)


def test_a_value_that_must_not_be_missing_is_joined(harbour: Harbour) -> None:
    plan = select(
        harbour.plan("SELECT name FROM ships s WHERE tons > (SELECT avg(tons) FROM arrivals a WHERE a.ship = s.id)")
    )
    assert "l0.id = l1.g0" in conditions(plan)


def test_a_value_that_may_be_missing_is_left_joined_and_a_count_is_zero(harbour: Harbour) -> None:
    plan = keyed(harbour.plan("SELECT name, (SELECT count(*) FROM arrivals a WHERE a.ship = s.id) AS n FROM ships s"))
    assert plan.title == "Left join"
    assert "COALESCE(l0.value0, CAST(0 AS BIGINT))" in body(plan)


def test_a_comparison_with_a_missing_value_keeps_its_row_in_a_list(harbour: Harbour) -> None:
    plan = keyed(
        harbour.plan("SELECT name, tons > (SELECT max(tons) FROM arrivals a WHERE a.ship = s.id) AS above FROM ships s")
    )
    assert plan.title == "Left join"


def test_a_value_of_its_own_is_one_row_that_changes_only_with_the_value(harbour: Harbour) -> None:
    plan = select(harbour.plan("SELECT name, (SELECT max(tons) FROM arrivals) AS most FROM ships"))
    value = aggregate(plan.inputs[1])
    assert not value.calls and aggregate(select(value.input).inputs[0]).total


def test_distinct_aggregates_count_distinct_pairs(harbour: Harbour) -> None:
    plan = aggregate(harbour.plan("SELECT flag, count(DISTINCT name) AS n FROM ships GROUP BY flag"))
    pairs = aggregate(select(plan.input).inputs[0])
    assert not pairs.calls and [field.name for field in pairs.keys] == ["flag", "value0"]


def test_distinct_aggregates_of_several_arguments_share_their_pairs(harbour: Harbour) -> None:
    fragments = harbour.fragments(
        "SELECT flag, count(DISTINCT name) AS n, sum(DISTINCT tons) AS t, count(DISTINCT fee) AS f"
        " FROM ships GROUP BY flag"
    )
    pairs, groups = (aggregate(each.plan) for each in fragments)
    assert isinstance(pairs.input, UnionAll) and len(pairs.input.inputs) == 3
    assert len(groups.calls) == 3


def test_a_distinct_aggregate_under_a_condition_has_the_pairs_of_the_one_without(harbour: Harbour) -> None:
    fragments = harbour.fragments(
        "SELECT flag, count(DISTINCT name) AS n, count(DISTINCT name) FILTER (WHERE tons > 5) AS heavy,"
        " count(DISTINCT name) FILTER (WHERE tons <= 5) AS light FROM ships GROUP BY flag"
    )
    pairs, groups = (aggregate(each.plan) for each in fragments)
    assert not isinstance(pairs.input, UnionAll)
    assert [call.function for call in pairs.calls] == [Function.COUNT] * 2
    assert len(groups.calls) == 3


def test_distinct_aggregates_under_different_conditions_have_pairs_of_their_own(harbour: Harbour) -> None:
    fragments = harbour.fragments(
        "SELECT flag, count(DISTINCT name) FILTER (WHERE tons > 5) AS heavy,"
        " count(DISTINCT name) FILTER (WHERE tons <= 5) AS light FROM ships GROUP BY flag"
    )
    pairs, _ = (aggregate(each.plan) for each in fragments)
    assert isinstance(pairs.input, UnionAll) and not pairs.calls


def test_distinct_aggregates_beside_others_are_joined_by_group(harbour: Harbour) -> None:
    plan = select(harbour.plan("SELECT flag, count(DISTINCT name) AS n, count(*) AS m FROM ships GROUP BY flag"))
    assert len(plan.inputs) == 2
    assert conditions(plan) == ["l0.g0 IS NOT DISTINCT FROM l1.g0"]


def test_grouping_sets_are_a_union_of_groups(harbour: Harbour) -> None:
    plan = harbour.plan("SELECT flag, name, count(*) AS n FROM ships GROUP BY GROUPING SETS ((flag), (name))")
    assert isinstance(plan, UnionAll)
    groups = [aggregate(select(each).inputs[0]) for each in plan.inputs]
    assert [(len(each.keys), each.total) for each in groups] == [(1, False), (1, False)]


def test_the_grouping_set_without_columns_is_there_without_rows(harbour: Harbour) -> None:
    plan = harbour.plan("SELECT flag, count(*) AS n, grouping(flag) AS g FROM ships GROUP BY ROLLUP (flag)")
    both = select(plan).inputs[0]
    assert isinstance(both, UnionAll)
    sets, total = (select(each).inputs[0] for each in both.inputs)
    assert isinstance(sets, UnionAll)
    groups = [aggregate(select(each).inputs[0]) for each in sets.inputs]
    assert [(len(each.keys), each.total) for each in groups] == [(1, False)]
    assert aggregate(total).total


def test_except_compares_counts_of_both_sides(harbour: Harbour) -> None:
    plan = select(harbour.plan("SELECT name FROM ships EXCEPT SELECT quay FROM berths"))
    assert conditions(plan) == ["l0.on_left > 0", "l0.on_right = 0"]


def test_overlapping_windows_are_a_branch_each_under_one_key(harbour: Harbour) -> None:
    plan = select(
        harbour.plan("SELECT tons, window_start FROM hop(arrivals, at, INTERVAL '1 hour', INTERVAL '3 hours')")
    )
    windows = plan.inputs[0]
    assert isinstance(windows, UnionAll)
    assert (len(windows.inputs), windows.key) == (3, ("_branch", "row_id"))


def test_first_rows_are_kept_in_order(harbour: Harbour) -> None:
    plan = harbour.plan("SELECT name FROM ships ORDER BY tons DESC, name LIMIT 3")
    assert isinstance(plan, TopN)
    assert [(each.name, each.descending) for each in plan.order] == [("_o0", True), ("name", False)]
    assert (plan.limit, plan.offset, recomputed(plan)) == (3, 0, ())


def test_the_first_rows_of_partitions_are_not_the_first_of_all(harbour: Harbour) -> None:
    plan = harbour.plan(
        "SELECT name, place FROM (SELECT name, rank() OVER (ORDER BY tons) AS place,"
        " row_number() OVER (PARTITION BY flag ORDER BY tons) AS n FROM ships) x WHERE n <= 2"
    )
    assert [each.code for each in recomputed(plan)] == ["window"]


def test_an_offset_counts_from_first_rows_that_are_kept(harbour: Harbour) -> None:
    plan = harbour.plan("SELECT name FROM ships ORDER BY tons LIMIT 3 OFFSET 2")
    assert isinstance(plan, TopN) and isinstance(plan.input, TopN)
    assert (plan.offset, plan.input.limit) == (2, 5)


def test_a_query_that_is_read_twice_is_stored_once(harbour: Harbour) -> None:
    fragments = harbour.fragments(
        "WITH calls AS (SELECT ship, count(*) AS n FROM arrivals GROUP BY ship)"
        " SELECT ship FROM calls WHERE n = (SELECT max(n) FROM calls)"
    )
    first = fragments[0]
    assert [isinstance(each.plan, Aggregate) for each in fragments] == [True, True, True, False]
    assert sum(first.relation in each.inputs for each in fragments[1:]) == 2


@pytest.mark.parametrize("side", ["LEFT", "RIGHT", "FULL"])
@pytest.mark.parametrize(
    "condition", ["true", "false", "s.tons > 3", "a.tons > 3", "a.ship < s.id", "a.ship < s.id AND s.tons > 3"]
)
def test_outer_joins_without_an_equality_are_not_recomputed(harbour: Harbour, side: str, condition: str) -> None:
    assert recomputed(harbour.plan(f"SELECT s.name, a.at FROM ships s {side} JOIN arrivals a ON {condition}")) == ()


# --- recompute ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT name FROM ships OFFSET 3", "limit"),
        ("SELECT name FROM ships LIMIT 20000", "limit"),
        ("SELECT name, rank() OVER (ORDER BY tons) AS n FROM ships", "window"),
        ("SELECT name FROM ships WHERE (SELECT count(*) FROM berths) IN (SELECT ship FROM arrivals)", "subquery"),
        ("SELECT string_agg(name, ',') AS n FROM ships", "aggregate"),
        ("SELECT name FROM ships WHERE NOT now() < '2026-01-01'", "time"),
    ],
)
def test_what_has_no_key_is_recomputed_and_says_why(harbour: Harbour, query: str, code: str) -> None:
    (reason,) = recomputed(harbour.plan(query))
    assert reason.code == code
    assert reason.sentence.endswith(".")


def test_a_query_without_relations_is_a_constant_and_never_recomputed(harbour: Harbour) -> None:
    plan = harbour.plan("SELECT 1 AS one")
    assert isinstance(plan, Recompute)
    assert (plan.reason.code, plan.relations, recomputed(plan)) == ("constant", (), ())


def test_a_recomputed_view_is_keyed_by_all_columns_and_a_number(harbour: Harbour) -> None:
    plan = harbour.plan("SELECT name, tons FROM ships WHERE NOT now() < '2026-01-01'")
    assert plan.key == ("name", "tons", "_n")
    assert hidden(plan) == ["_n"]


def test_a_recomputed_view_knows_the_relations_it_reads(harbour: Harbour) -> None:
    plan = harbour.plan("SELECT s.name FROM arrivals a LEFT JOIN ships s ON a.ship = s.id WHERE NOT a.at >= now()")
    assert isinstance(plan, Recompute)
    assert plan.relations == (SHIPS, ARRIVALS)


def test_only_a_part_that_reads_the_clock_is_driven_by_time(harbour: Harbour) -> None:
    plan = select(
        harbour.plan(
            "SELECT s.name FROM ships s JOIN (SELECT ship FROM arrivals WHERE NOT at > now()) a ON a.ship = s.id"
        )
    )
    part = plan.inputs[1]
    assert isinstance(part, Recompute) and part.time_driven
    assert part.relations == (ARRIVALS,)


def test_one_part_without_a_rule_leaves_the_others_theirs(harbour: Harbour) -> None:
    plan = harbour.plan("SELECT name FROM ships UNION ALL SELECT quay FROM berths WHERE NOT now() < '2026-01-01'")
    assert isinstance(plan, UnionAll)
    part = select(plan.inputs[1]).inputs[0]
    assert isinstance(part, Recompute)
    assert part.relations == (BERTHS,)


def test_a_row_of_full_joins_hands_the_merged_column_on_alone(harbour: Harbour) -> None:
    joins = " ".join(f"FULL JOIN berths b{number} USING (id)" for number in range(4))
    plan: Plan = keyed(harbour.plan(f"SELECT id FROM ships {joins}"))
    for _ in range(3):
        marked = select(keyed(plan).inputs[0])  # whether a side is there at all
        assert [item.field.name for item in marked.items if not item.field.hidden] == ["value"]
        (plan,) = marked.inputs


@pytest.mark.parametrize(
    "query",
    [
        "SELECT name FROM ships s WHERE EXISTS (SELECT 1 FROM arrivals a WHERE a.tons > s.tons)",
        "SELECT name FROM ships s WHERE s.tons > ALL (SELECT a.tons FROM arrivals a WHERE a.ship = s.id)",
        "SELECT name FROM ships s WHERE (s.id, s.tons) NOT IN (SELECT ship, tons FROM arrivals)",
        "SELECT name FROM ships s WHERE s.tons IN (SELECT max(a.tons) FROM arrivals a WHERE a.ship = s.id)",
        "SELECT name, (SELECT count(*) FROM arrivals a WHERE a.tons > s.tons) AS heavier FROM ships s",
        "SELECT id, (SELECT at FROM arrivals WHERE ship = s.id ORDER BY at DESC LIMIT 1) AS last FROM ships s",
        "SELECT name, ARRAY(SELECT a.tons FROM arrivals a WHERE a.ship = s.id ORDER BY a.at) AS loads FROM ships s",
        "SELECT name, (SELECT s.tons) AS tons FROM ships s",
        "SELECT sum((SELECT count(*) FROM arrivals a WHERE a.ship = s.id)) AS n FROM ships s",
        "SELECT (SELECT count(*) FROM ships) AS ships, (SELECT max(tons) FROM arrivals) AS most",
        "SELECT rank() OVER (PARTITION BY flag ORDER BY (SELECT count(*) FROM arrivals WHERE ship = id)) FROM ships",
        "SELECT s.id, l.tons FROM ships s LEFT JOIN LATERAL (SELECT tons FROM arrivals WHERE ship = s.id) l ON true",
        "SELECT l.tons FROM ships s, LATERAL (SELECT tons FROM arrivals WHERE ship = s.id ORDER BY 1 LIMIT 2) l",
        "SELECT l.n FROM ships s, LATERAL (SELECT berth, count(*) AS n FROM arrivals WHERE ship = id GROUP BY 1) l",
        "SELECT s.name, l.x FROM ships s, LATERAL (SELECT ship FROM arrivals WHERE ship > s.id UNION SELECT 1) l(x)",
        "SELECT s.name FROM ships s LEFT JOIN arrivals a ON a.ship < s.id",
        "SELECT s.name FROM ships s RIGHT JOIN arrivals a ON a.ship < s.id",
        "SELECT s.id FROM ships s LEFT JOIN arrivals a ON ship = s.id AND a.tons > (SELECT avg(tons) FROM arrivals)",
        "SELECT s.name FROM ships s LEFT JOIN (arrivals a JOIN berths b ON b.id = a.berth) ON a.ship = s.id",
        "SELECT id FROM ships WHERE 1 IN (SELECT 2 FROM arrivals WHERE 2 IN (SELECT 1 FROM berths WHERE quay > flag))",
        "SELECT flag, sum(tons) AS tons FROM ships GROUP BY ROLLUP (flag) ORDER BY 2 LIMIT 3",
        "SELECT DISTINCT sum(tons) AS tons FROM ships GROUP BY ROLLUP (flag)",
        "SELECT flag, rank() OVER (PARTITION BY count(*) ORDER BY flag) AS place FROM ships GROUP BY flag",
        "SELECT name FROM (SELECT name, row_number() OVER (ORDER BY tons DESC) AS place FROM ships) x WHERE place <= 3",
    ],
)
def test_what_depends_on_rows_around_it_or_is_about_few_rows_has_a_rule(harbour: Harbour, query: str) -> None:
    assert recomputed(harbour.plan(query)) == ()
