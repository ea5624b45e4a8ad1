"""CREATE FUNCTION: one of a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from seiche import errors
from tests.unit.session.port import open_port


def test_a_function_that_is_there_already_is_told_with_its_parameters(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        port.execute("CREATE FUNCTION draught(depth int, tide int) RETURNS int LANGUAGE sql AS 'SELECT depth + tide'")
        with pytest.raises(errors.DuplicateObject, match='function "draught" already exists') as caught:
            port.execute("CREATE FUNCTION draught(int) RETURNS int LANGUAGE sql AS 'SELECT $1'")
        assert caught.value.detail == "In the catalog: function named draught(integer,integer) already exists."
        (result,) = port.execute("CREATE FUNCTION IF NOT EXISTS draught(int) RETURNS int LANGUAGE sql AS 'SELECT $1'")
        assert result.notices == ('function "draught" already exists, skipping',)
        port.execute("CREATE OR REPLACE FUNCTION draught(int) RETURNS int LANGUAGE sql AS 'SELECT $1'")
