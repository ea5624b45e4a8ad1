"""What the catalog keeps of an object beside its definition."""

from __future__ import annotations

from pathlib import Path

import pytest

from seiche.errors import InvalidDefinition
from tests.unit.session.port import open_port


def test_an_object_tells_which_version_made_it(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        port.execute("CREATE TABLE ships (id int PRIMARY KEY); CREATE VIEW fleet AS SELECT id FROM ships")
        made = "created_at_cluster_version = (SELECT version()) AND created_at <= now()"
        assert port.rows(f"SELECT name FROM rw_views WHERE {made}") == [("fleet",)]
        assert port.rows(f"SELECT name FROM rw_tables WHERE {made}") == [("ships",)]


def test_the_plan_of_a_sink_is_told_whatever_takes_its_rows(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        port.execute("CREATE TABLE ships (id int PRIMARY KEY, flag varchar)")
        query = "SELECT flag, count(*) AS n FROM ships GROUP BY flag"
        told = port.rows(f"EXPLAIN CREATE SINK s AS {query} WITH (connector = 'kafka', topic = 'flags')")
        assert told[0] == ("Materialize s",)
        assert port.rows("EXPLAIN CREATE SINK s INTO ships FROM ships")


def test_retention_of_rows_that_may_change_is_refused_and_of_others_said_to_do_nothing(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        with pytest.raises(InvalidDefinition, match="needs an append-only table"):
            port.execute("CREATE TABLE tides (level int) WITH (retention_seconds = 5)")
        (made,) = port.execute("CREATE TABLE tides (level int) APPEND ONLY WITH (retention_seconds = 5)")
        assert "has no effect" in made.notices[0]
        port.execute("SET unsafe_enable_storage_retention_for_non_append_only_tables TO true")
        port.execute("CREATE TABLE ships (id int) WITH (retention_seconds = 5)")
