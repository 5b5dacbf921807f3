"""Score tables: a model as a table of terms and the SQL that joins it."""
