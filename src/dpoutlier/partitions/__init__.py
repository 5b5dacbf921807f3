"""Partitions: public maps from a lattice position to cells. A grid is one; trees and marginals are others."""
