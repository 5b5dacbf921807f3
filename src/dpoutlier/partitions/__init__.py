"""Public maps from a position to cells: grid, trees, marginals. Nothing is learned from rows."""
