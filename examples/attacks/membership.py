"""Membership by score: ask for the score of a person, and accuse whoever scores low of being in the data.

The attacker knows everybody else and how the detector works. With exact counts or distances one look is enough. Under
epsilon-differential privacy no attacker leaves a region: at a share f of false accusations he finds at most
min(e^epsilon f, 1 - e^-epsilon (1 - f)) of the members.
"""

import math
import sys

import numpy as np

import pictures
from chances import Guesses, interval, most_detected, most_right, percent
from command import Finding, main, print_table, verdict
from dpoutlier import KNN, DPForest, DPGridKNN, DPMarginals
from people import BOUNDS, TARGET, Noise, fitted, made_people, named, with_and_without

EPSILONS = (0.5, 1.0, 2.0)
BINS = 8
TARGETS = {"an outlier, alone": TARGET, "one of a crowd": np.array([[33.0, 24.0]])}


def most_telling_k(target):
    """One row more than the others have in the target's cell: then the target decides whether the cell is enough."""
    low, high = np.array(list(BOUNDS.values())).T
    cells = [np.floor((rows - low) / (high - low) * BINS) for rows in (made_people(), target)]
    return 1 + int((cells[0] == cells[1]).all(axis=1).sum())


DETECTORS = {
    "grid": lambda k, epsilon, noise: DPGridKNN(epsilon, features=BOUNDS, bins=BINS, k=k, **noise),
    "forest": lambda _, epsilon, noise: DPForest(epsilon, features=BOUNDS, n_trees=2, depth=5, **noise),
    "marginals": lambda _, epsilon, noise: DPMarginals(epsilon, features=BOUNDS, bins=BINS, **noise),
}
COLOURS = {"grid": pictures.BLUE, "forest": pictures.GREEN, "marginals": pictures.PURPLE}


def scores_of_fits(name, target, epsilon, n, noise):
    """Scores of the target in ``n`` fits with it (True), and in ``n`` without (False)."""
    k, found = most_telling_k(target), {}
    for present, rows in with_and_without(made_people(), target).items():
        detectors = (DETECTORS[name](k, epsilon, noise.fresh()) for _ in range(n))
        found[present] = np.array([fitted(detector, rows).outlier_scores(target)[0] for detector in detectors])
    return found


def accused(scores):
    """(levels, accused among the others, accused among the members) if all are accused who score at most the level."""
    levels = np.unique(np.concatenate(list(scores.values())))
    others, members = (np.searchsorted(np.sort(scores[present]), levels, side="right") for present in (False, True))
    return levels, others, members


def halves(scores):
    return ({present: values[part::2] for present, values in scores.items()} for part in (0, 1))


def right_guesses(scores):
    """Guesses at the level that did best in one half of the fits, tried on the other half."""
    learned, tried = halves(scores)
    levels, others, members = accused(learned)
    level = levels[np.argmax(members - others)]
    return Guesses(np.concatenate([(values <= level) == present for present, values in tried.items()]))


def shown_epsilon(scores, level=0.95):
    """The epsilon below which no promise can lie, at that level: the attack's success would break it. 0 if it shows nothing."""

    def shown(members, others, n):
        found, false = interval(members, n, level)[0], interval(others, n, level)[1]
        return max(0.0, math.log(max(found / false, (1 - false) / (1 - found), 1.0)))

    learned, tried = halves(scores)
    n = len(learned[True])
    levels, others, members = accused(learned)
    few = np.unique(np.linspace(0, len(levels) - 1, 60).astype(int))
    best = levels[max(few, key=lambda i: shown(members[i], others[i], n))]
    return shown(*(np.count_nonzero(tried[present] <= best) for present in (True, False)), n)


def control(target):
    """Scores of plain k-NN. They are exact, so one with the target and one without say it all."""
    worlds = with_and_without(made_people(), target)
    return {
        present: KNN(features=BOUNDS, k=2).fit(named(rows)).outlier_scores(target) for present, rows in worlds.items()
    }


def right_by_exact_scores(scores):
    """Right guesses from exact scores: all, if the two differ."""
    return 1.0 if scores[True] < scores[False] else 0.5


def measure(settings):
    noise, n = Noise(settings.seed), settings.pick(700, 100)
    return {
        "n": n,
        "scores": {
            (about, epsilon, name): scores_of_fits(name, target, epsilon, n, noise)
            for about, target in TARGETS.items()
            for epsilon in EPSILONS
            for name in DETECTORS
        },
        "controls": {about: control(target) for about, target in TARGETS.items()},
    }


def report(measured):
    rows = []
    for (about, epsilon, name), scores in measured["scores"].items():
        found = right_guesses(scores)
        rows.append([about, f"{epsilon:g}", name, found, percent(most_right(epsilon)), f"{shown_epsilon(scores):.2f}"])
    for about, scores in measured["controls"].items():
        rows.append([about, "none", "plain k-NN", percent(right_by_exact_scores(scores)), percent(1), "infinite"])
    print_table(
        f"Membership by score: is this person in the data? {measured['n']:,} fits with the person and as many without",
        ["person", "epsilon", "detector", "right guesses", "permitted", "epsilon shown at 95 %"],
        rows,
    )


def summary(measured):
    about, epsilon = next(iter(TARGETS)), 1.0
    ours = max(
        (right_guesses(measured["scores"][about, epsilon, name]) for name in DETECTORS), key=lambda found: found.share
    )
    broken, bound = right_by_exact_scores(measured["controls"][about]), most_right(epsilon)
    tested = [(right_guesses(scores), most_right(each)) for (_, each, _), scores in measured["scores"].items()]
    return Finding(
        "membership",
        f"{percent(broken)} right",
        f"{ours} right",
        f"at most {percent(bound)}",
        verdict(tested, broken, bound),
    )


def draw(measured, out):
    figure = pictures.new_figure(13, 9.2)
    grid = figure.subplots(len(TARGETS), len(EPSILONS), sharex=True, sharey=True)
    for i, about in enumerate(TARGETS):
        for j, epsilon in enumerate(EPSILONS):
            axes = grid[i, j]
            draw_region(axes, epsilon)
            axes.plot(
                [0, 0, 1], [0, 1, 1], color=pictures.BROKEN, lw=2.2, clip_on=False, label="plain k-NN, not private"
            )
            for name, colour in COLOURS.items():
                draw_curve(axes, measured["scores"][about, epsilon, name], colour, f"dpoutlier: {name}")
            pictures.title(axes, f"{about[0].upper()}{about[1:]}", f"epsilon = {epsilon:g}; crosses: 95 % intervals")
            axes.set_xlim(0, 1)
            axes.set_ylim(0, 1)
            axes.set_aspect("equal")
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter(pictures.PERCENT)
        grid[i, 0].set_ylabel("members that are accused")
    for axes in grid[-1]:
        axes.set_xlabel("others that are accused")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5)
    return pictures.save(figure, out, "membership")


def draw_region(axes, epsilon):
    false = np.linspace(0, 1, 401)
    most = most_detected(false, epsilon)
    least = 1 - most_detected(1 - false, epsilon)
    axes.fill_between(false, least, most, color="#E6EBEF", lw=0, label="permitted by epsilon")
    axes.plot(false, most, color=pictures.BOUND, ls=(0, (2, 2)), lw=1.3)
    axes.plot([0, 1], [0, 1], color=pictures.GREY, lw=0.8)


def draw_curve(axes, scores, colour, label):
    """The shares accused, level by level, with crosses of 95 % intervals at some of them."""
    n = len(scores[True])
    _, others, members = accused(scores)
    axes.plot(np.append(0, others / n), np.append(0, members / n), color=colour, lw=1.8, label=label)
    for wanted in (0.1, 0.3, 0.55):
        i = np.argmin(np.abs(others / n - wanted))
        (left, right), (low, high) = interval(others[i], n), interval(members[i], n)
        axes.plot([left, right], [members[i] / n] * 2, color=colour, lw=1.1)
        axes.plot([others[i] / n] * 2, [low, high], color=colour, lw=1.1)


if __name__ == "__main__":
    main(sys.modules[__name__])
