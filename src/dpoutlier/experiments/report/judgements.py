"""Each claim judged: as the paper ran it, with our rule, on every split, and for every epsilon at which b may have been chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpoutlier.experiments.measure.choice import choose_bins
from dpoutlier.experiments.measure.runner import Results
from dpoutlier.experiments.report.claims import CLAIMS, Claim
from dpoutlier.experiments.report.judging import Finding
from dpoutlier.experiments.report.summary import Summary
from dpoutlier.experiments.report.view import View

__all__ = ["Judgement", "judge_claims"]


@dataclass(frozen=True)
class Judgement:
    """What became of a claim."""

    claim: Claim
    paper: Finding
    ours: Finding
    """The same with our rule for exhausted walks."""
    splits: tuple[int, int]
    """On how many splits it holds, of how many. k and b stay as chosen on all of them."""
    epsilons: tuple[int, int] | None
    """For how many of the epsilons at which b may have been chosen, of how many. None if that makes no difference."""
    private: float | None
    """At the point that the claim is about: what the private grid reached, ..."""
    control: float | None
    """... and what its control did."""


def judge_claims(results: Results, summary: Summary) -> list[Judgement]:
    """All claims whose data sets were run."""
    study, view = results.study, View(summary)
    views = [
        replace(view, swept_at=epsilon, chosen=choose_bins(results.rows, "paper", epsilon, results.choice.k))
        for epsilon in study.epsilons
    ]
    judged = []
    for claim in CLAIMS:
        if set(claim.sets) <= set(study.sets):
            splits = [claim.judge(replace(view, split=split)).holds for split in range(study.splits)]
            epsilons = [claim.judge(other).holds for other in views]
            judged.append(
                Judgement(
                    claim,
                    claim.judge(view),
                    claim.judge(replace(view, variant="rule")),
                    (sum(splits), len(splits)),
                    (sum(epsilons), len(epsilons)) if claim.depends_on_b else None,
                    *_worth(claim, view),
                )
            )
    return judged


def _worth(claim: Claim, view: View) -> tuple[float | None, float | None]:
    if claim.control is None:
        return None, None
    dataset, metric, epsilon = claim.control
    mine, without = (
        view.value(dataset, "DP Grid", metric, epsilon=epsilon, control=control) for control in (False, True)
    )
    return mine, without
