"""An attacker's event: chosen on some of the runs, counted on the others, so that the choice costs no confidence."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpoutlier.audit.confidence import CERTAIN, PRUDENCE, REPORTED, epsilon_of_event

PRACTICE = 0.2
"""Share of the runs on which the event is chosen."""
MAX_CANDIDATES = 200
LABELS = ("one value of the counts", "something beside the counts")


class Seen(NamedTuple):
    """What an attacker saw of each run of a world."""

    evidence: NDArray[np.float64]
    """How much the release speaks for the world with the row, on any scale."""
    labels: NDArray[np.int64]
    """Labels of everything else that was seen, of shape (runs, kinds). Equal labels mean equal observations. The labels assume
    nothing, so noise with another law shows, and so does anything that should not be there."""


class Bound(NamedTuple):
    """Lower bounds on epsilon, and the event that gave them."""

    reported: float
    certain: float
    event: str


@dataclass(frozen=True)
class Event:
    """A set of releases, and the world in which it is to be likelier."""

    label: tuple[int, int] | None
    """All releases with this (kind, label); or None."""
    least: float
    most: float
    first: bool
    """Whether it is likelier in the first world."""

    def hits(self, seen: Seen) -> int:
        if self.label is not None:
            kind, label = self.label
            return int(np.count_nonzero(seen.labels[:, kind] == label))
        return int(np.count_nonzero((seen.evidence >= self.least) & (seen.evidence <= self.most)))

    def __str__(self) -> str:
        world = "with the row" if self.first else "without it"
        if self.label is not None:
            return f"{LABELS[self.label[0]]}, likelier {world}"
        what = f"at least {self.least:.3g}" if np.isinf(self.most) else f"at most {self.most:.3g}"
        return f"evidence {what}, likelier {world}"


def choose_event(one: Seen, other: Seen) -> Event:
    """The event with the largest bound on these runs."""
    best, found = -1.0, Event(None, -np.inf, np.inf, first=True)
    for event in _candidates(one, other):
        hits, others = event.hits(one), event.hits(other)
        for first, pair in ((True, (hits, one, others, other)), (False, (others, other, hits, one))):
            a, seen_a, b, seen_b = pair
            bound = float(epsilon_of_event(a, len(seen_a.evidence), b, len(seen_b.evidence), PRUDENCE))
            if bound > best:
                best, found = bound, Event(event.label, event.least, event.most, first)
    return found


def _candidates(one: Seen, other: Seen) -> Iterator[Event]:
    values = np.unique(np.concatenate([one.evidence, other.evidence]))
    if len(values) > MAX_CANDIDATES:
        values = np.unique(
            np.quantile(np.concatenate([one.evidence, other.evidence]), np.linspace(0, 1, MAX_CANDIDATES))
        )
    for value in values.tolist():
        yield Event(None, value, np.inf, first=True)
        yield Event(None, -np.inf, value, first=True)
    for kind, own in enumerate(np.concatenate([one.labels, other.labels]).T):
        labels, times = np.unique(own, return_counts=True)
        if len(labels) > 1:
            for label in labels[np.argsort(-times, kind="stable")[:MAX_CANDIDATES]].tolist():
                yield Event((kind, label), 0.0, 0.0, first=True)


def bound_epsilon(one: Seen, other: Seen) -> Bound:
    """Choose an event on the first runs of both worlds, and bound epsilon by how often it occurs in all others."""
    (practice_one, rest_one), (practice_other, rest_other) = _parted(one), _parted(other)
    event = choose_event(practice_one, practice_other)
    a, b = (rest_one, rest_other) if event.first else (rest_other, rest_one)
    counted = (event.hits(a), len(a.evidence), event.hits(b), len(b.evidence))
    reported, certain = (float(epsilon_of_event(*counted, error)) for error in (REPORTED, CERTAIN))
    return Bound(reported, certain, str(event))


def _parted(seen: Seen) -> tuple[Seen, Seen]:
    n = int(len(seen.evidence) * PRACTICE)
    return Seen(seen.evidence[:n], seen.labels[:n]), Seen(seen.evidence[n:], seen.labels[n:])
