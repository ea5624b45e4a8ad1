"""The command `seiche`: an SQL shell, checks of the surroundings, settings and a demonstration.

It knows the engine only through `seiche.connect` and what `session.Database` asks of the result.
"""
