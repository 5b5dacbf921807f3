"""Which scenario covers which entry point, and which entry points need none, with the reason why."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

import dpoutlier

from .scenarios import SCENARIOS, TWINS, WALKED
from .walking import LEFT_TO_SCENARIOS, Walk, how_to_call, members

EXEMPT = {
    "KNN.*": "the baseline that is not private, by its first line: it keeps the rows; that its fit is silent is covered",
    "dpoutlier.as_in_paper": "the paper's recipe, which is not private, by its first line: the grid is made from the rows",
    "dpoutlier.Neighbours": "two public words",
    "Neighbours.*": "two public words",
    "dpoutlier.tables.features_draft.draft": "drafts from a sample that is public by the user's word",
    "cli --version": "reads nothing",
    "cli demo*": "fits on a table that scikit-learn ships, which is public",
    "cli plan*": "reads no rows: it simulates made-up ones",
    "cli audit": "fits on made-up rows; of a model file it takes the arguments alone",
    "cli audit --*": "fits on made-up rows; of a model file it takes the arguments alone",
    "cli features --public": "reads a sample that is public by the user's word",
    "cli keys *": "keys of a server: neither rows nor models are read",
    "cli audit-log verify*": "reads the log of a server, which the scenario of all routes compares",
    "cli score --ca": "the authority of a certificate; what servers answer is covered",
    "cli explain --ca": "the authority of a certificate; what servers answer is covered",
    "cli serve --*": "addresses, limits and files of keys; the command itself is covered, and so are all its routes",
}
"""By entry point, or a pattern of some: why it can show nothing of reference rows."""

REFUSED = (
    "*.fit_predict",
    "FittedDetector.walk",
    "FittedDetector.export_scores",
    "FittedDetector.alarms",  # of a merge, as the next two
    "FittedDetector.false_alarms",
    "FittedDetector.p_values",
    *(f"{twin}.{name}" for twin in TWINS for name in ("alarms", "false_alarms", "p_values")),  # without a histogram
    "DPGridKNN.alarms",
    "DPGridKNN.drift",  # of keyed and sparse counts
    "DPGridKNN.p_values",
    "DPGridKNN.export_scores",
    "GridKNN.export_scores",
    "PyODAdapter.decision_scores_",
    "PyODAdapter.labels_",
    "PyODAdapter.predict_proba",
)
"""Members that raise on purpose, of some detectors or of all. Others must return something, or nothing of them is seen."""

ELSEWHERE = {"cli serve": "test_a_server_of_its_own_shows_no_planted_value"}
"""Entry points with a test of their own in this folder."""


def covered() -> set[str]:
    """Entry points that some scenario goes through."""
    found = {entry for scenario in SCENARIOS.values() for entry in scenario.covers} | set(ELSEWHERE)
    for classes in WALKED.values():
        found |= {f"{one}.{member}" for one in classes for member in walkable(one)}
    return found


def walkable(name: str) -> list[str]:
    """Members of a public class that a walk can call."""
    kind = getattr(dpoutlier, name)
    return [member for member in members(kind) if how_to_call(kind, member) is None]


def exempt(entry: str) -> str | None:
    """Why an entry point needs no scenario, if it needs none."""
    return next((reason for pattern, reason in EXEMPT.items() if fnmatchcase(entry, pattern)), None)


def complaints(surface: Iterable[str]) -> list[str]:
    """What is wrong with the table, each with what to add or take out."""
    surface, known = list(surface), covered()
    found = [
        f"{entry}: is an entry point that no scenario covers. {_remedy(entry)}, or say in EXEMPT of registry.py why it can show "
        "nothing of reference rows."
        for entry in surface
        if entry not in known and exempt(entry) is None
    ]
    found += [
        f"{entry}: is covered, but there is no such entry point any more. Take it out of its scenario."
        for entry in sorted(known - set(surface))
    ]
    found += [
        f"{pattern}: is exempt, but there is no such entry point any more. Take it out of EXEMPT."
        for pattern in EXEMPT
        if not any(fnmatchcase(entry, pattern) for entry in surface)
    ]
    return found


def _remedy(entry: str) -> str:
    if entry.startswith("cli "):
        return "Call it, with its options, in ARGUMENTS of scenarios.py"
    if entry.partition(" ")[0].isupper():
        return "Ask it something in REQUESTS of scenarios.py"
    if entry.startswith("rows in "):
        return "Add rows of this form to FRAMES or ARRAYS of reference_tables.py, and to FORMS of scenarios.py"
    name, _, member = entry.partition(".")
    if member in LEFT_TO_SCENARIOS:
        return "Add a scenario that fits it to scenarios.py"
    kind = getattr(dpoutlier, name, None)
    if kind is None or name == "dpoutlier":
        return "Add a scenario, or a walk over an object of it, to scenarios.py"
    missing = how_to_call(kind, member)
    if missing is not None:
        return f"A walk cannot call it, since {missing}: add that to PARAMETERS or CALLS of walking.py"
    return f"Add a walk over a {name} to scenarios.py"


def check_walk(name: str, value: Any) -> None:
    """A walk has called all members of the classes that it is to cover."""
    assert isinstance(value, Walk)
    assert not value.unknown, "\n".join(value.unknown)
    wanted = [f"{one}.{member}" for one in WALKED[name] for member in walkable(one)]
    missing = [entry for entry in wanted if entry not in value.values]
    assert not missing, f"the scenario {name!r} does not reach {', '.join(missing)}"
    raised = {entry: text for entry, text in value.raised.items() if entry in wanted and not _refused(entry)}
    assert not raised, f"the scenario {name!r} sees nothing of what raises, so pass something else: {raised}"


def _refused(entry: str) -> bool:
    return any(fnmatchcase(entry, pattern) for pattern in REFUSED)
