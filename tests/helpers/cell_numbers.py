"""Ids of cells as numbers that Python can compute with."""


def cell_numbers(ids):
    """Python integers from ids."""
    return [(high << 64) | low for high, low in ids.reshape(-1, 2).tolist()]
