"""The engine's process: runs what it is told on standard input, answers on standard output, one JSON a line.

    {"id": 7, "lane": "arriving", "do": "insert", "table": "arrivals", "rows": [...]}   a lane's requests in order,
    {"id": 8, "lane": "check", "do": "query", "sql": "SELECT ..."}                      lanes side by side
        {"id": 8, "value": [[...]]}      {"id": 7, "error": "..."}      {"epoch": {...}} after every epoch

An answer to a write is its acknowledgement: its epoch is durable. The process ends when standard input does.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from pathlib import Path
from typing import Any

import seiche
from seiche.cli.demo.harbour import TABLES, VIEWS
from seiche.epoch.report import EpochReport
from seiche.errors import SeicheError

RECOMPUTE_ROUNDS = 2


class Child:
    def __init__(self, database: seiche.Engine, answers: int, scratch: Path) -> None:
        self._database = database
        self._answers = os.fdopen(answers, "w", encoding="utf-8", buffering=1)
        self._lock = threading.Lock()
        self._scratch = scratch
        self._lanes: dict[str, queue.SimpleQueue[dict[str, Any] | None]] = {}
        self._threads: list[threading.Thread] = []

    def serve(self) -> None:
        self._database.on_epoch(self._tell_epoch)
        self._tell(ready=os.getpid())
        for line in sys.stdin:
            request = json.loads(line)
            lane = request["lane"]
            if lane not in self._lanes:
                self._lanes[lane] = queue.SimpleQueue()
                thread = threading.Thread(target=self._run_lane, args=(self._lanes[lane],), name=lane, daemon=True)
                self._threads.append(thread)
                thread.start()
            self._lanes[lane].put(request)
        for waiting in self._lanes.values():
            waiting.put(None)
        for thread in self._threads:
            thread.join()

    def _tell(self, **message: Any) -> None:
        with self._lock:
            self._answers.write(json.dumps(message, default=str) + "\n")

    def _tell_epoch(self, report: EpochReport) -> None:
        self._tell(
            epoch={
                "number": report.barrier.epoch,
                "seconds": report.total_s,
                "error": None if report.error is None else str(report.error),
                "jobs": [[job.name, job.rows_in, job.rows_out, job.seconds] for job in report.jobs],
            }
        )

    def _run_lane(self, requests: queue.SimpleQueue[dict[str, Any] | None]) -> None:
        session = self._database.session()
        while (request := requests.get()) is not None:
            try:
                self._tell(id=request["id"], value=self._run(session, request))
            except SeicheError as error:
                self._tell(id=request["id"], error=str(error))
            except Exception as error:  # noqa: BLE001  (the edge of this process: the demonstration ends with it)
                self._tell(id=request["id"], error=f"{type(error).__name__}: {error}")

    def _run(self, session: Any, request: dict[str, Any]) -> Any:
        match request["do"]:
            case "insert":
                return session.insert(request["table"], [tuple(row) for row in request["rows"]])
            case "query":
                return [list(row) for row in session.execute(request["sql"])[-1].rows or ()]
            case "recompute":
                return self._recompute()
            case unknown:
                raise ValueError(f"request {unknown} is not known")

    # --- Spark's own answer --------------------------------------------------------------------------

    def _recompute(self) -> dict[str, dict[str, Any]]:
        """Each view's query over plain Parquet copies of the tables, by Spark alone; compared as multisets.

        The copies are made beforehand, so that the recomputation's time is that of the query and of writing it.
        """
        spark = self._database.spark
        for table in TABLES:
            copy = str(self._scratch / table)
            self._database.table(table).write.mode("overwrite").parquet(copy)
            spark.read.parquet(copy).createOrReplaceTempView(table)
        answers: dict[str, dict[str, Any]] = {}
        for view, query in VIEWS.items():
            spark.sql(query).createOrReplaceTempView(view)  # a view on a view expands to both queries
        for view in VIEWS:
            times = []
            written = str(self._scratch / f"{view}-recomputed")
            for _ in range(RECOMPUTE_ROUNDS):
                started = time.perf_counter()
                spark.table(view).write.mode("overwrite").parquet(written)
                times.append(time.perf_counter() - started)
            maintained, recomputed = self._database.table(view), spark.read.parquet(written)
            answers[view] = {
                "rows": recomputed.count(),
                "missing": recomputed.exceptAll(maintained).count(),
                "extra": maintained.exceptAll(recomputed).count(),
                "seconds": min(times),
            }
        return answers


def main(folder: str, scratch: str) -> None:
    # Java writes to file descriptor 1 now and then: answers go by a descriptor of their own.
    answers = os.dup(1)
    os.dup2(2, 1)
    with seiche.connect(folder) as database:
        Child(database, answers, Path(scratch)).serve()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
