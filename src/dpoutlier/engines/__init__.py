"""Tables that are not in memory: which engine holds one, its rows batch by batch, and functions that run where the rows are."""
