"""The command `seiche`: an SQL shell, checks of the surroundings, settings and a demonstration.

It knows the engine only through `seiche.connect` and what `session.Database` asks of the result.
"""

import os

# Before Arrow is loaded, which chooses then. Its usual allocator keeps what each thread once needed, and a server has
# many threads (docs/decisions/0033). A program that embeds Seiche makes its own choice.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
