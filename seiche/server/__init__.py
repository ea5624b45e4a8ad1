"""The server: PostgreSQL's wire protocol in front of the engine."""
