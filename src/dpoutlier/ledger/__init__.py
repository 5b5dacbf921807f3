"""Privacy budgets in a file: each fit is charged before it reads a row. Holds epsilons, never rows."""
