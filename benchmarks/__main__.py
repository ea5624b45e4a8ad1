"""Runs the benchmarks and prints each figure as a ratio with its parts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable

import pyspark

from benchmarks import (
    allocator_bench,
    engine_bench,
    growth_bench,
    jobs_bench,
    nexmark_bench,
    others_bench,
    tpch_bench,
    wire_bench,
)
from benchmarks.measure import Finding, machine


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("letters", nargs="*", help="which ones (a b c d e f g h i j m o p w); all if none is given")
    parser.add_argument("--times", type=int, default=30, help="measured epochs for each figure")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full number of rows")
    parser.add_argument("--queries", nargs="*", default=[], help="of f, g and h: only these (q1 q6 …)")
    parser.add_argument("--folder", help="of f and g: where tables of this scale are kept from one run to the next")
    parser.add_argument("--pathway", help="of o: the Python of an environment that has Pathway")
    options = parser.parse_args()
    known: dict[str, Callable[[], Iterable[Finding]]] = {
        "a": lambda: engine_bench.one_filter_view(options.times),
        "b": lambda: engine_bench.large_join(options.times, options.scale),
        "c": lambda: engine_bench.bulk_load(options.scale),
        "d": lambda: engine_bench.chain_of_views(options.times),
        "e": lambda: engine_bench.memory(options.scale),
        "f": lambda: tpch_bench.tpch(min(options.times, 5), options.scale, options.queries, options.folder),
        "g": lambda: growth_bench.growth(min(options.times, 5), options.scale, options.queries, options.folder),
        "h": lambda: nexmark_bench.nexmark(min(options.times, 10), options.scale, options.queries),
        "i": lambda: jobs_bench.creation(options.scale),
        "j": lambda: jobs_bench.beside(options.times, options.scale),
        "m": allocator_bench.allocators,
        "o": lambda: others_bench.others(options.times, options.scale, options.pathway),
        "p": lambda: wire_bench.lookups(options.times, options.scale),
        "w": lambda: wire_bench.large_result(options.scale),
    }
    print(f"machine: {machine()}; Spark {pyspark.__version__}", flush=True)
    missed = 0
    for letter in options.letters or known:
        for finding in known[letter]():
            print(finding, flush=True)
            missed += not finding.held
    print(f"{missed} goals missed" if missed else "all goals held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
