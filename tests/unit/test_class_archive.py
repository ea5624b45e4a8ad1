from __future__ import annotations

import os
from pathlib import Path

import pytest

from seiche import class_archive


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str]:
    """A Java and a Spark of their own."""
    for file in ("java/bin/java", "java/lib/server/libjvm.so", "spark/jars/spark-sql.jar", "spark/jars/parquet.jar"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(file)
    return {"JAVA_HOME": str(tmp_path / "java"), "SPARK_HOME": str(tmp_path / "spark")}


def test_the_same_java_and_spark_have_the_same_archive(surroundings: dict[str, str], tmp_path: Path) -> None:
    first = class_archive.fitting(surroundings, tmp_path)
    assert first is not None
    assert first == class_archive.fitting(surroundings, tmp_path)


@pytest.mark.parametrize("file", ["java/lib/server/libjvm.so", "spark/jars/parquet.jar", "spark/jars/new.jar"])
def test_an_archive_does_not_fit_what_was_replaced_after_it(
    surroundings: dict[str, str], tmp_path: Path, file: str
) -> None:
    before = class_archive.fitting(surroundings, tmp_path)
    (tmp_path / file).write_text("replaced")
    os.utime(tmp_path / file, (1, 1))
    assert class_archive.fitting(surroundings, tmp_path) != before


@pytest.mark.parametrize("missing", ["JAVA_HOME", "SPARK_HOME"])
def test_without_java_or_spark_there_is_none(surroundings: dict[str, str], tmp_path: Path, missing: str) -> None:
    assert class_archive.fitting({**surroundings, missing: str(tmp_path / "elsewhere")}, tmp_path) is None


def test_java_is_told_of_an_archive_only_when_it_is_there(
    surroundings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)
    assert class_archive.java_options(tmp_path) == ()
    archive = class_archive.fitting(os.environ, tmp_path)
    assert archive is not None
    archive.touch()
    assert class_archive.java_options(tmp_path) == (f'"-XX:SharedArchiveFile={archive}"', "-Xlog:cds*=off")
