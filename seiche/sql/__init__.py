"""Text to statement: what the user typed, as values.

`parse` cuts a text into statements, `bind` gives names and types to the query trees inside them, and `text`
turns rows back into the characters that PostgreSQL would print. Nothing here touches data.
"""
