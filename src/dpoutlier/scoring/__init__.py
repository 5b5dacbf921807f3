"""Points and noisy counts in, scores, thresholds and intervals out. No row is kept."""
