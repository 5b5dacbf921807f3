"""The container: an uncompressed zip of ``.npy`` arrays and a manifest with their checksums.

Reading checks everything, executes nothing, and makes no array larger than the file.
"""

import hashlib
import io
import json
import math
import re
import zipfile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier.counts.file_arrays import Arrays
from dpoutlier.exceptions import ModelFileError
from dpoutlier.model.file.versions import VERSIONS

FORMAT = "dpoutlier model"
SEAL = ("format", "format_version", "arrays", "checksum")
"""Keys of the manifest that the container adds to the content."""
MANIFEST = "manifest.json"
WARNING = "SECRET.txt"
WARNING_TEXT = b"This model is secret. It holds exact counts of people's data and must not leave the custodian.\n"
MAX_MANIFEST_BYTES = 1 << 24
MAX_MEMBERS = 16
MAGIC = b"\x93NUMPY\x01\x00"
# As numpy writes it, and not as numpy reads it: by Python's parser, which takes much more and warns of some.
HEADER = re.compile(
    rb"\{'descr': '([<|][fiu][1248])', 'fortran_order': False, 'shape': \(([0-9]{1,15}),(?: ([0-9]{1,15}))?\), \} *\n"
)


def npy_bytes(array: NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def checksum(manifest: dict[str, Any]) -> str:
    """SHA-256 of the manifest, with its checksums of the arrays and without its own."""
    content = {key: value for key, value in manifest.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def sealed(content: dict[str, Any], arrays: Arrays, version: int) -> dict[str, Any]:
    """A manifest with the checksums of the arrays, and its own."""
    content = {
        **content,
        "format": FORMAT,
        "format_version": version,
        "arrays": {name: hashlib.sha256(npy_bytes(array)).hexdigest() for name, array in arrays.items()},
    }
    return {**content, "checksum": checksum(content)}


def write_archive(stream: IO[bytes], manifest: dict[str, Any], arrays: Arrays, publishable: bool) -> None:
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        if not publishable:
            archive.writestr(zipfile.ZipInfo(WARNING), WARNING_TEXT)
        archive.writestr(zipfile.ZipInfo(MANIFEST), json.dumps(manifest, indent=1))
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), npy_bytes(array))


def read_archive(archive: zipfile.ZipFile, size: int) -> tuple[dict[str, Any], Arrays]:
    members = {info.filename: info for info in archive.infolist()}
    if len(members) != len(archive.infolist()) or len(members) > MAX_MEMBERS or MANIFEST not in members:
        raise ModelFileError("the file is a zip, but not a model file: its members are not those of a model.")
    for info in members.values():
        stored = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
        if not stored or info.file_size > size:
            raise ModelFileError(f"member {info.filename} of the model file has an impossible size.")
    if sum(info.file_size for info in members.values()) > size:
        raise ModelFileError("the members of the model file overlap.")
    if members[MANIFEST].file_size > MAX_MANIFEST_BYTES:
        raise ModelFileError("the manifest of the model file is too long.")
    manifest = json.loads(archive.read(members[MANIFEST]).decode())
    _check_manifest(manifest, members.keys() - {MANIFEST, WARNING})
    if (WARNING in members) is (manifest.get("publishable") is True):
        raise ModelFileError("the model file is marked both secret and publishable, or neither.")
    return manifest, {
        name: _array(archive.read(f"{name}.npy"), name, digest) for name, digest in manifest["arrays"].items()
    }


def _check_manifest(manifest: Any, members: set[str]) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError("the file is not a dpoutlier model.")
    version = manifest.get("format_version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"the model file has an impossible format version {version!r}.")
    if version not in VERSIONS:
        raise ModelFileError(
            f"the model file has format version {version}, and this dpoutlier reads up to {max(VERSIONS)}: upgrade dpoutlier."
        )
    if manifest.get("checksum") != checksum(manifest):
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
    size = int.from_bytes(content[8:10], "little")
    header, data = HEADER.fullmatch(content[10 : 10 + size]), content[10 + size :]
    if not content.startswith(MAGIC) or header is None:
        raise ModelFileError(f"array {name} of the model file has an unknown layout.")
    shape, dtype = tuple(int(n) for n in header.groups()[1:] if n is not None), np.dtype(header[1].decode())
    if dtype.itemsize * math.prod(shape) != len(data):
        raise ModelFileError(f"array {name} of the model file has an impossible shape.")
    return np.frombuffer(data, dtype).reshape(shape)
