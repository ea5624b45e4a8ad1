"""What Spark is started with."""

from __future__ import annotations

import os

import pytest

from seiche.engine import local_places


@pytest.mark.parametrize(
    ("given", "master", "cores"),
    [
        ("local[2]", "local[16]", 2),
        ("local[2,3]", "local[16,3]", 2),
        ("local", "local[8]", 1),
        ("local[32]", "local[96]", 32),
    ],
)
def test_a_local_spark_has_places_beside_long_queries_which_do_not_widen_them(
    given: str, master: str, cores: int
) -> None:
    found, width = local_places(given)
    assert found == master
    assert width["spark.default.parallelism"] == str(cores)


def test_all_cores_are_counted() -> None:
    assert local_places("local[*]") == local_places(f"local[{os.cpu_count()}]")


@pytest.mark.parametrize("master", ["spark://quay:7077", "yarn", "local-cluster[2,1,1024]"])
def test_a_cluster_decides_by_itself(master: str) -> None:
    assert local_places(master) == (master, {})
