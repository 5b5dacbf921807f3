"""Change a model file by hand."""

import hashlib
import json
import zipfile

from dpoutlier.model.file import archive


def rewritten(path, target, *, change=None, arrays=None):
    """A model file with another manifest or other arrays, and checksums that fit: what a forger could write."""
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    for name, content in (arrays or {}).items():
        members[f"{name}.npy"] = content
        manifest["arrays"][name] = hashlib.sha256(content).hexdigest()
    if change:
        change(manifest)
    manifest["checksum"] = archive.checksum(manifest)
    with zipfile.ZipFile(target, "w") as new:
        new.writestr("manifest.json", json.dumps(manifest))
        for name, content in members.items():
            new.writestr(name, content)
    return target


def at(*keys, value):
    def change(manifest):
        for key in keys[:-1]:
            manifest = manifest[key]
        manifest[keys[-1]] = value

    return change
