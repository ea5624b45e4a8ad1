"""CREATE FUNCTION and DROP FUNCTION: one of a name and of the types of its parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from seiche import errors
from tests.unit.session.port import open_port


def test_a_function_that_is_there_already_is_told_with_its_parameters(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        port.execute("CREATE FUNCTION draught(depth int, tide int) RETURNS int LANGUAGE sql AS 'SELECT depth + tide'")
        with pytest.raises(errors.DuplicateObject, match='function "draught" already exists') as caught:
            port.execute("CREATE FUNCTION draught(int, int) RETURNS int LANGUAGE sql AS 'SELECT $1'")
        assert caught.value.detail == "In the catalog: function named draught(integer,integer) already exists."
        (result,) = port.execute(
            "CREATE FUNCTION IF NOT EXISTS draught(int, int) RETURNS int LANGUAGE sql AS 'SELECT $1'"
        )
        assert result.notices == ('function "draught" already exists, skipping',)
        port.execute("CREATE OR REPLACE FUNCTION draught(int, int) RETURNS int LANGUAGE sql AS 'SELECT $1'")


def test_functions_of_one_name_are_told_apart_by_the_types_of_their_parameters(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        for types in ("", "int", "varchar"):
            port.execute(f"CREATE FUNCTION draught({types}) RETURNS int LANGUAGE sql AS 'SELECT 1'")
        with pytest.raises(errors.AmbiguousFunction, match='function name "draught" is not unique'):
            port.execute("DROP FUNCTION draught")
        with pytest.raises(errors.UndefinedFunction):
            port.execute("DROP FUNCTION draught(date)")
        port.execute("DROP FUNCTION draught(), draught(depth varchar)")
        port.execute("DROP FUNCTION draught")


def test_lengths_and_precisions_do_not_tell_functions_apart(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        port.execute("CREATE FUNCTION draught(a varchar(9), b numeric(5, 2)) RETURNS int LANGUAGE sql AS 'SELECT 1'")
        with pytest.raises(errors.DuplicateObject):
            port.execute("CREATE FUNCTION draught(varchar, numeric) RETURNS int LANGUAGE sql AS 'SELECT 1'")
        port.execute("DROP FUNCTION draught(varchar, numeric(9, 1))")


def test_no_function_has_as_many_parameters_as_an_aggregate_of_its_name(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        port.execute("CREATE FUNCTION heaviest(int, int) RETURNS int LANGUAGE sql AS 'SELECT 1'")
        body = "def create_state(): pass\ndef accumulate(state, a, b): pass\ndef finish(state): pass"
        with pytest.raises(errors.DuplicateObject, match="as many parameters"):
            port.execute(f"CREATE AGGREGATE heaviest(date, date) RETURNS int LANGUAGE python AS $${body}$$")
