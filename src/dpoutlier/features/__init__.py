"""What is declared of each feature (range, levels, missing values), and where a value lies on its axis. Public input; no rows."""
