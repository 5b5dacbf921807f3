"""One law and one threshold of sparse counts, for several tests."""

from fractions import Fraction

from dpoutlier.noise.laplace import DiscreteLaplace

LAW = DiscreteLaplace(Fraction(1, 2))


N_CELLS, TAU, RELEASES = 20, 2, 12_000
