"""Disks that are really full: small ones in memory, which only root can mount."""

import os
import subprocess
from pathlib import Path

import pytest


class Disks:
    """Mounts small disks, and takes them away in the end."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._mounted = folder, []

    def make(self, size: str) -> Path:
        """An empty disk of that size."""
        place = self._folder / f"disk-{len(self._mounted)}"
        place.mkdir()
        try:
            command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            pytest.skip("there is no mount here, so no disk can be made full")
        if done.returncode:
            pytest.skip(f"a small disk cannot be mounted here (it takes root): {done.stderr.strip()}")
        self._mounted.append(place)
        return place

    def close(self) -> None:
        for place in self._mounted:
            subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path) -> None:
    """Leave no byte free."""
    handle = os.open(place / "filler", os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(handle, bytes(1024))
    except OSError:
        pass
    finally:
        os.close(handle)
