"""Measures epsilon from below: fits on made-up neighbouring data sets in, a lower bound out.

See docs/audit.md.
"""
