"""Files and Arrow data sets as tables that are read batch by batch, and never whole."""
