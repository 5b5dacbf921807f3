"""The model that a command works with: from a file, or on a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpoutlier.exceptions import InvalidParameterError

if TYPE_CHECKING:
    from dpoutlier.client.client import Client
    from dpoutlier.detectors.fitted import FittedDetector


LONGEST_KEY = 4096

ModelOrId = Annotated[Path, typer.Argument(help="Model file, .dpo or .secret.dpo; with --url, the id of a model.")]
KeyFile = Annotated[
    Path | None, typer.Option(help="File with the key for --url; by default the variable DPOUTLIER_KEY.")
]
CaFile = Annotated[Path | None, typer.Option(help="File of the authority that signed the certificate of --url.")]


def open_model(
    model: Path, url: str | None, key_file: Path | None, ca: Path | None, n_jobs: int | None = None
) -> FittedDetector | Client:
    """The model in that file or, if there is a url, the model with that id on the server."""
    if url is None:
        from dpoutlier.detectors.load import load  # noqa: PLC0415 - a client needs none of it
        from dpoutlier.model.file import has_secret_name  # noqa: PLC0415

        if key_file is not None or ca is not None:
            raise InvalidParameterError("--key-file and --ca are for a server: give its address as --url.")
        return load(model, secret=has_secret_name(model), n_jobs=n_jobs)
    from dpoutlier.client.client import Client  # noqa: PLC0415

    return Client(url, str(model), key=None if key_file is None else _key(key_file), ca=ca)


def _key(path: Path) -> str:
    """The key in a file; no message shows it."""
    try:
        with path.open("rb") as stream:
            content = stream.read(LONGEST_KEY + 1)
    except OSError as error:
        raise InvalidParameterError(
            f"--key-file {path} cannot be read: {error.strerror}. Give the file that holds the key."
        ) from None
    if len(content) > LONGEST_KEY or len(content.split()) != 1:
        raise InvalidParameterError(
            f"--key-file {path} must hold one line, a key as `dpoutlier keys create` prints it."
        )
    return content.decode("ascii", "replace").strip()
