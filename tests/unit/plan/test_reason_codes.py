"""Every reason for which a view is recomputed has an entry in the documentation, and no entry is left over."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

from seiche.plan import lower
from seiche.plan.reasons import REMEDIES

PAGE = Path(__file__).parents[3] / "docs" / "incremental.md"


def codes_in_the_planner() -> set[str]:
    """The codes that planning can give: first arguments of `NotIncremental` and `Reason`, and the refused clauses."""
    found = {code for code, _ in lower._REFUSED_CLAUSES.values()}
    for path in Path(inspect.getfile(lower)).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id not in ("NotIncremental", "Reason"):
                continue
            match node.args[0]:
                case ast.Constant(value=str(code)):
                    found.add(code)
                case ast.Name(id="code"):  # the loop over the refused clauses, and the exception itself
                    pass
                case other:
                    raise AssertionError(f"a reason code is not a plain text: {ast.unparse(other)}")
    return found


def headings_on_the_page() -> list[str]:
    return re.findall(r"^### `(\w+)`$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_every_reason_code_has_a_heading_and_every_heading_a_code() -> None:
    assert set(headings_on_the_page()) == codes_in_the_planner()


def test_every_reason_code_comes_with_what_to_write_instead() -> None:
    assert set(REMEDIES) == codes_in_the_planner()
    assert all(each.endswith(".") for each in REMEDIES.values())


def test_no_reason_code_has_two_headings() -> None:
    headings = headings_on_the_page()
    assert sorted(headings) == sorted(set(headings))


def test_headings_are_in_alphabetical_order() -> None:
    headings = headings_on_the_page()
    assert headings == sorted(headings)
