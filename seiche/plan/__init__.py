"""From a bound query to a plan that can be maintained by changes. No Spark here."""
