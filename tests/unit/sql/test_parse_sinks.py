"""CREATE SINK and ALTER SINK, as users write them."""

from __future__ import annotations

import pytest

from seiche.errors import FeatureNotSupported, SyntaxError_
from seiche.sql import statements as ast
from seiche.sql.parse import parse
from seiche.sql.rename import with_own_name


def one(text: str) -> ast.CreateSink:
    (parsed,) = parse(text)
    assert isinstance(parsed.statement, ast.CreateSink)
    return parsed.statement


def test_a_sink_of_a_relation_follows_all_of_it() -> None:
    sink = one("CREATE SINK IF NOT EXISTS port.gone FROM north.ships WITH (connector = 'blackhole', type = 'upsert',)")
    assert (sink.name.parts, sink.if_not_exists, sink.into) == (("port", "gone"), True, None)
    assert sink.query.tree.sql() == "SELECT * FROM north.ships"
    assert sink.options == (("connector", "blackhole"), ("type", "upsert"))


def test_a_sink_of_a_query_ends_before_its_options() -> None:
    sink = one(
        "create sink s into berths(id, ships) as with a as (select * from arrivals) select format, count(*) from a"
        " group by format emit on window close with (ignore_delete = true)"
    )
    assert sink.into == ast.ObjectName(("berths",))
    assert sink.into_columns == ("id", "ships")
    assert sink.query.text.endswith("group by format")
    assert sink.emit_on_window_close


def test_a_sink_takes_another_name() -> None:
    assert with_own_name("CREATE SINK a.s FROM t WITH (connector = 'x')", "b") == (
        "CREATE SINK a.b FROM t WITH (connector = 'x')"
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("CREATE SINK s", SyntaxError_),
        ("CREATE SINK s FROM a, b WITH (connector = 'blackhole')", SyntaxError_),
        ("CREATE SINK s FROM a WHERE true", SyntaxError_),
        ("CREATE SINK s INTO t FROM a FORMAT PLAIN ENCODE JSON", FeatureNotSupported),
        ("CREATE SINK s AS SELECT 1 AS a WITH (connector = 'kafka') FORMAT UPSERT ENCODE JSON", FeatureNotSupported),
    ],
)
def test_what_is_no_sink_is_refused(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse(text)
