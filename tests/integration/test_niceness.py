from __future__ import annotations

import os
from contextlib import suppress

import pytest

from seiche.config import Config
from tests.servers import HarbourServer, java_below

pytestmark = pytest.mark.spark


def test_the_java_of_a_server_steps_back_for_its_python(server: HarbourServer) -> None:
    here, found = os.getpriority(os.PRIO_PROCESS, server.pid), set()
    for thread in os.listdir(f"/proc/{java_below(server.pid)}/task"):
        with suppress(ProcessLookupError):  # it has ended
            found.add(os.getpriority(os.PRIO_PROCESS, int(thread)) - here)
    assert found == {Config().spark_niceness}
