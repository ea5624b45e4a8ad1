"""ALTER SYSTEM SET of what a session can set too."""

from __future__ import annotations

from pathlib import Path

import pytest

from seiche.errors import InvalidParameter, UndefinedObject
from seiche.session.run import Session
from tests.unit.session.port import open_port


def shown(session: Session, name: str) -> str:
    [(value,)] = session.execute(f"SHOW {name}")[0].rows or []
    return str(value)


def test_a_variable_set_for_the_system_is_where_later_sessions_begin_also_after_a_restart(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        before, asking = port.session("root"), port.session("root")
        asking.execute("SET rw_implicit_flush TO false; ALTER SYSTEM SET RW_Implicit_Flush TO on")
        assert shown(asking, "rw_implicit_flush") == "true"
        assert shown(before, "rw_implicit_flush") == "false"
        later = port.session("root")
        assert shown(later, "implicit_flush") == "true"
        later.execute("SET rw_implicit_flush TO off; RESET rw_implicit_flush")
        assert shown(later, "rw_implicit_flush") == "true"
    with open_port(tmp_path) as port:
        assert shown(port.session("root"), "rw_implicit_flush") == "true"
        port.execute("ALTER SYSTEM SET rw_implicit_flush TO DEFAULT")
        assert shown(port.session("root"), "rw_implicit_flush") == "false"
    with open_port(tmp_path) as port:
        assert shown(port.session("root"), "rw_implicit_flush") == "false"


def test_what_neither_the_system_nor_a_session_has_is_refused(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        with pytest.raises(UndefinedObject, match='unrecognized system parameter "tide_table"'):
            port.execute("ALTER SYSTEM SET tide_table TO 7")
        with pytest.raises(InvalidParameter, match="rw_implicit_flush"):
            port.execute("ALTER SYSTEM SET rw_implicit_flush TO ebb")
        assert shown(port.session("root"), "rw_implicit_flush") == "false"


def test_a_connection_that_does_not_exist_cannot_be_chosen(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        with pytest.raises(UndefinedObject, match='connection "quay.lake" does not exist'):
            port.execute("SET iceberg_engine_connection = 'quay.lake'")
        port.execute("SET iceberg_engine_connection = ''")
