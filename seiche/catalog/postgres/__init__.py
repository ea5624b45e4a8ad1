"""What PostgreSQL's own catalogs look like: their columns, and its built-in types, kept as two tables of facts.

`relations.tsv` has a line for each relation of `pg_catalog` and `information_schema` that we answer for: its name, its
oid, its kind, and its columns as `name:type`, with `!` where a value is always there. `types.tsv` has PostgreSQL's
built-in types as `pg_type` shows them, and the name that `format_type` gives each.
"""
