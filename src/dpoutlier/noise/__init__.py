"""Exact laws of noise and of private choices, drawn from random bytes. Knows integers, and neither rows nor cells."""
