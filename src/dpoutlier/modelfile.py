"""Model files: a zip of plain arrays and a JSON manifest. Data only; see docs/model-file.md.

Loading checks everything, executes nothing, and never allocates more than the file's size.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier._files import write_aside
from dpoutlier._validate import at_least_one
from dpoutlier.domain import Domain
from dpoutlier.exceptions import ModelFileError, SecretError
from dpoutlier.guarantee import Charge, Guarantee, Neighbours, exact_number
from dpoutlier.holders.dense import MOST_DENSE_CELLS, DenseCounts
from dpoutlier.holders.holder import NoisyCounts
from dpoutlier.model import Model
from dpoutlier.noise.law import DiscreteLaplace
from dpoutlier.partitions.grid import Grid
from dpoutlier.partitions.partition import Partition
from dpoutlier.scoring.nearest_cells import NearestCells
from dpoutlier.scoring.scorer import Scorer
from dpoutlier.scoring.threshold import ScoreHistogram
from dpoutlier.trusted.exact import ExactCounts
from dpoutlier.trusted.keyed import KEY_BYTES, PRF, SALT_BYTES, SAMPLER, KeyedCounts

__all__ = ["FORMAT_VERSION", "PUBLIC_SUFFIX", "SECRET_SUFFIX", "check_target", "load_model", "save_model"]

FORMAT = "dpoutlier model"
FORMAT_VERSION = 1
PUBLIC_SUFFIX, SECRET_SUFFIX = ".dpo", ".secret.dpo"
MANIFEST = "manifest.json"
WARNING = "SECRET.txt"
WARNING_TEXT = b"This model is secret. It holds exact counts of people's data and must not leave the custodian.\n"
MOST_MANIFEST_BYTES = 1 << 24
MOST_MEMBERS = 16

PARTITIONS = {"grid": Grid}
SCORERS = {"nearest-cells": NearestCells}

Arrays = dict[str, NDArray[Any]]


# Saving ------------------------------------------------------------------------------------------------------------


def save_model(model: Model, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a model aside, then rename it. Returns the path, with the suffix that tells what it is."""
    target = _named(Path(path), publishable=model.publishable)
    arrays = _arrays(model)
    manifest = _manifest(model, arrays)
    mode = 0o644 if model.publishable else 0o600
    return write_aside(
        target, lambda stream: _write(stream, manifest, arrays, model.publishable), overwrite=overwrite, mode=mode
    )


def check_target(path: Path, *, overwrite: bool) -> None:
    """Refuse a name that is taken before any budget is spent, whatever the model will turn out to be."""
    for suffix in ("", PUBLIC_SUFFIX, SECRET_SUFFIX):
        taken = path.with_name(path.name + suffix)
        if not overwrite and taken.exists():
            raise FileExistsError(f"{taken} exists. Choose another name, or say that it may be replaced.")
    if not path.parent.is_dir():
        raise FileNotFoundError(2, "no such folder", str(path.parent))


def _named(path: Path, *, publishable: bool) -> Path:
    says_secret, says_public = path.name.endswith(SECRET_SUFFIX), path.suffix == PUBLIC_SUFFIX
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


def _arrays(model: Model) -> Arrays:
    arrays = dict(model.counts.arrays())
    if model.score_histogram is not None:
        arrays |= model.score_histogram.arrays()
    if model.threshold is not None:
        arrays["threshold"] = np.array([model.threshold])  # an array has a fixed width, a number in JSON has not
    return {name: np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")) for name, array in arrays.items()}


def _npy(array: NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def _manifest(model: Model, arrays: Arrays) -> dict[str, Any]:
    statement = model.privacy_statement()
    guarantee = model.guarantee
    content: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "publishable": model.publishable,
        "detector": model.detector,
        "domain": {**asdict(model.domain), "scales": model.domain.scales},
        "partition": model.partition.to_json(),
        "scorer": model.scorer.to_json(),
        "counts": model.counts.to_json(),
        "guarantee": {
            **asdict(guarantee),
            "epsilon": None if guarantee.epsilon is None else str(guarantee.epsilon),
            "neighbours": guarantee.neighbours.value,
        },
        "charges": [
            {**asdict(charge), "epsilon": str(charge.epsilon), "rate": str(charge.rate)} for charge in model.charges
        ],
        "n_hint": model.n_hint,
        "score_histogram": None if model.score_histogram is None else model.score_histogram.to_json(),
        "statement": statement.to_dict(),
        "arrays": {name: hashlib.sha256(_npy(array)).hexdigest() for name, array in arrays.items()},
    }
    return {**content, "checksum": _checksum(content)}


def _checksum(manifest: dict[str, Any]) -> str:
    """SHA-256 of the manifest, with its checksums of the arrays and without its own."""
    content = {key: value for key, value in manifest.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _write(stream: IO[bytes], manifest: dict[str, Any], arrays: Arrays, publishable: bool) -> None:
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        if not publishable:
            archive.writestr(zipfile.ZipInfo(WARNING), WARNING_TEXT)
        archive.writestr(zipfile.ZipInfo(MANIFEST), json.dumps(manifest, indent=1))
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), _npy(array))


# Loading -----------------------------------------------------------------------------------------------------------


def load_model(path: str | Path, *, secret: bool = False) -> Model:
    """Read a model file. A secret one is opened only if ``secret=True`` says that this is known."""
    path = Path(path)
    try:
        size = path.stat().st_size
        with zipfile.ZipFile(path) as archive:
            manifest, arrays = _read(archive, size)
        model = _model(manifest, arrays)
    except (ModelFileError, SecretError):
        raise
    except FileNotFoundError:
        raise ModelFileError(f"{path} does not exist.") from None
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


def _read(archive: zipfile.ZipFile, size: int) -> tuple[dict[str, Any], Arrays]:
    members = {info.filename: info for info in archive.infolist()}
    if len(members) != len(archive.infolist()) or len(members) > MOST_MEMBERS or MANIFEST not in members:
        raise ModelFileError("the file is a zip, but not a model file: its members are not those of a model.")
    for info in members.values():
        stored = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
        if not stored or info.file_size > size:
            raise ModelFileError(f"member {info.filename} of the model file has an impossible size.")
    if sum(info.file_size for info in members.values()) > size:
        raise ModelFileError("the members of the model file overlap.")
    if members[MANIFEST].file_size > MOST_MANIFEST_BYTES:
        raise ModelFileError("the manifest of the model file is too long.")
    manifest = json.loads(archive.read(members[MANIFEST]))
    _check_manifest(manifest, members.keys() - {MANIFEST, WARNING})
    return manifest, {
        name: _array(archive.read(f"{name}.npy"), name, digest) for name, digest in manifest["arrays"].items()
    }


def _check_manifest(manifest: Any, members: set[str]) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError("the file is not a dpoutlier model.")
    version = manifest.get("format_version")
    if not isinstance(version, int) or version < 1:
        raise ModelFileError(f"the model file has an impossible format version {version!r}.")
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"the model file has format version {version}, and this dpoutlier reads up to {FORMAT_VERSION}: upgrade dpoutlier."
        )
    if manifest.get("checksum") != _checksum(manifest):
        raise ModelFileError(
            "the manifest of the model file does not match its checksum: the file is damaged. Get it again."
        )
    if members != {f"{name}.npy" for name in manifest["arrays"]}:
        raise ModelFileError("the model file does not hold the arrays that its manifest lists.")


def _array(content: bytes, name: str, digest: str) -> NDArray[Any]:
    if hashlib.sha256(content).hexdigest() != digest:
        raise ModelFileError(
            f"array {name} of the model file does not match its checksum: the file is damaged. Get it again."
        )
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ModelFileError(f"array {name} of the model file has an unknown layout.")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    data = content[stream.tell() :]
    if fortran or dtype.hasobject or dtype.itemsize * int(np.prod(shape, dtype=object)) != len(data):
        raise ModelFileError(f"array {name} of the model file has an impossible shape.")
    return np.frombuffer(data, dtype).reshape(shape)


def _expect(arrays: Arrays, name: str, dtype: Any, shape: tuple[int | None, ...]) -> NDArray[Any]:
    array = arrays[name]
    fits = len(shape) == array.ndim and all(want in {None, got} for want, got in zip(shape, array.shape, strict=True))
    if array.dtype != np.dtype(dtype) or not fits:
        raise ModelFileError(f"array {name} of the model file has type {array.dtype} and shape {array.shape}.")
    return array


def _model(manifest: dict[str, Any], arrays: Arrays) -> Model:
    domain = _domain(manifest["domain"])
    partition: Partition = PARTITIONS[manifest["partition"]["name"]].from_json(manifest["partition"])
    scorer: Scorer = SCORERS[manifest["scorer"]["name"]].from_json(manifest["scorer"])
    if partition.n_features != domain.n_features:
        raise ModelFileError("the partition and the bounds of the model file differ in their number of features.")
    threshold = float(_expect(arrays, "threshold", "<f8", (1,))[0]) if "threshold" in arrays else None
    model = Model(
        detector=str(manifest["detector"]),
        domain=domain,
        partition=partition,
        scorer=scorer,
        counts=_counts(manifest["counts"], arrays, partition),
        guarantee=_guarantee(manifest["guarantee"]),
        charges=tuple(_charge(entry) for entry in manifest["charges"]),
        n_hint=None if manifest["n_hint"] is None else at_least_one(n_hint=manifest["n_hint"]),
        score_histogram=_score_histogram(manifest["score_histogram"], arrays),
        threshold=threshold,
    )
    _check_charges(model)
    if model.publishable is not manifest["publishable"]:
        raise ModelFileError("the model file says that it is publishable, and its content is not.")
    return model


def _domain(content: dict[str, Any]) -> Domain:
    names = None if content["names"] is None else tuple(str(name) for name in content["names"])
    domain = Domain(tuple(map(float, content["lower"])), tuple(map(float, content["upper"])), names)
    if list(domain.scales) != content["scales"]:
        raise ModelFileError("the bounds of the model file do not give its scales.")
    return domain


def _rational(text: str) -> Fraction:
    number = exact_number(text)
    if number is None:
        raise ModelFileError(f"the model file has {text[:80]!r} where a number should be.")
    return number


def _guarantee(content: dict[str, Any]) -> Guarantee:
    return Guarantee(
        epsilon=None if content["epsilon"] is None else _rational(content["epsilon"]),
        neighbours=Neighbours(content["neighbours"]),
        rows_per_person=content["rows_per_person"],
        voided_by=tuple(str(reason) for reason in content["voided_by"]),
    )


def _charge(content: dict[str, Any]) -> Charge:
    law = DiscreteLaplace(_rational(content["rate"]))
    sensitivity = at_least_one(sensitivity=content["sensitivity"])
    return Charge(str(content["purpose"]), _rational(content["epsilon"]), sensitivity, law.rate)


def _check_charges(model: Model) -> None:
    """What was bought must fit into what is promised."""
    if any(charge.epsilon_in_use > charge.epsilon for charge in model.charges):
        raise ModelFileError("a part of the model file costs more than was set aside for it.")
    if model.guarantee.private and not 0 < sum(c.epsilon for c in model.charges) <= (model.guarantee.epsilon or 0):
        raise ModelFileError("the parts of the model file cost more than its epsilon, or nothing at all.")


def _counts(content: dict[str, Any], arrays: Arrays, partition: Partition) -> NoisyCounts:
    match content["kind"]:
        case "dense":
            if partition.n_cells > MOST_DENSE_CELLS:
                raise ModelFileError("the model file has too many cells for a dense holder.")
            return DenseCounts(_expect(arrays, "counts", "<i8", (partition.n_cells,)), bool(content["unsafe_float"]))
        case "exact":
            return ExactCounts(*_occupied(arrays, partition))
        case "keyed":
            if (content["prf"], content["sampler"]) != (PRF, SAMPLER):
                raise ModelFileError(
                    f"the model file needs the noise of {content['prf']} with {content['sampler']}, which this dpoutlier does "
                    "not have. Other noise on the same counts would be a second release: upgrade dpoutlier."
                )
            ids, exact = _occupied(arrays, partition)
            key = _expect(arrays, "key", "u1", (KEY_BYTES,)).tobytes()
            salt = _expect(arrays, "salt", "u1", (SALT_BYTES,)).tobytes()
            law = DiscreteLaplace(_rational(content["rate"]))
            return KeyedCounts(ids, exact, key, salt, law, bool(content["unsafe_float"]))
        case kind:
            raise ModelFileError(f"the model file has a holder {kind!r} that this dpoutlier does not know.")


def _occupied(arrays: Arrays, partition: Partition) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    ids = _expect(arrays, "ids", "<u8", (None, 2))
    exact = _expect(arrays, "exact", "<i8", (len(ids),))
    high, low = ids[:, 0], ids[:, 1]
    ascending = (high[1:] > high[:-1]) | ((high[1:] == high[:-1]) & (low[1:] > low[:-1]))
    last = divmod(partition.n_cells - 1, 2**64)
    inside = not len(ids) or (int(high[-1]), int(low[-1])) <= last
    if not ascending.all() or not inside or (exact < 1).any():
        raise ModelFileError("the cells of the model file are not in order.")
    return ids, exact


def _score_histogram(content: dict[str, Any] | None, arrays: Arrays) -> ScoreHistogram | None:
    if content is None:
        return None
    levels = _expect(arrays, "score_levels", "<f8", (None,))
    counts = _expect(arrays, "score_counts", "<i8", (len(levels),))
    if not len(levels) or not np.isfinite(levels).all() or (np.diff(levels) <= 0).any():
        raise ModelFileError("the score levels of the model file are not in order.")
    rate = None if content["rate"] is None else _rational(content["rate"])
    return ScoreHistogram(levels, counts, rate, content["target_fpr"])
