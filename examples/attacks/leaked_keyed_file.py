"""A leaked keyed file: read the exact counts out of it, and put every person back into a cell.

A keyed model (``*.secret.dpo``) holds the exact counts of the occupied cells and the key of their noise: that is how it answers for
grids of 10^30 cells. Its answers are private, the file is not. Whoever has it has all rows, to the precision of a cell, and can
take the noise off every answer ever given. A dense file (``*.dpo``) holds noisy counts only, and may be published.
"""

import io
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from matplotlib.patches import Patch, Rectangle

import pictures
from chances import Guesses, most_right, percent
from command import Finding, main, print_table, verdict
from dpoutlier import DPGridKNN
from people import BOUNDS, Noise, fitted, made_people

EPSILON, BINS = 0.5, 25
LOW, HIGH = np.array(list(BOUNDS.values()), float).T


def everybody():
    """Two groups, and thirty people who belong to neither."""
    return np.vstack([made_people(), np.random.default_rng(8).uniform(LOW + 1, HIGH - 1, (30, 2))])


def counts_of(rows):
    """Rows in each cell: the truth."""
    return np.histogramdd(rows, BINS, list(BOUNDS.values()))[0].astype(int)


def model_file(folder, counts, noise):
    """The path of a saved fit: model.secret.dpo if keyed; model.dpo if dense, unless a seed made its noise, as here by default."""
    detector = fitted(DPGridKNN(EPSILON, features=BOUNDS, bins=BINS, counts=counts, **noise.fresh()), everybody())
    return detector.save(folder / counts, overwrite=True)


def arrays_in(path):
    """All arrays of a model file: a zip, which needs no dpoutlier to be opened."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        return {name.removesuffix(".npy"): np.load(io.BytesIO(archive.read(name))) for name in names}


def claimed_from_keyed(path):
    """How many people are in each cell, after a look into a keyed file: it says so."""
    arrays, claimed = arrays_in(path), np.zeros(BINS * BINS, int)
    claimed[arrays["ids"][:, 1].astype(int)] = arrays["exact"]
    return claimed.reshape(BINS, BINS)


def claimed_from_dense(path):
    """The same from a dense file: a noisy count is all that is known of a cell; below zero it means nobody."""
    return np.maximum(arrays_in(path)["counts"], 0).reshape(BINS, BINS)


class Match:
    """What was claimed, beside the truth."""

    def __init__(self, claimed):
        truth = counts_of(everybody())
        right = int(np.minimum(claimed, truth).sum())
        self.found, self.claims_right = right / int(truth.sum()), right / int(claimed.sum())
        single, nobody = claimed[truth == 1] > 0, claimed[truth == 0] > 0
        self.single = (single.mean() + 1 - nobody.mean()) / 2  # one person or nobody, if both are as likely
        self.guessed = np.concatenate([single, ~nobody[: len(single)]])  # as many of either, one by one: right or not


def measure(settings):
    noise = Noise(settings.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        keyed = claimed_from_keyed(model_file(folder, "keyed", noise))
        dense = [claimed_from_dense(model_file(folder, "dense", noise)) for _ in range(settings.pick(200, 30))]
    return {
        "keyed": keyed,
        "dense": dense[0],
        "of keyed": Match(keyed),
        "of dense": [Match(claimed) for claimed in dense],
    }


def means(measured):
    """(people found, claims that are right, right guesses of one or nobody) from the dense files."""
    return np.mean([(match.found, match.claims_right, match.single) for match in measured["of dense"]], axis=0)


def report(measured):
    keyed, dense = measured["of keyed"], means(measured)
    rows = [
        ["people put into their cell", percent(keyed.found), percent(dense[0]), ""],
        ["claimed people who exist", percent(keyed.claims_right), percent(dense[1]), ""],
        [
            "one person in this cell, or nobody? right",
            percent(keyed.single),
            percent(dense[2]),
            percent(most_right(EPSILON)),
        ],
    ]
    print_table(
        f"A leaked keyed file: {len(everybody())} people put back into {BINS} x {BINS} cells, epsilon = {EPSILON:g}",
        ["", "keyed file, leaked", f"dense file, published (mean of {len(measured['of dense'])})", "permitted"],
        rows,
    )


def summary(measured):
    broken, ours, bound = measured["of keyed"].single, means(measured)[2], most_right(EPSILON)
    guesses = Guesses(np.concatenate([match.guessed for match in measured["of dense"]]))
    return Finding(
        "leaked keyed file",
        f"{percent(broken)} right",
        f"{percent(ours)} right (dense file)",
        f"at most {percent(bound)}",
        verdict([(guesses, bound)], broken, bound),
    )


def draw(measured, out):
    figure = pictures.new_figure(15.5, 5.3)
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    rows, truth = everybody(), counts_of(everybody())
    panels[0].scatter(*rows.T, s=14, color=pictures.INK, alpha=0.8, lw=0)
    pictures.title(panels[0], "What the custodian holds", f"{len(rows)} people; nobody else may see this")
    draw_claims(panels[1], measured["keyed"], truth)
    found = measured["of keyed"].found
    pictures.title(
        panels[1], "From the leaked keyed file", f"{percent(found, 0)} of the people found; no claim is wrong"
    )
    draw_claims(panels[2], measured["dense"], truth)
    of_dense = measured["of dense"][0]
    pictures.title(
        panels[2],
        "From the published dense file",
        f"{percent(1 - of_dense.claims_right, 0)} of the claimed people do not exist",
    )
    for axes in panels:
        axes.set_xticks(np.linspace(LOW[0], HIGH[0], BINS + 1), minor=True)
        axes.set_yticks(np.linspace(LOW[1], HIGH[1], BINS + 1), minor=True)
        axes.grid(which="minor", color="#EFEFEF", lw=0.6, zorder=0)
        axes.tick_params(which="minor", length=0)
        axes.set_axisbelow(True)
        axes.set_xlim(LOW[0], HIGH[0])
        axes.set_ylim(LOW[1], HIGH[1])
        axes.set_xlabel("age (years)")
    panels[0].set_ylabel("body mass index")
    handles = [Patch(color=pictures.OURS, label="claimed, and somebody is there (darker: more people)")]
    handles += [
        Patch(color=pictures.BROKEN, label="claimed, and nobody is there"),
        Patch(fc="w", ec=pictures.INK, label="somebody is there, not claimed"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return pictures.save(figure, out, "leaked-file")


def draw_claims(axes, claimed, truth):
    width, height = (HIGH - LOW) / BINS
    for cell in np.argwhere((claimed > 0) | (truth > 0)):
        corner, (claim, real) = LOW + cell * (width, height), (claimed[tuple(cell)], truth[tuple(cell)])
        look = {"fc": pictures.OURS if real else pictures.BROKEN, "alpha": min(1.0, 0.35 + 0.12 * claim), "lw": 0}
        if not claim:
            look = {"fc": "none", "ec": pictures.INK, "lw": 0.9}
        axes.add_patch(Rectangle(corner, width, height, **look))


if __name__ == "__main__":
    main(sys.modules[__name__])
