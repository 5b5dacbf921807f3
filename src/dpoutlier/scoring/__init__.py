"""Scoring: public points and released counts in, scores out. Nothing here has seen a reference row."""
