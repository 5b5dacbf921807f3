"""The steps from the paper's accounting to an honest one, and the epsilons at which they are compared."""

__all__ = ["LADDER_EPSILONS", "STEPS"]

STEPS = {
    "paper": "as in\nthe paper",
    "rule": "exhausted\nis outlying",
    "sound": "exact noise,\nright scale",
    "honest": "declared\nbounds",
    "public": "public\nk and b",
}
"""By variant."""
LADDER_EPSILONS = (5, 1.25, 0.3)
