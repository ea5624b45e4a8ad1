"""What exists: objects, the metadata database that keeps them, and the system views that show them."""
