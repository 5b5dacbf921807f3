"""Differencing: take the difference of two fits, between which one person may have joined.

Whatever else is in the data cancels out, so the attacker need not know it. If both fits had the same noise (a seed, or a key and
salt, used twice) it cancels out too, and what is left is the person's cell. Here every fit draws its own. What two fits tell
together of somebody who is in both is the sum of their epsilons, and no more.
"""

import sys

import numpy as np

import pictures
from chances import Guesses, most_right, percent
from command import Finding, main, print_table, verdict
from dpoutlier import DPGridKNN
from people import BOUNDS, TARGET, Noise, fitted, made_people, with_and_without

EPSILON, BINS = 1.0, 12


def published(rows, noise):
    """The noisy counts of all cells: what is in the file that is published."""
    detector = fitted(DPGridKNN(EPSILON, features=BOUNDS, bins=BINS, counts="dense", **noise), rows)
    return detector.model_.counts.counts.reshape(BINS, BINS)


def cells_of(rows):
    """In which cell each row lies; bounds are public."""
    low, high = np.array(list(BOUNDS.values())).T
    return ((rows - low) / (high - low) * BINS).astype(int)


def pairs_of_fits(n, noise, *, shared=False, in_both=False):
    """``n`` pairs of counts if the person joined between the fits, or is ``in_both`` (True), and ``n`` if not (False).

    ``shared`` is the mistake: the same noise for both.
    """
    found = {}
    for present, rows in with_and_without(made_people(), TARGET).items():
        first = rows if in_both else made_people()
        found[present] = np.empty((n, 2, BINS, BINS), np.int64)
        for i in range(n):
            one = noise.fresh()
            found[present][i] = published(first, one), published(rows, one if shared else noise.fresh())
    return found


def by_difference(pairs):
    """Right guesses of somebody who knows none of the others."""
    row, column = cells_of(TARGET)[0]
    return Guesses(
        np.concatenate([((two[:, 1] - two[:, 0])[:, row, column] >= 1) == present for present, two in pairs.items()])
    )


def says_yes(pairs):
    """For each pair, what either fit says to somebody who knows all others: there is a row more than they make."""
    row, column = cells_of(TARGET)[0]
    known = np.count_nonzero((cells_of(made_people()) == (row, column)).all(axis=1))
    return {present: two[:, :, row, column] - known >= 1 for present, two in pairs.items()}


def by_second(pairs):
    """Right guesses of somebody who knows all others, and so needs no first fit."""
    return Guesses(np.concatenate([yes[:, 1] == present for present, yes in says_yes(pairs).items()]))


def where_both_agree(pairs):
    """The same for a person who may be in both, of those guesses only where both fits say the same."""
    right = [(yes[:, 0] == present)[yes[:, 0] == yes[:, 1]] for present, yes in says_yes(pairs).items()]
    return Guesses(np.concatenate(right))


def found_cell(pairs):
    """How often the cell with the largest difference is that of the person who joined."""
    gap = (pairs[True][:, 1] - pairs[True][:, 0]).reshape(-1, BINS * BINS)
    return Guesses(gap.argmax(axis=1) == np.ravel_multi_index(cells_of(TARGET)[0], (BINS, BINS)))


def measure(settings):
    n = settings.pick(3_000, 300)
    ours, mistaken = Noise(settings.seed), Noise(1 if settings.seed is None else settings.seed + 1)
    shared, own = pairs_of_fits(n // 10, mistaken, shared=True), pairs_of_fits(n, ours)
    return {
        "shared": by_difference(shared),
        "own": by_difference(own),
        "knows": by_second(own),
        "both": where_both_agree(pairs_of_fits(n, ours, in_both=True)),
        "cells": [found_cell(shared), found_cell(own)],
        "maps": [pairs[True][0, 1] - pairs[True][0, 0] for pairs in (shared, own)],
    }


def lines(measured):
    """(what, measured, bound) of each game."""
    one, two = most_right(EPSILON), most_right(2 * EPSILON)
    return [
        ("joined in between: difference, noise shared by mistake", measured["shared"], one),
        ("joined in between: difference, noise of its own", measured["own"], one),
        ("joined in between: all others known, noise of its own", measured["knows"], one),
        ("in both or neither: where both fits agree, noise of its own", measured["both"], two),
    ]


def report(measured):
    print_table(
        f"Differencing: was this person added? Right guesses; each fit at epsilon = {EPSILON:g}",
        ["attack", "right", "permitted"],
        [[what, found, percent(bound)] for what, found, bound in lines(measured)],
    )
    shared, own = measured["cells"]
    print(
        f"\n  the largest difference is the person's: {shared} if noise is shared, else {own}; by chance {percent(1 / BINS**2)}"
    )


def summary(measured):
    broken, ours, bound = measured["shared"], measured["own"], most_right(EPSILON)
    return Finding(
        "differencing",
        f"{percent(broken.share)} right",
        f"{ours} right",
        f"at most {percent(bound)}",
        verdict([line[1:] for line in lines(measured)[1:]], broken.surely, bound),
    )


def draw(measured, out):
    figure = pictures.new_figure(15.5, 4.9)
    left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1, 1.15])
    said = (
        ("The mistake: noise used twice", "rows, second fit minus first: the person is left (green)"),
        ("dpoutlier: noise of its own", "rows, second fit minus first: noise is left"),
    )
    for axes, gap, words in zip((left, middle), measured["maps"], said, strict=True):
        draw_map(axes, gap)
        pictures.title(axes, *words)
    draw_success(right, measured)
    return pictures.save(figure, out, "differencing")


def draw_map(axes, gap):
    (low_x, high_x), (low_y, high_y) = BOUNDS.values()
    axes.imshow(
        gap.T,
        origin="lower",
        extent=(low_x, high_x, low_y, high_y),
        aspect="auto",
        cmap="PuOr_r",
        vmin=-5,
        vmax=5,
        alpha=0.85,
    )
    width, height = (high_x - low_x) / BINS, (high_y - low_y) / BINS
    for (i, j), value in np.ndenumerate(gap):
        ink = "w" if abs(value) > 3 else pictures.INK if value else "#BBBBBB"
        where = low_x + (i + 0.5) * width, low_y + (j + 0.5) * height
        axes.text(*where, f"{value:d}".replace("-", "\N{MINUS SIGN}"), ha="center", va="center", fontsize=9, color=ink)
    row, column = cells_of(TARGET)[0]
    corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]) * (width, height) + (
        low_x + row * width,
        low_y + column * height,
    )
    axes.plot(*corners.T, color=pictures.GREEN, lw=2.4)
    axes.set_xlabel("age (years)")
    axes.set_ylabel("body mass index")


def draw_success(axes, measured):
    labels = ("difference,\nnoise used twice", "difference", "all others\nknown", "person in both,\nboth fits agree")
    for i, ((_, found, bound), label) in enumerate(zip(lines(measured), labels, strict=True)):
        colour, reach = pictures.OURS if i else pictures.BROKEN, np.abs(np.array([found.interval()]).T - found.share)
        axes.bar(i, found.share - 0.5, bottom=0.5, width=0.62, color=colour, alpha=0.85)
        axes.errorbar(i, found.share, reach, color=pictures.INK, capsize=4, lw=1.2)
        axes.plot([i - 0.42, i + 0.42], [bound] * 2, color=pictures.BOUND, ls=(0, (2, 1.2)), lw=1.8)
        axes.text(i, 0.515, percent(found.share), ha="center", color="w", fontweight="bold")
        axes.text(i, 0.468, label, ha="center", va="top", fontsize=10)
    axes.plot(
        [], [], color=pictures.BOUND, ls=(0, (2, 1.2)), lw=1.8, label="most that epsilon permits: 1, on the right 1 + 1"
    )
    axes.bar(0, 0, color=pictures.BROKEN, alpha=0.85, label="the mistake")
    axes.bar(0, 0, color=pictures.OURS, alpha=0.85, label="dpoutlier: noise of its own")
    axes.set_xticks([])
    axes.set_ylim(0.48, 1.2)
    axes.set_yticks(np.arange(0.5, 1.01, 0.1))
    axes.yaxis.set_major_formatter(pictures.PERCENT)
    axes.set_ylabel("right guesses")
    axes.legend(loc="upper right")
    pictures.title(axes, "Was the person added?", "bars: 95 % intervals; 50 % is a blind guess")


if __name__ == "__main__":
    main(sys.modules[__name__])
