"""Views that are brought up to date every interval instead of at every barrier."""
