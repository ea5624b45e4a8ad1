"""What the catalog keeps of an object beside its definition."""

from __future__ import annotations

from pathlib import Path

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
