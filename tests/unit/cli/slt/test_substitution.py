from __future__ import annotations

import pytest

from seiche.cli.slt.substitution import substitute
from seiche.errors import InvalidParameter

VALUES = {"ship": "Aurora", "BERTH_2": "north"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nothing", "nothing"),
        ("'$ship' at $BERTH_2.", "'Aurora' at north."),
        ("${ship}s", "Auroras"),
        ("${tide:low}", "low"),
        ("${ship:none}", "Aurora"),
        ("${tide:${flood:${ship}!}}", "Aurora!"),
        (r"\$ship costs \\", r"$ship costs " + "\\"),
        (r"a\d", r"a\d"),
    ],
)
def test_variables_are_replaced_by_their_values(text: str, expected: str) -> None:
    assert substitute(text, VALUES) == expected


@pytest.mark.parametrize("text", ["$tide", "${tide}", "${ship", "$ 5", "${1x}"])
def test_what_has_no_value_is_an_error(text: str) -> None:
    with pytest.raises(InvalidParameter):
        substitute(text, VALUES)
