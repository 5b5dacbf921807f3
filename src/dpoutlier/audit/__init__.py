"""Tests the promise by experiment: fits on made-up neighbouring data sets in, a lower bound on epsilon out.

See docs/audit.md.
"""
