"""Guarantees to charge to a ledger, in short."""

from fractions import Fraction

from dpoutlier import Guarantee
from dpoutlier.privacy.guarantee import Neighbours

ADD, REPLACE = Neighbours
ONE = Guarantee(Fraction(1))


def of(epsilon, **more):
    return Guarantee(Fraction(epsilon), **more)
