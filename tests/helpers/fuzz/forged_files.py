"""Files that a forger would write: changed inside, with checksums and hashes that fit again."""

import hashlib
import io
import json
import os
import sqlite3
import struct
import tempfile
import zipfile
from pathlib import Path

from dpoutlier.ledger.entries import START, _hash
from dpoutlier.ledger.store import SCHEMA
from dpoutlier.model.file import archive

SHARED = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def members_of(data):
    """The members of a model file, or of what is left of one."""
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        return {name: old.read(name) for name in old.namelist()}


def sealed_model(data, change=None, arrays=None):
    """A model file with another manifest or other arrays."""
    members = members_of(data)
    manifest = json.loads(members.pop("manifest.json"))
    for name, content in (arrays or {}).items():
        members[f"{name}.npy"] = content
        manifest["arrays"][name] = hashlib.sha256(content).hexdigest()
    manifest = (change(manifest) if change else None) or manifest
    if isinstance(manifest, dict):
        manifest["checksum"] = archive.checksum(manifest)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as new:
        for name, content in {**members, "manifest.json": json.dumps(manifest)}.items():
            new.writestr(zipfile.ZipInfo(name), content)
    return stream.getvalue()


def npy_with_header(header, data):
    """An array whose header is any text."""
    text = header.encode("latin-1", "replace")[:65_535]
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + data


def _opened(path):
    """A connection that ends where a damaged file leads it in circles."""
    connection, calls = sqlite3.connect(path, isolation_level=None), iter(range(200))
    connection.set_progress_handler(lambda: next(calls, None) is None, 1000)
    return connection


def ledger_rows(data):
    """(number, body) of each entry."""
    with tempfile.TemporaryDirectory(dir=SHARED) as folder:
        path = Path(folder) / "ledger"
        path.write_bytes(data)
        connection = _opened(path)
        try:
            return connection.execute("SELECT number, body FROM entries ORDER BY number LIMIT 1000").fetchall()
        finally:
            connection.close()


def ledger_of(data, bodies):
    """A ledger like ``data`` with these entries."""
    with tempfile.TemporaryDirectory(dir=SHARED) as folder:
        path = Path(folder) / "ledger"
        path.write_bytes(data)
        connection = _opened(path)
        try:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN")
            connection.execute("DROP TRIGGER no_update")
            connection.execute("DROP TRIGGER no_delete")
            connection.execute("DELETE FROM entries")
            previous = START
            for number, body in enumerate(bodies, 1):
                own = _hash(number, previous, body)
                connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", (number, previous, body, own))
                previous = own
            for statement in SCHEMA[1:]:
                connection.execute(statement)
            connection.execute("COMMIT")
        finally:
            connection.close()
        return path.read_bytes()
