"""How numbers and data sets are written."""

from experiments.measure.datasets import dataset_named


def decimals(value: float) -> str:
    """Three decimals, without a zero in front.

    >>> decimals(0.5), decimals(-0.0321), decimals(1)
    ('.500', '-.032', '1.000')
    """
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def title_of(dataset: str) -> str:
    """As the paper writes its name."""
    return dataset_named(dataset).title
