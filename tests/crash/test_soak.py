"""The soak, short, as a part of `make test-kills`: `make soak` takes half an hour."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.soak import Soak
from tests.servers import running_server

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.kills]


@pytest.mark.timeout(900)  # where little gets done, it waits
def test_mixed_work_with_a_kill_ends_with_views_that_are_right(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        soak = Soak(server, seed=20, least=1)
        soak.run(seconds=0, kills=1)  # as long as it takes that everybody gets something done
    assert soak.done["kill"] == 1
    assert min(soak.done[name] for name in ("write", "read", "define", "visit")) > 0, soak.done
