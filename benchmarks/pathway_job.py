"""The small job of `others_bench` by Pathway, in an environment that has it: `python pathway_job.py FOLDER`.

Prints one JSON object: the seconds of each batch of changes, from the first row handed over to the last change of the
answer, and the answer's number of groups and sum. Nothing here is imported by the rest of the project.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pathway as pw
import pyarrow.parquet as pq

ANSWER_SECONDS = 300


class Order(pw.Schema):
    orderkey: int = pw.column_definition(primary_key=True)
    custkey: int


class Line(pw.Schema):
    orderkey: int
    price: int


class Orders(pw.io.python.ConnectorSubject):
    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def run(self) -> None:
        for row in pq.read_table(self._file).to_pylist():
            self.next(**row)
        self.commit()


class Lines(pw.io.python.ConnectorSubject):
    """All rows at first, then one batch after another, each once the answer has the one before."""

    def __init__(self, rows: Path, batches: list[Path], answer: Answer) -> None:
        super().__init__()
        self._rows, self._batches, self._answer = rows, batches, answer
        self.seconds: list[float] = []

    def run(self) -> None:
        expected = self._hand_over(pq.read_table(self._rows).to_pylist())
        self._answer.wait_for(expected)
        for file in self._batches:
            rows = pq.read_table(file).to_pylist()
            started = time.perf_counter()
            expected += self._hand_over(rows)
            self._answer.wait_for(expected)
            self.seconds.append(time.perf_counter() - started)

    def _hand_over(self, rows: list[dict[str, Any]]) -> int:
        for row in rows:
            self.next(**row)
        self.commit()
        return sum(row["price"] for row in rows)


class Answer:
    """The groups as they are now, and their sum."""

    def __init__(self) -> None:
        self.revenue: dict[Any, int] = {}
        self._changed = threading.Condition()
        self._total = 0

    def on_change(self, key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        with self._changed:
            if is_addition:
                self.revenue[row["custkey"]] = row["revenue"]
            self._total += row["revenue"] if is_addition else -row["revenue"]

    def on_time_end(self, time: int) -> None:
        with self._changed:
            self._changed.notify_all()

    def wait_for(self, total: int) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._total == total, ANSWER_SECONDS):
                raise TimeoutError(f"the answer adds up to {self._total}, not to {total}")


def main(folder: Path) -> None:
    answer = Answer()
    lines = Lines(folder / "lines.parquet", sorted(folder.glob("change_*.parquet")), answer)
    orders = pw.io.python.read(Orders(folder / "orders.parquet"), schema=Order, autocommit_duration_ms=None)
    items = pw.io.python.read(lines, schema=Line, autocommit_duration_ms=None)
    joined = items.join(orders, items.orderkey == orders.orderkey).select(orders.custkey, items.price)
    revenue = joined.groupby(pw.this.custkey).reduce(pw.this.custkey, revenue=pw.reducers.sum(pw.this.price))
    pw.io.subscribe(revenue, on_change=answer.on_change, on_time_end=answer.on_time_end)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    told = {"seconds": lines.seconds, "groups": len(answer.revenue), "sum": sum(answer.revenue.values())}
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
