"""Session variables: their names, defaults and what may be set.

Names and defaults are PostgreSQL's and RisingWave's; those without an effect here are accepted so that drivers
and scripts work unchanged.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from seiche.catalog.objects import DEFAULT_DATABASE
from seiche.catalog.parallelism import read_parallelism
from seiche.catalog.temporary import ALIAS as TEMPORARY
from seiche.errors import InvalidParameter, UndefinedObject, nearest
from seiche.stream.backfill.rate_limit import rate_of

# As PostgreSQL reads them: a word may be cut short where it stays clear.
_BOOLEANS = {
    **dict.fromkeys(("true", "tru", "tr", "t", "on", "yes", "ye", "y", "1"), "true"),
    **dict.fromkeys(("false", "fals", "fal", "fa", "f", "off", "of", "no", "n", "0"), "false"),
}
DATABASE = "database"  # set by SET alone, which looks whether it is there
_MILLISECONDS_MAX = 2**31 - 1
_MILLISECONDS = {"": 1, "ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    default: str
    meaning: str
    kind: str = "text"  # text | boolean | integer | milliseconds | timezone | connection | rate | tasks, or one below
    read_only: bool = False

    def check(self, value: str) -> str:
        """The value in its canonical form."""
        match self.kind:
            case "boolean":
                if value.lower() not in _BOOLEANS:
                    raise InvalidParameter(
                        f'parameter "{self.name}" requires a Boolean value', hint="Write true or false."
                    )
                return _BOOLEANS[value.lower()]
            case "integer":
                if not value.removeprefix("-").isdecimal():
                    raise InvalidParameter(f'invalid value for parameter "{self.name}": "{value}"')
                return str(int(value))
            case "milliseconds":
                return str(_milliseconds(self.name, value))
            case "timezone":
                return _timezone(value)
            case "encoding":
                return _encoding(value)
            case "datestyle":
                return _datestyle(value)
            case "level":
                if value.lower() not in _LEVELS:
                    raise InvalidParameter(
                        f'invalid value for parameter "{self.name}": "{value}"',
                        hint=f"Available values: {', '.join(_LEVELS)}.",
                    )
                return value.lower()
            case "fixed":
                # Clients read what they get, and spell what they send, by these.
                if (_BOOLEANS.get(value.lower()) or value.lower()) not in (self.default, _BOOLEANS.get(self.default)):
                    raise InvalidParameter(
                        f'invalid value for parameter "{self.name}": "{value}"', hint=f"It is always {self.default}."
                    )
                return self.default
            case "rate":
                rate_of(value, where=self.name)
                return value.lower()
            case "tasks":
                read_parallelism(value, where=self.name)
                return value
            case "connection" if value:
                raise UndefinedObject(
                    f'connection "{value}" does not exist', detail=f"Catalog error: connection not found: {value}."
                )
            case _:
                return value


_LEVELS = ("debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "notice", "warning", "error")


def _encoding(value: str) -> str:
    """UTF-8 under one of its names, or that of text which nobody converts."""
    folded = re.sub(r"[^a-z0-9]", "", value.lower())
    if folded in ("utf8", "unicode"):
        return "UTF8"
    if folded == "sqlascii":
        return "SQL_ASCII"
    raise InvalidParameter(
        f'invalid value for parameter "client_encoding": "{value}"', detail="Text is sent and read as UTF8 only."
    )


_ORDERS = {
    **dict.fromkeys(("mdy", "us", "noneuro", "noneuropean"), "MDY"),
    **dict.fromkeys(("dmy", "euro", "european"), "DMY"),
    "ymd": "YMD",
}


def _datestyle(value: str) -> str:
    """The style ISO, with an order of the parts of a date, which ISO does not need."""
    order = "MDY"
    for word in (part.strip().lower() for part in value.split(",")):
        if word in _ORDERS:
            order = _ORDERS[word]
        elif word != "iso":
            known = word in ("sql", "postgres", "german")
            raise InvalidParameter(
                f'invalid value for parameter "datestyle": "{value}"',
                detail="Dates are written in the style ISO only." if known else f'Unrecognized key word: "{word}".',
            )
    return f"ISO, {order}"


def _milliseconds(name: str, value: str) -> int:
    """A span of time as PostgreSQL's parameters spell it: a number, with a unit or in milliseconds."""
    found = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*([a-z]*)\s*", value)
    if found is None or found[2] not in _MILLISECONDS:
        raise InvalidParameter(
            f'invalid value for parameter "{name}": "{value}"',
            hint='Valid units for this parameter are "ms", "s", "min", "h", and "d".',
        )
    number = round(float(found[1]) * _MILLISECONDS[found[2]])
    if not 0 <= number <= _MILLISECONDS_MAX:
        raise InvalidParameter(
            f'{number} ms is outside the valid range for parameter "{name}" (0 ms .. {_MILLISECONDS_MAX} ms)'
        )
    return number


_HOURS_EAST = range(-12, 15)  # those of the zones Etc/GMT+12 to Etc/GMT-14


def _hours_east(value: str) -> int | None:
    """Of a zone that is given by its offset in whole hours: a number counts eastwards, `+02:00` westwards as POSIX
    has it."""
    number = re.fullmatch(r"\s*([+-]?\d{1,2})(?:\.0*)?\s*", value)
    posix = re.fullmatch(r"([+-]?\d{1,2}):00(?::00)?", value)
    found = int(number[1]) if number else -int(posix[1]) if posix else None
    return found if found in _HOURS_EAST else None


def _timezone(value: str) -> str:
    if value.lower() in ("utc", "z"):
        return "UTC"
    east = _hours_east(value)
    if east is not None:
        return f"Etc/GMT{-east:+d}" if east else "UTC"
    by_folded = {name.lower(): name for name in zoneinfo.available_timezones()}
    if value.lower() not in by_folded:
        raise InvalidParameter(
            f'invalid value for parameter "timezone": "{value}"',
            detail="Invalid value: there is no time zone of that name.",
            hint=nearest(value, by_folded.values()),
        )
    return by_folded[value.lower()]


VARIABLES = MappingProxyType(
    {
        each.name: each
        for each in (
            Variable("application_name", "", "what the client calls itself"),
            Variable("background_ddl", "false", "CREATE MATERIALIZED VIEW returns before the view is built", "boolean"),
            Variable(
                "backfill_rate_limit",
                "default",
                "rows a second that a new view reads of its inputs' history; 0 pauses, -1 does not limit",
                "rate",
            ),
            Variable("batch_expr_strict_mode", "true", "off: a failing expression of a query gives NULL", "boolean"),
            Variable("block_size", "8192", "bytes that sizes in pages count by", read_only=True),
            Variable("bytea_output", "hex", "text form of bytea"),
            Variable("client_encoding", "UTF8", "encoding of text", "encoding"),
            Variable("client_min_messages", "notice", "least level of messages sent", "level"),
            Variable(DATABASE, DEFAULT_DATABASE, "the database of this session", read_only=True),
            Variable("datestyle", "ISO, MDY", "text form of dates", "datestyle"),
            Variable("default_table_access_method", "heap", "how tables are kept, to clients that ask", read_only=True),
            Variable("default_transaction_isolation", "read committed", "isolation of new transactions"),
            Variable("default_transaction_read_only", "off", "new transactions only read"),
            Variable("extra_float_digits", "1", "digits of floats", "integer"),
            Variable(
                "iceberg_engine_connection", "", "connection of tables that Iceberg keeps; there are none", "connection"
            ),
            Variable("integer_datetimes", "on", "times are whole microseconds", read_only=True),
            Variable("intervalstyle", "postgres", "text form of intervals", "fixed"),
            Variable("lc_collate", "C.UTF-8", "order of text", read_only=True),
            Variable("lc_ctype", "C.UTF-8", "classes of letters", read_only=True),
            Variable("max_identifier_length", "63", "characters of a name that clients count on", read_only=True),
            Variable("max_index_keys", "32", "columns of a key that clients count on", read_only=True),
            Variable("query_epoch", "0", "read at this committed epoch; 0 is the newest", "integer"),
            Variable("rw_implicit_flush", "false", "every DML statement waits for its views", "boolean"),
            Variable("search_path", '"$user", public', "schemas that names are looked up in"),
            Variable("server_encoding", "UTF8", "encoding of stored text", read_only=True),
            Variable("server_version", "13.14.0", "PostgreSQL version that clients are told", read_only=True),
            Variable("server_version_num", "130014", "the same as a number", read_only=True),
            Variable("standard_conforming_strings", "on", "backslashes in strings are plain", "fixed"),
            Variable("statement_timeout", "0", "time after which a statement is cancelled; 0 never", "milliseconds"),
            Variable(
                "streaming_enable_delta_join",
                "false",
                "a new view holds on to the indexes that serve both sides of its joins",
                "boolean",
            ),
            Variable("streaming_max_parallelism", "default", "most tasks that a new job may ever have"),
            Variable(
                "streaming_parallelism", "default", "tasks of a new job: n, adaptive, bounded(n) or ratio(f)", "tasks"
            ),
            Variable("streaming_parallelism_for_backfill", "default", "tasks of a view while it is created", "tasks"),
            *(
                Variable(f"streaming_parallelism_for_{kind}", "default", "the same, of jobs of this kind", "tasks")
                for kind in ("index", "materialized_view", "sink", "source", "table")
            ),
            Variable(
                "streaming_use_arrangement_backfill",
                "true",
                "without snapshot backfill, views grow inside the main graph; off: only those that exchange no rows",
                "boolean",
            ),
            Variable(
                "streaming_use_snapshot_backfill",
                "true",
                "new views are built beside the main graph from a pinned snapshot",
                "boolean",
            ),
            Variable("timezone", "UTC", "time zone of this session", "timezone"),
            Variable("transaction_isolation", "read committed", "isolation of transactions"),
            Variable(
                "unsafe_enable_storage_retention_for_non_append_only_tables",
                "false",
                "tables whose rows may change may be given a retention",
                "boolean",
            ),
            Variable("visibility_mode", "default", "which epoch queries read"),
        )
    }
)

# Accepted so that drivers, pools and scripts run unchanged; nothing here depends on them.
_ACCEPTED = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "datafusion_prefer_hash_join", "enable_mv_selection", "enable_serverless_backfill",
                "streaming_unsafe_allow_upsert_sink_pk_mismatch",
                "batch_enable_distributed_dml", "batch_enable_lookup_join", "batch_enable_sort_agg",
                "bypass_cluster_limits", "create_compaction_group_for_mv", "disable_purify_definition",
                "dml_wait_persistence", "enable_datafusion_engine", "enable_index_selection",
                "enable_join_ordering", "enable_locality_backfill", "enable_share_plan",
                "force_split_distinct_agg", "force_two_phase_agg", "row_security",
                "streaming_allow_jsonb_in_stream_key", "streaming_enable_bushy_join",
                "streaming_enable_unaligned_join", "streaming_force_filter_inside_join",
                "streaming_separate_consecutive_join",
                "streaming_separate_sink", "streaming_use_arrangement_backfill",
                "streaming_unsafe_allow_unmaterialized_impure_expr", "streaming_use_shared_source",
                "streaming_use_snapshot_backfill", "synchronize_seqscans",
                "upsert_dml",
            ),
            "false",
        ),
        **dict.fromkeys(
            (
                "dml_rate_limit", "locality_backfill_mode", "sink_decouple", "sink_rate_limit", "source_rate_limit",
                "streaming_cache_refill_policy", "streaming_join_encoding",
                "streaming_parallelism_strategy", "streaming_parallelism_strategy_for_index",
                "streaming_parallelism_strategy_for_materialized_view", "streaming_parallelism_strategy_for_sink",
                "streaming_parallelism_strategy_for_source", "streaming_parallelism_strategy_for_table",
            ),
            "default",
        ),
        **dict.fromkeys(("idle_in_transaction_session_timeout", "lock_timeout", "batch_parallelism"), "0"),
        "auto_locality_backfill_min_size": "0",
        "batch_hnsw_ef_search": "40",
        "cdc_source_wait_streaming_start_timeout": "30",
        "iceberg_query_storage_mode": "auto",
        "slow_ddl_notification_secs": "3600",
        "streaming_asof_join_use_cache": "true",
        "streaming_sync_log_store_buffer_size": "2048",
        "streaming_sync_log_store_pause_duration_ms": "64",
        "check_function_bodies": "on",
        "default_transaction_isolation": "repeatable read",
        "default_transaction_read_only": "off",
        "enable_two_phase_agg": "true",
        "escape_string_warning": "on",
        "integer_datetimes": "on",
        "jit": "off",
        "locality_backfill_mode": "default",
        "max_identifier_length": "63",
        "max_split_range_gap": "8",
        "query_mode": "auto",
        "server_version_num": "130014",
        "streaming_over_window_cache_policy": "full",
        "synchronous_commit": "on",
        "transaction_read_only": "off",
        "xmloption": "content",
    }
)  # fmt: skip

VARIABLES = MappingProxyType(
    {
        **{name: Variable(name, default, "accepted, without an effect here") for name, default in _ACCEPTED.items()},
        **VARIABLES,
    }
)

_ALIASES = {"time zone": "timezone", "time_zone": "timezone"}
_PREFIX = "rw_"  # RisingWave knows many of its variables with it and without it


# What RisingWave sets along with a value.
_IMPLIED: dict[tuple[str, str], dict[str, str]] = {
    ("force_two_phase_agg", "true"): {"enable_two_phase_agg": "true"},
    ("enable_two_phase_agg", "false"): {"force_two_phase_agg": "false"},
}


@dataclass(frozen=True, slots=True)
class Variables:
    """One session's values."""

    values: MappingProxyType[str, str] = field(default_factory=lambda: MappingProxyType({}))
    temporary: str | None = None  # the schema of the session's temporary tables, as soon as there are any
    defaults: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # those of ALTER SYSTEM
    database: str = DEFAULT_DATABASE  # whose names the session knows
    login_database: str = DEFAULT_DATABASE  # where it began

    def get(self, name: str) -> str:
        variable = find(name)
        if variable.name == DATABASE:
            return self.database
        return self.values.get(variable.name, self.default(variable))

    def shown(self, name: str) -> str:
        """As SHOW tells it: a span of time with its unit."""
        value = self.get(name)
        return f"{value}ms" if find(name).kind == "milliseconds" and value != "0" else value

    def default(self, variable: Variable) -> str:
        """What RESET gives."""
        if variable.name == DATABASE:
            return self.login_database
        return self.defaults.get(variable.name, variable.default)

    @property
    def wants_notices(self) -> bool:
        return _LEVELS.index(self.get("client_min_messages")) <= _LEVELS.index("notice")

    def is_on(self, name: str) -> bool:
        return self.get(name) == "true"

    def integer(self, name: str) -> int:
        return int(self.get(name))

    @property
    def search_path(self) -> tuple[str, ...]:
        """Where names are looked up: the temporary tables come first, unless the path says where."""
        path = self._written_path
        if self.temporary is None:
            return path
        if TEMPORARY in path:
            return tuple(self.temporary if part == TEMPORARY else part for part in path)
        return (self.temporary, *path)

    @property
    def lasting_path(self) -> tuple[str, ...]:
        """Where new objects go, and what definitions that outlive the session look names up in."""
        return tuple(part for part in self._written_path if part != TEMPORARY)

    @property
    def _written_path(self) -> tuple[str, ...]:
        parts = (part.strip().strip('"') for part in self.get("search_path").split(","))
        return tuple(part for part in parts if part and part != "$user") or ("public",)

    def reset(self) -> Variables:
        """All of them as they were when the session began."""
        return replace(self, values=MappingProxyType({}), database=self.login_database)

    def beginning_with(self, defaults: Mapping[str, str]) -> Variables:
        """The same values, over other defaults."""
        return replace(self, defaults=defaults)

    def in_database(self, database: str) -> Variables:
        """The same session elsewhere. Whether that is there is asked before."""
        return replace(self, database=database)

    def with_value(self, name: str, value: str | None) -> Variables:
        """The values after SET; None returns a variable to its default."""
        variable = find(name)
        if variable.read_only and value != self.get(name):
            raise InvalidParameter(f'parameter "{variable.name}" cannot be changed')
        changed = dict(self.values)
        if value is None or variable.read_only:
            changed.pop(variable.name, None)
        else:
            changed[variable.name] = variable.check(value)
            changed |= _IMPLIED.get((variable.name, changed[variable.name]), {})
        return replace(self, values=MappingProxyType(changed))


def find(name: str) -> Variable:
    """The variable of that name; RisingWave's own are known with `rw_` before their names and without."""
    folded = _ALIASES.get(name.lower(), name.lower())
    for spelled in (folded, folded.removeprefix(_PREFIX), _PREFIX + folded):
        if spelled in VARIABLES:
            return VARIABLES[spelled]
    raise UndefinedObject(
        f'unrecognized configuration parameter "{name}"',
        hint=nearest(folded, VARIABLES) or "SHOW ALL lists the parameters of a session.",
    )
