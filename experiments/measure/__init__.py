"""From data sets to numbers. What the numbers mean is said in ``report``."""
