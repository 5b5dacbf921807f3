"""Fuzz with coverage: ``python -m tests.helpers.fuzz.campaign [--target NAME] [--seconds N]``. Needs ``pip install '.[fuzz]'``.

A process for each target starts from the corpus, changes inputs by ``mutations.py`` and by libFuzzer's own ways, and keeps those
that reach new code of the library. Memory and time of each input are limited. With a finding it ends, the input is saved, and so
ends this program, with 1. ``--keep`` adds to the corpus what reaches lines that nothing in it reached.
"""

import argparse
import os
import pkgutil
import random
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[3]
OWN_COMMAND = [sys.executable, "-m", "tests.helpers.fuzz.campaign"]

LONGEST = 1 << 16
RESIDENT_MB, SECONDS = 3000, 200
"""Limits of a process, and of one input before libFuzzer ends it: some compile a kernel first. Targets have much tighter ones."""
KEPT_SIZE = 12_000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", help="one of the targets (default: all of them)")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument(
        "--findings", type=Path, default=Path("fuzz-findings"), help="where inputs that failed are saved"
    )
    parser.add_argument("--keep", action="store_true", help="add to the corpus what reaches new lines")
    parser.add_argument(
        "--prune", action="store_true", help="drop what was kept and is needed no more, and fuzz nothing"
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--select", help=argparse.SUPPRESS)
    asked, rest = parser.parse_known_args()
    if asked.child:
        return fuzz(asked.child, rest)
    if asked.select:
        return select(asked.select, Path(rest[0]))
    from .corpus_files import CORPUS

    if find_spec("atheris") is None:
        parser.error("atheris is missing, which guides the changes: pip install '.[fuzz]', or make fuzz")
    unknown = sorted(set(asked.target or ()) - {path.name for path in CORPUS.iterdir()})
    if unknown:
        parser.error(f"--target {unknown[0]} is none of {', '.join(sorted(path.name for path in CORPUS.iterdir()))}")
    failed, names = 0, asked.target or sorted(path.name for path in CORPUS.iterdir())
    if asked.prune:
        return prune(names)
    for name in names:
        failed += campaign(name, asked.seconds, asked.findings, keep=asked.keep) != 0
    return 1 if failed else 0


def campaign(name, seconds, findings, *, keep=False):
    """Fuzz one target in a process of its own. Returns its exit code: 0 if nothing was found."""
    from .corpus_files import inputs

    findings.mkdir(parents=True, exist_ok=True)
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="dpoutlier-campaign-", dir=shared) as work:
        new, seeds = Path(work, "new"), Path(work, "seeds")
        new.mkdir()
        seeds.mkdir()
        for key, data in inputs(name).items():
            (seeds / key).write_bytes(data)
        prefix = findings.absolute() / f"{name}-"
        command = [*OWN_COMMAND, "--child", name, f"-max_total_time={seconds}", f"-timeout={SECONDS}"]
        command += [
            f"-rss_limit_mb={RESIDENT_MB}",
            f"-max_len={LONGEST}",
            f"-artifact_prefix={prefix}",
            "-print_final_stats=1",
        ]
        command += ["-reload=0", "-len_control=0", str(new), str(seeds)]
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            cwd=ROOT,
            env={**os.environ, "DPOUTLIER_FUZZ_FOLDER": work},
        )
        report(name, done, len(list(new.iterdir())))
        if keep and done.returncode == 0:
            subprocess.run([*OWN_COMMAND, "--select", name, str(new)], cwd=ROOT, check=True)
    return done.returncode


def report(name, done, kept):
    """A line for people; and where something was found, the end of what the process said."""
    covered = [int(found) for found in re.findall(r" cov: (\d+)", done.stdout)]
    runs = re.search(r"stat::number_of_executed_units: (\d+)", done.stdout)
    pace = re.search(r"stat::average_exec_per_sec: +(\d+)", done.stdout)
    sys.stdout.write(
        f"{name}: {runs[1] if runs else '?'} inputs, {pace[1] if pace else '?'} a second, coverage "
        f"{covered[0] if covered else '?'} to {covered[-1] if covered else '?'}, {kept} new inputs"
        + ("\n" if done.returncode == 0 else f", FOUND (exit {done.returncode})\n{said(done.stdout)}\n")
    )
    sys.stdout.flush()


def said(text):
    """The end of what a process said, without how it came there."""
    return "\n".join(line for line in text.splitlines() if not line.startswith(("INFO:", "WARNING:", "#")))[-4000:]


def fuzz(name, arguments):
    """Be the process that fuzzes."""
    import atheris

    import dpoutlier

    for own in [one for one in sys.modules if one.partition(".")[0] == "dpoutlier"]:
        del sys.modules[own]  # to be imported again, with instruments
    kernels = [
        f"dpoutlier.kernels.{one.name}"
        for one in pkgutil.iter_modules([str(Path(dpoutlier.__file__).parent / "kernels")])
    ]
    with atheris.instrument_imports(
        include=["dpoutlier", "tomllib"], exclude=[*kernels]
    ):  # numba reads the kernels' own code
        from .targets import TARGETS
    from .guards import guarded
    from .mutations import mutated
    from .replay import warm

    warm(name)
    target = TARGETS[name]

    def one(data):
        guarded(target, data)

    def mutator(data, most, seed):
        rng = random.Random(seed)
        if rng.random() < 0.35:
            return atheris.Mutate(data, most)
        return mutated(name, bytes(data), rng)[:most]

    atheris.Setup([sys.argv[0], *arguments], one, custom_mutator=mutator)
    atheris.Fuzz()
    return 0


def select(name, folder):
    """Add inputs to the corpus that reach lines of the library which those before them did not reach; the small ones first."""
    from .corpus_files import add, inputs
    from .replay import warm
    from .targets import TARGETS

    warm(name)
    reached = set()
    for data in inputs(name).values():
        reached |= lines_of(TARGETS[name], data)
    candidates = sorted((path.read_bytes() for path in folder.iterdir()), key=len)
    for data in candidates:
        own = lines_of(TARGETS[name], data) if len(data) <= KEPT_SIZE else set()
        if own - reached:
            reached |= own
            add(name, data)
            sys.stdout.write(f"{name}: kept {len(data)} bytes\n")
    return 0


def prune(names):
    """Drop inputs named by their hash that reach nothing which the others do not reach; those that reach most stay."""
    from .corpus_files import CORPUS, inputs
    from .replay import warm
    from .targets import TARGETS

    for name in names:
        warm(name)
        lines = {key: lines_of(TARGETS[name], data) for key, data in inputs(name).items()}
        hashed = {key: own for key, own in lines.items() if re.fullmatch("[0-9a-f]{16}", key)}
        reached = set().union(*(own for key, own in lines.items() if key not in hashed))
        while hashed:
            best = max(hashed, key=lambda key: len(hashed[key] - reached))
            if not hashed[best] - reached:
                break
            reached |= hashed.pop(best)
        for key in hashed:
            for path in (CORPUS / name).glob(f"{key}*"):
                path.unlink()
        sys.stdout.write(f"{name}: dropped {len(hashed)} of {len(lines)}\n")
    return 0


def lines_of(target, data):
    """Which lines of the library an input reaches; nothing if it fails."""
    found, package = set(), str(ROOT / "src" / "dpoutlier")

    def trace(frame, event, _):
        if not frame.f_code.co_filename.startswith(package):
            return None
        if event == "line":
            found.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        target.run(data)
    except Exception:  # noqa: BLE001 - a finding, and not for the corpus before it is mended
        return set()
    finally:
        sys.settrace(None)
    return found


if __name__ == "__main__":
    sys.exit(main())
