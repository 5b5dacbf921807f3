"""Neighbour replay: with frozen noise, one row more changes the released counts by its sensitivity and nothing else."""

import io
import logging
import pickle
import re
import warnings
import zipfile
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpoutlier import Category, DPForest, DPGridKNN, DPMarginals, PrivateBounds, secrets_may_travel
from dpoutlier.detectors.registry import DETECTOR_NAMES
from dpoutlier.partitions.grid import Grid
from dpoutlier.partitions.marginals import Margins
from dpoutlier.partitions.trees import Trees
from dpoutlier.tables.rows import Rows
from dpoutlier.trusted.counts import count_rows

ODD = [np.nan, np.inf, -np.inf, 1e308, -1e308, -0.0, 5e-324, 0.5, "text", "", None, "1e400", b"\xff", 2**70, "0.25"]
value = st.one_of(st.floats(-2, 2), st.sampled_from(ODD))
row = st.tuples(value, value)
KINDS = {
    "grid": lambda epsilon, **kw: DPGridKNN(epsilon, **{"bins": 3, **kw}),
    "forest": lambda epsilon, **kw: DPForest(epsilon, n_trees=3, depth=4, **kw),
    "marginals": lambda epsilon, **kw: DPMarginals(epsilon, bins=3, **kw),
}
EACH_KIND = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


def test_every_detector_is_here():
    assert KINDS.keys() == set(DETECTOR_NAMES)


def frame_of(rows):
    return pd.DataFrame({"a": [r[0] for r in rows], "b": [r[1] for r in rows]}, dtype=object)


def array_of(rows):
    array = np.empty((len(rows), 2), object)
    for i, r in enumerate(rows):
        array[i] = r
    return array


def observe(make, rows, table, tmp_path, **arguments):
    """Everything that a fit shows, apart from the counts: output, warnings, errors, logs, attributes, files."""
    out, log = io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught, redirect_stdout(out), redirect_stderr(out):
            warnings.simplefilter("always")
            detector = make(1, **{"features": {"a": (0, 1), "b": (0, 1)}, "unsafe_seed": 4, **arguments})
            detector.fit(table(rows))
            path = detector.save(tmp_path / "model", overwrite=True)
    finally:
        logging.getLogger().removeHandler(handler)
    with zipfile.ZipFile(path) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
    seen = {
        "printed": out.getvalue(),
        "logged": log.getvalue(),
        "warnings": [str(w.message) for w in caught],
        "sizes": (path.stat().st_size, sizes),
        "repr": repr(detector) + repr(detector.model_),
        "attributes": sorted(vars(detector)),
        "statement": str(detector.privacy_statement()),
        "shapes": {name: (a.dtype, a.shape) for name, a in detector.model_.counts.arrays().items()},
    }
    return seen, detector.model_


@EACH_KIND
@settings(max_examples=100)
@given(st.lists(row, max_size=4), row, st.integers(0, 4), st.sampled_from([frame_of, array_of]))
def test_one_row_more_shows_in_its_cells_only(make, tmp_path_factory, rows, more, place, table):
    folder = tmp_path_factory.mktemp("replay")
    neighbour = [*rows[:place], more, *rows[place:]]
    seen, model = observe(make, rows, table, folder)
    seen_too, model_too = observe(make, neighbour, table, folder)
    assert seen == seen_too
    change = model_too.counts.counts - model.counts.counts
    assert np.abs(change).sum() == model.partition.cells_per_row  # all of them one more
    assert change.max() == 1


@EACH_KIND
@settings(max_examples=70)
@given(st.lists(row, min_size=1, max_size=4), row, st.sampled_from([frame_of, array_of]))
def test_one_row_replaced_moves_at_most_two_cells_for_each_member(make, tmp_path_factory, rows, other, table):
    folder = tmp_path_factory.mktemp("replay")
    seen, model = observe(make, rows, table, folder, neighbours="replace-one")
    seen_too, model_too = observe(make, [other, *rows[1:]], table, folder, neighbours="replace-one")
    assert seen == seen_too
    assert np.abs(model_too.counts.counts - model.counts.counts).sum() in range(
        0, 2 * model.partition.cells_per_row + 1, 2
    )


@EACH_KIND
@settings(max_examples=40)
@given(st.lists(row, max_size=4), row)
def test_with_a_threshold_nothing_else_shows_either(make, tmp_path_factory, rows, more):
    folder = tmp_path_factory.mktemp("replay")
    seen, model = observe(make, rows, frame_of, folder, target_fpr=0.1)
    seen_too, model_too = observe(make, [*rows, more], frame_of, folder, target_fpr=0.1)
    assert seen == seen_too
    for one in (model, model_too):  # where the levels lie follows from what is released
        assert one.score_histogram.levels.tolist() == one.levels(one.score_histogram.noise).tolist()


# Tables of people with levels and missing values -----------------------------------------------------------------------

LEVELS = ["low", "high"]
level = st.sampled_from([*LEVELS, " low", "never heard of", "", None, np.nan, 7, b"high", b"\xff", np.inf])
patient = st.sampled_from(["p", "q", "r", "", None, np.nan, 3])
record = st.tuples(patient, value, level, st.sampled_from([1, 2, "3", 2.0, "four", None, 9, -np.inf]))
REAL = {
    "features": {"a": (0, 1)},
    "categories": {"b": LEVELS, "c": Category([1, 2, 3], ordered=True)},
    "missing": ["a", "b"],
    "person": "who",
    "rows_per_person": 2,
}


def records_frame(rows):
    columns = list(zip(*rows)) or [()] * 4
    return pd.DataFrame(
        {name: pd.Series(list(own), dtype=object) for name, own in zip(["who", "a", "b", "c"], columns)}
    )


def observe_people(make, rows, folder, **arguments):
    return observe(make, rows, records_frame, folder, **{**REAL, **arguments})


@EACH_KIND
@settings(max_examples=100)
@given(st.lists(record, max_size=5), st.lists(record, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_one_person_more_shows_in_the_cells_of_at_most_that_many_rows(make, tmp_path_factory, rows, more, random):
    """Someone with up to four rows comes in, among rows of all kinds: at most two of them show, each in its own cells."""
    folder = tmp_path_factory.mktemp("replay")
    own = [("someone new", *rest) for _, *rest in more]
    neighbour = [*rows, *own]
    random.shuffle(neighbour)
    seen, model = observe_people(make, rows, folder)
    seen_too, model_too = observe_people(make, neighbour, folder)
    assert seen == seen_too
    change = model_too.counts.counts - model.counts.counts
    assert change.sum() == np.abs(change).sum() == min(len(own), 2) * model.partition.cells_per_row


@EACH_KIND
@settings(max_examples=40)
@given(st.lists(record, max_size=4), record)
def test_a_row_without_a_person_shows_nowhere(make, tmp_path_factory, rows, more):
    folder = tmp_path_factory.mktemp("replay")
    seen, model = observe_people(make, rows, folder)
    seen_too, model_too = observe_people(make, [*rows, (None, *more[1:])], folder)
    assert seen == seen_too
    assert (model_too.counts.counts == model.counts.counts).all()


@EACH_KIND
@settings(max_examples=40)
@given(st.lists(record, max_size=4), record)
def test_with_private_bounds_and_threshold_only_released_numbers_differ(make, tmp_path_factory, rows, more):
    """Bounds are a release themselves, so cells may move; what is shown besides has the same shape and words."""
    folder = tmp_path_factory.mktemp("replay")
    estimated = {"features": {"a": PrivateBounds(share=0.2, outer=(-10, 10))}, "target_fpr": 0.1}
    seen, model = observe_people(make, rows, folder, **estimated)
    seen_too, model_too = observe_people(make, [*rows, ("someone new", *more[1:])], folder, **estimated)
    for shown in (seen, seen_too):
        shown["statement"] = re.sub(r"  a .*", "  a", shown["statement"])
        shown["sizes"] = {name: size for name, size in shown["sizes"][1].items() if name != "manifest.json"}
    assert seen == seen_too
    assert model.domain.outer == model_too.domain.outer
    assert model.charges == model_too.charges


@EACH_KIND
@pytest.mark.parametrize("n_rows_hint", [200, 1000])
@settings(max_examples=25)
@given(st.lists(record, max_size=4), record)
def test_with_found_ranges_and_threshold_only_released_numbers_differ(make, n_rows_hint, tmp_path_factory, rows, more):
    """The same after looks: windows are a release, and so is whether there is a second look."""
    folder = tmp_path_factory.mktemp("replay")
    loose = {"features": {"a": (-1000, 1000)}, "tight_ranges": False, "n_rows_hint": n_rows_hint, "target_fpr": 0.1}
    seen, model = observe_people(make, rows, folder, **loose)
    seen_too, model_too = observe_people(make, [*rows, ("someone new", *more[1:])], folder, **loose)
    looks = [one.domain.declared for one in (model, model_too)]
    assert "ranges" in {charge.purpose for charge in model.charges}
    if model.charges != model_too.charges or bool(looks[0]) != bool(looks[1]):
        return  # a test has had another outcome; else all that is said has the same words
    for shown in (seen, seen_too):
        del shown["sizes"]
        shown["statement"] = re.sub(r"  a .*|- By the released(.|\n)*?nothing\.\n", "", shown["statement"])
    assert seen == seen_too
    assert model.domain.declared == model_too.domain.declared


SENTINELS = [0.123456789012345, 0.987654321098765]


@pytest.mark.parametrize(
    "unfitted",
    [
        DPGridKNN(1, features=(0, 1), bins=7, counts="dense", target_fpr=0.1),
        DPGridKNN(1, features=(0, 1), bins=7, counts="keyed", target_fpr=0.1),
        DPGridKNN(1, features=(0, 1), bins=7, counts="sparse", target_fpr=0.1),
        DPForest(1, features=(0, 1), n_rows_hint=50, target_fpr=0.1),
        DPMarginals(1, features=(0, 1), target_fpr=0.1),
        DPMarginals(9, features=(-100, 100), n_rows_hint=50, target_fpr=0.1),
    ],
    ids=["dense grid", "keyed grid", "sparse grid", "forest", "marginals", "found ranges"],
)
def test_no_reference_value_is_kept_anywhere(unfitted, tmp_path):
    """Planted values appear in no attribute, repr, pickle or file, not even as bytes."""
    rows = np.tile(SENTINELS, (50, 1))
    detector = unfitted.fit(rows)
    with secrets_may_travel():
        shown = pickle.dumps(detector)
    shown += detector.save(tmp_path / "m").read_bytes()
    shown += (repr(vars(detector)) + repr(detector.model_) + str(detector.privacy_statement())).encode()
    positions = Rows(rows, detector.model_.domain)[:1][0]
    for sentinel, position in zip(SENTINELS, positions):
        assert np.float64(sentinel).tobytes() not in shown
        assert np.float32(sentinel).tobytes() not in shown
        assert repr(sentinel).encode() not in shown
        assert str(sentinel)[:10].encode() not in shown
        assert int(position).to_bytes(4, "little") not in shown


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_no_person_and_no_undeclared_level_is_kept_anywhere(make, tmp_path):
    rows = [(f"person-{i}-planted", SENTINELS[0], "a planted level", 2) for i in range(50)]
    estimated = {**REAL, "features": {"a": PrivateBounds(outer=(-1e3, 1e3))}}
    detector = make(1, **estimated).fit(records_frame(rows))
    with secrets_may_travel():
        shown = pickle.dumps(detector)
    shown += detector.save(tmp_path / "m").read_bytes()
    shown += (repr(vars(detector)) + repr(detector.model_) + str(detector.privacy_statement())).encode()
    assert b"planted" not in shown
    assert np.float64(SENTINELS[0]).tobytes() not in shown
    assert repr(SENTINELS[0]).encode()[:10] not in shown


N_ROWS = 7919


@EACH_KIND
def test_the_number_of_rows_is_nowhere(make, tmp_path):
    rows = np.random.default_rng(0).uniform(size=(N_ROWS, 2))
    detector = make(0.1, features=(0, 1), target_fpr=0.1).fit(rows)
    with zipfile.ZipFile(detector.save(tmp_path / "m")) as archive:
        manifest = archive.read("manifest.json").decode()
    shown = repr(vars(detector)) + repr(detector.model_) + str(detector.privacy_statement())
    without_digests = re.sub(r"[0-9a-f]{64}", "", manifest)
    assert str(N_ROWS) not in (without_digests + shown).replace(",", "")


@pytest.mark.parametrize("partition", [Grid((4, 4, 4)), Trees(3, 5, 6), Margins((4, 7, 2))], ids=lambda p: p.name)
def test_counts_do_not_depend_on_the_order_of_rows_and_add_up(partition):
    rows = np.random.default_rng(0).integers(0, 2**32, (500, 3), dtype=np.uint32)
    one, other = count_rows([rows], partition), count_rows([rows[::-1]], partition)
    assert (one.ids == other.ids).all()
    assert (one.counts == other.counts).all()
    assert one.counts.sum() == 500 * partition.cells_per_row
