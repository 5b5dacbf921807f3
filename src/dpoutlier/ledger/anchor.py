"""An anchor: a file elsewhere with numbers and hashes of ledger entries. An old copy of the ledger lacks the last of them."""

import errno
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from dpoutlier.exceptions import InvalidParameterError, LedgerError
from dpoutlier.ledger.entries import Entry

LONGEST_LINE = 100
BLOCK = 4096
"""Bytes. Disks allocate space to files in blocks of this size or a multiple."""


class Head(NamedTuple):
    """The number and the hash of an entry. ``Ledger.verify`` returns that of the last one.

    Attributes
    ----------
    number : int
        Number of the entry, from 1.
    hash : str
        Its hash, 64 hexadecimal digits. It stands for all entries up to this one.
    """

    number: int
    hash: str


def create_anchor(path: Path) -> None:
    """An empty anchor; the name must be free."""
    if not path.parent.is_dir():
        raise InvalidParameterError(f"the anchor {path} cannot be written: there is no folder {path.parent}.")
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        raise LedgerError(f"the anchor {path} exists: each ledger needs one of its own. Choose another name.") from None


def announce(path: Path, number: int) -> None:
    """Before an entry is written, check that its head can be added: add its number alone, without a hash.

    Only a real write shows that the disk has room. The line stays, since the file may be on a disk that only permits appending. If
    the head would not fit into the rest of the block, the line is repeated until it does, so that the disk has already given the
    block for the head.
    """
    _add(path, f"{number}\n", room=LONGEST_LINE)


def write_head(path: Path, entry: Entry) -> None:
    """Add the head of an entry, and see it on disk."""
    _add(path, f"{entry.number} {entry.hash}\n")


def _add(path: Path, line: str, room: int = 0) -> None:
    """Add a line. Lines are never changed, so that the file may lie where one can only append."""
    handle = os.open(path, os.O_RDWR | os.O_APPEND)
    try:
        size = os.fstat(handle).st_size
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"  # a crash cut the last line short
        text = f"{chr(10) if torn else ''}{line}"
        while room and (size + len(text) - 1) % BLOCK + 1 + room > BLOCK:
            text += line
        left = text.encode()
        while left:  # a disk that is nearly full takes a part, and says so at the next try
            left = left[os.write(handle, left) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def heads_in(path: Path) -> list[Head]:
    """The heads in an anchor. Numbers alone, and lines that were cut short by a crash, are skipped."""
    found: list[Head] = []
    try:
        for number, line in enumerate(_lines(path), 1):
            match = re.fullmatch(r"([0-9]{1,15})( ([0-9a-f]{0,64}))?", line)
            if match is None:
                raise LedgerError(f"the anchor {path} is damaged: line {number} is not one that a ledger writes.")
            if len(match[3] or "") == 64:
                found.append(Head(int(match[1]), match[3]))
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        why = getattr(error, "strerror", None) or error
        raise LedgerError(
            f"the anchor {path} cannot be read ({why}), so nobody can tell whether the ledger is an old copy. Put it back, or give "
            "its new place with anchor=... (--anchor). If it is lost: dpoutlier ledger anchor --help"
        ) from None
    return found


def _lines(path: Path) -> Iterator[str]:
    """The whole lines, up to the first that is longer than any a ledger writes. A user may name any file as the anchor."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file")
    with path.open(encoding="ascii", errors="replace") as stream:
        while (line := stream.readline(LONGEST_LINE)).endswith("\n"):
            yield line[:-1]
        if len(line) == LONGEST_LINE:
            yield line


def check_heads(entries: Sequence[Entry], heads: Sequence[Head], where: str) -> None:
    """Raise if the ledger lacks what an anchor names: it is an old copy, or another ledger."""
    for head in heads:
        if head.number <= len(entries) and entries[head.number - 1].hash != head.hash:
            raise LedgerError(
                f"entry {head.number} of the ledger is not the one that {where} recorded. Somebody made the ledger again, or "
                "changed it and recomputed its hashes. Put the original back, and do not charge this one."
            )
    last = max((head.number for head in heads), default=0)
    if last > len(entries):
        raise LedgerError(
            f"the ledger is an old copy: it ends at entry {len(entries)}, but {where} recorded entry {last}. The charges in "
            "between are missing. Put the newest copy back, and do not charge this one."
        )
