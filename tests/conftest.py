"""What all tests share: nothing of the person who runs them leaks in, and nothing of the tests leaks out."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# The JVM of a run serves every test in it, whichever starts it: what one of them asks for comes too late.
os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 3g pyspark-shell")

# Of every JVM of the tests, servers' too. None of them lives long enough for what Java's second compiler makes to pay
# for making it: without it the same tests take 40 % less of the processor.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")

# A test that waits for the disk of a busy machine is not wrong: Hypothesis would say so after 0.2 s.
settings.register_profile("unhurried", parent=settings(), deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEICHE_* of the developer's shell would change what the tests see. Switches of the tests themselves stay."""
    for name in os.environ:
        if name.startswith("SEICHE_") and not name.startswith("SEICHE_TEST_"):
            monkeypatch.delenv(name)
