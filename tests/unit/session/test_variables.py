"""Session variables: defaults, aliases, checks."""

from __future__ import annotations

import pytest

from seiche.errors import InvalidParameter, UndefinedObject
from seiche.session.variables import VARIABLES, Variables, find


def test_a_variable_has_its_default_until_it_is_set() -> None:
    variables = Variables()
    assert variables.get("timezone") == "UTC"
    assert variables.with_value("timezone", "Europe/Oslo").get("timezone") == "Europe/Oslo"


def test_setting_gives_new_values_and_leaves_the_old_ones() -> None:
    before = Variables()
    after = before.with_value("application_name", "tides")
    assert before.get("application_name") == ""
    assert after.get("application_name") == "tides"


def test_none_returns_a_variable_to_its_default() -> None:
    changed = Variables().with_value("statement_timeout", "5000")
    assert changed.integer("statement_timeout") == 5000
    assert changed.shown("statement_timeout") == "5000ms"
    assert changed.with_value("statement_timeout", None).integer("statement_timeout") == 0


@pytest.mark.parametrize("name", ["TIMEZONE", "TimeZone", "time zone", "TIME ZONE"])
def test_names_are_folded_and_have_aliases(name: str) -> None:
    assert find(name).name == "timezone"


@pytest.mark.parametrize(
    ("text", "value"),
    [("on", True), ("TRUE", True), ("1", True), ("t", True), ("yes", True), ("Off", False), ("0", False), ("n", False)],
)
def test_a_boolean_is_understood_in_every_spelling(text: str, value: bool) -> None:
    assert Variables().with_value("rw_implicit_flush", text).is_on("rw_implicit_flush") is value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rw_implicit_flush", "maybe"),
        ("statement_timeout", "soon"),
        ("statement_timeout", ""),
        ("statement_timeout", "--5"),
        ("timezone", "Europe/Atlantis"),
        ("backfill_rate_limit", "slowly"),
        ("backfill_rate_limit", "-5"),
        ("streaming_parallelism", "many"),
        ("streaming_parallelism_for_backfill", "bounded(0)"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidParameter, match=name):
        Variables().with_value(name, value)


@pytest.mark.parametrize(
    "name",
    [
        "background_ddl",
        "streaming_enable_delta_join",
        "streaming_use_snapshot_backfill",
        "unsafe_enable_storage_retention_for_non_append_only_tables",
    ],
)
def test_what_has_an_effect_is_on_in_every_spelling_and_told_so(name: str) -> None:
    assert Variables().with_value(name, "on").is_on(name)
    assert "without an effect" not in find(name).meaning


@pytest.mark.parametrize("value", ["default", "DEFAULT", "-1", "0", "500"])
def test_every_limit_of_a_backfill_may_be_set(value: str) -> None:
    assert Variables().with_value("backfill_rate_limit", value).get("backfill_rate_limit") == value.lower()


@pytest.mark.parametrize("text", ["europe/oslo", "EUROPE/OSLO"])
def test_a_time_zone_is_kept_as_it_is_spelled_officially(text: str) -> None:
    assert Variables().with_value("timezone", text).get("timezone") == "Europe/Oslo"


def test_a_mistyped_time_zone_suggests_one_as_it_is_spelled() -> None:
    with pytest.raises(InvalidParameter) as caught:
        Variables().with_value("timezone", "Europe/Osslo")
    assert caught.value.hint == 'Perhaps you meant "Europe/Oslo".'


def test_what_describes_the_server_cannot_be_changed() -> None:
    for name in ("server_version", "server_encoding", "database"):
        with pytest.raises(InvalidParameter, match="cannot be changed"):
            Variables().with_value(name, "x")


def test_an_unknown_variable_suggests_the_nearest_or_where_to_look() -> None:
    with pytest.raises(UndefinedObject) as near:
        find("statement_timeot")
    assert near.value.hint == 'Perhaps you meant "statement_timeout".'
    with pytest.raises(UndefinedObject) as far:
        find("zzz")
    assert far.value.hint == "SHOW ALL lists the parameters of a session."


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('"$user", public', ("public",)),
        ("north, public", ("north", "public")),
        ('"North"', ("North",)),
        ("", ("public",)),
        ('"$user"', ("public",)),
    ],
)
def test_the_search_path_is_a_list_without_the_user(text: str, path: tuple[str, ...]) -> None:
    assert Variables().with_value("search_path", text).search_path == path


def test_every_default_passes_its_own_check() -> None:
    for variable in VARIABLES.values():
        assert variable.check(variable.default) == variable.default
        assert variable.meaning


@pytest.mark.parametrize("name", ["rw_implicit_flush", "RW_IMPLICIT_FLUSH", "implicit_flush"])
def test_names_of_risingwave_are_known_with_and_without_their_prefix(name: str) -> None:
    assert Variables().with_value(name, "on").is_on("rw_implicit_flush")
    assert find("rw_streaming_enable_delta_join") is find("streaming_enable_delta_join")


@pytest.mark.parametrize(("text", "value"), [("250", 250), ("250ms", 250), ("2s", 2000), ("1.5 min", 90_000)])
def test_a_timeout_has_a_unit_or_counts_milliseconds(text: str, value: int) -> None:
    assert Variables().with_value("statement_timeout", text).integer("statement_timeout") == value


def test_a_timeout_of_an_unknown_unit_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="statement_timeout") as refused:
        Variables().with_value("statement_timeout", "2 tides")
    assert "min" in (refused.value.hint or "")


def test_forcing_two_phases_enables_them() -> None:
    forced = Variables().with_value("enable_two_phase_agg", "false").with_value("rw_force_two_phase_agg", "true")
    assert forced.get("enable_two_phase_agg") == "true"
    assert forced.with_value("enable_two_phase_agg", "false").get("force_two_phase_agg") == "false"


def test_what_cannot_be_changed_may_be_set_to_what_it_is() -> None:
    assert Variables().with_value("database", "dev").get("database") == "dev"
    with pytest.raises(InvalidParameter, match="cannot be changed"):
        Variables().with_value("database", None)


def test_temporary_tables_come_first_in_the_search_path_unless_it_names_them() -> None:
    variables = Variables(temporary="pg_temp_7")
    assert variables.search_path == ("pg_temp_7", "public")
    written = variables.with_value("search_path", "north, pg_temp")
    assert written.search_path == ("north", "pg_temp_7")
    assert written.lasting_path == ("north",)
    assert written.reset() == variables


@pytest.mark.parametrize(
    ("name", "given", "shown"),
    [
        ("client_encoding", "utf-8", "UTF8"),
        ("client_encoding", "Unicode", "UTF8"),
        ("client_encoding", "SQL_ASCII", "SQL_ASCII"),
        ("datestyle", "iso", "ISO, MDY"),
        ("datestyle", "ISO, DMY", "ISO, DMY"),
        ("datestyle", "european", "ISO, DMY"),
        ("intervalstyle", "POSTGRES", "postgres"),
        ("standard_conforming_strings", "true", "on"),
        ("client_min_messages", "WARNING", "warning"),
    ],
)
def test_what_clients_rely_on_is_accepted_where_it_is_true(name: str, given: str, shown: str) -> None:
    assert Variables().with_value(name, given).get(name) == shown


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("client_encoding", "latin1"),
        ("datestyle", "German"),
        ("datestyle", "SQL, DMY"),
        ("datestyle", "tidal"),
        ("intervalstyle", "iso_8601"),
        ("standard_conforming_strings", "off"),
        ("client_min_messages", "loud"),
        ("statement_timeout", "-1"),
        ("statement_timeout", "30d"),
    ],
)
def test_what_would_mislead_clients_is_refused(name: str, given: str) -> None:
    with pytest.raises(InvalidParameter):
        Variables().with_value(name, given)


def test_notices_are_wanted_up_to_their_level() -> None:
    assert Variables().wants_notices
    assert Variables().with_value("client_min_messages", "debug1").wants_notices
    assert not Variables().with_value("client_min_messages", "warning").wants_notices
