"""``help`` shows what a scikit-learn user expects: every parameter with its default, what is returned, and nothing internal."""

import ast
import inspect
import re
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import pytest

import dpoutlier
from dpoutlier import KNN, DPForest, DPGridKNN, DPMarginals, FittedDetector, Forest, GridKNN, Marginals

SECTION = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", re.MULTILINE)
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : (.+))?$")
DEFAULT = re.compile(r"default=(.+)$")
UNDERLINE = re.compile(r"^.*-{5,}.*$", re.MULTILINE)
AVOIDED = re.compile(
    r"\b(bought|buy|buys|buying|strangers?|told|steady|steadily|holders?|(?<!\bthere )is no|as none)\b", re.IGNORECASE
)
"""Words that a reader cannot know, and turns that are not plain English ("it is no file"): see the style of this project."""

SCORING = (
    "alarms decision_function offset_ outlier_scores outside_bounds p_values predict score_frame score_one score_samples "
    "set_threshold"
)
MODEL = f"{SCORING} bounds_ count_intervals drift explain export_scores false_alarms guarantee_ privacy_statement publishable save"
DETECTOR = f"{MODEL} fit fit_predict set_params"
VISIBLE = {
    "Bounds": "domain from_file leaked n_features of",
    "Category": "code from_json names to_json",
    "Client": f"{SCORING} close explain models privacy_statement publishable release",
    "CountIntervals": "",
    "Counterfactual": "",
    "DPForest": DETECTOR,
    "DPGridKNN": f"{DETECTOR} walk",
    "DPMarginals": DETECTOR,
    "Explanation": "counterfactual found instead k note ranking region regions to_table value",
    "Drift": "to_dict",
    "FalseAlarms": "to_dict trusted",
    "FittedDetector": f"{MODEL} estimator walk",
    "Forest": DETECTOR,
    "GridKNN": f"{DETECTOR} walk",
    "Guarantee": "epsilon_for private sensitivity",
    "KNN": f"{SCORING} fit fit_predict guarantee_ set_params",
    "Ledger": "anchor_changes balance balances charge check check_paid commit create datasets entries has_anchor move_anchor "
    "open_budget outcome reserve spendings verify",
    "Marginals": DETECTOR,
    "Neighbours": "ADD_OR_REMOVE_ONE REPLACE_ONE",
    "PrivacyStatement": "to_dict",
    "PrivateBounds": "",
    "PyODAdapter": "decision_function decision_scores_ feature_names_in_ fit fit_predict labels_ n_features_in_ predict "
    "predict_proba threshold_",
}
"""What users see of each public class, beside the fields of data classes and what scikit-learn and Python add."""


class Documented(NamedTuple):
    """A public function, method or property, or the constructor of a public class."""

    name: str
    text: str
    signature: inspect.Signature | None
    """None for a property."""
    returns: Any


def ours(owner: type) -> bool:
    return owner.__module__.startswith("dpoutlier.")


def public_classes() -> dict[str, type]:
    found = {name: getattr(dpoutlier, name) for name in dpoutlier.__all__}
    return {name: one for name, one in found.items() if inspect.isclass(one)}


def field_names(kind: type) -> list[str]:
    return [one.name for one in fields(kind) if not one.name.startswith("_")] if is_dataclass(kind) else []


def visible(kind: type) -> set[str]:
    """Names without underscore that are defined in this package."""
    defined = {name for base in kind.__mro__ if ours(base) for name in vars(base)}
    return {name for name in dir(kind) if not name.startswith("_") and name in defined} - set(field_names(kind))


def members(kind: type) -> list[Documented]:
    """Methods and properties. A member that is absent on purpose raises, and is not called."""
    found = []
    for name in sorted(visible(kind)):
        static = inspect.getattr_static(kind, name)
        full = f"{kind.__name__}.{name}"
        if isinstance(static, property):
            found.append(Documented(full, static.__doc__ or "", None, inspect.signature(static.fget).return_annotation))
        elif isinstance(static, classmethod | staticmethod) or inspect.isfunction(static):
            function = getattr(static, "__func__", static)
            signature = inspect.signature(function)
            own = list(signature.parameters.values())[0 if isinstance(static, staticmethod) else 1 :]
            signature = signature.replace(parameters=own)
            found.append(Documented(full, function.__doc__ or "", signature, signature.return_annotation))
    return found


def constructor(kind: type) -> Documented:
    return Documented(kind.__name__, kind.__doc__ or "", inspect.signature(kind), None)


def functions() -> list[Documented]:
    found = {name: getattr(dpoutlier, name) for name in dpoutlier.__all__}
    signatures = {name: inspect.signature(one) for name, one in found.items() if not inspect.isclass(one)}
    return [Documented(name, found[name].__doc__ or "", own, own.return_annotation) for name, own in signatures.items()]


def sections(text: str) -> dict[str, str]:
    """The parts of a docstring by their headings; the one before all headings is called ''."""
    parts = SECTION.split(inspect.cleandoc(text))
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def entries(section: str) -> dict[str, str | None]:
    """The names of a section with their types."""
    found: dict[str, str | None] = {}
    for line in section.splitlines():
        if line and not line.startswith(" "):
            match = ENTRY.match(line)
            assert match, f"not 'name : type': {line}"
            found |= dict.fromkeys(match[1].split(", "), match[2])
    return found


def complaints(one: Documented) -> list[str]:
    """What is missing in a docstring, or is not true."""
    try:
        parts = sections(one.text)
        parameters = entries(parts.get("Parameters", ""))
    except AssertionError as error:
        return [str(error)]
    found = []
    summary = parts[""].strip().partition("\n\n")[0]
    if not summary.rstrip("*").endswith(".") or "\n" in summary:
        found.append(f"its summary must be one line that ends with a full stop, not {summary!r}")
    if one.signature is not None:
        found += _of_parameters(parameters, one.signature)
    nothing = {"None", "NoReturn", "Iterator[None]", "inspect._empty", None, type(None), inspect.Signature.empty}
    if one.signature is not None and one.returns not in nothing and "Returns" not in parts:
        found.append("it has no section Returns")
    found += [f"it says {word!r}" for word in AVOIDED.findall(" ".join(one.text.split()))]
    found += [
        f"a heading is not on a line of its own: {line!r}" for line in UNDERLINE.findall(one.text) if line.strip(" -")
    ]
    return found


def _of_parameters(documented: dict[str, str | None], signature: inspect.Signature) -> list[str]:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    real = {stars.get(own.kind, "") + name: own for name, own in signature.parameters.items()}
    if list(documented) != list(real):
        return [f"its parameters are {list(real)}, and its docstring has {list(documented)}"]
    found = []
    for name, own in real.items():
        said = DEFAULT.search(documented[name] or "")
        if documented[name] is None:
            found.append(f"{name} has no type")
        elif own.default is own.empty:
            found += [f"{name} has no default, and its docstring says {said[0]}"] if said else []
        elif not said or not _means(said[1], own.default):
            found.append(f"the default of {name} is {own.default!r}, and its docstring says {said and said[1]}")
    return found


def _means(text: str, value: Any) -> bool:
    if isinstance(value, Enum):
        return text == f"{type(value).__name__}.{value.name}"
    try:
        return ast.literal_eval(text) == value
    except (ValueError, SyntaxError):
        return False


CLASSES = [pytest.param(kind, id=name) for name, kind in public_classes().items()]


@pytest.mark.parametrize("kind", CLASSES)
def test_every_method_says_what_it_takes_and_returns(kind):
    found = [f"{one.name}: {text}" for one in members(kind) for text in complaints(one)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("one", functions(), ids=lambda one: one.name)
def test_every_function_says_what_it_takes_and_returns(one):
    assert not complaints(one)
    assert "Examples" in sections(one.text)


@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_has_its_parameters_or_attributes_and_an_example(kind):
    parts = sections(kind.__doc__ or "")
    assert ">>> " in parts.get("Examples", "")
    assert "See Also" in parts
    if "Parameters" in parts:
        assert not complaints(constructor(kind))
    else:  # made by this package only, or a choice of words
        names = [one.name for one in kind] if issubclass(kind, Enum) else field_names(kind)
        assert names
        assert list(entries(parts["Attributes"])) == names
        assert not complaints(constructor(kind)._replace(signature=None))


def test_users_see_what_users_use():
    assert {name: sorted(visible(kind)) for name, kind in public_classes().items()} == {
        name: sorted(names.split()) for name, names in VISIBLE.items()
    }


FITTED = {"model_", "n_features_in_"}
BY_SCIKIT_LEARN = {"get_metadata_routing", "get_params"}


@pytest.mark.parametrize("kind", [DPForest, DPGridKNN, DPMarginals, Forest, GridKNN, Marginals, KNN])
def test_tab_completion_shows_only_what_can_be_used(kind):
    given = {"epsilon": 1} if kind in {DPForest, DPGridKNN, DPMarginals} else {}
    given |= {"n_rows_hint": 10} if "epsilon" in given else {}
    detector = kind(features=(0, 1), **given).fit(np.full((9, 2), 0.5))
    shown = {name for name in dir(detector) if not name.startswith("_")}
    absent = {"fit_predict", "offset_"}  # never there, and not there without a threshold
    fitted = FITTED - ({"model_"} if kind is KNN else set())
    assert shown == (visible(kind) - absent) | set(detector.get_params()) | fitted | BY_SCIKIT_LEARN
    assert all(hasattr(detector, name) for name in shown)


@pytest.mark.parametrize("kind", [DPForest, DPGridKNN])
@pytest.mark.parametrize("target_fpr", [None, 0.1])
def test_tab_completion_of_a_loaded_model_shows_only_what_it_has(kind, target_fpr, tmp_path):
    given = {"features": (0, 1), "n_rows_hint": 10, "target_fpr": target_fpr}
    path = kind(epsilon=1, **given).fit(np.full((9, 2), 0.5)).save(tmp_path / "model")
    shown = {name for name in dir(dpoutlier.load(path)) if not name.startswith("_")}
    absent = ({"walk"} if kind is DPForest else set()) | ({"offset_"} if target_fpr is None else set())
    assert shown == (visible(FittedDetector) - absent) | FITTED | {"n_jobs"}


def test_the_package_shows_its_public_names_alone():
    assert dir(dpoutlier) == sorted(dpoutlier.__all__)


def test_old_names_do_not_show():
    for kind in (DPForest, DPGridKNN, DPMarginals, Forest, GridKNN, Marginals):
        assert not set(inspect.signature(kind).parameters) & {"bounds", "holder", "n_hint", "args", "kwargs"}


OWN_WORDS = {"bins", "n_jobs", "n_rows_hint"}
"""Parameters that mean something else in each detector."""


@pytest.mark.parametrize(
    ("one", "other"), [(DPForest, DPGridKNN), (DPForest, DPMarginals), (Forest, GridKNN), (Forest, Marginals)]
)
def test_the_same_parameter_has_the_same_text(one, other):
    first, second = texts(one), texts(other)
    shared = (first.keys() & second.keys()) - OWN_WORDS
    assert len(shared) > 3
    assert {name: first[name] for name in shared} == {name: second[name] for name in shared}


def texts(kind: type) -> dict[str, str]:
    """The text of each parameter."""
    parts = re.split(r"^(?=\S)", sections(kind.__doc__)["Parameters"], flags=re.MULTILINE)
    return {part.partition(" : ")[0]: part.strip() for part in parts if part}


GOOD = """Do it.

    Parameters
    ----------
    first : int
        One.
    second : str, default='x'
        Two.

    Returns
    -------
    int
        Three.
    """


def example(first: int, second: str = "x") -> int:
    return first + len(second)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("", "", None),
        ("Do it.", "Do\n    it.", "summary"),
        ("    first : int\n        One.\n", "", "parameters are"),
        ("second", "third", "parameters are"),
        ("first : int", "first", "no type"),
        ("first : int", "first : int, default=1", "no default"),
        ("'x'", "'y'", "default of second is 'x'"),
        (", default='x'", "", "default of second is 'x'"),
        ("Returns\n    -------", "Gives\n    -------", "Returns"),
        ("One.", "One that was bought.", "bought"),
        ("One.", "One. It is\n        no file.", "is no"),
        ("One.", "One. There is no file.", None),
        ("One.", "It counts as none.", "as none"),
        ("Three.\n", "Three.\n\n    References ---------- .. [1] A book.\n", "line of its own"),
    ],
)
def test_what_is_wrong_is_found(old, new, complaint):
    signature = inspect.signature(example)
    found = complaints(Documented("example", GOOD.replace(old, new), signature, signature.return_annotation))
    if complaint is None:
        assert not found
    else:
        assert any(complaint in text for text in found)
