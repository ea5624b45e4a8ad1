"""(m) what a process keeps that uses Arrow in many threads, by the allocator that Arrow was told to use.

    python -m benchmarks m

Each allocator has a process of its own: forty threads read, sort and write small Parquet files and rest in between, as
a server's do. Then nothing is in use any more, and what the process still holds is what the allocator keeps.
"""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Finding

THREADS = 40
ROUNDS = 3
SECONDS = 6.0
ROWS = (1_000, 20_000, 100_000)
REST_SECONDS = 0.3  # at most, between two files


def allocators() -> Iterator[Finding]:
    """The allocator that Arrow takes by itself, against the one that `seiche start` chooses."""
    usual, chosen = (_kept(name) for name in ("mimalloc", "system"))
    parts = {
        name: f"{found['kept']} MiB kept, at most {found['used']} MiB in use"
        for name, found in (("mimalloc", usual), ("system", chosen))
    }
    ratio = usual["kept"] / chosen["kept"]
    yield Finding("m", "memory kept by mimalloc, against malloc", ratio, "x", "> 1", ratio > 1, parts)


def _kept(allocator: str) -> dict[str, int]:
    environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": allocator}
    told = subprocess.run(
        [sys.executable, "-m", "benchmarks.allocator_bench"],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, int] = json.loads(told.stdout)
    return found


def main() -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = []
    for count in ROWS:
        table = pa.table({"id": range(count), "name": [f"berth {number % 977} {number}" for number in range(count)]})
        file = io.BytesIO()
        pq.write_table(table, file)
        files.append(file.getvalue())
    before, kept = _resident_mib(), []
    for _ in range(ROUNDS):
        until = time.monotonic() + SECONDS
        threads = [threading.Thread(target=_work, args=(files, until, number)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kept.append(_resident_mib() - before)
    print(json.dumps({"kept": max(kept), "used": pa.default_memory_pool().max_memory() >> 20}))


def _work(files: list[bytes], until: float, seed: int) -> None:
    import pyarrow.parquet as pq

    chance = random.Random(seed)
    while time.monotonic() < until:
        table = pq.read_table(io.BytesIO(chance.choice(files)), use_threads=False)
        pq.write_table(table.sort_by("name"), io.BytesIO())
        time.sleep(chance.random() * REST_SECONDS)


def _resident_mib() -> int:
    """What the process holds now (Linux only)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


if __name__ == "__main__":
    main()
