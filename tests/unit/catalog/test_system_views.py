"""The rows of rw_catalog's views."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from seiche.catalog.checkpoint import RECOVERED, Event
from seiche.catalog.facts import BackfillFact, Facts, Refreshed
from seiche.catalog.oids import oid_of, user_oid
from seiche.catalog.system_views import SYSTEM_VIEWS, system_view
from seiche.errors import UndefinedTable
from tests.unit.catalog.contract import ARRIVALS, BUSY, SHIPS, STATE, harbour

FACTS = Facts(
    harbour(),
    {"checkpoint_frequency": "1", "barrier_interval_ms": "1000"},
    (Event(1000, RECOVERED, {"epoch": 5}),),
    backfills=(
        BackfillFact(
            BUSY,
            "CREATE MATERIALIZED VIEW busy",
            "Snapshot [41.20% (412/1000)]",
            1000,
            rate_limit=50,
            inputs={SHIPS: (400, 500), ARRIVALS: (12, 500)},
            kind="no-shuffle",
        ),
    ),
    refreshes=(Refreshed(BUSY, "BatchRefresh Idle", 5, 1200, 3, 40, None),),
)


def shown(name: str) -> list[dict[str, object]]:
    view = system_view("rw_catalog", name)
    return [dict(zip([column.name for column in view.columns], row, strict=True)) for row in view.rows(FACTS)]


def test_every_view_has_rows_as_wide_as_its_columns() -> None:
    for view in SYSTEM_VIEWS.values():
        assert all(len(row) == len(view.columns) for row in view.rows(FACTS)), view.name


def test_no_two_relations_of_pg_class_share_an_oid() -> None:
    view = system_view("pg_catalog", "pg_class")
    oids = [row[0] for row in view.rows(FACTS)]
    assert len(set(oids)) == len(oids)


def test_tables_and_views_are_listed_with_their_ids_and_definitions() -> None:
    assert [(row["id"], row["name"], row["append_only"]) for row in shown("rw_tables")] == [
        (SHIPS, "ships", False),
        (ARRIVALS, "arrivals", False),
    ]
    (busy,) = shown("rw_materialized_views")
    assert (busy["id"], busy["status"], busy["schema_id"], busy["owner"]) == (BUSY, "Creating", oid_of(2), user_oid(3))
    assert busy["initialized_at"] == datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC)


def test_relations_tell_their_kind() -> None:
    assert {row["id"]: row["relation_type"] for row in shown("rw_relations")} == {
        SHIPS: "table",
        ARRIVALS: "table",
        BUSY: "materialized view",
        STATE: "internal table",
    }


def test_a_view_that_is_being_created_tells_how_far_it_is_with_each_relation_and_how_fast_it_may_be() -> None:
    progress = [
        (row["job_name"], row["upstream_table_name"], row["progress"]) for row in shown("rw_fragment_backfill_progress")
    ]
    assert progress == [
        ("public.busy_berths", "public.ships", "80.00% (400/500)"),
        ("public.busy_berths", "public.arrivals", "2.40% (12/500)"),
    ]
    assert [(row["node_name"], row["table_id"], row["rate_limit"]) for row in shown("rw_rate_limit")] == [
        ("STREAM_SCAN", BUSY, 50)
    ]


def test_columns_show_type_key_and_position() -> None:
    imo, name, written = (row for row in shown("rw_columns") if row["relation_id"] == SHIPS)
    assert (imo["name"], imo["position"], imo["is_primary_key"], imo["is_nullable"], imo["data_type"]) == (
        "imo",
        1,
        True,
        False,
        "bigint",
    )
    assert (name["position"], name["is_primary_key"], name["data_type"]) == (2, False, "character varying")
    assert (written["name"], written["position"], written["is_hidden"]) == ("_rw_timestamp", 3, True)
    hidden = [row for row in shown("rw_columns") if row["relation_id"] == BUSY]
    assert [row["is_hidden"] for row in hidden] == [True, True]


def test_dependencies_parameters_users_schemas_and_events_are_listed() -> None:
    assert shown("rw_depend") == [{"objid": BUSY, "refobjid": SHIPS}, {"objid": BUSY, "refobjid": ARRIVALS}]
    assert [row["name"] for row in shown("rw_system_parameters")] == ["barrier_interval_ms", "checkpoint_frequency"]
    users = [(row["name"], row["is_super"]) for row in shown("rw_users")]
    assert users == [("root", True), ("postgres", True), ("rwadmin", True)]
    assert shown("rw_schemas") == [{"id": oid_of(2), "name": "public", "owner": user_oid(3), "acl": []}]
    (event,) = shown("rw_event_logs")
    assert event["timestamp"] == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert (event["event_type"], event["info"]) == ("GLOBAL_RECOVERY_SUCCESS", '{"epoch":5}')


def test_the_last_recovery_is_told() -> None:
    assert [row["last_global_event"] for row in shown("rw_recovery_info")] == ['{"epoch":5}']


def test_an_unknown_view_suggests_the_nearest() -> None:
    with pytest.raises(UndefinedTable, match='relation "rw_catalog.rw_table" does not exist') as caught:
        system_view("rw_catalog", "rw_table")
    assert caught.value.hint == 'Perhaps you meant "rw_tables".'


def test_jobs_in_creation_and_refreshes_tell_how_far_they_are() -> None:
    (creating,) = shown("rw_ddl_progress")
    assert (creating["ddl_id"], creating["progress"]) == (BUSY, "Snapshot [41.20% (412/1000)]")
    assert creating["backfill_type"] == "NO_SHUFFLE_BACKFILL"
    (refreshed,) = shown("rw_batch_refresh_jobs")
    assert (refreshed["id"], refreshed["lag_ms"], refreshed["state"]) == (BUSY, 1200, "BatchRefresh Idle")
