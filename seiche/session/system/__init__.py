"""Queries about the system itself, answered without Spark.

A client that connects asks dozens of them, and a Spark job takes longer than all of them should. A query that reads
nothing but system views is rewritten for DuckDB, which speaks nearly all of PostgreSQL's dialect, and runs over the
views' rows in memory within milliseconds.

    tree ─ rewrite (names, casts, operators that only PostgreSQL has) ─ DuckDB over views as Arrow tables ─ rows
                                                                          └─ functions.py: PostgreSQL's, in Python
"""
