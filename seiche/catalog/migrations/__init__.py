"""The steps from one format of the metadata database to the next, run by Alembic."""
