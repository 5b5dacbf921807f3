"""The corpus: a folder for each target. What is long is kept as ``.gz``, and is unpacked before it is used."""

import gzip
import hashlib
from pathlib import Path

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus"
LONG = 2000


def inputs(target):
    """All inputs of a target by name."""
    return {path.name.removesuffix(".gz"): content_of(path) for path in sorted((CORPUS / target).glob("*"))}


def content_of(path):
    """The content of an input, unpacked."""
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def add(target, content, name=None):
    """Keep an input, under a name or the beginning of its hash. Returns whether it is new."""
    name = name or hashlib.sha256(content).hexdigest()[:16]
    known = inputs(target)
    if name in known or content in known.values():
        return False
    path = CORPUS / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    packed = gzip.compress(content, mtime=0)
    if len(content) > LONG and len(packed) < len(content):
        path, content = path.with_name(f"{name}.gz"), packed
    path.write_bytes(content)
    return True
