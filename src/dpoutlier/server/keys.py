"""Keys of clients: a file of hashes, which the command line changes and the server reads."""

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from dpoutlier._atomic import write_aside
from dpoutlier._validate import parameter_error
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.model.name import MODEL_NAME
from dpoutlier.server.file_ownership import access_in, access_of, give

FORMAT = "dpoutlier keys"
LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
ID = re.compile(r"[a-z2-7]{10}")
EVERY = "*"
MAX_DAYS, LONGEST_LABEL, MAX_KEYS = 36_500, 200, 10_000
LAST_TIME = 253_402_300_799
"""The end of the year 9999, past which Python has no dates."""
DUMMY = hashlib.sha256(b"no key has this").hexdigest()


@dataclass(frozen=True)
class Key:
    """What a key permits. Times are seconds since 1970; only the bearer knows the secret itself."""

    id: str
    label: str
    hash: str
    """SHA-256 of the secret, which has 256 random bits: nothing slower is needed."""
    models: tuple[str, ...]
    """Ids of models, or ``*`` for all."""
    metrics: bool
    created: int
    expires: int
    revoked: int | None = None

    def may_use(self, model: str) -> bool:
        return EVERY in self.models or model in self.models

    def valid(self, now: float) -> bool:
        return self.revoked is None and now < self.expires

    def state(self, now: float) -> str:
        return "revoked" if self.revoked is not None else "valid" if now < self.expires else "expired"


OPEN = Key("open", "", DUMMY, (EVERY,), metrics=True, created=0, expires=2**62)
"""The key of every request to a server that is open to all."""


class KeyRing:
    """The keys of a file by id."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self.keys = {key.id: key for key in keys}

    def known_id(self, token: str) -> str | None:
        """The id that a key names, if the file has it."""
        name = _parts(token)[1]
        return name if name in self.keys else None

    def check(self, token: str) -> Key | None:
        """The key, if it is one and may be used now. One hash and one comparison in constant time, whatever is wrong."""
        prefix, name, secret = _parts(token)
        key = self.keys.get(name)
        right = hmac.compare_digest(_hash(secret), DUMMY if key is None else key.hash)
        if not right or key is None or prefix != "dpo" or not key.valid(time.time()):
            return None
        return key


def _parts(token: str) -> tuple[str, str, str]:
    """Prefix, id and secret."""
    prefix, _, rest = token.partition("_")
    name, _, secret = rest.partition("_")
    return prefix, name, secret


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def read_keys(path: Path) -> list[Key]:
    """All keys of a file, also those that may not be used any more."""
    try:
        return _keys(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        raise InvalidParameterError(f"{path} does not exist. Make it with: dpoutlier keys create {path}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidParameterError(f"{path} is not a key file, or it is damaged.") from None


def _keys(content: dict[str, Any]) -> list[Key]:
    if content["format"] != FORMAT or content["version"] != 1 or len(content["keys"]) > MAX_KEYS:
        raise ValueError
    return [_key(one) for one in content["keys"]]


def _key(content: dict[str, Any]) -> Key:
    found = Key(**{**content, "models": tuple(content["models"])})
    times = (found.created, found.expires, found.revoked or 0)
    whole = all(isinstance(value, int) and 0 <= value <= LAST_TIME for value in times)
    if not ID.fullmatch(found.id) or not re.fullmatch("[0-9a-f]{64}", found.hash) or not whole:
        raise ValueError
    if not isinstance(found.metrics, bool) or not all(
        one == EVERY or MODEL_NAME.fullmatch(one) for one in found.models
    ):
        raise ValueError
    if not found.label.isprintable() or len(found.label) > LONGEST_LABEL:
        raise ValueError
    return found


def create_key(path: Path, models: Sequence[str], *, label: str = "", days: int = 90, metrics: bool = False) -> str:
    """Add a key to the file, which is made if there is none, and return it. It is shown only once and is not stored."""
    if not models and not metrics:
        raise parameter_error("models", "ids of models separated by commas, or '*' for all", ",".join(models))
    for model in models:
        if model != EVERY and not MODEL_NAME.fullmatch(model):
            raise parameter_error("models", "ids of models (letters, digits, . _ -), or '*' for all", model)
    if not 1 <= days <= MAX_DAYS:
        raise parameter_error("days", f"a whole number from 1 to {MAX_DAYS}", days)
    if not label.isprintable() or len(label) > LONGEST_LABEL:
        raise parameter_error("label", f"printable text of at most {LONGEST_LABEL} characters", label[:LONGEST_LABEL])
    with _changing(path) as keys:
        if len(keys) >= MAX_KEYS:
            raise InvalidParameterError(f"{path} holds {MAX_KEYS} keys; start another file.")
        secret = urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode()
        name = "".join(secrets.choice(LETTERS) for _ in range(10))
        now = int(time.time())
        keys.append(Key(name, label, _hash(secret), tuple(models), metrics, now, now + days * 86_400))
    return f"dpo_{name}_{secret}"


def revoke_key(path: Path, name: str) -> Key:
    """Mark a key as revoked: servers refuse it within two seconds."""
    with _changing(path, new=False) as keys:
        number = next((i for i, key in enumerate(keys) if key.id == name), None)
        if number is None:
            raise parameter_error("ID", f"the id of a key in {path} (see dpoutlier keys list)", name[:80])
        if keys[number].revoked is None:
            keys[number] = replace(keys[number], revoked=int(time.time()))
        return keys[number]


@contextmanager
def _changing(path: Path, *, new: bool = True) -> Iterator[list[Key]]:
    """Yield the keys to be changed, then replace the file. Only one caller at a time may change them."""
    if path.exists():
        path = path.resolve()  # a link stays one, and the file behind it, which a server may read, is changed
    if not path.parent.is_dir():
        raise InvalidParameterError(f"{path} cannot be written: there is no folder {path.parent}.")
    lock = _lock(path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        there = path.exists()
        keys = read_keys(path) if there or not new else []
        access = access_of(path) if there else access_in(path.parent)
        yield keys
        content = {"format": FORMAT, "version": 1, "keys": [asdict(key) for key in keys]}
        text = json.dumps(content, indent=1) + "\n"

        def write(stream: IO[bytes]) -> None:
            give(stream.fileno(), access, path)
            stream.write(text.encode())

        write_aside(path, write, overwrite=True, mode=access.mode)
    finally:
        os.close(lock)


def _lock(path: Path) -> int:
    """The file that is locked while keys are changed. The owner of the folder must be able to open it, also if root made it."""
    place, flags = path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        lock = os.open(place, flags | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return os.open(place, flags)
    give(lock, access_in(path.parent), place)
    return lock


def day(seconds: int) -> str:
    """A time as people write it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
