"""Progress on standard error for work of more than a second. Silent if that is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn
    from rich.status import Status


def console(*, stderr: bool = False) -> Console:
    from rich.console import Console  # noqa: PLC0415 - --help must not wait for it

    return Console(stderr=stderr, highlight=False)


def say(text: str, style: str | None = None, *, stderr: bool = False) -> None:
    """Print a text as it is: lines are not cut at the width of the terminal, and brackets are not markup."""
    console(stderr=stderr).print(text, style=style, soft_wrap=True, markup=False)


def say_if_compiling() -> None:
    """One line, if the first use after an installation will take long."""
    from dpoutlier.kernels.jit import compiled_before  # noqa: PLC0415

    if sys.stderr.isatty() and not compiled_before():
        console(stderr=True).print("First use: compiling, which takes about twenty seconds, once.", style="dim")


def working(text: str) -> Status:
    """A spinner. Its text never depends on reference rows."""
    return console(stderr=True).status(text)


def _bar(text: str, *middle: str | ProgressColumn, **options: Any) -> Progress:
    """A progress bar on standard error, if that is a terminal: the text, the share done, more columns and the time left."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (text, BarColumn(), TaskProgressColumn(), *middle, TimeRemainingColumn())
    return Progress(*columns, console=console(stderr=True), transient=True, disable=not sys.stderr.isatty(), **options)


@contextmanager
def reading(text: str) -> Iterator[Callable[[int, int], None]]:
    """A bar of the share of bytes read: call with bytes done and bytes in all. Each pass over the files starts a new bar.

    It shows no rows, not their number, and not the size of the files.
    """
    with _bar(text) as bar:
        task, last = bar.add_task(text, total=None), 0

        def watch(done: int, total: int) -> None:
            nonlocal last
            if done < last:
                bar.reset(task)
            last = done
            bar.update(task, completed=done, total=total)

        yield watch


@contextmanager
def points_done(text: str) -> Iterator[Callable[[int, float], None]]:
    """A bar with the time left: call with the number of points done, and with their share of all files."""
    with _bar(text, "{task.fields[points]:,} points") as bar:
        task = bar.add_task(text, total=1.0, points=0)
        yield lambda points, share: bar.update(task, completed=share, points=points)


@contextmanager
def share_done() -> Iterator[Callable[[str, float, float], None]]:
    """A bar for work of known size: call with the name of the current part, work done and work in all.

    If standard error is not a terminal, it prints a line for each part of the work instead.
    """
    from rich.progress import TimeElapsedColumn  # noqa: PLC0415

    with _bar("{task.description:<16}", TimeElapsedColumn(), "left", speed_estimate_period=300) as bar:
        task, named = bar.add_task("", total=None), set()

        def watch(text: str, done: float, total: float) -> None:
            bar.update(task, description=text, completed=done, total=total)
            if bar.disable and text not in named:
                named.add(text)
                sys.stderr.write(f"{text}: {100 * done / total:.0f} % done so far\n")

        yield watch
