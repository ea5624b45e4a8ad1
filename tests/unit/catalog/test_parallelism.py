"""What users write about tasks, and the number it stands for."""

from __future__ import annotations

import pytest

from seiche.catalog.objects import ObjectKind
from seiche.catalog.parallelism import Parallelism, check, given, read_parallelism
from seiche.errors import InvalidParameter


@pytest.mark.parametrize(
    ("text", "canonical", "tasks"),
    [
        ("6", "6", 6),
        ("0", "adaptive", None),
        ("ADAPTIVE", "adaptive", None),
        ("auto", "adaptive", None),
        ("bounded(4)", "bounded(4)", 4),
        ("BOUNDED( 64 )", "bounded(64)", None),
        ("ratio(0.5)", "ratio(0.5)", 4),
        ("ratio(0.01)", "ratio(0.01)", 1),
        ("ratio(1)", "ratio(1)", 8),
    ],
)
def test_each_form_stands_for_a_number_of_tasks_on_eight_cores(text: str, canonical: str, tasks: int | None) -> None:
    found = read_parallelism(text, where="parallelism")
    assert found == Parallelism(canonical)
    assert found.tasks(8) == tasks
    assert found.shown(8) == (tasks or 8)


def test_default_is_for_the_kind_to_decide() -> None:
    assert read_parallelism("DEFAULT", where="parallelism") is None


@pytest.mark.parametrize("text", ["", "-1", "many", "bounded(0)", "bounded()", "ratio(2)", "ratio(0)x", "1.5"])
def test_anything_else_is_refused_with_what_may_be_written(text: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        read_parallelism(text, where="parallelism")
    assert "ADAPTIVE" in (refused.value.hint or "")


def of_session(**values: str) -> dict[str, object]:
    return given(ObjectKind.TABLE, lambda name: values.get(name, "default"))


def test_the_variable_of_a_kind_comes_before_the_one_for_all() -> None:
    assert of_session() == {}
    assert of_session(streaming_parallelism="8") == {"parallelism": "8"}
    assert of_session(streaming_parallelism="8", streaming_parallelism_for_table="6") == {"parallelism": "6"}
    assert of_session(streaming_parallelism="8", streaming_parallelism_for_sink="6") == {"parallelism": "8"}


def test_more_tasks_than_a_job_may_ever_have_are_refused() -> None:
    assert of_session(streaming_max_parallelism="4") == {"max_parallelism": 4}
    with pytest.raises(InvalidParameter, match="specified parallelism 6 should not exceed max parallelism 4"):
        of_session(streaming_max_parallelism="4", streaming_parallelism="6")
    with pytest.raises(InvalidParameter, match="should not exceed max parallelism 256"):
        check(Parallelism("300"), {})
    check(Parallelism("adaptive"), {"max_parallelism": 1})


@pytest.mark.parametrize("most", ["0", "257", "many"])
def test_a_bound_that_cannot_be_is_refused(most: str) -> None:
    with pytest.raises(InvalidParameter, match="streaming_max_parallelism"):
        of_session(streaming_max_parallelism=most)
