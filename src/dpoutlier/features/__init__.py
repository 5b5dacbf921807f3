"""What is declared of each feature: range, levels, missing values. Public input; no rows."""
