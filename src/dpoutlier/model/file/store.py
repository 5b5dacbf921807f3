"""Save and load: names, modes, and the wall between publishable and secret."""

import json
import zipfile
from pathlib import Path

from dpoutlier._atomic import check_output, try_output, write_aside
from dpoutlier.counts.dense import MAX_DENSE_CELLS
from dpoutlier.exceptions import ModelFileError, SecretError
from dpoutlier.model.file.archive import read_archive, write_archive
from dpoutlier.model.file.manifest import arrays_of, manifest_of, model_of
from dpoutlier.model.model import Model

PUBLIC_SUFFIX, SECRET_SUFFIX = ".dpo", ".secret.dpo"
MAX_DENSE_BYTES = 8 * MAX_DENSE_CELLS + 2**20
"""Counts of eight bytes, and room for the manifest and a histogram of scores."""


def save_model(model: Model, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a model aside, then rename it. Returns the path, with the suffix that tells what it is."""
    target = _named(Path(path), publishable=model.publishable)
    arrays = arrays_of(model)
    manifest = manifest_of(model, arrays)
    model_of(json.loads(json.dumps(manifest)), arrays)  # what could not be read back is not written
    mode = 0o644 if model.publishable else 0o600
    return write_aside(
        target,
        lambda stream: write_archive(stream, manifest, arrays, model.publishable),
        overwrite=overwrite,
        mode=mode,
    )


def check_target(path: Path, *, overwrite: bool) -> None:
    """Refuse a name that cannot be written to before any budget is spent, whatever the model will turn out to be."""
    for target in targets(path):
        check_output(target, overwrite=overwrite)


def try_target(path: Path) -> None:
    """Check the disk before a fit spends epsilon: write as many bytes as a dense model may take, and remove them."""
    for target in targets(path):
        try_output(target, MAX_DENSE_BYTES)


def has_secret_name(path: Path) -> bool:
    """Whether a model file says by its name that it is secret."""
    return path.name.endswith(SECRET_SUFFIX)


def targets(path: Path) -> tuple[Path, ...]:
    """The names that a model may get, whatever it will turn out to be."""
    if path.suffix == PUBLIC_SUFFIX or not path.name:
        return (path,)
    return tuple(path.with_name(path.name + suffix) for suffix in (PUBLIC_SUFFIX, SECRET_SUFFIX))


def _named(path: Path, *, publishable: bool) -> Path:
    says_secret, says_public = has_secret_name(path), path.suffix == PUBLIC_SUFFIX
    if publishable and says_secret:
        raise SecretError(f"{path.name} is the name of a secret model, and this one is publishable: name it *.dpo.")
    if not publishable and says_public and not says_secret:
        raise SecretError(
            f"{path.name} is the name of a publishable model, and this one is secret (see its privacy statement): name it "
            f"*{SECRET_SUFFIX} and keep it with the custodian."
        )
    if says_public:
        return path
    return path.with_name(path.name + (PUBLIC_SUFFIX if publishable else SECRET_SUFFIX))


def load_model(path: str | Path, *, secret: bool = False) -> Model:
    """Read a model file. A secret one is opened only with ``secret=True``."""
    path = Path(path)
    if not path.exists():
        raise ModelFileError(f"{path} does not exist.")
    if not path.is_file():
        raise ModelFileError(f"{path} cannot be read: it is not a regular file.")
    try:
        size = path.stat().st_size
        with zipfile.ZipFile(path) as archive:
            manifest, arrays = read_archive(archive, size)
        model = model_of(manifest, arrays)
    except ModelFileError as error:
        raise error.within(path) from None
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the content, it is the file's fault
        raise ModelFileError(
            f"{path} is not a model file, or it is damaged or cut short ({type(error).__name__}: {error}). Get it again."
        ) from None
    if not model.publishable and not secret:
        raise SecretError(
            f"{path} is a secret model: it holds exact counts and must not leave the custodian. If you are the custodian, "
            "load it with secret=True (on the command line: by its name *.secret.dpo)."
        )
    return model
