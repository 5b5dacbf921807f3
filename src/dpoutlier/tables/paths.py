"""Which files a path means: itself, those in a folder, or those that a pattern matches."""

import glob
import re
from contextlib import suppress
from pathlib import Path

from dpoutlier.exceptions import InvalidParameterError

FORMATS = (".csv", ".parquet")
NO_PATH = (
    "X is text or a list of texts, so it was read as file paths or patterns. There is no such file or folder, and the text does "
    "not end in .csv or .parquet. It is not shown here, because it could be a row. Pass rows as an array or a data frame."
)


def check_text_is_path(text: str) -> None:
    """Refuse text that is not a path. The message does not quote it: it may be rows, passed by mistake."""
    there = False
    with suppress(Exception):  # too long for a path, or with a zero in it
        path = Path(text).expanduser()
        there = path.exists() or (glob.has_magic(str(path)) and bool(glob.glob(str(path), recursive=True)))  # noqa: PTH207
    if not there and ("\n" in text or not text.lower().endswith(FORMATS)):
        raise InvalidParameterError(NO_PATH)


def files_of(path: str | Path) -> list[Path]:
    """A file; all ``*.parquet`` in a folder; or what a pattern such as ``rows/*.parquet`` matches. Sorted by name, never none."""
    if re.match(r"[A-Za-z0-9]{2,}:/", str(path)):
        raise InvalidParameterError(
            f"{path} is not a path on this machine. Pass a pyarrow.dataset, or a query of an engine, instead."
        )
    path = Path(path).expanduser()
    whole = Path(path)
    if whole.is_dir():
        return _in_folder(whole)
    if whole.exists():
        return _sorted([whole], "")
    if not glob.has_magic(str(path)):
        raise InvalidParameterError(f"{whole} does not exist.")
    found = glob.glob(str(path), recursive=True)  # noqa: PTH207 - a pattern may be an absolute path
    return _sorted([Path(one) for one in found], f"no file matches {whole}.")


def _in_folder(folder: Path) -> list[Path]:
    """The Parquet files of a folder. An error if its subfolders have some too, so that none is left out silently."""
    found = [path for path in folder.rglob("*") if path.suffix.lower() == ".parquet"]
    deeper = [path for path in found if path.parent != folder]
    if deeper:
        raise InvalidParameterError(
            f"{folder} has .parquet files in folders of its own, such as {min(deeper).parent}. Give the pattern "
            f"{folder / '**' / '*.parquet'} for all of them, or a pyarrow.dataset where the names of folders are columns."
        )
    return _sorted(found, f"{folder} is a folder without a .parquet file.")


def format_of(path: Path) -> str:
    """``.csv`` or ``.parquet``."""
    if path.suffix.lower() not in FORMATS:
        raise InvalidParameterError(f"{path} must be a .csv or .parquet file.")
    return path.suffix.lower()


def _sorted(paths: list[Path], none: str) -> list[Path]:
    if not paths:
        raise InvalidParameterError(f"{none} Give a .csv or .parquet file, a pattern, or a folder with .parquet files.")
    for path in sorted(paths):
        if not path.is_file():
            raise InvalidParameterError(f"{path} is not a regular file.")
    return sorted(paths)
