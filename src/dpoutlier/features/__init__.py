"""What is declared of each feature: its range, its levels, its cell for missing values. Public input; no rows."""
