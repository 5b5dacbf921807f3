"""A file that can only grow: SQLite, one table, one writer at a time, on disk before anyone goes on."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dpoutlier._atomic import check_output
from dpoutlier.exceptions import LedgerError, OutputExistsError
from dpoutlier.ledger.entries import START, Entry, chained, sealed

APPLICATION, VERSION = 0x64706F6C, 1
NOTHING_ADDED = "Nothing was added to it."
WAIT = 60.0  # seconds, while another process writes
STEPS, MAX_CALLS = 1000, 100
"""SQLite may take 100,000 steps plus one for each byte, ten times what a ledger needs: a damaged file may cause endless loops."""
SCHEMA = (
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, previous TEXT NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE TRIGGER no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'a ledger is never edited'); END",
    "CREATE TRIGGER no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'a ledger is never edited'); END",
)


def create_file(path: Path, first: dict[str, Any]) -> Entry:
    """A new ledger with its first entry; made aside and then linked to its name, which must be free."""
    check_free(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    aside, entry = Path(name), sealed(1, START, first)
    try:
        with closing(sqlite3.connect(aside, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN IMMEDIATE")
            for statement in SCHEMA:
                connection.execute(statement)
            _insert(connection, entry)
            connection.execute("COMMIT")
        os.link(aside, path)  # unlike a rename, fails if the name has been taken
        _sync_folder(path)
    except FileExistsError:
        raise _taken(path) from None
    except sqlite3.Error as error:
        raise LedgerError(f"{path} could not be made: {error}.") from None
    finally:
        aside.unlink(missing_ok=True)
    return entry


def check_free(path: Path) -> None:
    """Refuse a name that a new ledger cannot have."""
    if path.exists():
        raise _taken(path)
    check_output(path, overwrite=False)


def _taken(path: Path) -> OutputExistsError:
    return OutputExistsError(
        f"{path} exists, and a ledger is never replaced. Open it with Ledger({str(path)!r}), or choose another name."
    )


def read_entries(path: Path) -> list[Entry]:
    """All entries, with their chain checked."""
    # Whoever may write opens the file for writing: after a crash SQLite must first undo what was not finished.
    with _connected(path, "rw" if os.access(path, os.W_OK) else "ro") as connection:
        return _entries(connection)


class Appending:
    """The ledger as it is while nobody else can write to it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection, self.entries = connection, _entries(connection)
        self.known = len(self.entries)
        """The number of entries before any was added."""

    def add(self, content: dict[str, Any]) -> Entry:
        last = self.entries[-1]
        entry = sealed(last.number + 1, last.hash, content)
        _insert(self._connection, entry)
        self.entries = [*self.entries, entry]
        return entry


@contextmanager
def append(path: Path) -> Iterator[Appending]:
    """Hold the ledger for writing. What was added is on disk when the block ends.

    If the block raises, nothing was added. If SQLite fails, also while it commits, the message says what the file shows then.
    """
    appending = None
    try:
        with _connected(path, "rw") as connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN IMMEDIATE")  # from here on other writers wait
            try:
                appending = Appending(connection)
                yield appending
                _check_kept(connection, appending, path)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
    except _SQLiteFailedError as error:
        raise LedgerError(f"{error} {_what_was_added(path, appending)}") from None


def _check_kept(connection: sqlite3.Connection, appending: Appending, path: Path) -> None:
    if _entries(connection) != appending.entries:
        raise LedgerError(f"{path} did not keep what was written to it. {NOTHING_ADDED}")


def _what_was_added(path: Path, appending: Appending | None) -> str:
    """As the file shows it: SQLite may also fail when all is written."""
    if appending is None or len(appending.entries) == appending.known:
        return NOTHING_ADDED
    last = appending.entries[-1]
    try:
        there = last in read_entries(path)
    except (LedgerError, OSError):
        return f"It is not known whether entry {last.number} was added. Count it as spent until the ledger can be read."
    return f"Entry {last.number} was added all the same, and counts." if there else NOTHING_ADDED


class _SQLiteFailedError(LedgerError):
    """SQLite could not read or write the file."""


@contextmanager
def _connected(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    if path.exists() and not path.is_file():
        raise LedgerError(f"{path} is not a regular file.")
    if not path.is_file():
        raise LedgerError(
            f"there is no ledger {path}. Make one: dpoutlier ledger create {path} --dataset NAME --epsilon 3"
        )
    try:
        with closing(
            sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode={mode}", WAIT, isolation_level=None, uri=True)
        ) as connection:
            calls = iter(range(MAX_CALLS + path.stat().st_size // STEPS))
            connection.set_progress_handler(lambda: next(calls, None) is None, STEPS)
            connection.execute("PRAGMA trusted_schema = OFF")
            _check_kind(connection, path)
            yield connection
    except (sqlite3.Error, UnicodeDecodeError) as error:  # what SQLite says may quote bytes of a damaged file
        locked = getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
        hint = f"another process has held it for {WAIT:g} seconds" if locked else str(error)
        raise _SQLiteFailedError(f"{path} cannot be used as a ledger: {hint}.") from None


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    ((kind,),) = connection.execute("PRAGMA application_id")
    ((version,),) = connection.execute("PRAGMA user_version")
    if kind != APPLICATION:
        raise LedgerError(f"{path} is not a ledger of dpoutlier. Make one under another name: dpoutlier ledger create")
    if version != VERSION:
        raise LedgerError(f"{path} is a ledger of version {version}, which this dpoutlier does not know: upgrade it.")
    ((mode,),) = connection.execute("PRAGMA journal_mode")
    if mode != "delete":
        raise LedgerError(
            f"{path} uses SQLite's journal mode {mode!r}. In this mode a copy of the file may lack some charges. Set it back: "
            f"sqlite3 {path} 'PRAGMA journal_mode = delete'"
        )
    if path.stat().st_nlink > 1:
        raise LedgerError(
            f"{path} has a second name (a hard link). Under it SQLite cannot find the journal that a crash leaves. Remove one of "
            "the names."
        )
    found = {text for (text,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if found != set(SCHEMA):
        raise LedgerError(f"{path} is damaged: its tables are not those that dpoutlier made.")


def _entries(connection: sqlite3.Connection) -> list[Entry]:
    rows = connection.execute("SELECT number, previous, body, hash FROM entries ORDER BY number")
    # Each is checked as it comes: in a damaged file rows may come without end.
    return list(chained(Entry(int(number), str(previous), str(body), str(of)) for number, previous, body, of in rows))


def _insert(connection: sqlite3.Connection, entry: Entry) -> None:
    connection.execute(
        "INSERT INTO entries (number, previous, body, hash) VALUES (?, ?, ?, ?)",
        (entry.number, entry.previous, entry.body, entry.hash),
    )


def _sync_folder(path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
