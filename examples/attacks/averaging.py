"""Averaging: ask the same question again and again, and take the mean of the answers.

If every answer has noise of its own, as in the code that the paper's authors published, the mean settles and tells whether a
person is in the data. Here noise is drawn once, at the fit: all answers are equal, and one is as good as a million.

The detector stops at the first row that it finds (k = 1), and the person is alone in a cell. So the score 0 says "there is a row in
this person's cell", wrongly or rightly. No question tells more: a guess by one answer is as good as epsilon permits.
"""

import sys

import numpy as np

import pictures
from chances import Guesses, most_right, percent
from command import Finding, main, print_table, verdict
from dpoutlier import DPGridKNN
from people import BOUNDS, TARGET, Noise, fitted, made_people, with_and_without

EPSILON = 1.0
QUERIES = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000)


def ask(detector, times):
    """True for each answer that says that a row is in the person's cell."""
    return detector.outlier_scores(np.repeat(TARGET, times, axis=0)) == 0


def answers_of_fits(n, noise):
    """The answer of each of ``n`` fits, with the person in the data (True) and without."""
    found = {}
    for present, rows in with_and_without(made_people(), TARGET).items():
        detectors = (DPGridKNN(EPSILON, features=BOUNDS, bins=8, k=1, **noise.fresh()) for _ in range(n))
        repeated = np.array([ask(fitted(detector, rows), 5) for detector in detectors])
        assert (repeated == repeated[:, :1]).all()  # to ask a fit again is of no use
        found[present] = repeated[:, 0]
    return found


def guesses(answers, queries, rng):
    """Guess "present" if more than half of the answers say so; each is drawn from those that fits with noise of their own gave."""
    right = []
    for present, values in answers.items():
        yes = rng.binomial(queries, values.mean(), size=len(values)) / queries
        guessed = yes + rng.choice([-1e-9, 1e-9], len(yes)) > 0.5  # a coin decides a tie
        right.append(guessed == present)
    return Guesses(np.concatenate(right))


def measure(settings):
    rng, noise = np.random.default_rng(settings.seed), Noise(settings.seed)
    answers = answers_of_fits(settings.pick(4_000, 400), noise)
    detector = fitted(DPGridKNN(EPSILON, features=BOUNDS, bins=8, k=1, **noise.fresh()), made_people())
    return {
        "kept": Guesses(np.concatenate([values == present for present, values in answers.items()])),
        "fresh": {queries: guesses(answers, queries, rng) for queries in QUERIES},
        "distinct": len(np.unique(ask(detector, max(QUERIES)))),
        "paths": {present: rng.choice(values, (3, max(QUERIES))) for present, values in answers.items()},
    }


def report(measured):
    print_table(
        f"Averaging: is this person in the data? Right guesses; epsilon = {EPSILON:g} permits {percent(most_right(EPSILON))}",
        ["times asked", "fresh noise for every answer", "dpoutlier: noise drawn once"],
        [[f"{queries:,}", found, measured["kept"]] for queries, found in measured["fresh"].items()],
    )
    print(f"\n  different answers of one fit to {max(QUERIES):,} questions: {measured['distinct']}")


def summary(measured):
    broken, ours, bound = measured["fresh"][max(QUERIES)], measured["kept"], most_right(EPSILON)
    return Finding(
        "averaging",
        f"{percent(broken.share)} right",
        f"{ours} right",
        f"at most {percent(bound)}",
        verdict([(ours, bound)], broken.surely, bound),
    )


def draw(measured, out):
    figure = pictures.new_figure(12, 4.7)
    left, right = figure.subplots(1, 2)
    draw_means(left, measured["paths"])
    draw_success(right, measured["fresh"], measured["kept"])
    for axes in (left, right):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(pictures.NUMBER)
        axes.set_xlabel("times that the same question is asked")
        axes.yaxis.set_major_formatter(pictures.PERCENT)
    return pictures.save(figure, out, "averaging")


def draw_means(axes, paths):
    asked = np.arange(1, max(QUERIES) + 1)
    for present, colour, label in (
        (True, pictures.PURPLE, "the person is in the data"),
        (False, pictures.GREEN, "the person is not in it"),
    ):
        for number, answers in enumerate(paths[present]):
            mean = np.cumsum(answers) / asked
            axes.plot(asked, mean, color=colour, lw=1.6, alpha=0.85, label=None if number else label)
    axes.set_ylim(-0.05, 1.05)
    axes.set_ylabel("answers so far that say: there is a row")
    axes.legend(loc="upper right")
    pictures.title(axes, "Fresh noise for every answer", "the mean settles on one of two values; three attacks each")


def draw_success(axes, fresh, kept):
    queries, shares = list(fresh), np.array([found.share for found in fresh.values()])
    reach = np.abs(np.array([found.interval() for found in fresh.values()]).T - shares)
    axes.plot(queries, shares, "s-", color=pictures.BROKEN, label="fresh noise for every answer")
    axes.errorbar(queries, shares, reach, fmt="none", color=pictures.BROKEN, capsize=3)
    axes.fill_between(queries, *kept.interval(), color=pictures.OURS, alpha=0.25, lw=0)
    axes.plot(queries, [kept.share] * len(queries), "o-", color=pictures.OURS, label="dpoutlier: noise drawn once")
    pictures.bound_line(
        axes, most_right(EPSILON), f"most that epsilon = {EPSILON:g} permits, {percent(most_right(EPSILON))}"
    )
    axes.set_ylim(0.45, 1.03)
    axes.set_ylabel("right guesses")
    axes.legend(loc="center right", bbox_to_anchor=(1, 0.68))
    pictures.title(axes, "How often the attacker is right", "bars and band: 95 % intervals")


if __name__ == "__main__":
    main(sys.modules[__name__])
