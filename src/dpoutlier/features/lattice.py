"""The public lattice: 2**32 positions per feature, the same in every engine and on every machine."""

__all__ = ["POSITIONS", "scale"]

POSITIONS = 2**32


def scale(lower: float, upper: float) -> float:
    """Positions per unit of a feature. Computed once and stored with the model."""
    return POSITIONS / (upper - lower)
