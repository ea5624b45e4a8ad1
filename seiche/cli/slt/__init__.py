"""sqllogictest: files of statements with the answers they should get, run against a database.

    text ── records ── runner ── target ─┬─ an engine in this process
                         │               └─ a server, through PostgreSQL's wire protocol
                         └─ report

The format is the dialect of sqllogictest-rs, which RisingWave's files are written in.
"""
