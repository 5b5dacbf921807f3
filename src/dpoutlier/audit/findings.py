"""What an audit found, as a table."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import pyarrow as pa

from dpoutlier.audit.cases import EPSILONS_WITH_POWER, Case


@dataclass(frozen=True)
class Finding:
    """One audit: a lower bound on epsilon, beside what is claimed."""

    case: str
    detector: str
    neighbours: str
    counts: str
    method: str
    """Many runs, or one run with canaries."""
    channel: str
    """What was looked at: counts, scores or the file."""
    claimed: float
    bound: float
    """True epsilon is at least this, with 99.9 % confidence."""
    certain: float
    """The same with a confidence of 1 - 1e-7."""
    trials: int
    """Runs in each world, or guesses."""
    expects_power: bool
    event: str

    @classmethod
    def of(
        cls, case: Case, method: str, channel: str, bounds: tuple[float, float], trials: int, event: str, *, sharp: bool
    ) -> Finding:
        """``sharp``: whether this number of trials can be expected to show half of epsilon."""
        return cls(
            case=case.label,
            detector=case.detector,
            neighbours=case.neighbours,
            counts=case.counts,
            method=method,
            channel=channel,
            claimed=case.epsilon,
            bound=bounds[0],
            certain=bounds[1],
            trials=trials,
            expects_power=sharp and case.has_power and EPSILONS_WITH_POWER[0] <= case.epsilon <= EPSILONS_WITH_POWER[1],
            event=event,
        )

    @property
    def refuted(self) -> bool:
        """Whether the claim is false, up to an error of one in ten million."""
        return self.certain > self.claimed

    @property
    def without_power(self) -> bool:
        """Whether the bound stays below half of the claim although it should not."""
        return self.expects_power and self.bound < self.claimed / 2


def table_of(findings: list[Finding]) -> pa.Table:
    return pa.Table.from_pylist([{**asdict(one), "refuted": one.refuted} for one in findings])
