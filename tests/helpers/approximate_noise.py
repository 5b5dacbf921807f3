"""Noise for guarantees with a delta, to try what the package does with one: discrete Laplace noise by another name."""

from dataclasses import dataclass
from typing import ClassVar

from dpoutlier.noise.laplace import DiscreteLaplace, PureMechanism


@dataclass(frozen=True)
class ApproximateNoise(PureMechanism):
    name: ClassVar[str] = "approximate"
    words: ClassVar[str] = "noise of a test"

    def __getattr__(self, name):
        return getattr(DiscreteLaplace(self.rate), name)
