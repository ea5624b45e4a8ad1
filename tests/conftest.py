"""What all tests share: nothing of the person who runs them leaks in, and nothing of the tests leaks out."""

from __future__ import annotations

import os

import pytest

# The JVM of a run serves every test in it, whichever starts it: what one of them asks for comes too late.
os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 3g pyspark-shell")


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEICHE_* of the developer's shell would change what the tests see. Switches of the tests themselves stay."""
    for name in os.environ:
        if name.startswith("SEICHE_") and not name.startswith("SEICHE_TEST_"):
            monkeypatch.delenv(name)
