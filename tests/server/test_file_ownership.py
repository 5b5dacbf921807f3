"""Who may read the key file, after whoever has changed it; with a real server that runs as another user."""

import json
import os
import shutil
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.server.keys import create_key, read_keys, revoke_key
from other_user import NOBODY, as_nobody, needs_another_user
from server_process import fitted, running_server, until

__all__ = ["needs_another_user"]

LIST = "system.posix_acl_access"
CREATE = "from dpoutlier.cli.app import main; main()"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")


@pytest.fixture
def folder(tmp_path):
    """A folder of the server's user."""
    os.chown(tmp_path, NOBODY, NOBODY)
    return tmp_path


@pytest.fixture
def file(folder):
    return folder / "keys.json"


def access(path):
    found = path.stat()
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


def access_list(user):
    """Owner and group may read and write, one more user may read, others may not."""
    entries = [(1, 6, 2**32 - 1), (2, 4, user), (4, 6, 2**32 - 1), (16, 6, 2**32 - 1), (32, 0, 2**32 - 1)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *one) for one in entries)


def keys_as_nobody(*arguments, folder):
    command = as_nobody([sys.executable, "-c", CREATE, "keys", *arguments], folder)
    return subprocess.run(command, capture_output=True, text=True, check=False)


def revoked(path):
    return revoke_key(path, read_keys(path)[0].id)


CHANGES = {"create": lambda path: create_key(path, ["a"]), "revoke": revoked}


@as_root
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("own", [(NOBODY, NOBODY, 0o600), (NOBODY, 0, 0o640), (0, NOBODY, 0o440), (0, 0, 0o644)])
def test_a_changed_file_has_the_owner_the_group_and_the_mode_that_it_had(file, change, own):
    create_key(file, ["a"])
    os.chown(file, *own[:2])
    file.chmod(own[2])
    before = file.stat().st_ino
    CHANGES[change](file)
    assert access(file) == own
    assert file.stat().st_ino != before


SEEN = {
    "mode": lambda file: file.chmod(0o400),
    "owner": lambda file: os.chown(file, NOBODY, -1),
    "group": lambda file: os.chown(file, -1, NOBODY),
    "time": lambda file: os.utime(file, ns=(0, 0)),
    "size": lambda file: os.truncate(file, 3),
    "another file": lambda file: Path(shutil.copy2(file, f"{file}.new")).replace(file),
}


@as_root
@pytest.mark.parametrize("change", SEEN)
def test_every_change_that_may_matter_is_seen(tmp_path, change):
    """By its own sign, so that a clock with coarse steps hides none."""
    from dpoutlier.server.stamps import stamp_of

    file = tmp_path / "file"
    file.write_text("content")
    before = stamp_of(file)
    assert stamp_of(file) == before
    SEEN[change](file)
    assert stamp_of(file) != before
    file.unlink()
    assert stamp_of(file) is None


@as_root
def test_an_access_list_stays(file):
    create_key(file, ["a"])
    try:
        os.setxattr(file, LIST, access_list(12345))
    except OSError:
        pytest.skip("this file system has no access lists")
    create_key(file, ["b"])
    assert os.getxattr(file, LIST) == access_list(12345)


@as_root
def test_what_root_makes_in_a_folder_of_somebody_is_theirs(file):
    create_key(file, ["a"])
    assert access(file) == (NOBODY, NOBODY, 0o600)
    assert access(file.with_name(".keys.json.lock")) == (NOBODY, NOBODY, 0o600)


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    (tmp_path / ".keys.json.lock").symlink_to(victim)
    with pytest.raises(OSError):
        create_key(tmp_path / "keys.json", ["a"])
    assert not victim.exists()


def test_what_cannot_be_kept_is_an_error_and_nothing_is_replaced(needs_another_user, file):
    create_key(file, ["a"])
    os.chown(file, 0, NOBODY)
    file.chmod(0o640)
    before = file.read_bytes()
    done = keys_as_nobody("create", file, "--models", "a", folder=file.parent)
    assert done.returncode == 2
    assert str(file) in done.stderr
    assert "user 0" in done.stderr
    assert (file.read_bytes(), access(file)) == (before, (0, NOBODY, 0o640))
    assert {path.name for path in file.parent.iterdir()} == {"keys.json", ".keys.json.lock"}


@pytest.mark.slow
def test_a_server_as_another_user_goes_on_after_root_has_changed_keys(needs_another_user, folder, file):
    """Keys made, revoked, taken away from the server and given back: it knows each within two seconds, and says why."""
    fitted(folder, "a.dpo")
    first = create_key(file, ["a"])
    os.chown(file, NOBODY, NOBODY)
    arguments = [folder / "a.dpo", "--keys", file]
    with running_server(folder, *arguments, wrapped=lambda command: as_nobody(command, folder)) as server:

        def status(key):
            return server.request("GET", "/v1/models", key=key).status

        def reasons():
            return json.loads(server.request("GET", "/readyz").data).get("reasons", [])

        second = create_key(file, ["a"])
        assert until(lambda: status(second) == 200, 2.5)
        revoke_key(file, first.split("_")[1])
        assert until(lambda: status(first) == 401, 2.5)
        assert status(second) == 200
        os.chown(file, 0, 0)  # as a careless copy by root leaves it
        assert until(lambda: status(second) == 401, 2.5)
        assert reasons() == ["the key file cannot be read"]
        os.chown(file, NOBODY, NOBODY)
        assert until(lambda: status(second) == 200, 2.5)
        assert reasons() == []
        file.chmod(0)
        assert until(lambda: status(second) == 401, 2.5)
        file.chmod(0o600)
        assert until(lambda: status(second) == 200, 2.5)
        told = [one for one in server.log() if one["event"] == "keys-unreadable"]
    assert len(told) == 2  # each time once
    assert f"chown {NOBODY} {file}" in told[0]["message"]


def test_a_worker_that_starts_reports_an_unreadable_key_file(tmp_path, capfd):
    from dpoutlier.server.authentication import Guard

    guard = Guard(str(tmp_path / "keys.json"))
    assert guard.reasons() == ["the key file cannot be read"]
    assert "keys-unreadable" in capfd.readouterr().err
    key = create_key(tmp_path / "keys.json", ["a"])
    guard.refresh()
    assert guard.reasons() == []
    assert guard.key_of([(b"authorization", f"Bearer {key}".encode())]).models == ("a",)
    with pytest.raises(InvalidParameterError):
        read_keys(tmp_path / "none")
