"""The attacks of examples/attacks: they succeed where the mistake is made, and stay within the bound here.

Noise of fits is seeded. Were it not, each comparison of a measured share with a bound would fail once in ten million runs.
Not seeded are the clock, and the keys that timing.py draws from ``secrets``, of which no share is measured.
"""

import runpy
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import averaging
import differencing
import leaked_keyed_file
import low_bits
import membership
import timing
from chances import SURE, Guesses, interval, most_detected, most_right
from command import AS_PROMISED, NO_POWER, TOO_MUCH, Settings, arguments, perform, verdict
from dpoutlier import DPGridKNN
from dpoutlier.counts.base import noisy_counts
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.partitions.base import cell_ids
from people import TARGET, Noise, with_and_without

pytestmark = pytest.mark.slow
ATTACKS = Path(averaging.__file__).parent
QUICK = Settings(1, quick=True)


def above(found, bound):
    return found.interval(SURE)[0] > bound


def at(found, share):
    low, high = found.interval(SURE)
    return low <= share <= high


def noise():
    return Noise(2)


# What is permitted ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 2, 5])
def test_the_two_bounds_are_one(epsilon):
    """The best guess is made at the corner of the region."""
    false = np.linspace(0, 1, 100_001)
    best = np.max(1 + most_detected(false, epsilon) - false) / 2
    assert best == pytest.approx(most_right(epsilon), abs=1e-5)
    assert most_detected(0, epsilon) == 0
    assert most_detected(1, epsilon) == 1


@pytest.mark.parametrize("right", [0, 1, 30, 99, 100])
def test_intervals_are_those_of_clopper_and_pearson(right):
    expected = stats.binomtest(right, 100).proportion_ci(0.99, method="exact")
    assert interval(right, 100, 0.99) == pytest.approx((expected.low, expected.high))


def test_guesses_are_counted():
    found = Guesses([True, False, True, True])
    assert (found.right, found.n, found.share) == (3, 4, 0.75)
    assert str(found) == "75.0 % (19.4 to 99.4)"


def test_a_verdict_needs_an_interval_that_is_clear_of_the_bound():
    half, most, every = (Guesses([True] * right + [False] * (1_000 - right)) for right in (500, 700, 1_000))
    assert verdict([(half, 0.5), (most, 0.65)], every.surely, 0.9) == AS_PROMISED
    assert verdict([(half, 0.5), (most, 0.6)], every.surely, 0.9) == TOO_MUCH
    assert verdict([(half, 0.5)], most.surely, 0.65) == NO_POWER
    assert most.surely == pytest.approx(stats.binomtest(700, 1_000).proportion_ci(SURE, method="exact").low)


# What each attack says in the end -------------------------------------------------------------------------------------------


def share_of_differences():
    """What the difference of two fits tells, by the law of the difference of two draws."""
    a = np.exp(-differencing.EPSILON)
    values = np.arange(-60, 61)
    law = (1 - a) / (1 + a) * a ** np.abs(values)
    return 1 - np.convolve(law, law)[len(values) :].sum()


N_SINGLE = int((leaked_keyed_file.counts_of(leaked_keyed_file.everybody()) == 1).sum())
SAID = {
    averaging: (800, most_right(1), most_right(1)),
    differencing: (600, share_of_differences(), most_right(1)),
    low_bits: (3_600, most_right(0.5), most_right(0.5)),
    membership: (100, most_right(1), most_right(1)),
    leaked_keyed_file: (30 * 2 * N_SINGLE, most_right(0.5), most_right(0.5)),
}
"""Guesses of a quick run, the share that must be right in the long run, and the bound."""
measured = cache(lambda attack: attack.measure(QUICK))


def share_in(text):
    return float(text.split(" %")[0].removeprefix("at most ")) / 100


@pytest.mark.parametrize("attack", SAID, ids=lambda attack: attack.__name__)
def test_the_summary_of_an_attack_says_what_is_to_be_expected(attack):
    n, expected, bound = SAID[attack]
    found = attack.summary(measured(attack))
    low, high = interval(round(share_in(found.ours) * n), n, SURE)
    assert low <= expected <= high
    assert share_in(found.bound) == pytest.approx(bound, abs=6e-4)
    assert share_in(found.broken) > max(bound, 0.8)
    assert found.verdict == AS_PROMISED


ALL, BLIND = Guesses([True] * 600), Guesses([True, False] * 300)
DOCTORED = [
    (averaging, TOO_MUCH, lambda found: {**found, "kept": ALL}),
    (averaging, NO_POWER, lambda found: {**found, "fresh": dict.fromkeys(averaging.QUERIES, BLIND)}),
    *((differencing, TOO_MUCH, lambda found, game=game: {**found, game: ALL}) for game in ("own", "knows", "both")),
    (differencing, NO_POWER, lambda found: {**found, "shared": BLIND}),
    (low_bits, TOO_MUCH, lambda found: {**found, "ours": {**found["ours"], 2.0: (ALL, 0.0)}}),
    (low_bits, NO_POWER, lambda found: {**found, "textbook": found["ours"]}),
    (membership, TOO_MUCH, lambda found: {**found, "scores": dict.fromkeys(found["scores"], scores_that_show(0))}),
    (membership, NO_POWER, lambda found: {**found, "controls": dict.fromkeys(found["controls"], scores_that_show(1))}),
    (leaked_keyed_file, TOO_MUCH, lambda found: {**found, "of dense": [found["of keyed"]] * 30}),
    (leaked_keyed_file, NO_POWER, lambda found: {**found, "of keyed": found["of dense"][0]}),
]


def scores_that_show(member):
    return {True: np.full(100, float(member)), False: np.ones(100)} if not member else {True: 1.0, False: 1.0}


@pytest.mark.parametrize(
    ("attack", "expected", "doctor"), DOCTORED, ids=[f"{one.__name__}-{said[:5]}" for one, said, _ in DOCTORED]
)
def test_other_figures_are_judged_otherwise(attack, expected, doctor):
    assert attack.summary(doctor(measured(attack))).verdict == expected


@pytest.mark.parametrize(("p", "expected"), [(1e-5, AS_PROMISED), (1e-7, TOO_MUCH)])
def test_the_verdict_on_times_is_that_of_constant_time(p, expected):
    far, near = (timing.Comparison(float(stats.norm.isf(q / 2)), 1.0, 1e9) for q in (1e-40, p))
    assert near.p == pytest.approx(p, rel=0.01)
    taken = np.ones((5, 2))
    assert timing.summary({"quick": (taken, far), "constant": (taken, near)}).verdict == expected


@pytest.mark.parametrize("status", [0, 1])
def test_the_status_of_all_attacks_is_1_if_the_noise_is_too_narrow(status, monkeypatch, tmp_path, capsys):
    def narrow(law, n, source, draw=DiscreteLaplace.draw):
        return draw(DiscreteLaplace(law.rate * 2), n, source)

    main = runpy.run_path(str(ATTACKS / "run.py"))["main"]
    monkeypatch.setitem(main.__globals__, "ATTACKS", (low_bits,))
    if status:
        monkeypatch.setattr(DiscreteLaplace, "draw", narrow)
    assert main(["--quick", "--out", str(tmp_path)]) == status
    last = capsys.readouterr().out.split("All attacks\n")[1]
    assert (TOO_MUCH in last, AS_PROMISED in last) == (bool(status), not status)


# Averaging ------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def answers():
    return averaging.answers_of_fits(700, noise())


def test_a_coin_decides_if_as_many_answers_say_yes_as_no():
    """Two questions of which each is answered at random: half of the guesses are right, whatever the truth."""
    answers, rng = np.arange(4_000) % 2 == 0, np.random.default_rng(3)
    for present in (True, False):
        assert at(averaging.guesses({present: answers}, 2, rng), 0.5)


def test_all_answers_of_a_fit_are_equal():
    found = measured(averaging)
    assert found["distinct"] == 1
    assert {present: paths.shape for present, paths in found["paths"].items()} == dict.fromkeys(
        (True, False), (3, max(averaging.QUERIES))
    )


def test_averaging_removes_noise_that_is_fresh_for_every_answer(answers):
    bound, rng = most_right(averaging.EPSILON), np.random.default_rng(3)
    assert above(averaging.guesses(answers, 100, rng), max(bound, 0.97))
    assert not above(averaging.guesses(answers, 1, rng), bound)


def test_averaging_noise_that_is_drawn_once_gives_what_one_answer_gives(answers):
    """As much as epsilon permits: so the attack is as strong as one can be."""
    found = Guesses(np.concatenate([values == present for present, values in answers.items()]))
    assert at(found, most_right(averaging.EPSILON))


def test_a_promise_of_half_the_epsilon_is_refuted(answers):
    """Had the noise half its scale, the attack would tell."""
    found = Guesses(np.concatenate([values == present for present, values in answers.items()]))
    assert above(found, most_right(averaging.EPSILON / 2))


# Differencing ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own():
    return differencing.pairs_of_fits(500, noise())


def test_the_difference_of_two_fits_with_the_same_noise_is_the_person():
    pairs = differencing.pairs_of_fits(40, noise(), shared=True)
    gaps = pairs[True][:, 1] - pairs[True][:, 0]
    assert (gaps.sum(axis=(1, 2)) == 1).all()
    assert (np.abs(gaps).sum(axis=(1, 2)) == 1).all()
    assert differencing.by_difference(pairs).share == differencing.found_cell(pairs).share == 1
    assert above(differencing.by_difference(pairs), most_right(differencing.EPSILON))


def test_the_difference_of_two_fits_tells_no_more_than_epsilon(own):
    """By the law of the difference of two draws it tells less; somebody who knows all others has what epsilon permits."""
    assert at(differencing.by_difference(own), share_of_differences())
    assert share_of_differences() < most_right(differencing.EPSILON)
    assert at(differencing.by_second(own), most_right(differencing.EPSILON))


def test_the_summary_is_of_the_difference_and_each_game_is_under_its_name():
    """The same fits again: the games are too much alike to differ in their shares."""
    found, own = measured(differencing), differencing.pairs_of_fits(300, Noise(QUICK.seed))
    expected = differencing.by_difference(own), differencing.by_second(own)
    assert (found["own"].right, found["knows"].right) == tuple(each.right for each in expected)
    assert len({str(found[game]) for game in ("own", "knows", "both", "shared")}) == 4
    finding = differencing.summary(found)
    assert finding.ours == f"{found['own']} right"
    assert at(found["both"], most_right(2 * differencing.EPSILON))
    assert [what for _, what, _ in differencing.lines(found)] == [
        found[game] for game in ("shared", "own", "knows", "both")
    ]


def test_the_largest_difference_is_hardly_ever_that_of_the_person(own):
    assert differencing.found_cell(own).interval(SURE)[0] < 0.02


def test_two_fits_tell_the_sum_of_their_epsilons():
    pairs = differencing.pairs_of_fits(400, noise(), in_both=True)
    assert at(differencing.where_both_agree(pairs), most_right(2 * differencing.EPSILON))
    assert above(differencing.where_both_agree(pairs), most_right(differencing.EPSILON))


# Low bits -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", low_bits.EPSILONS)
def test_low_bits_of_textbook_noise_tell_the_count(epsilon):
    outputs = low_bits.textbook_outputs(20_000, epsilon, 5)
    possible = partial(low_bits.from_textbook, scale=1 / epsilon)
    for count, values in outputs.items():
        assert possible(values, int(count)).all()  # the truth is never ruled out, so what is certain is true
        certain, guess = low_bits.attack(values, possible)
        assert (guess[certain] == count).all()
        assert above(Guesses(certain), 0.6)
    assert above(low_bits.tried(outputs, possible)[0], max(most_right(epsilon), 0.8))


@pytest.mark.parametrize("epsilon", low_bits.EPSILONS)
def test_low_bits_of_whole_numbers_tell_nothing(epsilon):
    outputs = low_bits.published_counts(120, epsilon, noise().fresh())
    found, certain = low_bits.tried(outputs, low_bits.from_whole_noise)
    assert certain == 0
    assert at(found, most_right(epsilon))
    misled, _ = low_bits.tried(outputs, partial(low_bits.from_textbook, scale=1 / epsilon))
    assert not above(misled, most_right(epsilon))


def test_the_counts_are_those_of_a_fit_with_a_person_in_every_second_cell():
    outputs = low_bits.published_counts(40, 50, noise().fresh())  # next to no noise
    assert (outputs[False] == 0).all()
    assert (outputs[True] == 1).all()


# Membership -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("about", membership.TARGETS)
def test_plain_neighbours_tell_members(about):
    scores = membership.control(membership.TARGETS[about])
    assert scores[True] < scores[False]


def inside(scores, epsilon):
    """Whether at none of up to 200 levels more members are accused than epsilon permits."""
    levels, others, members = membership.accused(scores)
    tried = np.unique(np.linspace(0, len(levels) - 1, 200).astype(int))
    n, sure = len(scores[True]), 1 - (1 - SURE) / len(tried)
    return all(
        interval(members[i], n, sure)[0] <= most_detected(interval(others[i], n, sure)[1], epsilon) for i in tried
    )


def test_a_grid_tells_members_as_far_as_epsilon_permits():
    scores = membership.scores_of_fits("grid", TARGET, 1.0, 500, noise())
    assert inside(scores, 1.0)
    assert not inside(scores, 0.3)
    assert at(membership.right_guesses(scores), most_right(1.0))
    assert 0.1 < membership.shown_epsilon(scores, SURE) <= 1.0


@pytest.mark.parametrize("name", membership.DETECTORS)
@pytest.mark.parametrize("about", membership.TARGETS)
@pytest.mark.parametrize("epsilon", membership.EPSILONS)
def test_no_detector_tells_members_beyond_what_epsilon_permits(name, about, epsilon):
    scores = membership.scores_of_fits(name, membership.TARGETS[about], epsilon, 1_500, noise())
    assert inside(scores, epsilon)
    assert membership.shown_epsilon(scores, SURE) <= epsilon
    assert above(membership.right_guesses(scores), 0.5) or epsilon < 1  # and it does tell something


def test_a_level_is_tried_on_other_fits_than_it_was_learned_from():
    """Scores that tell nothing: the best level of few fits seems to tell something of these, and tells nothing of others."""
    rng, found = np.random.default_rng(3), []
    for _ in range(500):
        guesses = membership.right_guesses({present: rng.random(20) for present in (True, False)})
        found.append(np.arange(guesses.n) < guesses.right)
    assert at(Guesses(np.concatenate(found)), 0.5)


def test_levels_and_the_accused():
    scores = {True: np.array([1.0, 1.0, 2.0, 4.0]), False: np.array([2.0, 3.0, 4.0, 4.0])}
    levels, others, members = membership.accused(scores)
    assert levels.tolist() == [1, 2, 3, 4]
    assert others.tolist() == [0, 1, 2, 4]
    assert members.tolist() == [2, 3, 3, 4]


# Timing ---------------------------------------------------------------------------------------------------------------------


def made_differences(rng, n=400, delay=0.0):
    """Differences of times as a busy machine gives them: now and then one side was interrupted."""
    interrupted = rng.choice([-1, 0, 0, 0, 0, 0, 0, 0, 1], n) * rng.exponential(2_000, n)
    return rng.normal(delay, 50, n) + interrupted


def test_a_planted_delay_is_found_as_often_as_promised_and_none_is_found_where_there_is_none():
    rng = np.random.default_rng(4)
    detectable = np.mean([timing.compare(made_differences(rng)).detectable for _ in range(200)])
    found = Guesses(
        [timing.compare(made_differences(rng, delay=detectable)).p < timing.SIGNIFICANCE for _ in range(1_500)]
    )
    false = Guesses([timing.compare(made_differences(rng)).p < timing.SIGNIFICANCE for _ in range(1_500)])
    assert found.interval(SURE)[1] >= timing.POWER
    assert found.share > 0.97
    assert not above(false, timing.SIGNIFICANCE)
    assert detectable < 50


def test_an_interval_covers_the_true_difference():
    rng = np.random.default_rng(5)
    intervals = np.array([timing.compare(made_differences(rng, delay=7)).interval(0.95) for _ in range(1_500)])
    assert at(Guesses((intervals[:, 0] < 7) & (intervals[:, 1] > 7)), 0.95)


def test_pairs_of_models_have_the_same_noisy_counts_and_opposite_exact_ones():
    fitted = DPGridKNN(0.25, features=(0, 1), bins=timing.BINS, k=1, counts="keyed").fit(np.empty((0, 2)))
    pairs, ids = timing.pairs_of_counts(fitted.model_.counts.noise), cell_ids(range(timing.CELLS))
    assert len(pairs) > 20
    points = np.random.default_rng(6).random((50, 2))
    for number, pair in enumerate(pairs):
        assert len(pair.empty.exact) == 0
        assert len(pair.full.exact) == timing.CELLS
        assert pair.full.exact.min() > 0
        assert (noisy_counts(pair.empty, ids) == pair.noisy).all()
        assert (noisy_counts(pair.full, ids) == pair.noisy).all()
        for way in timing.WAYS if number < 3 else ():
            one, other = timing.detectors(pair, way, fitted.model_)
            assert one.model_ is not other.model_
            assert (one.walk(points).gathered == other.walk(points).gathered).all()
            assert (one.walk(points).visited == 1).all()


def p_of_times(rng, more=1.0):
    """The p of a fresh measurement in constant time, as if the model with people took ``more`` times as long."""
    taken = timing.times("constant", 400, rng)
    return timing.compare(taken[:, 1] * more - taken[:, 0]).p


def test_constant_time_does_not_show_exact_counts():
    """Measured by the clock up to five times, since other work on the machine may disturb some.

    A real difference shows in all five. It fails without one only if all five are disturbed in that way: chance alone gives a
    p as small once in a billion measurements. A difference that shows in most but not in all passes.
    """
    rng = np.random.default_rng(7)
    assert any(p_of_times(rng) > 1e-9 for _ in range(5))


def test_a_twentieth_more_time_would_be_seen():
    """In one of five measurements: it fails if the machine is too busy in all of them."""
    rng = np.random.default_rng(8)
    assert any(p_of_times(rng, 1.05) < 1e-9 for _ in range(5))


# A leaked keyed file --------------------------------------------------------------------------------------------------------


def test_a_leaked_keyed_file_gives_everybody_away(tmp_path):
    path = leaked_keyed_file.model_file(tmp_path, "keyed", Noise(None))
    assert path.name == "keyed.secret.dpo"
    claimed = leaked_keyed_file.claimed_from_keyed(path)
    assert (claimed == leaked_keyed_file.counts_of(leaked_keyed_file.everybody())).all()
    match = leaked_keyed_file.Match(claimed)
    assert match.found == match.claims_right == match.single == 1


def test_a_dense_file_says_of_each_cell_what_epsilon_permits(tmp_path):
    assert leaked_keyed_file.model_file(tmp_path, "dense", Noise(None)).name == "dense.dpo"
    truth, seeded = leaked_keyed_file.counts_of(leaked_keyed_file.everybody()), noise()
    files = (leaked_keyed_file.model_file(tmp_path, "dense", seeded) for _ in range(40))
    claims = np.array([leaked_keyed_file.claimed_from_dense(path) for path in files])
    bound = most_right(leaked_keyed_file.EPSILON)
    assert at(Guesses(claims[:, truth == 1].ravel() > 0), bound)
    assert at(Guesses(claims[:, truth == 0].ravel() == 0), bound)


# The commands ---------------------------------------------------------------------------------------------------------------


def test_the_two_data_sets_differ_by_the_target():
    worlds = with_and_without(np.zeros((3, 2)), TARGET)
    assert len(worlds[True]) == len(worlds[False]) + 1
    assert (worlds[True][-1] == TARGET).all()


def test_seeds_are_never_used_twice_and_the_systems_noise_has_none():
    seeded, system = noise(), Noise(None)
    assert len({seeded.fresh()["unsafe_seed"] for _ in range(100)}) == 100
    assert system.fresh() == {}


def test_arguments(capsys):
    given = arguments("About.\n\nMore.").parse_args(["--seed", "system", "--quick"])
    assert (given.seed, given.quick, given.out) == (None, True, Path("attacks"))
    with pytest.raises(SystemExit, match="0"):
        arguments("About.\n\nMore.").parse_args(["--help"])
    help_text = capsys.readouterr().out
    assert all(option in help_text for option in ("--out", "--seed", "--quick", "About."))


@pytest.mark.parametrize("attack", [low_bits, leaked_keyed_file], ids=lambda attack: attack.__name__)
def test_an_attack_prints_a_table_and_draws_a_picture(attack, tmp_path, capsys):
    finding = perform(attack, tmp_path / "made", QUICK)
    assert "permitted" in capsys.readouterr().out
    assert finding.bound.startswith("at most 62.2 %")
    (picture,) = (tmp_path / "made").glob("attack-*.png")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_all_attacks_run_alone_and_together(tmp_path):
    command = [sys.executable, "-W", "error", ATTACKS / "run.py", "--quick", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert not done.stderr
    last = done.stdout.split("All attacks\n")[1]
    names = ("averaging", "differencing", "low bits", "membership", "timing", "leaked keyed file")
    assert all(f"\n  {name} " in last for name in names)
    assert done.returncode == int(last.count(AS_PROMISED) < len(names))
    assert last.count(AS_PROMISED) >= len(names) - 1  # times are not seeded
    assert {path.stem for path in tmp_path.glob("*.png")} == {
        f"attack-{name}" for name in ("averaging", "differencing", "low-bits", "membership", "timing", "leaked-file")
    }
    alone = [sys.executable, ATTACKS / "averaging.py", "--quick", "--seed", "system", "--out", tmp_path / "alone"]
    said = subprocess.run(alone, capture_output=True, text=True, check=True, timeout=600, cwd=tmp_path).stdout
    assert "different answers of one fit to 10,000 questions: 1" in said
    assert (tmp_path / "alone" / "attack-averaging.png").exists()
