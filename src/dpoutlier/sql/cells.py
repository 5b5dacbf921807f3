"""The cell of a member that a row lies in, in SQL: the member's first cell plus one whole number for each of its features."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from dpoutlier.features.axes import MISSING, level_position
from dpoutlier.features.domain import Domain
from dpoutlier.partitions.members import CutAxis, EvenAxis, Member
from dpoutlier.sql.positions import place


def cell(member: Member, domain: Domain) -> str:
    return " + ".join([str(member.first), *(_added(axis, domain) for axis in member.axes)])


def _added(axis: CutAxis | EvenAxis, domain: Domain) -> str:
    """What a feature adds to the number of a cell."""
    at = place(axis.feature)
    if domain.category(axis.feature) is not None:
        adds = _of_levels(axis, domain)
        return at if adds == tuple(range(len(adds))) else _case(_by_level(at, adds), adds[0])
    if isinstance(axis, EvenAxis):
        missing = [f"WHEN {at} = {MISSING} THEN {axis.bins}"] if axis.missing else []
        return _case(missing, f"(({at} * {axis.bins}) >> 32)")
    before = zip(axis.cuts, axis.adds, strict=False)
    return _case([f"WHEN {at} < {cut} THEN {add}" for cut, add in before], axis.adds[-1])


def _of_levels(axis: CutAxis | EvenAxis, domain: Domain) -> tuple[int, ...]:
    """What each level adds. Missing values that have a cell are one level more, the last."""
    if isinstance(axis, EvenAxis):
        return tuple(range(axis.size))
    if axis.levels:
        return axis.add
    levels = domain.axes[axis.feature].levels  # ordered, and cut like a line, with a cell for missing values at its end
    positions = (*(level_position(level, levels) for level in range(levels)), MISSING)
    return tuple(axis.adds[bisect_right(axis.cuts, at)] for at in positions)


def _by_level(at: str, adds: tuple[int, ...]) -> Iterator[str]:
    for add in dict.fromkeys(adds):
        levels = ", ".join(str(level) for level, other in enumerate(adds) if other == add)
        if add != adds[0]:
            yield f"WHEN {at} IN ({levels}) THEN {add}"


def _case(whens: Iterable[str], otherwise: object) -> str:
    branches = " ".join(whens)
    return f"CASE {branches} ELSE {otherwise} END" if branches else str(otherwise)
