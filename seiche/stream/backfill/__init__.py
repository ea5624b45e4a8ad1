"""How a new job reads the history of its inputs and joins the live stream: one module a kind."""
