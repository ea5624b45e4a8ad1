"""From plans to Spark: one module an operator, and the jobs that run them."""
