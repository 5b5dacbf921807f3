"""What the command says: text for people, and on standard error how far it is."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress


def console(*, stderr: bool = False) -> Console:
    return Console(stderr=stderr, highlight=False)


@contextmanager
def progress() -> Iterator[Callable[[str, float, float], None]]:
    """A function to call with the phase, the work done and all work. It draws a bar; without a terminal, a line for each phase."""
    terminal, named = sys.stderr.isatty(), set()
    with Progress(console=console(stderr=True), transient=True, disable=not terminal, speed_estimate_period=300) as bar:
        task = bar.add_task("")

        def watch(phase: str, done: float, total: float) -> None:
            bar.update(task, description=phase, completed=done, total=total)
            if not terminal and phase not in named:
                named.add(phase)
                sys.stderr.write(f"{phase}: {100 * done / total:.0f} % done so far\n")

        yield watch
