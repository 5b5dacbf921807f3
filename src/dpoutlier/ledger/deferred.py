"""A ledger that notes a release only when its file is complete."""

from dpoutlier.ledger.ledger import Ledger
from dpoutlier.privacy.receipt import Receipt


class DeferredLedger(Ledger):
    """Charges at once, like any ledger; what a fit commits is kept until ``settle``.

    For a command that writes the model to a file: until the file is complete, the ledger must not name a release.
    """

    _release: tuple[Receipt, str] | None = None

    def commit(self, receipt: Receipt, release: str) -> None:
        """Keep what was released, for ``settle``."""
        self._release = (receipt, release)

    def settle(self) -> None:
        """Note what was released."""
        if self._release is not None:
            super().commit(*self._release)
