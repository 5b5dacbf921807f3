"""Finding ranges: what a look costs over all small data sets, what a row can change, what all charges add up to, what comes out."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from dpoutlier import Category, DPForest, DPGridKNN, DPMarginals, Marginals, PrivateBounds, load, merge
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features import windows
from dpoutlier.model.looks import Kind, first_look, second_look
from dpoutlier.noise.sources import UnsafeSeededBytes
from dpoutlier.tables.rows import Rows
from dpoutlier.trusted import ranges
from dpoutlier.trusted.queries import StreamedReference
from dpoutlier.trusted.ranges import find_ranges
from dpoutlier.trusted.reference import read_reference
from lazy_frames import ENGINES, SPECIAL, lazy
from naive_choice import integral_law

pytestmark = pytest.mark.filterwarnings("ignore:NOT PRIVATE")

ADD, REPLACE = "add-or-remove-one", "replace-one"
N_HINT = 4
TEST_CANDIDATES = len(windows.eighths().first)


class Choices(list):
    """The utilities and the rate of each choice of a fit; ``go_on`` says whether a test finds the ranges too wide."""

    def __init__(self, go_on):
        super().__init__()
        self.go_on, self.tests = go_on, {TEST_CANDIDATES}

    def __call__(self, utilities, rate, source):  # noqa: ARG002 - it takes the place of permute_and_flip
        self.append((tuple(utilities.tolist()), rate))
        return int(self.go_on and len(utilities) in self.tests)


@pytest.fixture
def few_cells(monkeypatch):
    """Ranges of 8 cells: 19 windows, and 9 of a test."""
    windows._layout.cache_clear()
    monkeypatch.setattr(windows, "LEVELS", 3)
    monkeypatch.setattr(windows, "CELLS", 8)
    yield
    windows._layout.cache_clear()


def looked(unfitted, rows, go_on, monkeypatch):
    """What the looks of a fit choose from, what they charge, and the plan. No other part of the fit is made."""
    declared = unfitted._declared()
    domain = unfitted._declared_domain(rows, declared)
    plan = unfitted._plan(domain, declared._share())
    choices = Choices(go_on)
    choices.tests.add(9)
    monkeypatch.setattr(ranges, "permute_and_flip", choices)
    reference = StreamedReference(read_reference(rows, domain))
    found = find_ranges(reference, domain, plan, plan.n_rows_hint, UnsafeSeededBytes(0))
    return choices, found.charges, plan


# What a look costs, exactly -----------------------------------------------------------------------------------------------

PATHS = {  # epsilon for rows that come or go, the number of features, whether the test goes on, and the looks
    "each": (40, 1, True, [Kind.EACH]),
    "each of two": (80, 2, True, [Kind.EACH]),
    "test": (25, 1, False, [Kind.TEST]),
    "test of two": (25, 2, False, [Kind.TEST]),
    "test and each": (25, 1, True, [Kind.TEST, Kind.EACH]),
    "test and each of two": (25, 2, True, [Kind.TEST, Kind.EACH]),
    "test and together": (10, 2, True, [Kind.TEST, Kind.TOGETHER]),
}
EACH_PATH = pytest.mark.parametrize("path", PATHS)
UNITS = pytest.mark.parametrize(("relation", "most"), [(ADD, 1), (REPLACE, 1), (ADD, 2)])
PLACES = {1: [(0.05,), (0.2,), (0.95,)], 2: [(0.05, 0.05), (0.05, 0.95), (0.2, 7.0), (np.nan, 0.95)]}


def unfitted(path, relation, most=1, **more):
    epsilon, _, _, _ = PATHS[path]
    epsilon *= (1 if relation == ADD else 2) * most
    arguments = {"neighbours": relation, "rows_per_person": most, "n_rows_hint": N_HINT, **more}
    return DPMarginals(epsilon, features=(0, 1), missing="cell", **arguments)


law = lru_cache(maxsize=None)(integral_law)


def log_ratio(one, other):
    """The largest over all outcomes of all choices of a fit, in which one window is chosen after the other."""
    assert [rate for _, rate in one] == [rate for _, rate in other]
    return sum(max(math.log(p / q) for p, q in zip(law(*a), law(*b))) for a, b in zip(one, other))


def are_neighbours(one, other, relation, most):
    one, other = Counter(one), Counter(other)
    less, more = (one - other).total(), (other - one).total()
    return less == more <= most if relation == REPLACE else min(less, more) == 0 < less + more <= most


@pytest.mark.usefixtures("few_cells")
@EACH_PATH
@UNITS
@pytest.mark.parametrize("alike", [1, 3], ids=lambda most: f"{most} alike")
def test_all_looks_of_a_fit_cost_at_most_what_is_charged_and_not_much_less(path, relation, most, alike, monkeypatch):
    """Over all data sets of up to three rows, of which so many with one value count: exact probabilities of all outcomes."""
    monkeypatch.setattr(windows, "MOST_ALIKE", Fraction(alike, N_HINT))
    _, n_features, go_on, kinds = PATHS[path]
    found = {}
    for n in range(4):
        for rows in itertools.combinations_with_replacement(PLACES[n_features], n):
            table = np.array(rows, float).reshape(-1, n_features)
            found[rows], charges, _ = looked(unfitted(path, relation, most), table, go_on, monkeypatch)
    assert len(charges) == len(kinds)
    assert {len(choices) for choices in found.values()} == {
        sum(n_features if kind is Kind.EACH else 1 for kind in kinds)
    }
    spent = float(sum(charge.epsilon_in_use for charge in charges))
    pairs = [pair for pair in itertools.permutations(found, 2) if are_neighbours(*pair, relation, most)]
    largest = max(log_ratio(found[one], found[other]) for one, other in pairs)
    assert (0.7 if alike == 3 else 0.4) * spent < largest <= spent * (1 + 1e-9)


@EACH_PATH
def test_the_rate_for_a_unit_of_weight_is_that_which_is_charged(path, monkeypatch):
    _, n_features, go_on, kinds = PATHS[path]
    for relation, factor in ((ADD, 1), (REPLACE, 2)):
        rows = np.zeros((3, n_features))
        choices, charges, plan = looked(unfitted(path, relation), rows, go_on, monkeypatch)
        assert [charge.sensitivity.l1 for charge in charges] == [factor * n_features] * len(kinds)
        sizes = [n_features if kind is Kind.EACH else 1 for kind in kinds]
        rates = [charge.rate / windows.UNIT for charge, n in zip(charges, sizes, strict=True) for _ in range(n)]
        assert [rate for _, rate in choices] == rates
        look = first_look(plan.n_rows_hint * plan._per_row, n_features)
        assert look.kind is kinds[0]
        assert charges[0].epsilon == plan.part(plan.left * look.share).epsilon


# What a row can change ----------------------------------------------------------------------------------------------------

LEVELS = Category(["x", "y"])
STAGES = Category([1, 2, 3], ordered=True)
KINDS = {"a": (0, 1), "b": (-5, 5), "e": PrivateBounds(0.1, (-10, 10)), "c": LEVELS, "d": STAGES}
number = st.floats(-6, 6) | st.sampled_from([*SPECIAL, 0.5, 1.0])
record = st.tuples(
    number, number, number, st.sampled_from(["x", "y", "other", None]), st.sampled_from([1.0, 3.0, 9.0, np.nan])
)


def of_kinds(rows):
    columns = list(zip(*rows)) or [()] * len(KINDS)
    types = [pa.float64(), pa.float64(), pa.float64(), pa.string(), pa.float64()]
    return pa.table([pa.array(own, kind) for own, kind in zip(columns, types)], list(KINDS))


@pytest.mark.parametrize(("n_hint", "expected"), [(5, [1, 1]), (12, [1, 2]), (1000, [2])], ids=str)
@settings(max_examples=25)
@given(st.lists(record, max_size=6), record)
def test_a_row_more_changes_utilities_within_the_interval_that_is_charged(n_hint, expected, rows, more):
    """Whatever kinds of features there are: only those with a declared range are looked at, and are charged."""
    make = DPMarginals(10, features=KINDS, missing=["a", "c"], n_rows_hint=n_hint)
    with pytest.MonkeyPatch.context() as patch:
        before, charges, plan = looked(make, of_kinds(rows), True, patch)
        after, same, _ = looked(make, of_kinds([*rows, more]), True, patch)
    assert charges == same
    assert plan.domain.loose == (0, 1)
    assert len(before) == len(after) == sum(expected)
    spent = Fraction(0)
    units = [2 // choices for choices in expected for _ in range(choices)]
    for (one, rate), (other, other_rate), n in zip(before, after, units):
        change = np.subtract(other, one)
        most = windows.UNIT * n
        assert rate == other_rate
        assert change.min() >= 0
        assert change.max() <= most
        spent += rate * most
    assert spent == sum(charge.epsilon_in_use for charge in charges)


@pytest.mark.parametrize(("path", "most"), [("each of two", [windows.UNIT] * 2), ("test of two", [2 * windows.UNIT])])
def test_that_interval_is_reached(path, most, monkeypatch):
    """By a row with both values in narrow windows; a missing value changes nothing, and values outside count at the ends."""
    monkeypatch.setattr(windows, "MOST_ALIKE", Fraction(1))

    def largest(*row):
        tables = np.empty((0, 2)), np.array([row])
        empty, one = (looked(unfitted(path, ADD), table, PATHS[path][2], monkeypatch)[0] for table in tables)
        return [int(max(np.subtract(b, a))) for (a, _), (b, _) in zip(empty, one)]

    assert largest(0.3, 0.3) == largest(-7.0, -np.inf) == most
    assert sum(largest(np.nan, 0.3)) == windows.UNIT
    assert sum(largest(np.nan, np.nan)) == 0


def test_how_many_rows_of_one_value_count_is_not_learned_from_them(monkeypatch):
    """64 rows with four values, each of which counts 8 times. A limit of an eighth of the rows would rise with the next row."""
    rows = np.repeat([0.1, 0.3, 0.6, 0.9], 16)[:, np.newaxis]
    for more in (0.1, 0.7):
        tables = rows, np.append(rows, [[more]], axis=0)
        make = DPMarginals(10, features=(0, 1), n_rows_hint=64)
        (before, after) = (looked(make, table, True, monkeypatch)[0] for table in tables)
        ((one, _),), ((other, _),) = before, after
        change = np.subtract(other, one)
        assert change.min() >= 0
        assert change.max() == (0 if more == 0.1 else windows.UNIT)


@settings(max_examples=50)
@given(st.lists(record, max_size=12))
def test_cells_are_counted_by_their_definition(rows):
    unfit = DPMarginals(10, features=KINDS, missing=["a", "c"], n_rows_hint=100)
    declared, table = unfit._declared(), of_kinds(rows)
    domain = unfit._declared_domain(table, declared)
    found = ranges._cell_counts(
        StreamedReference(read_reference(table, domain)), domain, unfit._plan(domain, declared._share())
    )
    places = Rows([np.array([row[j] for row in rows], float) for j in range(3)] + [np.zeros(len(rows))] * 2, domain)[:]
    n_parts = windows.CELLS * windows.FINER
    expected = np.zeros((2, n_parts), int)
    for row, place in zip(rows, places):
        for j in (0, 1):
            if not (
                j == 0 and math.isnan(row[0])
            ):  # without a cell of its own a missing value counts in the first cell
                expected[j, int(place[j]) * n_parts >> 32] += 1
    assert found.tolist() == expected.tolist()


def test_with_more_cells_than_can_be_counted_no_fit_looks(monkeypatch):
    """Cells of missing values are cells too. It is public, so nothing is read, and nothing is charged."""
    monkeypatch.setattr(ranges, "MAX_MEMBER_CELLS", 2 * windows.CELLS * windows.FINER + 1)
    for missing, n in (("error", 1), ("cell", 0)):
        make = DPMarginals(40, features=(0, 1), missing=missing, n_rows_hint=100)
        assert len(looked(make, np.zeros((2, 2)), True, monkeypatch)[1]) == n


# What all parts add up to -------------------------------------------------------------------------------------------------

DETECTORS = {
    "forest": lambda epsilon, **more: DPForest(epsilon, unsafe_seed=3, **more),
    "marginals": lambda epsilon, **more: DPMarginals(epsilon, unsafe_seed=3, **more),
    "grid": lambda epsilon, **more: DPGridKNN(epsilon, unsafe_seed=3, **more),
}
LOOSE, MIXED = (0, 1), {"a": (0, 1), "b": PrivateBounds(0.125, (-9, 9))}
ARGUMENTS = {
    "plain": {},
    "threshold": {"target_fpr": 0.1},
    "estimate": {"n_rows_hint": "estimate", "target_fpr": 0.1, "threshold_share": 0.1},
    "replace-one": {"neighbours": REPLACE, "features": MIXED},
    "people": {"rows_per_person": 2, "target_fpr": 0.1, "features": MIXED},
}


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize("own", ARGUMENTS)
@pytest.mark.parametrize("n_rows", [1, 8, 30, 100, 5000])
def test_all_parts_of_a_fit_add_up_to_epsilon_on_every_path(detector, own, n_rows, monkeypatch):
    """From few rows, for which it looks at nothing, to many; whether the test goes on or not."""
    more = {"features": LOOSE, "n_rows_hint": n_rows, "tight_ranges": False, **ARGUMENTS[own]}
    n_features = 1 if more["features"] is MIXED else 3
    columns = ["a", "b"] if more["features"] is MIXED else ["a", "b", "c"]
    rows = pd.DataFrame(np.zeros((n_rows, len(columns))), columns=columns)
    for go_on in (False, True):
        choices = Choices(go_on)
        monkeypatch.setattr(ranges, "permute_and_flip", choices)
        model = DETECTORS[detector]("2", **more).fit(rows if more["features"] is MIXED else rows.to_numpy()).model_
        charges, guarantee = model.charges, model.guarantee
        assert sum(charge.epsilon for charge in charges) == 2
        assert 2 - Fraction(1, 2**30) < model.epsilon_in_use <= 2
        estimated = [charge.epsilon for charge in charges if charge.purpose not in {"ranges", "counts"}]
        left = 2 - sum(estimated)
        power = model.n_rows_hint * left / guarantee.sensitivity().l1
        first = first_look(power, n_features)
        second = second_look(power, n_features) if first is not None and first.kind is Kind.TEST and go_on else None
        looks = [look for look in (first, second) if look is not None]
        paid = [charge for charge in charges if charge.purpose == "ranges"]
        assert [charge.epsilon for charge in paid] == [left * look.share for look in looks]
        assert {charge.sensitivity.l1 for charge in paid} <= {guarantee.sensitivity(n_features).l1}
        (counts,) = (charge for charge in charges if charge.purpose == "counts")
        assert counts.epsilon == left * (1 - sum(look.share for look in looks))
        assert len(choices) == sum(n_features if look.kind is Kind.EACH else 1 for look in looks)
        assert sum(rate * windows.UNIT for _, rate in choices) * guarantee.sensitivity().l1 <= sum(
            charge.epsilon * (1 if look.kind is Kind.EACH else Fraction(1, n_features))
            for charge, look in zip(paid, looks)
        )


def test_the_noise_of_the_counts_is_that_of_what_the_looks_left(monkeypatch):
    monkeypatch.setattr(ranges, "permute_and_flip", Choices(go_on=True))
    model = DPMarginals(3, features=LOOSE, n_rows_hint=100, unsafe_seed=4).fit(np.empty((0, 2))).model_
    *looks, counts = model.charges
    assert len(looks) == 2
    assert counts.epsilon < 3 - sum(charge.epsilon for charge in looks) + Fraction(1, 10**9)
    assert (model.counts.counts == counts.noise.draw(model.partition.n_cells, UnsafeSeededBytes(4))).all()


@pytest.mark.system_noise
def test_windows_are_drawn_from_the_system():
    """On no rows five fits choose the same windows of 8 features with a probability below 1e-30."""
    made = DPMarginals(1, features=(0, 1), n_rows_hint=10_000)
    assert len({made.fit(np.empty((0, 8))).model_.domain.lower for _ in range(5)}) > 1


# In memory, in engines, and for people ------------------------------------------------------------------------------------


def patients(n=600, seed=1):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": pa.array(rng.normal(60, 10, n), mask=rng.random(n) < 0.05),
            "dose.mg": pa.array(np.where(rng.random(n) < 0.1, rng.choice(SPECIAL, n), rng.gamma(2, 1, n))),
            "ward": pa.array([*rng.choice(["a", "b ", " c", "d", ""], n - 1), None]),
            "id": pa.array(rng.integers(0, n // 3, n), mask=rng.random(n) < 0.05),
        }
    )


WIDE = {"age": (-1e4, 1e4), "dose.mg": (-1e3, 1e3), "ward": Category(["a", "b", "c"])}


@pytest.mark.parametrize("people", [False, True], ids=["rows", "people"])
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_finds_the_ranges_that_are_found_in_memory(engine, people, request):
    """Over all kinds of features, with missing values; and narrowed ranges are what all later reads go by."""
    table = patients() if people else patients().drop_columns("id")
    more = {"person": "id", "rows_per_person": 2} if people else {}
    made = DPForest(4, features=WIDE, missing=["age", "ward"], n_rows_hint=600, target_fpr=0.1, unsafe_seed=7, **more)
    here, there = made.fit(table).model_, made.fit(lazy(engine, table, request)).model_
    assert here.domain.declared is not None
    assert there.domain == here.domain
    assert there.charges == here.charges
    assert (there.counts.counts == here.counts.counts).all()
    assert (there.score_histogram.counts == here.score_histogram.counts).all()


def test_looks_see_at_most_as_many_rows_of_a_person_as_are_counted(monkeypatch):
    """In every read: that of the looks, and those after it."""
    rows = pd.DataFrame({"who": np.repeat(range(5), 20), "a": np.linspace(0.2, 0.3, 100)})
    seen, real = [], ranges._cell_counts
    monkeypatch.setattr(ranges, "_cell_counts", lambda *given: seen.append(real(*given)) or seen[-1])
    made = DPMarginals(
        90, features={"a": (-99, 99)}, person="who", rows_per_person=3, n_rows_hint=100, target_fpr=0.1, unsafe_seed=0
    )
    model = made.fit(rows).model_
    assert model.domain.declared is not None
    assert seen[0].sum() == 15
    for released in (model.counts.counts, model.score_histogram.counts):
        assert abs(released.sum() - 15) < 15  # of 100 rows; noise of scale 1 or less in a dozen cells


# What comes out -----------------------------------------------------------------------------------------------------------


def test_ranges_a_hundred_times_too_wide_are_found():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 4))
    points = np.concatenate([rng.normal(size=(300, 4)), rng.normal(0, 4, (300, 4))])
    for make in (DPForest, DPMarginals):
        scores = {}
        for name, more in {
            "tight": {"features": (-5, 5), "tight_ranges": True},
            "found": {"features": (-300, 700)},
            "declared": {"features": (-300, 700), "tight_ranges": True},
        }.items():
            fitted = make(1, n_rows_hint=2000, unsafe_seed=1, **more).fit(rows)
            scores[name] = roc_auc_score(np.arange(600) >= 300, fitted.outlier_scores(points))
        assert scores["declared"] < 0.75
        assert scores["found"] > 0.9 * scores["tight"] > 0.85


@pytest.mark.parametrize("path", ["each of two", "test and each of two", "test and together", "test of two"])
def test_the_bounds_of_each_feature_are_those_of_its_own_window(path, monkeypatch):
    """A quarter of the first range and an eighth of the second; one window for both; or none, where a test is all."""
    _, _, go_on, kinds = PATHS[path]
    numbers, found = iter([6, 16, 16]), windows.windows(16.0)
    chosen = Choices(go_on)
    monkeypatch.setattr(
        ranges, "permute_and_flip", lambda u, *rest: chosen(u, *rest) if len(u) == TEST_CANDIDATES else next(numbers)
    )
    made = DPMarginals(PATHS[path][0], features=([0, -8], [16, 8]), n_rows_hint=N_HINT)
    domain = made.fit(np.zeros((2, 2))).model_.domain
    parts = [windows.widened(found, number) for number in ((6, 16) if kinds[-1] is Kind.EACH else (6, 6))]
    parts = [(0, 1), (0, 1)] if kinds[-1] is Kind.TEST else parts
    assert domain.lower == (16 * parts[0][0], -8 + 16 * parts[1][0])
    assert domain.upper == (16 * parts[0][1], -8 + 16 * parts[1][1])


def test_where_rows_lie_all_over_the_ranges_they_stay():
    """The narrowest window of a look at each feature then holds hardly any rows."""
    rows = np.random.default_rng(0).uniform(size=(5000, 4))
    model = DPMarginals(1, features=(0, 1), n_rows_hint=5000, unsafe_seed=0).fit(rows).model_
    assert [charge.purpose for charge in model.charges] == ["ranges", "counts"]
    assert model.domain.declared is None
    assert "a look at where the rows lie has left all as declared" in " ".join(str(model.privacy_statement()).split())


@pytest.fixture
def parts():
    rng = np.random.default_rng(3)
    return [pd.DataFrame(rng.normal(0, 1 + i, (400, 2)), columns=["a", "b"]) for i in range(2)]


def test_fits_that_found_other_ranges_are_not_merged_and_others_may_declare_what_one_has_found(parts, tmp_path):
    wide = {"features": {"a": (-500, 500), "b": (-500, 500)}}
    first, other = (DPMarginals(4, n_rows_hint=n, **wide).fit(part) for n, part in zip((400, 60), parts))
    assert first.model_.domain.declared is not None
    assert first.model_.domain.lower != other.model_.domain.lower
    with pytest.raises(
        InvalidParameterError, match=r"A fit has narrowed.*features=first.bounds_ and tight_ranges=True"
    ):
        merge([first, other], people="disjoint")
    second = DPMarginals(1, features=first.bounds_, tight_ranges=True).fit(parts[1])
    assert [charge.purpose for charge in second.model_.charges] == ["counts"]
    assert second.guarantee_.private
    merged = merge([first, second], people="overlapping")
    assert merged.model_.domain == second.model_.domain
    assert merged.guarantee_.epsilon == 5
    again = load(merged.save(tmp_path / "merged"))
    assert again.model_.charges == merged.model_.charges
    assert [charge.purpose for charge in again.model_.charges].count("ranges") == 1
    assert again.estimator().get_params()["tight_ranges"] is True
    assert repr(again.estimator().features) == repr(first.bounds_)
    points = parts[0].head(9)
    assert (again.outlier_scores(points) == merged.outlier_scores(points)).all()


def test_bounds_that_were_found_without_a_guarantee_void_that_of_a_fit_that_takes_them(parts, tmp_path):
    wide = {"a": (-500, 500), "b": (-500, 500)}
    leaky = [
        Marginals(wide),
        Marginals({name: PrivateBounds(0.1, outer) for name, outer in wide.items()}),
        DPMarginals(np.inf, features=wide, n_rows_hint=400),
        DPMarginals(4, features=wide, n_rows_hint=400, unsafe_seed=0),
    ]
    for number, made in enumerate(leaky):
        fitted = made.fit(parts[0])
        assert fitted.model_.domain.lower != (-500.0, -500.0)
        for bounds in (fitted.bounds_, load(fitted.save(tmp_path / f"{number}"), secret=True).bounds_):
            taken = DPMarginals(1, features=bounds).fit(parts[0])
            assert not taken.guarantee_.private
            assert not taken.publishable
    everywhere = pd.DataFrame(np.random.default_rng(0).uniform(-500, 500, (400, 2)), columns=["a", "b"])
    left = Marginals(wide).fit(everywhere)
    assert left.model_.domain.declared is None  # that, too, was decided by the rows
    assert not DPMarginals(1, features=left.bounds_).fit(parts[0]).guarantee_.private
    for features in (wide, {"a": PrivateBounds(0.1, (-500, 500)), "b": (-500, 500)}):
        paid = DPMarginals(4, features=features, n_rows_hint=400).fit(parts[0])
        assert DPMarginals(1, features=paid.bounds_).fit(parts[0]).guarantee_.private


def test_a_guess_of_the_number_of_rows_is_needed_to_look():
    for loose in (False, np.False_):
        with pytest.raises(InvalidParameterError, match="tight_ranges=False needs n_rows_hint"):
            DPMarginals(1, features=(0, 1), n_rows_hint=None, tight_ranges=loose).fit(np.zeros((2, 2)))
    model = DPMarginals(1, features=(0, 1), n_rows_hint=None).fit(np.zeros((2, 2))).model_
    assert [charge.purpose for charge in model.charges] == ["counts"]
