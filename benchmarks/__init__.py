"""Benchmarks: ratios against plain Spark on the same machine in one run. `make bench` runs them."""
