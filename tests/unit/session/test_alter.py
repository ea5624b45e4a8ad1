"""ALTER of materialized views, as far as it touches no rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from seiche.errors import FeatureNotSupported, SyntaxError_, UndefinedTable
from tests.unit.session.port import open_port


def test_a_materialized_view_keeps_its_query(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        port.execute(
            """
            CREATE TABLE ships (id int PRIMARY KEY, tons int);
            CREATE MATERIALIZED VIEW heavy AS SELECT id FROM ships WHERE tons > 10;
            CREATE MATERIALIZED VIEW hourly WITH (refresh.interval.sec = 3600) AS SELECT id FROM ships;
            """
        )
        before = port.database.catalog
        with pytest.raises(FeatureNotSupported) as caught:
            port.execute("ALTER MATERIALIZED VIEW heavy AS SELECT id FROM ships WHERE tons > 5")
        assert caught.value.hint is not None and "SWAP WITH" in caught.value.hint
        with pytest.raises(FeatureNotSupported, match="not supported for batch refresh materialized views"):
            port.execute("ALTER MATERIALIZED VIEW hourly AS SELECT id FROM ships WHERE tons > 5")
        with pytest.raises(UndefinedTable):
            port.execute("ALTER MATERIALIZED VIEW light AS SELECT 1")
        with pytest.raises(SyntaxError_):
            port.execute("ALTER MATERIALIZED VIEW heavy AS ships")
        assert port.database.catalog == before
