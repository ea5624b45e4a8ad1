from __future__ import annotations

import os
from pathlib import Path

import pytest

from seiche.config import Config
from tests.servers import HarbourServer, below

pytestmark = pytest.mark.spark


def test_the_java_of_a_server_steps_back_for_its_python(server: HarbourServer) -> None:
    (java,) = (each for each in below(server.pid) if Path(f"/proc/{each}/exe").resolve().name == "java")
    threads = [int(each) for each in os.listdir(f"/proc/{java}/task")]
    here = os.getpriority(os.PRIO_PROCESS, server.pid)
    assert {os.getpriority(os.PRIO_PROCESS, each) - here for each in threads} == {Config().spark_niceness}
