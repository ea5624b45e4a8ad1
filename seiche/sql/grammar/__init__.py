"""The statements' own grammar: one module a family of statements, each a set of functions over one `Cursor`.

A function reads the statement whose verb the cursor has just passed and leaves the cursor after it. Which verb
leads to which function is for `seiche.sql.parse` to say.
"""
