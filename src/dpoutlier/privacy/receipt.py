"""What a ledger gives for a reservation: where in its chain the fit is written down."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import asdict, dataclass
from typing import Any

from dpoutlier._validate import parameter_error, positive_int

MAX_NAME = 200


def checked_name(**named: Any) -> str:
    """``checked_name(dataset=dataset)``: the declared name of a data set."""
    ((name, value),) = named.items()
    good = isinstance(value, str) and 0 < len(value) <= MAX_NAME and value.isprintable() and value == value.strip()
    good = good and unicodedata.normalize("NFC", value) == value  # what looks the same is the same
    if not good:
        raise parameter_error(
            name,
            f"a name of 1 to {MAX_NAME} printable characters, without blanks around it",
            value[:80] if isinstance(value, str) else value,
        )
    return str(value)


@dataclass(frozen=True)
class Receipt:
    """Where in a ledger a fit was charged. ``Ledger.reserve`` returns it.

    A model file holds it and so is an anchor: a ledger without this entry is an old copy.

    Attributes
    ----------
    ledger : str
        Id of the ledger, 32 hexadecimal digits.
    dataset : str
        Name of the data set that was charged.
    entry : int
        Number of the entry.
    head : str
        Hash of the entry, 64 hexadecimal digits.
    """

    ledger: str
    dataset: str
    entry: int
    head: str

    def __post_init__(self) -> None:
        checked_name(dataset=self.dataset)
        positive_int(entry=self.entry)
        for name, value, digits in (("ledger", self.ledger, 32), ("head", self.head, 64)):
            if not isinstance(value, str) or not re.fullmatch(f"[0-9a-f]{{{digits}}}", value):
                raise parameter_error(f"{name} of a receipt", f"{digits} hexadecimal digits", str(value)[:80])

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Receipt:
        return cls(**content)
