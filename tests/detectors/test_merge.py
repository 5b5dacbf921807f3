"""Merging: counts and noise add up, epsilons by maximum or sum, and what does not belong together is refused."""

import json
import zipfile
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import naive
from cell_numbers import cell_numbers
from dpoutlier import KNN, Category, DPForest, DPGridKNN, DPMarginals, GridKNN, PrivateBounds, load, merge
from dpoutlier.counts.add import added
from dpoutlier.counts.dense import DenseCounts
from dpoutlier.exceptions import InvalidParameterError, ModelFileError, SecretError, ThresholdNotSetError
from dpoutlier.model.release_id import release_id
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.noise.mechanism import Cost, Sensitivity
from dpoutlier.partitions.grid import Grid
from dpoutlier.privacy.guarantee import Charge, Guarantee, Purpose
from dpoutlier.scoring.log_counts import UNIT

NAMES = {"age": (0, 1), "bmi": (0, 2), "crp": (-1, 1)}
ROWS = [np.random.default_rng(i).uniform(size=(200 + 100 * i, 3)) for i in range(4)]
POINTS = np.random.default_rng(9).uniform(size=(40, 3))
quiet = pytest.mark.filterwarnings("ignore::dpoutlier.exceptions.UnsafeWarning")


def grid(epsilon=1, **kw):
    return DPGridKNN(epsilon, **{"features": NAMES, "bins": [2, 3, 4], "k": 30, **kw})


def forest(epsilon=1, **kw):
    return DPForest(epsilon, **{"features": NAMES, "n_trees": 3, "depth": 4, "subspace": 2, **kw})


def marginals(epsilon=1, **kw):
    return DPMarginals(epsilon, **{"features": NAMES, "bins": [3, 4, 5], **kw})


KINDS = {"grid": grid, "forest": forest, "marginals": marginals}
EACH_KIND = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


@EACH_KIND
def test_counts_add_up_and_the_rest_stays(make, tmp_path):
    fits = [make(epsilon).fit(rows) for epsilon, rows in zip((1, "1/3", 2), ROWS)]
    paths = [fit.save(tmp_path / f"{i}") for i, fit in enumerate(fits)]
    found = merge([fits[0], str(paths[1]), load(paths[2])], people="disjoint")
    model, first = found.model_, fits[0].model_
    assert model.counts.counts.tolist() == sum(fit.model_.counts.counts for fit in fits).tolist()
    assert (model.detector, model.domain, model.partition) == (first.detector, first.domain, first.partition)
    assert model.publishable
    assert (model.n_rows_hint, model.score_histogram, model.threshold) == (None, None, None)
    again = load(found.save(tmp_path / "all"))
    assert (again.outlier_scores(POINTS) == found.outlier_scores(POINTS)).all()
    assert again.model_.merged == model.merged
    assert again.privacy_statement() == found.privacy_statement()
    assert again.save(tmp_path / "again").read_bytes() == (tmp_path / "all.dpo").read_bytes()
    assert type(again.estimator()) is type(fits[0])
    assert (again.estimator().outlier_scores(POINTS) == found.outlier_scores(POINTS)).all()
    assert again.estimator().fit(ROWS[0]).model_.merged is None


@EACH_KIND
@pytest.mark.parametrize("people", ["disjoint", "overlapping"])
def test_epsilons_are_the_largest_or_the_sum_to_the_last_digit(make, people):
    fits = [make(epsilon, target_fpr=0.1 if epsilon == "0.7" else None).fit(ROWS[0]) for epsilon in ("1/3", "0.7", 1)]
    model = merge(fits, people=people).model_
    together = max if people == "disjoint" else sum
    assert model.guarantee.epsilon == together([Fraction(1, 3), Fraction("0.7"), Fraction(1)])
    in_use = [fit.model_.epsilon_in_use for fit in fits]
    assert model.epsilon_in_use == together(in_use) <= model.guarantee.epsilon
    assert len(model.charges) == 4
    assert sorted(map(str, model.charges)) == sorted(str(charge) for fit in fits for charge in fit.model_.charges)


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_on_a_grid_are_those_of_algorithm_1_on_the_summed_counts(weighted):
    fits = [grid(weighted=weighted).fit(rows) for rows in ROWS[:3]]
    total = sum(fit.model_.counts.counts for fit in fits).tolist()
    rule = {key: value for key, value in fits[0].model_.scorer.to_json().items() if key != "name"}
    lows, highs = zip(*NAMES.values())
    points = [[naive.position(x, low, high) for x, low, high in zip(row, lows, highs)] for row in POINTS]
    expected = [naive.score(point, (2, 3, 4), total.__getitem__, **rule)[0] for point in points]
    assert merge(fits, people="disjoint").outlier_scores(POINTS).tolist() == expected


def test_scores_of_marginals_are_logarithms_of_summed_counts_with_a_floor_as_wide_as_the_summed_noise():
    fits = [marginals(epsilon).fit(rows) for epsilon, rows in zip(("0.05", "0.2"), ROWS)]
    found = merge(fits, people="disjoint")
    scale = (60**2 + 15**2) ** 0.5  # rows: three features over epsilon
    assert found.model_.scorer.floor == pytest.approx(UNIT * scale / 2, abs=2)
    totals = np.split(sum(fit.model_.counts.counts for fit in fits), np.cumsum([3, 4]))
    floor = found.model_.scorer.floor / UNIT
    for point, score in zip(POINTS, found.outlier_scores(POINTS)):
        cube = [(x - low) / (high - low) for x, (low, high) in zip(point, NAMES.values())]
        own = [max(total[int(u * len(total))], floor) for u, total in zip(cube, totals)]
        assert score == pytest.approx(-np.log(own).mean(), abs=1e-8)


def test_a_merged_forest_explains_itself_and_takes_a_threshold_on_scores_only(tmp_path):
    found = merge([forest(target_fpr=0.1).fit(rows) for rows in ROWS], people="disjoint")
    explained = found.explain(POINTS)
    assert np.allclose(explained.contributions.sum(axis=1), explained.scores - explained.typical_score)
    with pytest.raises(ThresholdNotSetError, match="Each part has a histogram of its own scores only"):
        found.set_threshold(target_fpr=0.1)
    with pytest.raises(ThresholdNotSetError, match="no threshold is set"):
        found.predict(POINTS)
    found.set_threshold(score=0.7)
    assert load(found.save(tmp_path / "m")).predict(POINTS).tolist() == found.predict(POINTS).tolist()


@EACH_KIND
def test_neither_order_nor_grouping_shows(make, tmp_path):
    a, b, c, d = (make().fit(rows) for rows in ROWS)
    flat = merge([a, b, c, d], people="overlapping").save(tmp_path / "flat").read_bytes()
    left = merge([d, merge([c, merge([b, a], people="overlapping")], people="overlapping")], people="overlapping")
    both = merge([merge([a, c], people="overlapping"), merge([b, d], people="overlapping")], people="overlapping")
    assert left.save(tmp_path / "left").read_bytes() == flat == both.save(tmp_path / "both").read_bytes()


def test_the_same_release_is_found_again_wherever_it_hides(tmp_path):
    a, b, c = (grid(target_fpr=0.1).fit(rows) for rows in ROWS[:3])
    path = a.save(tmp_path / "a")
    a.set_threshold(score=0.25)
    moved = a.save(tmp_path / "moved")  # another file of the same release
    assert path.read_bytes() != moved.read_bytes()
    pair = merge([path, b], people="disjoint")
    for again in ([path, moved], [a, a], [b, pair], [pair, pair], [pair, merge([moved, c], people="disjoint")]):
        with pytest.raises(InvalidParameterError, match=r"hold the same release .* would count twice"):
            merge(again, people="disjoint")
    assert merge([pair, c], people="disjoint").model_.counts.counts.sum() == sum(
        fit.model_.counts.counts.sum() for fit in (a, b, c)
    )


def test_another_fit_on_the_same_rows_is_another_release():
    found = merge([grid().fit(ROWS[0]), grid().fit(ROWS[0])], people="overlapping")
    assert found.guarantee_.epsilon == 2


def test_release_ids_are_frozen():
    """Merged models of older versions keep the ids of their parts, so every part must keep its id."""
    model = grid().fit(ROWS[0][:0]).model_
    rate = Fraction(1, 2)
    made = replace(
        model,
        partition=Grid((2, 3, 4)),
        counts=DenseCounts(np.arange(-4, 20)),
        guarantee=Guarantee(Fraction(1, 2)),
        charges=(Charge(Purpose.COUNTS, rate, Sensitivity(1), DiscreteLaplace(rate)),),
    )
    assert release_id(made) == release_id(replace(made, threshold=3.0))
    assert release_id(made) != release_id(replace(made, counts=DenseCounts(np.arange(-5, 19))))
    assert release_id(made) == "7c32214a571e3daaccf6c508dce5de070588d9f6b328fda8257317a0b697da21"


@quiet
@pytest.mark.parametrize(
    ("other", "message"),
    [
        (grid(bins=[2, 3, 5]), "differ in their bins or trees"),
        (grid(features={**NAMES, "crp": (-1, 2)}), r"differ in their upper bounds: \(1.0, 2.0, 1.0\) and \(1.0, 2.0, 2.0\)"),
        (grid(features={**NAMES, "crp": (-2, 1)}), "differ in their lower bounds"),
        (grid(features=([0, 0, -1], [1, 2, 1])), "differ in their features"),
        (grid(neighbours="replace-one"), "differ in their neighbouring relation"),
        (grid(rows_per_person=2), "differ in their unit"),
        (grid(k=31), "differ in their scoring rule"),
        (grid(weighted=True), "differ in their scoring rule"),
        (marginals(bins=[2, 3, 4]), "differ in their detector"),
        (forest(), "differ in their detector"),
        (grid(counts="keyed"), "model 2 is secret"),
        (grid(unsafe_seed=1), "model 2 is secret"),
        (grid(np.inf), "model 2 is secret"),
        (GridKNN(NAMES, bins=[2, 3, 4], k=30), "model 2 is secret"),
        (KNN(features=NAMES), "model 2 must be the path of a model file, or a fitted detector with a model"),
    ],
)  # fmt: skip
def test_what_does_not_belong_together_is_refused(other, message):
    with pytest.raises((InvalidParameterError, SecretError), match=message):
        merge([grid().fit(ROWS[0]), other.fit(ROWS[1])], people="disjoint")


@pytest.mark.parametrize(("argument", "value"), [("tree_seed", 1), ("n_trees", 4), ("depth", 3), ("subspace", 1)])
def test_forests_of_other_trees_are_refused(argument, value):
    with pytest.raises(InvalidParameterError, match="differ in their bins or trees"):
        merge([forest().fit(ROWS[0]), forest(**{argument: value}).fit(ROWS[1])], people="disjoint")


def test_secret_files_are_refused_and_named(tmp_path):
    public, secret = grid().fit(ROWS[0]).save(tmp_path / "a"), grid(counts="keyed").fit(ROWS[1]).save(tmp_path / "b")
    with pytest.raises(SecretError, match=r"b\.secret\.dpo is secret.*only publishable releases are merged"):
        merge([public, secret], people="disjoint")


@pytest.mark.parametrize("people", ["", "all", None, True])
def test_who_is_in_the_releases_must_be_said_and_the_error_says_what_it_means(people):
    fits = [grid().fit(rows) for rows in ROWS[:2]]
    with pytest.raises(InvalidParameterError, match=r"nobody has rows in more than one.*add up") as caught:
        merge(fits, people=people)
    assert "'disjoint' or 'overlapping'" in str(caught.value)
    with pytest.raises(TypeError, match="people"):
        merge(fits)


@pytest.mark.parametrize("people", ["disjoint", "overlapping"])
def test_merges_of_other_people_do_not_mix(people):
    a, b, c = (grid().fit(rows) for rows in ROWS[:3])
    other = {"disjoint": "overlapping", "overlapping": "disjoint"}[people]
    with pytest.raises(InvalidParameterError, match=f"model 2 is already a merge of {other} people"):
        merge([a, merge([b, c], people=other)], people=people)


@pytest.mark.parametrize("models", [[], "a.dpo", ["one"]])
def test_too_few_models_are_refused(models):
    given = [grid().fit(ROWS[0])] if models == ["one"] else models
    with pytest.raises(InvalidParameterError, match="models must be"):
        merge(given, people="disjoint")
    with pytest.raises(InvalidParameterError, match="models must be"):
        merge(grid().fit(ROWS[0]), people="disjoint")


def test_a_detector_that_was_never_fitted_is_refused():
    with pytest.raises(NotFittedError):
        merge([grid().fit(ROWS[0]), grid()], people="disjoint")


def test_epsilons_that_no_file_could_hold_are_refused():
    primes = [10**29 + shift for shift in (319, 357, 561, 763, 867, 873, 889, 931)]
    fits = [marginals(Fraction(prime - 2, prime)).fit(ROWS[0]) for prime in primes]
    with pytest.raises(InvalidParameterError, match="more than 200 digits"):
        merge(fits, people="overlapping")
    huge = [marginals("9e8").fit(rows) for rows in ROWS[:2]]
    with pytest.raises(InvalidParameterError, match="more than 1e9"):
        merge(huge, people="overlapping")


def test_counts_that_no_file_could_hold_are_refused():
    large = DenseCounts(np.array([2**37, 0]))
    assert added([large, DenseCounts(np.array([1, -(2**38) + 1]))]).counts.tolist() == [2**37 + 1, 1 - 2**38]
    for other in ([2**37, 0], [0, -(2**38)]):
        with pytest.raises(InvalidParameterError, match="merged counts must be below"):
            added([large, DenseCounts(np.array(other))])


def test_the_statement_says_who_declared_what_and_how_the_noise_grew():
    fits = [grid(epsilon, rows_per_person=2, target_fpr=0.1).fit(ROWS[0]) for epsilon in (1, "0.5")]
    statement = merge(fits, people="disjoint").privacy_statement()
    page = " ".join(str(statement).split())
    for text in (
        "declared disjoint",
        "all of them in one part",
        "epsilon (of this merge) 1",
        "2 (replace-one)",
        "together 1",
    ):
        assert text in page
    scales = [2 / 0.8, 2 / 0.4]
    wide = f"{np.hypot(*scales):.6g}"
    assert statement.merged["noise_scale_rows"] == wide
    assert f"a single noise of scale {wide} rows" in page
    assert {charge["purpose"] for charge in statement.charges} >= {"counts, part 2", "threshold, part 1"}
    overlapping = merge(fits, people="overlapping").privacy_statement()
    assert "declared disjoint" not in str(overlapping)
    assert overlapping.epsilon == "1.5"
    assert overlapping.unit == "one person, with at most 2 rows in each of the 2 parts"
    single = merge([grid().fit(rows) for rows in ROWS[:2]], people="overlapping").privacy_statement()
    assert single.unit == "one person, with at most 1 row in each of the 2 parts"


def test_the_file_of_a_single_release_says_nothing_of_merging(tmp_path):
    single, both = grid().fit(ROWS[0]), merge([grid().fit(rows) for rows in ROWS[:2]], people="disjoint")
    for found, is_merge in ((single, False), (both, True)):
        with zipfile.ZipFile(found.save(tmp_path / f"{is_merge}")) as archive:
            manifest = json.loads(archive.read("manifest.json"))
        assert ("merged" in manifest) is ("merged" in manifest["statement"]) is is_merge


# Features of all kinds, people, and private bounds --------------------------------------------------------------------------

KINDS = {"features": {"a": (0, 1)}, "categories": {"b": ["x", "y"]}, "missing": ["a"], "person": "who"}
PEOPLE = pd.DataFrame({"who": [1, 2, 3], "a": [0.1, 0.2, np.nan], "b": ["x", "y", "z"]})


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"categories": {"b": ["x", "z"]}}, "differ in their levels"),
        ({"categories": {"b": Category(["x", "y", "z"], other=False)}}, "differ in their (levels|bins)"),
        ({"missing": ["a", "b"]}, "differ in their (upper bounds|cells for missing values)"),
        ({"missing": "error"}, "differ in their cells for missing values"),
        ({"person": None}, "differ in how people are identified"),
        ({"rows_per_person": 2}, "differ in their unit"),
    ],
)
def test_releases_that_count_other_things_or_people_are_refused(other, message):
    one = DPMarginals(1, **KINDS).fit(PEOPLE)
    table = PEOPLE.drop(columns="who") if "person" in other else PEOPLE
    two = DPMarginals(1, **{**KINDS, **other}).fit(table)
    with pytest.raises(InvalidParameterError, match=message):
        merge([one, two], people="disjoint")


def test_releases_of_all_kinds_add_up(tmp_path):
    fits = [DPForest(1, **KINDS, n_trees=3, depth=4).fit(PEOPLE) for _ in range(2)]
    merged = merge(fits, people="disjoint")
    assert (merged.model_.counts.counts == sum(fit.model_.counts.counts for fit in fits)).all()
    again = load(merged.save(tmp_path / "m"))
    assert (again.outlier_scores(PEOPLE) == merged.outlier_scores(PEOPLE)).all()
    assert again.privacy_statement().unit == "one person, with at most 1 row, all of them in one part"


@pytest.mark.parametrize("people", ["disjoint", "overlapping"])
def test_private_bounds_of_one_part_others_may_declare_and_their_cost_is_kept(people, tmp_path, monkeypatch):
    monkeypatch.setattr("dpoutlier.trusted.fit.choose_quantiles", lambda counts, *_: [(2.0, 3.0)] * len(counts.outer))
    rows = pd.DataFrame(np.random.default_rng(0).uniform(0, 9, (50, 2)), columns=["a", "b"])
    estimated, declared = PrivateBounds(share=0.2, outer=(-100, 100)), (-1.0, 6.0)
    fits = [
        DPMarginals(1, features={"a": estimated, "b": estimated}).fit(rows),
        DPMarginals(1, features={"a": estimated, "b": declared}).fit(rows),
        DPMarginals("1/2", features={"a": declared, "b": declared}).fit(rows),
    ]
    merged = merge(fits, people=people)
    assert merged.model_.domain == fits[2].model_.domain
    paths = [merge(order, people=people).save(tmp_path / f"m{i}") for i, order in enumerate([fits, fits[::-1]])]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    again = load(paths[0])
    assert again.guarantee_.epsilon == (1 if people == "disjoint" else Fraction(5, 2))
    paid = [charge.sensitivity.l1 for charge in again.model_.charges if charge.purpose == "bounds"]
    assert sorted(paid) == [2, 4]
    assert (
        again.privacy_statement().bounds_source
        == "declared by the custodians, and estimated or narrowed by some of the parts (with epsilon, see charges)"
    )
    assert again.estimator().features._share() is None


def test_private_bounds_that_differ_are_refused_with_a_remedy():
    rows = np.random.default_rng(0).uniform(0, 9, (50, 1))
    one, two = (DPMarginals(1, features=PrivateBounds(outer=(-1e6, 1e6))).fit(rows) for _ in range(2))
    assert one.model_.domain != two.model_.domain
    with pytest.raises(
        InvalidParameterError, match=r"differ in their (lower|upper) bounds.*let the others declare them"
    ):
        merge([one, two], people="disjoint")


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_merged_grid_gives_an_estimator(kind):
    rows = np.random.default_rng(0).uniform(size=(300, 2))
    fits = [DPGridKNN(1, features=(0, 1), bins=8, counts=kind, sparse_size=5).fit(rows) for _ in range(2)]
    merged = merge(fits, people="disjoint")
    assert merged.estimator().get_params()["counts"] == kind
    listed = (
        {} if kind == "dense" else [dict(zip(cell_numbers(f.model_.counts.ids), f.model_.counts.noisy)) for f in fits]
    )
    if kind == "sparse":
        total = dict(zip(cell_numbers(merged.model_.counts.ids), merged.model_.counts.noisy))
        assert total == {c: listed[0].get(c, 0) + listed[1].get(c, 0) for c in {*listed[0], *listed[1]}}
        with pytest.raises(TypeError, match="merged sparse models"):
            merged.count_intervals(rows[:2])


@pytest.mark.parametrize("sensitivity", [1, 3, 6, 8])
def test_a_part_cannot_have_private_bounds_of_more_features_than_there_are(sensitivity, tmp_path, monkeypatch):
    monkeypatch.setattr("dpoutlier.trusted.fit.choose_quantiles", lambda counts, *_: [(2.0, 3.0)] * len(counts.outer))
    rows = pd.DataFrame({"a": [1.0], "b": [1.0], "c": ["x"]})
    bounds = {"a": PrivateBounds(outer=(-9, 9)), "b": PrivateBounds(outer=(-9, 9)), "c": Category(["x", "y"])}
    fits = [DPMarginals(1, features=bounds).fit(rows) for _ in range(2)]
    path = merge(fits, people="disjoint").save(tmp_path / "m")

    def change(manifest):
        rate = str(DiscreteLaplace.costing(Cost(Fraction(1, 10)), Sensitivity(sensitivity)).rate)
        for charge in (*manifest["merged"]["parts"][0]["charges"][:1], manifest["charges"][0]):
            charge.update(sensitivity=sensitivity, rate=rate)

    from forging import rewritten

    with pytest.raises(ModelFileError, match="charge"):
        load(rewritten(path, tmp_path / "forged.dpo", change=change))
