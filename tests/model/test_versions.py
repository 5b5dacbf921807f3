"""Versions of the format: each is one module, and all of them go through the same checks."""

import json
import zipfile

import numpy as np
import pytest

from dpoutlier import load
from dpoutlier.exceptions import ModelFileError
from dpoutlier.model.file.versions import VERSIONS, WRITTEN
from forging import at, rewritten
from model_variants import ROWS, VARIANTS

POINTS = np.random.default_rng(1).uniform(size=(50, 3))


BEFORE, NEXT = VERSIONS[WRITTEN], WRITTEN + 1


class Renamed:
    """A version to come, that has another word for the detector, and another name for an array."""

    @staticmethod
    def content_of(model):
        content = BEFORE.content_of(model)
        return {"kind": content.pop("detector"), **content}

    @staticmethod
    def model_of(content, arrays):
        content = dict(content)
        renamed = {"counts" if name == "cells" else name: array for name, array in arrays.items()}
        return BEFORE.model_of({"detector": content.pop("kind"), **content}, renamed)

    @staticmethod
    def arrays_of(model):
        return {"cells" if name == "counts" else name: array for name, array in BEFORE.arrays_of(model).items()}


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """The same model in two files: of this version and of the version to come, by a dpoutlier that knows both."""
    fitted = VARIANTS["forest"].fit(ROWS)
    first = fitted.save(tmp_path / "first.dpo")
    monkeypatch.setitem(VERSIONS, NEXT, Renamed)
    monkeypatch.setattr("dpoutlier.model.file.manifest.WRITTEN", NEXT)
    return first, fitted.save(tmp_path / "second.dpo")


def test_the_newest_version_is_written():
    assert max(VERSIONS) == WRITTEN


def test_files_of_each_version_are_read(saved):
    first, second = map(load, saved)
    assert (first.outlier_scores(POINTS) == second.outlier_scores(POINTS)).all()
    assert first.privacy_statement() == second.privacy_statement()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (at("guarantee", "epsilon", value="1/100"), "do not add up to its epsilon"),
        (at("charges", 0, "sensitivity", value=1), "does not follow from its guarantee"),
        (at("unknown", value=1), "not one that this format knows"),
        (at("statement", "epsilon", value="0.001"), "statement in the model file does not match its content"),
        (at("kind", value="DPMarginals"), "do not belong together"),
        (
            at("format_version", value=NEXT + 1),
            f"format version {NEXT + 1}, and this dpoutlier reads up to {NEXT}: upgrade",
        ),
    ],
)
def test_a_forged_file_of_another_version_is_refused_as_well(saved, tmp_path, change, message):
    with pytest.raises(ModelFileError, match=message):
        load(rewritten(saved[1], tmp_path / "forged.dpo", change=change))


def test_a_file_names_its_version(saved):
    versions = [json.loads(zipfile.ZipFile(path).read("manifest.json"))["format_version"] for path in saved]
    assert versions == [WRITTEN, NEXT]
