"""The steps from the base reading to a complete accounting, and the epsilons at which they are compared."""

STEPS = {
    "base": "base\nreading",
    "far": "missing rows\nare far",
    "right-scale": "noise of the\nright scale",
    "declared": "declared\nbounds",
    "public": "public\nk and b",
}
"""By variant."""
LADDER_EPSILONS = (5, 1.25, 0.3)
