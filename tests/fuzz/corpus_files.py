"""The corpus: a folder for each target. What is long is kept as ``.gz``, and is unpacked before it is used."""

import gzip
import hashlib
from pathlib import Path

__all__ = ["CORPUS", "add", "inputs"]

CORPUS = Path(__file__).parent / "corpus"
LONG = 2000


def inputs(target):
    """All inputs of a target by name."""
    found = {}
    for path in sorted((CORPUS / target).glob("*")):
        content = path.read_bytes()
        found[path.name.removesuffix(".gz")] = gzip.decompress(content) if path.suffix == ".gz" else content
    return found


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
