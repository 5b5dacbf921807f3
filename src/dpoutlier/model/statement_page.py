"""A privacy statement as a page to sign."""

import textwrap
from typing import Any

from dpoutlier.scoring.false_alarms import percent

UNTRUSTED = (
    "THE THRESHOLD CANNOT BE TRUSTED: of normal points it may flag {range}. Scores do not depend on it. More rows, more epsilon "
    "or a larger share of it for the threshold would help."
)


def page_of(s: Any) -> list[str]:
    title = f"Privacy statement of a {s.detector} model"
    lines = [title, "=" * len(title), ""]
    if s.private:
        one = s.unit.split(",")[0]
        change = f"Replacing {one} in" if s.neighbours == "replace-one" else f"Adding {one} to, or removing it from,"
        more = "" if s.delta == "0" else f", plus {s.delta}"
        computed = ", computational; time: see remarks" if s.counts == "keyed" else ""
        promise = (
            f"{change} the reference data changes the probability of any outcome by a factor of at most exp({s.epsilon}){more} "
            f"(relation: {s.neighbours}, delta = {s.delta}{computed})."
        )
    else:
        promise = "This model is NOT PRIVATE. It promises nothing about the reference data and must be kept secret."
    if s.false_alarms and not s.false_alarms["trusted"]:
        lines += [*textwrap.wrap(UNTRUSTED.format(range=_range(s.false_alarms)), 100), ""]
    lines += [*textwrap.wrap(promise, 100), ""]
    rows = [
        ("unit of protection", s.unit),
        ("neighbouring data", s.neighbours),
        *(_epsilons(s) if s.private else []),
        ("mechanism", s.mechanism),
        ("partition", s.partition),
        (
            "counts",
            f"{s.counts} ({'publishable' if s.publishable else 'SECRET: this file must not leave the custodian'})",
        ),
        ("number of rows", s.n_rows_hint),
        ("bounds", s.bounds_source),
        *([("false alarms", _false_alarms(s.false_alarms))] if s.false_alarms else []),
        *([("people of the parts", _people(s.merged))] if s.merged else []),
        *([("charged to", _ledger(s.ledger))] if s.ledger else []),
    ]
    for label, value in rows:
        wrapped = textwrap.wrap(value, 74, break_long_words=False, break_on_hyphens=False)
        lines.append(f"{label:<26}" + f"\n{'':<26}".join(wrapped))
    if s.charges:
        lines += ["", f"{'What epsilon was spent on':<26}{'epsilon':>12}{'sensitivity':>13}{'noise scale (rows)':>20}"]
        lines += [
            f"  {c['purpose']:<24}{c['epsilon']:>12}{c['sensitivity']:>13}{c['noise_scale_rows'] or 'none (chosen)':>20}"
            for c in s.charges
        ]
    if s.merged:
        lines += ["", f"{'Merged from':<26}{'epsilon':>10}{'noise scale (rows)':>33}"]
        lines += [
            f"  {f'part {n}, ' + part['release'][:12]:<24}{part['epsilon']:>10}{part['noise_scale_rows']:>33}"
            for n, part in enumerate(s.merged["parts"], 1)
        ]
        lines += [f"  {'together':<24}{s.epsilon:>10}{s.merged['noise_scale_rows']:>33}"]
        lines += [
            f"  {f'part {n}, charged to':<24}{_ledger(part['ledger'])}"
            for n, part in enumerate(s.merged["parts"], 1)
            if "ledger" in part
        ]
    lines += ["", f"{'Feature':<26}{'lower':>12}{'upper':>12}"]
    lines += [_feature_line(feature) for feature in s.bounds]
    for heading, texts in (("Remarks", s.remarks), ("Not protected", s.not_protected)):
        lines += ["", heading]
        for text in texts:
            lines += textwrap.wrap(text, 98, initial_indent="- ", subsequent_indent="  ")
    lines += ["", "Versions: " + ", ".join(f"{name} {number}" for name, number in s.versions.items())]
    return lines


def _false_alarms(found: dict[str, Any]) -> str:
    return f"about {percent(found['expected'])} of normal points; {_range(found)}"


def _range(found: dict[str, Any]) -> str:
    """In percent, with the confidence."""
    return f"{percent(found['lower'])} to {percent(found['upper'])} (at {percent(found['level'])} confidence)"


def _epsilons(s: Any) -> list[tuple[str, str]]:
    return [
        ("epsilon (of this merge)" if s.merged else "epsilon (of this fit)", s.epsilon),
        ("  the same noise read as", f"{s.epsilon_add_or_remove_one} (add-or-remove-one)"),
        ("", f"{s.epsilon_replace_one} (replace-one)"),
        ("epsilon in use", f"{s.epsilon_in_use} (after rounding down)"),
        (
            "delta",
            f"{s.delta}; N 2^-60 for clients that time answers (see remarks)" if s.counts == "keyed" else s.delta,
        ),
    ]


def _ledger(receipt: dict[str, Any]) -> str:
    return f"{receipt['dataset']}, entry {receipt['entry']} of the ledger {receipt['ledger']}"


def _people(merged: dict[str, Any]) -> str:
    together = (
        "epsilon is the largest of their epsilons" if merged["people"] == "declared disjoint" else "epsilons add up"
    )
    return f"{merged['people']}: {together}"


def _feature_line(feature: dict[str, Any]) -> str:
    """A line of the page."""
    more = [f"estimated within {feature['outer'][0]:g} to {feature['outer'][1]:g}"] if "outer" in feature else []
    if "declared" in feature:
        more += [f"narrowed from {feature['declared'][0]:g} to {feature['declared'][1]:g}"]
    if "rows" in feature:
        more += [feature["rows"]]
    more += ["missing values have a cell"] if "missing" in feature else []
    note = f"   {'; '.join(more)}" if more else ""
    if "levels" not in feature:
        return f"  {feature['feature']:<24}{feature['lower']:>12g}{feature['upper']:>12g}{note}"
    text = (" < " if feature["ordered"] else ", ").join(feature["levels"])
    lines = textwrap.wrap(
        f"{len(feature['levels'])} levels: {text}{note}", 72, break_long_words=False, break_on_hyphens=False
    )
    return f"  {feature['feature']:<24}  " + f"\n{'':<28}".join(lines)
