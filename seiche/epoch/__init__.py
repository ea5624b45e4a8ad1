"""Time: barriers cut the life of the database into epochs, and a checkpoint makes epochs durable.

    barrier.py      the end of an epoch, as a value
    graph.py        the jobs that share barriers, and how one epoch runs through them
    checkpoint.py   what the loop asks of storage and of commands
    report.py       what the loop tells onlookers
    coordinator.py  the loop: commands, barrier, jobs, commit, publish, acknowledge

Nothing here knows Spark, SQL or files: jobs, storage and clock come in through small protocols, so that a
simulation can drive the same code with a crash at every step.
"""
