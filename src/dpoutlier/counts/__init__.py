"""Holders of noisy counts: one interface, "the noisy count of these cells"."""
