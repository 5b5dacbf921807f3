"""Bound epsilon from below by experiment: fits on neighbouring data, told apart as well as an attacker can. See docs/audit.md."""
