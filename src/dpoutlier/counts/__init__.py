"""Noisy counts behind one interface: cells in, counts out. Dense, keyed and sparse; exact for the detectors without privacy."""
