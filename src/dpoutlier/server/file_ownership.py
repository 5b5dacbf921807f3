"""Keeps the readers of a file when it is replaced: the same people as before may read the new one."""

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from dpoutlier.exceptions import InvalidParameterError

LIST = "system.posix_acl_access"
"""The access list that setfacl sets."""
OWN = 0o600


class Access(NamedTuple):
    """Owner, group, mode and access list of a file."""

    owner: int
    group: int
    mode: int
    people: bytes | None = None


def access_of(path: Path) -> Access:
    """The access of a file that exists."""
    found, people = path.stat(), None
    with suppress(OSError, AttributeError):  # it has none, or this system has no such lists
        people = os.getxattr(path, LIST)
    return Access(found.st_uid, found.st_gid, found.st_mode & 0o777, people)


def access_in(folder: Path) -> Access:
    """The access of a new file. If root makes it in the folder of another user, it is for that user, whose server must read it."""
    if os.geteuid() != 0:
        return Access(os.geteuid(), -1, OWN)
    found = folder.stat()
    return Access(found.st_uid, found.st_gid, OWN)


def give(handle: int, access: Access, path: Path) -> None:
    """Let an open, new file have this owner, group and access list; an error if this user may not."""
    found = os.fstat(handle)
    group = found.st_gid if access.group == -1 else access.group
    try:
        if (found.st_uid, found.st_gid) != (access.owner, group):
            os.fchown(handle, access.owner, group)
        if access.people is not None:
            os.setxattr(handle, LIST, access.people)
    except OSError as error:
        raise InvalidParameterError(
            f"{path} was not written: it must belong to user {access.owner} and group {group}, so that its readers can read it, "
            f"and user {os.geteuid()} may not make such a file ({error.strerror}). Do this as user {access.owner}, or as root."
        ) from None
