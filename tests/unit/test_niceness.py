from __future__ import annotations

import os
import subprocess
import sys

import pytest

from seiche import niceness

STARTS_THREADS = """
import threading, time
threads = [threading.Thread(target=time.sleep, args=(60,), daemon=True) for _ in range(3)]
[each.start() for each in threads]
print("running", flush=True)
input()
later = threading.Thread(target=time.sleep, args=(60,), daemon=True)
later.start()
print("more", flush=True)
input()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads have a niceness of their own on Linux alone")
def test_all_threads_of_a_process_step_back_and_those_they_start() -> None:
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    with subprocess.Popen(
        [sys.executable, "-c", STARTS_THREADS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        niceness.step_back(process.pid, 5)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "more\n"
        threads = [int(each) for each in os.listdir(f"/proc/{process.pid}/task")]
        found = {os.getpriority(os.PRIO_PROCESS, each) for each in threads}
        process.kill()
    assert len(threads) == 5
    assert found == {min(ours + 5, niceness.LARGEST)}
    assert os.getpriority(os.PRIO_PROCESS, 0) == ours
