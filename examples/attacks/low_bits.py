"""Low bits: find out which true count could have given this very double (Mironov 2012).

Textbook noise, ``scale * log(u)`` in floating point, takes only some of the doubles, and which of them remain after the count
is added depends on the count. So an output often betrays its count for certain, whatever epsilon promises. Here noise and counts
are integers from end to end, and every output can come from every count.
"""

import sys
from functools import partial

import numpy as np

import pictures
from chances import Guesses, most_right, percent
from command import Finding, main, print_table, verdict
from dpoutlier import DPGridKNN
from dpoutlier.noise.sources import byte_source
from people import Noise, expected

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0)
SHOWN = 0.5  # in the table of all attacks
NEAR = 8  # uniform numbers to try on either side


def from_textbook(outputs, count, scale):
    """Whether some uniform number makes the textbook's sampler give ``count`` plus noise = output, to the last bit.

    The noise must be near ``output - count``, so only a few uniform numbers of 53 bits come into question: they are tried.
    """
    noise = outputs - count
    nearest = np.floor(np.exp(-np.abs(noise) / scale) * 2.0**53)
    found = np.zeros(len(outputs), bool)
    for step in range(-NEAR, NEAR + 1):
        words = np.clip(nearest + step, 0, 2.0**53 - 1).astype(np.uint64)
        magnitude = -scale * np.log((words + 0.5) * 2.0**-53)
        found |= count + np.copysign(magnitude, noise) == outputs
    return found


def from_whole_noise(outputs, count):
    """The same for noise that takes every whole number."""
    return (outputs - count) % 1 == 0


def attack(outputs, possible):
    """For each output: is its count certain, and is it guessed to be 1. What both counts can give is guessed by size."""
    from_0, from_1 = possible(outputs, 0), possible(outputs, 1)
    return from_0 != from_1, np.where(from_0 != from_1, from_1, outputs > 0.5)


def tried(outputs, possible):
    """(Guesses, share of certain ones). ``outputs`` are as many of count 0 (False) as of count 1 (True)."""
    found = {count: attack(values, possible) for count, values in outputs.items()}
    right = np.concatenate([guess == count for count, (_, guess) in found.items()])
    return Guesses(right), float(np.mean([certain for certain, _ in found.values()]))


def unsafe_float_laplace(scale, n, source):
    """Laplace noise by floating point, as textbooks and the paper's authors draw it: ``n`` floats ``-scale * sign * log(u)``."""
    words = np.frombuffer(source.read(16 * n), "<u8").reshape(2, n)
    magnitude = -scale * np.log(((words[0] >> np.uint64(11)) + 0.5) * 2.0**-53)
    return np.where(words[1] & np.uint64(1), magnitude, -magnitude)


def textbook_outputs(n, epsilon, seed):
    """Doubles: count plus float noise."""
    noise = unsafe_float_laplace(1 / epsilon, 2 * n, byte_source(seed))
    return {False: noise[:n], True: 1 + noise[n:]}


def published_counts(bins, epsilon, noise):
    """Counts of all cells from a fit in which every second cell holds one person."""
    cells = np.arange(bins * bins)
    rows = np.stack(np.divmod(cells[1::2], bins), axis=1) + 0.5
    with expected():
        counts = DPGridKNN(epsilon, features=(0, bins), bins=bins, **noise).fit(rows).model_.counts.counts
    return {False: counts[::2], True: counts[1::2]}


def measure(settings):
    noise, bins = Noise(settings.seed), settings.pick(200, 60)
    found = {"textbook": {}, "ours": {}}
    for epsilon in EPSILONS:
        doubles = textbook_outputs(bins * bins // 2, epsilon, noise.fresh().get("unsafe_seed"))
        ours = published_counts(bins, epsilon, noise.fresh())
        found["textbook"][epsilon] = tried(doubles, partial(from_textbook, scale=1 / epsilon))
        found["ours"][epsilon] = tried(ours, from_whole_noise)
    return found


def report(measured):
    rows = []
    for epsilon in EPSILONS:
        kinds = [measured[kind][epsilon] for kind in ("textbook", "ours")]
        rows.append(
            [f"{epsilon:g}", percent(most_right(epsilon)), percent(kinds[0][1]), *(found for found, _ in kinds)]
        )
    print_table(
        "Low bits: is a person in this cell? Right guesses from one noisy count",
        ["epsilon", "permitted", "textbook: certain", "textbook: right", "dpoutlier"],
        rows,
    )


def summary(measured):
    broken, ours, bound = measured["textbook"][SHOWN][0], measured["ours"][SHOWN][0], most_right(SHOWN)
    tested = [(found, most_right(epsilon)) for epsilon, (found, _) in measured["ours"].items()]
    return Finding(
        "low bits",
        f"{percent(broken.share)} right",
        f"{ours} right",
        f"at most {percent(bound)}",
        verdict(tested, broken.surely, bound),
    )


def draw(measured, out):
    figure = pictures.new_figure(13.5, 5)
    left, right = figure.subfigures(1, 2, width_ratios=[1.2, 1])
    above, below = left.subplots(2, 1)
    draw_doubles(above)
    draw_integers(below)
    draw_success(right.subplots(), measured)
    return pictures.save(figure, out, "low-bits")


def draw_strips(axes, outputs, possible):
    """Two rows of marks: what either count can give. Shaded where that tells them apart."""
    reachable = [possible(outputs, count) for count in (0, 1)]
    for count, colour in ((0, pictures.GREEN), (1, pictures.PURPLE)):
        where = np.flatnonzero(reachable[count])
        axes.vlines(where, count - 0.32, count + 0.32, color=colour, lw=150 / len(outputs))
    for place in np.flatnonzero(reachable[0] != reachable[1]):
        axes.axvspan(place - 0.5, place + 0.5, color=pictures.BROKEN, alpha=0.16, lw=0)
    axes.set_yticks([0, 1], ["count 0\ncan give it", "count 1\ncan give it"])
    axes.set_ylim(-0.6, 1.6)
    axes.set_xlim(-0.7, len(outputs) - 0.3)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def draw_doubles(axes):
    first, n = 3.3, 41
    outputs = first + np.arange(n) * np.spacing(first)
    draw_strips(axes, outputs, partial(from_textbook, scale=1 / SHOWN))
    axes.set_xticks([0, 10, 20, 30, 40], ["3.3", "+ 10", "+ 20", "+ 30", "+ 40"])
    axes.set_xlabel(f"neighbouring doubles from 3.3 on, in steps of {np.spacing(first):.2g}")
    pictures.title(
        axes, "Textbook noise in floating point", f"shaded: the output tells the count for certain; epsilon = {SHOWN:g}"
    )


def draw_integers(axes):
    outputs = np.arange(-6.0, 8.0)
    draw_strips(axes, outputs, from_whole_noise)
    axes.set_xticks(range(len(outputs)), [f"{value:g}".replace("-", "\N{MINUS SIGN}") for value in outputs])
    axes.set_xlabel("noisy count")
    pictures.title(axes, "dpoutlier: whole numbers", "both counts give every output; none is certain")


def draw_success(axes, measured):
    for kind, colour, marker, label in (
        ("textbook", pictures.BROKEN, "s", "textbook noise in floating point"),
        ("ours", pictures.OURS, "o", "dpoutlier: whole numbers"),
    ):
        found = [measured[kind][epsilon][0] for epsilon in EPSILONS]
        shares = np.array([one.share for one in found])
        reach = np.abs(np.array([one.interval() for one in found]).T - shares)
        axes.errorbar(EPSILONS, shares, reach, fmt="none", color=colour, capsize=3)
        axes.plot(EPSILONS, shares, marker, ls="-" if kind == "textbook" else "", color=colour, label=label)
    curve = np.geomspace(0.08, 2.4, 100)
    axes.plot(
        curve,
        [most_right(epsilon) for epsilon in curve],
        color=pictures.BOUND,
        ls=(0, (2, 2)),
        lw=1.6,
        label="most that epsilon permits",
    )
    axes.set_xscale("log")
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.minorticks_off()
    axes.set_xlabel("epsilon")
    axes.set_ylim(0.45, 1.02)
    axes.yaxis.set_major_formatter(pictures.PERCENT)
    axes.set_ylabel("right guesses from one noisy count")
    axes.legend(loc="center left", bbox_to_anchor=(0, 0.62))
    pictures.blind_line(axes)
    pictures.title(axes, "Is a person in this cell?", "bars: 95 % intervals, smaller than the marks")


if __name__ == "__main__":
    main(sys.modules[__name__])
