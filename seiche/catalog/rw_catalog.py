"""The views of schema `rw_catalog`: what exists and what runs, under the names and columns that RisingWave gives them.

Ids are those of the catalog, as `SHOW JOBS` and `CANCEL JOBS` use them. Views of features that are still to come have
their columns and no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from seiche.catalog import oids
from seiche.catalog import rw_rows as rows_of
from seiche.catalog.facts import Facts, Rows, SystemView
from seiche.model import Column
from seiche.types import BIGINT, BOOLEAN, INTEGER, JSONB, SMALLINT, TIMESTAMPTZ, VARCHAR, SqlType, array_of

SCHEMA = "rw_catalog"

_TYPES: Mapping[str, SqlType] = {
    "": VARCHAR,
    "text": VARCHAR,
    "int": INTEGER,
    "bigint": BIGINT,
    "smallint": SMALLINT,
    "bool": BOOLEAN,
    "timestamptz": TIMESTAMPTZ,
    "jsonb": JSONB,
}

_next_oid = iter(range(oids.FIRST_RW_VIEW_OID, oids.FIRST_USER_OID))


def _type(word: str) -> SqlType:
    return array_of(_TYPES[word.removesuffix("[]")]) if word.endswith("[]") else _TYPES[word]


def _view(
    name: str, fill: Callable[[Facts], Iterable[Mapping[str, Any]]], columns: str, *, lasting: bool = True
) -> SystemView:
    """A view whose columns are given as `name type, ...`; those without a type are text."""
    words = (column.split() for column in columns.split(","))
    listed = tuple(Column(each[0], _type(" ".join(each[1:]))) for each in words)

    def rows(facts: Facts) -> Rows:
        return [tuple(row.get(column.name) for column in listed) for row in fill(facts)]

    return SystemView(SCHEMA, name, listed, rows, next(_next_oid), lasting)


VIEWS = (
    _view(
        "rw_tables",
        rows_of.tables,
        """
        id int, name, schema_id int, owner int, definition, append_only bool, refreshable bool, acl text[],
        initialized_at timestamptz, created_at timestamptz, initialized_at_cluster_version,
        created_at_cluster_version
        """,
    ),
    _view(
        "rw_materialized_views",
        rows_of.materialized_views,
        """
        id int, name, schema_id int, schema_name, owner int, definition, append_only bool, acl text[],
        initialized_at timestamptz, created_at timestamptz, initialized_at_cluster_version,
        created_at_cluster_version, background_ddl bool, status
        """,
    ),
    _view(
        "rw_sources",
        rows_of.sources,
        """
        id int, name, schema_id int, owner int, connector, columns text[], format, row_encode, append_only bool,
        associated_table_id int, connection_id int, definition, acl text[], initialized_at timestamptz,
        created_at timestamptz, initialized_at_cluster_version, created_at_cluster_version, is_shared bool,
        connector_props jsonb, format_encode_options jsonb
        """,
    ),
    _view(
        "rw_sinks",
        rows_of.sinks,
        """
        id int, name, schema_id int, owner int, connector, sink_type, connection_id int, definition,
        target_table_name, acl text[], initialized_at timestamptz, created_at timestamptz,
        initialized_at_cluster_version, created_at_cluster_version, background_ddl bool, connector_props jsonb,
        format_encode_options jsonb
        """,
    ),
    _view(
        "rw_indexes",
        rows_of.indexes,
        """
        id int, name, primary_table_id int, key_columns smallint[], include_columns smallint[], schema_id int,
        owner int, definition, acl text[], initialized_at timestamptz, created_at timestamptz,
        initialized_at_cluster_version, created_at_cluster_version, background_ddl bool
        """,
    ),
    _view(
        "rw_views",
        rows_of.views,
        """
        id int, name, schema_id int, owner int, definition, acl text[], created_at timestamptz,
        created_at_cluster_version
        """,
    ),
    _view(
        "rw_subscriptions",
        rows_of.subscriptions,
        """
        id int, name, schema_id int, schema_name, owner int, definition, retention_seconds bigint, acl text[],
        initialized_at timestamptz, created_at timestamptz, initialized_at_cluster_version,
        created_at_cluster_version
        """,
    ),
    _view(
        "rw_functions",
        rows_of.functions,
        """
        id int, name, schema_id int, owner int, type, arg_type_ids int[], return_type_id int, language, link, acl
        text[], always_retry_on_network_error bool, created_at timestamptz, created_at_cluster_version
        """,
    ),
    _view(
        "rw_internal_tables",
        rows_of.internal_tables,
        """
        id int, name, schema_id int, job_id int, owner int, definition, acl text[], initialized_at timestamptz,
        created_at timestamptz, initialized_at_cluster_version, created_at_cluster_version
        """,
    ),
    _view(
        "rw_relations",
        rows_of.relations,
        """
        id int, name, relation_type, schema_id int, owner int, definition, acl text[]
        """,
    ),
    _view(
        "rw_columns",
        rows_of.column_rows,
        """
        relation_id int, name, position int, is_hidden bool, is_primary_key bool, is_distribution_key bool,
        is_generated bool, is_nullable bool, generation_expression, data_type, type_oid int, type_len smallint,
        udt_type
        """,
    ),
    _view("rw_depend", rows_of.depend, "objid int, refobjid int"),
    _view("rw_schemas", rows_of.schemas, "id int, name, owner int, acl text[]"),
    _view(
        "rw_databases",
        rows_of.databases,
        """
        id int, name, owner int, acl text[], resource_group, barrier_interval_ms int, checkpoint_frequency bigint
        """,
    ),
    _view(
        "rw_users",
        rows_of.users,
        """
        id int, name, is_super bool, create_db bool, create_user bool, can_login bool, is_admin bool
        """,
    ),
    _view("rw_description", rows_of.description, "objoid int, classoid int, objsubid int, description"),
    _view("rw_types", rows_of.types, "id int, name, input_oid, typelem int, typarray int"),
    _view("rw_system_parameters", rows_of.system_parameters, "name, value", lasting=False),
    _view(
        "rw_ddl_progress",
        rows_of.ddl_progress,
        """
        ddl_id bigint, ddl_statement, create_type, progress, initialized_at timestamptz, is_serverless_backfill
        bool, backfill_type
        """,
        lasting=False,
    ),
    _view(
        "rw_fragment_backfill_progress",
        rows_of.backfill_progress,
        "job_id int, fragment_id int, job_name, upstream_table_name, progress",
        lasting=False,
    ),
    _view(
        "rw_fragments",
        rows_of.fragments,
        """
        fragment_id int, table_id int, distribution_type, state_table_ids int[], upstream_fragment_ids int[],
        flags text[], parallelism int, max_parallelism int, parallelism_policy
        """,
    ),
    _view(
        "rw_fragment_id_to_ddl",
        rows_of.fragment_definitions,
        "fragment_id int, job_id int, schema_id int, ddl_type, name",
    ),
    _view(
        "rw_streaming_jobs",
        rows_of.jobs,
        """
        id int, name, database_id int, status, parallelism, max_parallelism int, resource_group
        """,
    ),
    _view(
        "rw_table_stats",
        rows_of.table_stats,
        """
        id int, total_key_count bigint, total_key_size bigint, total_value_size bigint
        """,
        lasting=False,
    ),
    _view(
        "rw_event_logs", rows_of.event_logs, "unique_id, timestamp timestamptz, event_type, info jsonb", lasting=False
    ),
    _view(
        "rw_recovery_info",
        rows_of.recovery_info,
        """
        database_id int, database_name, recovery_state, last_database_event, last_global_event, in_global_running
        bool, in_global_recovering bool
        """,
        lasting=False,
    ),
    _view(
        "rw_refresh_history",
        rows_of.refresh_history,
        "job_id int, job_name, epoch bigint, choice, reason, info jsonb",
        lasting=False,
    ),
    _view(
        "rw_refresh_table_state",
        rows_of.none,
        """
        table_id int, current_status, last_trigger_time, last_success_time, trigger_interval_secs bigint
        """,
    ),
    _view(
        "rw_meta_snapshot",
        rows_of.none,
        """
        meta_snapshot_id bigint, hummock_version_id bigint, remarks, state_table_info jsonb, rw_version
        """,
    ),
    _view(
        "rw_backfill_info",
        rows_of.none,
        """
        job_id int, fragment_id int, backfill_state_table_id int, backfill_target_relation_id int, backfill_type,
        backfill_epoch bigint
        """,
    ),
    _view(
        "rw_cdc_progress",
        rows_of.none,
        """
        job_id int, split_total_count bigint, split_backfilled_count bigint, split_completed_count bigint
        """,
    ),
    _view(
        "rw_connections",
        rows_of.none,
        """
        id int, name, schema_id int, owner int, type_, provider, acl text[], connection_params
        """,
    ),
    _view("rw_secrets", rows_of.secrets, "id int, schema_id int, name, owner int, acl text[]"),
    _view(
        "rw_rate_limit",
        rows_of.rate_limits,
        """
        fragment_id int, fragment_type text[], node_name, table_id int, rate_limit int
        """,
        lasting=False,
    ),
    _view("rw_streaming_job_config", rows_of.job_config, "id int, name, key, value"),
    _view(
        "rw_batch_refresh_jobs",
        rows_of.batch_refresh_jobs,
        """
        id int, name, interval_sec, cron, state, committed_epoch bigint, lag_ms bigint, runs bigint,
        rows_changed bigint, last_error
        """,
        lasting=False,
    ),
    _view(
        "rw_fragment_parallelism",
        rows_of.fragment_parallelism,
        """
        id int, name, relation_type, fragment_id int, distribution_type, state_table_ids int[],
        upstream_fragment_ids int[], flags text[], parallelism int
        """,
    ),
    _view(
        "rw_table_fragments",
        rows_of.table_fragments,
        "table_id int, status, parallelism, max_parallelism int",
    ),
    _view(
        "rw_streaming_parallelism",
        rows_of.streaming_parallelism,
        "id int, name, relation_type, parallelism, max_parallelism int",
    ),
)
