"""The versions of the format: a new one is its own module in this folder and one line here.

Version 1 writes the parts of a model by their own ``to_json``: whoever changes one of these first copies it into version 1, and
then writes a new version. What is new needs a field of ``Model``.
"""

from typing import Any, Protocol

from dpoutlier.counts.file_arrays import Arrays
from dpoutlier.model.file import version_1
from dpoutlier.model.model import Model


class Version(Protocol):
    """What a module of a version has."""

    def model_of(self, content: dict[str, Any], arrays: Arrays, /) -> Model:
        """The model that a file describes. What every version shares is checked after that: see ``manifest``."""

    def content_of(self, model: Model, /) -> dict[str, Any]:
        """What a file of this version says of a model: all of the manifest but privacy statement, checksums and format."""

    def arrays_of(self, model: Model, /) -> Arrays:
        """The arrays of such a file."""


VERSIONS: dict[int, Version] = {1: version_1}
WRITTEN = max(VERSIONS)
"""The version of new files."""
