"""The claims that the paper makes of its method and results, in our words, each with its test."""

from dataclasses import dataclass

from experiments.measure.quality import METRICS
from experiments.report import judging
from experiments.report.judging import ACCEPTABLE, Judge


@dataclass(frozen=True)
class Claim:
    """A claim, and how it is judged."""

    name: str
    place: str
    """Where the paper makes it: a research question, or a section."""
    text: str
    test: str
    sets: tuple[str, ...] = ()
    """Data sets that it needs."""
    judge: Judge | None = None
    """None if no run judges it: then ``verdict`` and ``why`` do."""
    control: tuple[str, str, float] | None = None
    """Data set, metric and epsilon at which the control says what the claim is worth."""
    verdict: str = ""
    why: str = ""


HOLDS, DEPENDS, FAILS, OPEN = "holds", "depends on the reading", "fails", "open"
EVERY = ("lymphography", "pima", "wdbc", "heart", "adult")
FOUR = ("kNN", "wkNN", "Grid", "Grid-w")

CLAIMS = (
    Claim(
        "plain-is-best",
        "RQ1",
        "Unmodified (w)k-NN is best in nearly all cases.",
        "AUROC of no grid, private or not, above it in 90 % of all (set, b, basic or weighted)",
        EVERY,
        judging.plain_is_best,
    ),
    Claim(
        "only-adult-fails",
        "RQ1",
        "Adult is the only set on which no algorithm is acceptable.",
        f"best AUROC of the six, at epsilon 5, below {ACCEPTABLE:g} on Adult alone, give or take the tolerance, and lowest there",
        EVERY,
        judging.only_adult_fails,
    ),
    Claim(
        "modest-at-two",
        "RQ1",
        "At b = 2 the grid without noise loses only modestly against (w)k-NN.",
        "AUROC lower by at most twice the tolerance on every set, basic and weighted",
        EVERY,
        judging.modest_at_two,
    ),
    Claim(
        "close-from-three",
        "RQ1",
        "From b = 3 on the grid without noise is mostly comparable with (w)k-NN, on all sets but Adult.",
        "AUROC within the tolerance in more than half of the cases (b from 3 on, basic and weighted) on each of the four",
        EVERY,
        judging.close_from_three,
    ),
    Claim(
        "sometimes-better",
        "RQ1",
        "There it is sometimes even better than (w)k-NN.",
        "AUROC higher in some case",
        EVERY,
        judging.sometimes_better,
    ),
    Claim(
        "no-notable-loss",
        "Section 6",
        "The grid without noise, basic and weighted, has no notable loss.",
        "mean loss of AUROC over the sets within the tolerance, at the chosen b",
        EVERY,
        judging.no_notable_loss,
    ),
    Claim(
        "privacy-alone",
        "Section 6",
        "So what the private grid loses is due to privacy alone, and not to partitioning.",
        "AUROC of the grid without noise, basic or weighted, within the tolerance of (w)k-NN on every set, at the chosen b",
        EVERY,
        judging.as_good_on_each(EVERY),
    ),
    Claim(
        "falls-with-b",
        "RQ2",
        "With larger b the private grid declines on Lymph and Wdbc.",
        "AUROC at the largest b notably below the best of b up to 5 on both sets, basic or weighted, and for neither notably above",
        ("lymphography", "wdbc"),
        judging.falls_with_b,
    ),
    Claim(
        "adult-rises-with-b",
        "RQ2",
        "On Adult it is the other way round.",
        "AUROC at the largest b notably above that at the smallest, basic or weighted, and for neither notably below",
        ("adult",),
        judging.adult_rises_with_b,
    ),
    Claim(
        "basic-beats-weighted",
        "RQ3",
        "On all sets the basic private grid is slightly better than the weighted one.",
        "mean AUROC over the epsilons higher on average over the sets, and on none lower by more than the tolerance",
        EVERY,
        judging.basic_beats_weighted,
    ),
    Claim(
        "lymph",
        "RQ3",
        "Lymph at epsilon .15: all metrics nearly as good as the four baselines.",
        "private grid, basic or weighted, within the tolerance of each",
        ("lymphography",),
        judging.comparable("lymphography", METRICS, FOUR, 0.15),
        ("lymphography", "auroc", 0.15),
    ),
    Claim(
        "diabetes",
        "RQ3",
        "Diabetes at epsilon .3: all metrics nearly as good as the four baselines.",
        "private grid, basic or weighted, within the tolerance of each",
        ("pima",),
        judging.comparable("pima", METRICS, FOUR, 0.3),
        ("pima", "auroc", 0.3),
    ),
    Claim(
        "adult",
        "RQ3",
        "Adult at epsilon .15: all metrics nearly as good as the four baselines.",
        "private grid, basic or weighted, within the tolerance of each",
        ("adult",),
        judging.comparable("adult", METRICS, FOUR, 0.15),
        ("adult", "auroc", 0.15),
    ),
    Claim(
        "heart",
        "RQ3",
        "Heart at epsilon .3: P@n nearly as good as (w)k-NN.",
        "private grid, basic or weighted, within the tolerance of both",
        ("heart",),
        judging.comparable("heart", ("p_at_n",), ("kNN", "wkNN"), 0.3),
        ("heart", "p_at_n", 0.3),
    ),
    Claim(
        "wdbc",
        "RQ3",
        "Wdbc at epsilon 5: AUROC has converged towards the baselines.",
        "private grid, basic or weighted, within the tolerance of all four: *converged* is read as arrived",
        ("wdbc",),
        judging.comparable("wdbc", ("auroc",), FOUR, 5),
        ("wdbc", "auroc", 5),
    ),
    Claim(
        "epsilon-helps",
        "RQ3",
        "A larger epsilon helps on Lymph, on Diabetes and for the AUROC of Wdbc.",
        "on each set some metric of the basic private grid gains notably from the smallest epsilon to the largest, and none "
        "loses notably",
        ("lymphography", "pima", "wdbc"),
        judging.gains({"lymphography": METRICS, "pima": METRICS, "wdbc": ("auroc",)}, expected=True),
    ),
    Claim(
        "epsilon-does-not-help",
        "RQ3",
        "It does not help on Heart and Adult, nor for AP and P@n of Wdbc.",
        "no metric of the basic private grid gains notably",
        ("heart", "adult", "wdbc"),
        judging.gains({"heart": METRICS, "adult": METRICS, "wdbc": ("ap", "p_at_n")}, expected=False),
    ),
    Claim(
        "near-optimal",
        "Abstract",
        "Nearly optimal on data of varying dimension, compared with k-NN without privacy.",
        "AUROC of the private grid, basic or weighted, within the tolerance of (w)k-NN on every set at epsilon 5",
        EVERY,
        judging.as_good_on_each(EVERY, 5),
        ("wdbc", "auroc", 5),
    ),
    Claim(
        "performs-well",
        "Section 6",
        "Performs well on five data sets for reasonably small privacy budgets.",
        "AUROC of the private grid, basic or weighted, within the tolerance of (w)k-NN on every set at epsilon 1.25",
        EVERY,
        judging.as_good_on_each(EVERY, 1.25),
        ("pima", "auroc", 1.25),
    ),
    Claim(
        "scalable",
        "Section 1",
        "Scalable for data of high dimension and continuous domains, read as: it can be run.",
        "by running it",
        ("wdbc",),
        verdict=HOLDS,
        why="it runs on Wdbc, with 30 continuous features and up to 10^30 cells",
    ),
    Claim(
        "scalable-accurate",
        "Section 1",
        "Scalable for data of high dimension, read as: it stays accurate.",
        "AUROC of the private grid, basic or weighted, within the tolerance of (w)k-NN at epsilon 5 on Heart and Wdbc, with 13 "
        "and 30 features",
        ("heart", "wdbc"),
        judging.as_good_on_each(("heart", "wdbc"), 5),
        ("heart", "auroc", 5),
    ),
    Claim(
        "epsilon-dp",
        "Theorem 2",
        "With noise Lap(1 / epsilon) drawn once for each cell the detector is epsilon-DP.",
        "by proof: docs/privacy.md",
        verdict=DEPENDS,
        why="holds if neighbours have a row more or less; by the definition of Section 3.3 they replace a row, two cells change, "
        "and it is 2 epsilon. Both statements assume exact noise and a grid that does not depend on the rows",
    ),
    Claim(
        "first",
        "Abstract",
        "The first attempt at differentially private outlier detection by k-NN.",
        "by search: docs/related-work.md",
        verdict=HOLDS,
        why="no earlier one was found",
    ),
    Claim(
        "efficient",
        "Section 1",
        "More efficient on a stream of new points than methods that do not part fitting from scoring.",
        "none: no such method with the same task has public code (docs/related-work.md)",
        verdict=OPEN,
        why="not judged",
    ),
    Claim(
        "relaxed",
        "Section 6",
        "Could give even stronger results under relaxed guarantees.",
        "the same runs with Gaussian noise under (epsilon, delta)-DP",
        verdict=OPEN,
        why="not judged until this library has discrete Gaussian noise",
    ),
)
