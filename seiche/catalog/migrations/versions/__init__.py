"""One file for each format, numbered."""
