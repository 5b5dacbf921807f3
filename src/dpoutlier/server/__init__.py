"""Answers over HTTP from models that it loads: points in, scores out. Cannot reach reference rows or budgets."""
