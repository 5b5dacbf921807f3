"""The two tests of a scenario: on neighbouring rows with frozen noise, and on rows with planted values."""

import re
import struct
from pathlib import Path
from typing import Any

import numpy as np

from .frozen_world import Seen, observed
from .plain_values import bytes_of, difference, plain
from .reference_tables import N_PEOPLE, N_PLANTED, PLANTED, Pair, Row, of_rows, planted_rows
from .registry import check_walk
from .releases import Release, distance, recorded_releases
from .scenarios import WALKED, Place, Scenario

SEED = 11


def see(scenario: Scenario, rows: list[Row], folder: Path, neighbours: str, spark: Any = None) -> Seen:
    return observed(lambda place: scenario.run(rows, Place(place, neighbours, spark)), folder, SEED)


def replay(scenario: Scenario, pair: Pair, folder: Path, spark: Any = None) -> None:
    """On neighbouring rows, all that is released differs by no more than is charged for, and nothing else differs."""
    pair = pair if scenario.people else of_rows(pair)
    with recorded_releases() as first:
        one = see(scenario, pair.one, folder, pair.neighbours, spark)
    assert not one.error, one.error
    assert bool(first) == scenario.releases, (
        "does trusted.fit release by other functions than FUNCTIONS of releases.py?"
    )
    if scenario.name in WALKED:
        check_walk(scenario.name, one.value)
    with recorded_releases(first) as second:
        other = see(scenario, pair.other, folder, pair.neighbours, spark)
    assert not other.error, other.error
    assert len(second) == len(first), "on neighbouring rows there is a release less"
    check_charged(first, second)
    assert_equal(_shown(scenario, one), _shown(scenario, other), scenario, pair)
    if scenario.even:
        with recorded_releases() as own:
            noisy = see(scenario, pair.other, folder, pair.neighbours, spark)
        check_noisy(first, own)
        assert_equal(_evenly(one), _evenly(noisy), scenario, pair)


def _shown(scenario: Scenario, seen: Seen) -> Any:
    return plain(seen._replace(value=None) if scenario.keeps_rows else seen)


def _evenly(seen: Seen) -> Any:
    """All that must be equal however the counts differ: what is said, and names and sizes of files."""
    files = {name: (mode, len(content)) for name, (mode, content) in seen.files.items()}
    said = seen.value if isinstance(seen.value, dict) else None  # what a command printed
    return plain([seen.error, seen.warnings, seen.logged, seen.printed, files, said])


def check_charged(first: list[Release], second: list[Release]) -> None:
    """Given equal earlier releases, what goes into each differs by no more than it is charged for."""
    for one, other in zip(first, second, strict=True):
        if one.function != "ExactCounts":
            assert one.sensitivity == other.sensitivity
            assert 0 <= distance(one.exact, other.exact) <= one.sensitivity, (one.purpose, one.sensitivity)


def check_noisy(first: list[Release], own: list[Release]) -> None:
    """With frozen noise, dense counts differ as the exact ones do, and have the same shape and type."""
    for one, other in zip(first, own, strict=True):
        if one.function == "release_dense":
            before, after = one.released.counts, other.released.counts
            assert (before.dtype, before.shape) == (after.dtype, after.shape)
            assert np.abs(after - before).sum() <= one.sensitivity


def assert_equal(one: Any, other: Any, scenario: Scenario, pair: Pair) -> None:
    found = difference(one, other)
    assert not found, f"{scenario.name}, {pair.name}: on neighbouring rows\n" + "\n".join(found)


# Planted values -----------------------------------------------------------------------------------------------------------


def forms_of(value: Any) -> list[bytes]:
    """A planted value as it could be written: as text, rounded, in memory, on the lattice."""
    if isinstance(value, str):
        return [value.encode(kind) for kind in ("utf-8", "utf-16-le", "utf-32-le")]
    position = int(value * 2**32 / 10) if 0 <= value <= 10 else 2**32 - 1
    found = [repr(value)[:9].encode(), struct.pack("<d", value), struct.pack(">d", value), struct.pack("<f", value)]
    return [*found, *([position.to_bytes(4, "little")] if position < 2**32 - 1 else [])]


def number_pattern(number: int) -> re.Pattern[bytes]:
    """A whole number in text, with or without commas."""
    text = f"{number:,}".replace(",", ",?")
    return re.compile(rf"(?<![0-9A-Za-z.,]){text}(?![0-9A-Za-z]|[.,][0-9])".encode())


def search(scenario: Scenario, folder: Path, spark: Any = None) -> None:
    """No planted value is found anywhere in what is seen, nor how many rows or people there are."""
    rows = planted_rows()
    seen = see(scenario, rows, folder, "add-or-remove-one", spark)
    assert not seen.error, seen.error
    if scenario.keeps_rows:
        seen = seen._replace(value=None)
    find_planted(seen, scenario.name, [path.stat().st_size for path in (folder / "given").rglob("*") if path.is_file()])


def find_planted(seen: Seen, name: str, sizes: list[int]) -> None:
    """Fails if a planted value, the number of rows or people, or one of these sizes is in what was seen."""
    planted = [form for value in (*PLANTED.values(), PLANTED["a"] * 1e5) for form in forms_of(value)]
    numbers = [number_pattern(n) for n in (N_PLANTED, N_PEOPLE, *sizes)]
    counted = [struct.pack("<q", n) for n in (N_PLANTED, N_PEOPLE)]
    for way, piece in bytes_of(seen):
        found = [form for form in planted if form in piece]
        found += [one.pattern for one in numbers if one.search(piece)]
        found += [form for form in counted if form in piece]
        assert not found, f"{name}: {found} is in {way}: {piece[:300]!r}"
