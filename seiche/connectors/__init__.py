"""The outside world: where the rows of sources come from. Nothing in here knows Spark, the catalog or SQL."""
