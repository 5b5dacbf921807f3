"""What the attacker of an audit sees is right: neighbours, evidence, scores and files, each against something plainer."""

import math
import zipfile

import numpy as np
import pyarrow as pa
import pytest

from dpoutlier.audit.configuration import Configuration
from dpoutlier.audit.events import Event, Seen, bound_epsilon, choose_event
from dpoutlier.audit.evidence import log_ratio, log_ratios_of_counts, other_releases
from dpoutlier.audit.files import open_file
from dpoutlier.audit.many_runs import observe
from dpoutlier.audit.one_run import Guesses, bound_by_guesses, canaries_of, guess_coins
from dpoutlier.audit.worlds import PAST_THE_CAP, cells_of, worlds_of
from dpoutlier.counts.base import noisy_counts
from dpoutlier.features.category import Category
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.scoring.threshold import bin_of
from dpoutlier.tables.rows import Rows
from noise_laws import log_probability

ADD, REPLACE = "add-or-remove-one", "replace-one"
RELATIONS = pytest.mark.parametrize("relation", [ADD, REPLACE])


def configuration(detector="grid", n_features=1, **arguments):
    few = {"grid": {"bins": 2, "k": 1}, "forest": {"n_trees": 3, "depth": 1, "subspace": 1}, "marginals": {"bins": 2}}
    return Configuration(detector, {"epsilon": 1, "features": (0, 1), **few[detector], **arguments}, n_features)


KINDS = {
    "grid": ("grid", 1, {}),
    "sparse grid": ("grid", 1, {"bins": 64, "counts": "sparse", "sparse_size": 4, "k": 40}),
    "keyed grid": ("grid", 1, {"counts": "keyed"}),
    "forest": ("forest", 1, {}),
    "forest of four features": ("forest", 4, {"n_trees": 5, "depth": 3, "subspace": 2}),
    "marginals": ("marginals", 3, {}),
    "people": ("grid", 1, {"rows_per_person": 2, "person": "id"}),
    "levels": ("marginals", 2, {"features": {"a": (5, 9)}, "categories": {"b": Category(["x", "y", "z"])}}),
}
EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def rows_of(table):
    """Rows as tuples, whatever the table."""
    return (
        [tuple(row.values()) for row in table.to_pylist()] if isinstance(table, pa.Table) else list(map(tuple, table))
    )


@EACH
@RELATIONS
def test_the_worlds_are_neighbours_and_differ_as_much_as_a_row_can(kind, relation):
    detector, n_features, more = kind
    case = configuration(detector, n_features, neighbours=relation, **more)
    worlds = worlds_of(case)
    here, there = (rows_of(table) for table in worlds.tables)
    own = case.arguments.get("rows_per_person", 1) + PAST_THE_CAP * ("person" in more)
    assert here[: len(here) - own] == there[: len(here) - own]  # everyone else
    assert len(there) == (len(here) if relation == REPLACE else len(here) - own)
    model = case.model()
    changed = worlds.changed(model)
    difference = int(np.abs(changed.here - changed.there).sum())
    assert difference == model.guarantee.sensitivity(model.partition.cells_per_row).l1


@EACH
@RELATIONS
def test_the_counts_that_the_attacker_expects_are_those_of_a_fit_without_noise(kind, relation):
    detector, n_features, more = kind
    case = configuration(detector, n_features, neighbours=relation, **more)
    worlds = worlds_of(case)
    exact = case.with_epsilon(1e9)  # rounds to a rate at which noise is never seen
    for table, expected in zip(worlds.tables, ("here", "there"), strict=True):
        fitted = exact.fit(table, 0).model_
        changed = worlds.changed(fitted)
        assert noisy_counts(fitted.counts, changed.ids).tolist() == getattr(changed, expected).tolist()


def test_evidence_is_the_log_likelihood_ratio():
    case = configuration()
    worlds, model = worlds_of(case), case.model()
    law, changed = model.noise_laws[0], worlds.changed(model)
    for seen in range(-4, 6):
        found = log_ratio(model, worlds, changed, np.full(len(changed.ids), seen))
        expected = sum(
            log_probability(law, seen - here) - log_probability(law, seen - there)
            for here, there in zip(changed.here.tolist(), changed.there.tolist(), strict=True)
        )
        assert found == pytest.approx(expected)


def test_evidence_of_a_cell_that_is_not_listed_is_that_of_a_count_below_the_threshold():
    model = configuration(counts="sparse", bins=64, sparse_size=4).model()
    law, tau = model.noise_laws[0], model.counts.tau
    below = [sum(math.exp(log_probability(law, z)) for z in range(-200, tau - count)) for count in (3, 2)]
    found = log_ratios_of_counts(model, np.array([0, tau]), np.array([3, 3]), np.array([2, 2]))
    assert found[0] == pytest.approx(math.log(below[0] / below[1]))
    assert found[1] == pytest.approx(float(law.rate))


@RELATIONS
@pytest.mark.parametrize(("detector", "n_features"), [("forest", 1), ("marginals", 3)])
def test_scores_give_the_counts_away(detector, n_features, relation):
    """For all but a few runs, in which several counts are equal, the evidence of scores is that of the counts themselves."""
    case = configuration(detector, n_features, neighbours=relation)
    seen = observe(case, ("counts", "scores"), world=0, first=0, runs=200, seed=1)
    agree = np.isclose(seen["counts"].evidence, seen["scores"].evidence)
    assert agree.mean() > 0.9


def test_the_score_of_a_grid_tells_whether_a_count_reaches_k():
    seen = observe(configuration(k=4), ("counts", "scores"), world=1, first=0, runs=300, seed=1)
    assert np.array_equal(seen["counts"].evidence > 0, seen["scores"].evidence > 0)
    assert 0.1 < (seen["scores"].evidence > 0).mean() < 0.9


@pytest.mark.parametrize("kind", ["grid", "sparse grid", "marginals"])
def test_a_file_is_read_as_it_was_released(kind, tmp_path):
    detector, n_features, more = KINDS[kind]
    case = configuration(detector, n_features, **more)
    worlds = worlds_of(case)
    fitted = case.fit(worlds.tables[0], 3)
    opened = open_file(fitted.save(tmp_path / "model"))
    ids = cells_of(fitted.model_, np.random.default_rng(0).random((50, n_features))).reshape(-1, 2)
    assert opened.look_up(ids).tolist() == noisy_counts(fitted.model_.counts, np.ascontiguousarray(ids)).tolist()


def test_the_rest_of_a_file_is_the_same_for_other_rows_and_other_noise_but_not_for_other_words(tmp_path):
    case = configuration()
    here, there = worlds_of(case).tables
    first = open_file(case.fit(here, 1).save(tmp_path / "model", overwrite=True)).rest
    second = open_file(case.fit(there, 1).save(tmp_path / "model", overwrite=True)).rest
    other = open_file(case.with_epsilon(2).fit(here, 1).save(tmp_path / "model", overwrite=True)).rest
    assert first == second != other
    path = case.fit(here, 1).save(tmp_path / "model", overwrite=True)
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"5 rows"
    assert open_file(path).rest != first
    assert open_file(case.fit(here, 1).save(tmp_path / "5 rows")).rest != first


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_evidence_of_private_estimates_is_their_log_likelihood_ratio(relation):
    """The number of rows, and the histogram of scores, whose bins the attacker works out from the released counts."""
    case = configuration(
        bins="auto", k=50, n_rows_hint="estimate", target_fpr=0.1, neighbours=relation, tight_ranges=True
    )
    worlds = worlds_of(case)
    for seed in range(5):
        model = case.fit(worlds.tables[0], seed).model_
        tables = [np.asarray(table) for table in worlds.tables]
        exact = {"number of rows": [[len(table)] for table in tables]}
        levels = model.score_histogram.levels
        scores = [model.own_scores(Rows(table, model.domain)) for table in tables]
        exact["threshold"] = [np.bincount(bin_of(own, levels), minlength=len(levels)).tolist() for own in scores]
        noisy = {"number of rows": [model.n_rows_hint], "threshold": model.score_histogram.counts.tolist()}
        expected = 0.0
        for charge in model.charges:
            if charge.purpose in exact:
                law, (here, there) = DiscreteLaplace(charge.rate), exact[charge.purpose]
                for seen_here, a, b in zip(noisy[charge.purpose], here, there, strict=True):
                    expected += log_probability(law, seen_here - a) - log_probability(law, seen_here - b)
        assert other_releases(model, worlds) == pytest.approx(expected)
        assert {charge.purpose for charge in model.charges} == {"number of rows", "threshold", "counts"}


def test_without_a_seed_every_run_has_the_noise_of_the_system():
    """Two audits differ, and so do the two worlds and the fits of one audit."""
    evidence = [
        observe(configuration(epsilon=0.1), ("counts",), 1, 0, 60, None)["counts"].labels[:, 0] for _ in range(2)
    ]
    assert evidence[0].tolist() != evidence[1].tolist()
    canaries = canaries_of(configuration(bins=4000), 1000)
    fits = [guess_coins(canaries, ("counts",), 0, None)["counts"] for _ in range(2)]
    assert fits[0].evidence.tolist() != fits[1].evidence.tolist()
    assert fits[0].coins.tolist() != fits[1].coins.tolist()


def test_with_a_seed_worlds_and_fits_still_have_noise_of_their_own():
    case = configuration(epsilon=0.1)
    worlds = [observe(case, ("counts",), world, 0, 60, 1)["counts"].labels[:, 0].tolist() for world in (0, 1)]
    moved = [hash(float(count) + 1) for count in range(-2000, 2000)]
    assert worlds[0] != worlds[1]
    assert sum(moved[2000 + int(b)] == a for a, b in zip(*worlds, strict=True) if abs(b) < 2000) < 30
    canaries = canaries_of(configuration(bins=4000), 1000)
    fits = [guess_coins(canaries, ("counts",), fit, 1)["counts"] for fit in (0, 1)]
    right = [(one.evidence > 0) == one.coins for one in fits]
    assert right[0].tolist() != right[1].tolist()


def test_the_same_seed_gives_the_same_runs_however_they_are_dealt():
    whole = observe(configuration(), ("counts",), world=0, first=0, runs=30, seed=7)["counts"].evidence
    parts = [observe(configuration(), ("counts",), 0, first, 10, 7)["counts"].evidence for first in (0, 10, 20)]
    assert whole.tolist() == np.concatenate(parts).tolist()
    assert len(set(observe(configuration(), ("counts",), 0, 0, 30, 8)["counts"].evidence) | set(whole)) > 1


def seen(evidence, count=0, rest=0):
    evidence = np.asarray(evidence, float)
    labels = [np.broadcast_to(np.asarray(label, np.int64), evidence.shape) for label in (count, rest)]
    return Seen(evidence, np.stack(labels, axis=1))


def test_an_event_is_chosen_on_some_runs_and_counted_on_the_others():
    """What only the runs of practice show is worth nothing."""
    practice, n = 200, 1000
    one, other = np.zeros(n), np.zeros(n)
    one[:practice] = 5
    event = choose_event(seen(one[:practice]), seen(other[:practice]))
    assert {event.hits(seen(one[:practice])), event.hits(seen(other[:practice]))} == {0, practice}
    assert bound_epsilon(seen(one), seen(other)).reported == 0
    one[:] = 5
    assert bound_epsilon(seen(one), seen(other)).reported > 4


def test_a_label_that_shows_up_in_one_world_only_is_found():
    odd = np.arange(2000) % 2
    found = bound_epsilon(seen(np.zeros(2000), rest=odd), seen(np.zeros(2000)))
    assert found.certain > 3
    assert "beside the counts" in found.event
    found = bound_epsilon(seen(np.zeros(2000), count=odd), seen(np.zeros(2000)))
    assert found.certain > 3
    assert "value of the counts" in found.event


def test_of_many_labels_the_common_ones_are_tried():
    """A label that half of all runs of one world have, among a thousand that come up once."""
    one, other = np.arange(4000), np.arange(4000) + 10**6
    one[::2] = -1
    assert bound_epsilon(seen(np.zeros(4000), rest=one), seen(np.zeros(4000), rest=other)).certain > 3


def test_an_event_reads_its_bounds():
    event = Event(None, 1.0, math.inf, first=True)
    assert event.hits(seen([0, 1, 2])) == 2
    assert "at least 1" in str(event)
    assert "without" in str(Event(None, -math.inf, 3.0, first=False))


@RELATIONS
@pytest.mark.parametrize("kind", ["grid", "forest of four features", "marginals", "people"])
def test_canaries_share_no_cell_and_lie_where_their_coins_say(kind, relation):
    detector, n_features, more = KINDS[kind]
    sizes = {"grid": {"bins": 500}, "forest": {"depth": 8, "subspace": 4}, "marginals": {"bins": 300}}[detector]
    case = configuration(detector, n_features, **{**more, **sizes}, neighbours=relation)
    canaries = canaries_of(case, 40)
    sides = 1 + (relation == REPLACE)
    taken = canaries.cells[:, :sides].reshape(-1, 2)
    assert len(np.unique(taken, axis=0)) == len(taken)
    assert len(canaries.places) >= 20
    coins = np.arange(len(canaries.places)) % 3 == 0
    model = case.with_epsilon(1e9).fit(canaries.table(coins), 0).model_
    counts = noisy_counts(model.counts, np.ascontiguousarray(taken)).reshape(len(coins), sides, -1)
    own = case.arguments.get("rows_per_person", 1)
    assert (counts[:, 0] == np.where(coins, own, 0)[:, np.newaxis] + canaries.crowd).all()
    if relation == REPLACE:
        assert (counts[:, 1] == np.where(coins, 0, own)[:, np.newaxis] + canaries.crowd).all()


def test_coins_are_fair_and_fresh():
    canaries = canaries_of(configuration(bins=4000), 1000)
    found = [guess_coins(canaries, ("counts",), fit, 1)["counts"].coins for fit in range(4)]
    assert all(400 < coins.sum() < 600 for coins in found)
    assert len({coins.tobytes() for coins in found}) == 4


def test_only_strong_evidence_is_worth_a_guess():
    """Weak evidence is not better than a coin, and would dilute strong evidence."""
    random = np.random.default_rng(0)

    def fit(n=4000):
        coins = random.random(n) < 0.5
        strong = random.random(n) < 0.1
        truthful = np.where(coins, 1.0, -1.0) * np.where(random.random(n) < 0.9, 1, -1)
        return Guesses(np.where(strong, 3 * truthful, random.choice([-0.1, 0.1], n)), coins)

    reported, certain, made = bound_by_guesses([fit() for _ in range(10)])
    assert certain < reported < math.log(9)
    assert reported > 1.8
    assert made < 5000
    assert bound_by_guesses([Guesses(np.zeros(10), np.ones(10, bool))] * 3) == (0.0, 0.0, 0)
