"""Each claim judged under every reading of the paper; the base reading also on every split."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from experiments.measure.runner import Results
from experiments.report.claims import CLAIMS, DEPENDS, FAILS, HOLDS, OPEN, Claim
from experiments.report.judging import Finding
from experiments.report.readings import Reading, readings_of
from experiments.report.summary import Summary
from experiments.report.view import View

PLURAL = {HOLDS: "hold", DEPENDS: "depend on the reading", FAILS: "fail", OPEN: "are open"}


@dataclass(frozen=True)
class Judgement:
    """What became of a claim."""

    claim: Claim
    verdict: str
    """"holds" and "fails" under every reading that was tried; else "depends on the reading", or "open"."""
    findings: dict[Reading, Finding]
    """By reading, the base reading first; empty if no run judges the claim."""
    splits: tuple[int, int] | None
    """In the base reading: on how many splits it holds, of how many. k and b stay as chosen on all of them."""
    if_twice: bool | None
    """In the base reading: whether it holds with twice the tolerance."""
    private: float | None
    """In the base reading, at the point that the claim is about: what the private grid reached, ..."""
    control: float | None
    """... and what its control did."""

    @property
    def base(self) -> Finding | None:
        return next(iter(self.findings.values()), None)

    @property
    def figure(self) -> str:
        """The figure in the base reading, or why there is none."""
        return self.claim.why if self.base is None else self.base.figure

    @property
    def turns(self) -> list[Reading]:
        """The readings under which it is judged otherwise than in the base reading."""
        return [reading for reading, finding in self.findings.items() if finding.holds != self.base_holds]

    @property
    def base_holds(self) -> bool | None:
        return None if self.base is None else self.base.holds

    @property
    def turned_by(self) -> str:
        """What the verdict depends on, in words."""
        if not self.turns:
            return ""
        return f"{'fails' if self.base_holds else 'holds'} with " + "; ".join(_in_words(self.turns))


def judge_claims(results: Results, summary: Summary) -> list[Judgement]:
    """All claims whose data sets were run."""
    readings = readings_of(results, summary)
    return [_judged(claim, readings, summary) for claim in CLAIMS if set(claim.sets) <= set(results.study.sets)]


def tally(judgements: Iterable[Judgement]) -> str:
    """How many claims have each verdict, in words."""
    verdicts = [one.verdict for one in judgements]
    return ", ".join(f"{verdicts.count(verdict)} {words}" for verdict, words in PLURAL.items())


def _judged(claim: Claim, readings: list[Reading], summary: Summary) -> Judgement:
    judge = claim.judge
    if judge is None:
        return Judgement(claim, claim.verdict, {}, None, None, None, None)
    findings = {reading: judge(reading.view) for reading in readings}
    held = [finding.holds for finding in findings.values()]
    n_splits = summary.study.splits
    base = readings[0].view
    splits = [judge(replace(base, split=split)).holds for split in range(n_splits)]
    if_twice = judge(replace(base, tolerance=2 * base.tolerance)).holds
    verdict = HOLDS if all(held) else DEPENDS if any(held) else FAILS
    return Judgement(claim, verdict, findings, (sum(splits), n_splits), if_twice, *_worth(claim, base))


def _worth(claim: Claim, view: View) -> tuple[float | None, float | None]:
    if claim.control is None:
        return None, None
    dataset, metric, epsilon = claim.control
    mine, without = (
        view.value(dataset, "DP Grid", metric, epsilon=epsilon, control=control) for control in (False, True)
    )
    return mine, without


def _in_words(readings: list[Reading]) -> list[str]:
    """Each in short; those that differ only in the epsilon at which b is chosen together."""
    at = [reading.name.removeprefix("b-at-") for reading in readings if reading.name.startswith("b-at-")]
    words = [reading.short for reading in readings if not reading.name.startswith("b-at-")]
    return words + ([f"b chosen at epsilon {', '.join(at)}"] if at else [])
