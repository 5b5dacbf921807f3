"""Counts behind one interface: cells in, noisy counts out. Dense, sparse, keyed (secret); exact for detectors without privacy."""
