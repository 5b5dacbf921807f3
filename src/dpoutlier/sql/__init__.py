"""Scores inside a database: a model in, a table with a term for each cell and a query out."""
