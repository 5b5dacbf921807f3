"""A model in, a table of terms and a query out, with which a database computes the same scores."""
