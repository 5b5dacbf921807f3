"""Run beside the tests: one command again and again, and each time another call to the operating system fails.

``python failing_calls.py LIBRARY FOLDER COMMAND WAY`` under LD_PRELOAD; prints one line of JSON for each run. ``library`` compiles
what is to be loaded before.
"""

import ctypes
import errno
import json
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path

WAYS = {"full": errno.ENOSPC, "once": errno.EIO, "kill": 0}
"""The disk is full from the n-th call on; the n-th call alone fails; the process is killed before the n-th call."""
EVER = 2**40


def library(folder):
    """The compiled library, or None where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    target = folder / "failing_calls.so"
    source = Path(__file__).with_suffix(".c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(target), str(source), "-ldl"], check=True)
    return target


def runs(built, folder, command, way, timeout=600):
    """What each run came to."""
    given = [sys.executable, __file__, *map(str, (built, folder, command, way))]
    environment = {**os.environ, "LD_PRELOAD": str(built), "COLUMNS": "400"}
    done = subprocess.run(given, env=environment, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


# In the process of its own ------------------------------------------------------------------------------------------------


def prepared(place, anchor=True):
    """A ledger with a budget, its anchor and rows, in folders of their own."""
    from dpoutlier import Ledger

    for name in ("book", "elsewhere", "out"):
        (place / name).mkdir(parents=True)
    if anchor:
        Ledger.create(place / "book" / "b.ledger", anchor=place / "elsewhere" / "b.anchor").open_budget("patients", 1)
    (place / "features.toml").write_text("[features]\na = [0, 1]\n")
    (place / "rows.csv").write_text("a\n" + "0.5\n" * 20)


def arguments(command, place):
    ledger = f"{place}/book/b.ledger"
    return {
        "fit": f"fit {place}/rows.csv --features {place}/features.toml --epsilon 1/4 --detector marginals -o {place}/out/model "
        f"--ledger {ledger} --dataset patients",
        "charge": f"ledger charge {ledger} --dataset patients --epsilon 1/4 --note table",
        "anchor": f"ledger anchor {ledger} {place}/elsewhere/new.anchor",
        "create": f"ledger create {ledger} --dataset patients --epsilon 1 --anchor {place}/elsewhere/b.anchor",
    }[command].split()


def found(place):
    """What the ledger and the disk show afterwards, to a reader."""
    from dpoutlier import Ledger, load
    from dpoutlier.exceptions import LedgerError
    from dpoutlier.model.release_id import release_id

    models = [load(path).model_ for path in (place / "out").glob("*.dpo")]
    result = {
        "models": [[model.receipt.entry, release_id(model)] for model in models],
        "left_behind": sorted(path.name for path in place.rglob("*.part")),
        "anchors": sorted(path.name for path in (place / "elsewhere").iterdir()),
        "ledger": (place / "book" / "b.ledger").exists(),
        "charges": [],
        "problem": None,
    }
    if result["ledger"]:
        ledger = Ledger(place / "book" / "b.ledger")
        try:
            result["charges"] = [[one.number, one.release] for one in ledger.spendings()]
            if "patients" in ledger.datasets():
                ledger.charge("patients", "1/100", "it can still be used")
            ledger.verify()
        except LedgerError as error:
            result["problem"] = str(error)
    return result


def run(work, output):
    """Exit code of a fork, or minus the signal that ended it."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        handle = os.open(output, os.O_WRONLY | os.O_CREAT)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        work()
        code = 0
    except SystemExit as left:
        code = int(left.code or 0)
    except BaseException:  # noqa: BLE001 - whatever it was, the fork must end here
        import traceback

        traceback.print_exc()
        code = 70
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main(built, folder, command, way):
    shim = ctypes.CDLL(built)
    shim.calls.restype = ctypes.c_long
    shim.arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_long, ctypes.c_int]
    from dpoutlier.cli.app import app

    error, folder = WAYS[way], Path(folder)
    place = folder / "warm"
    prepared(place, anchor=command != "create")
    with suppress(SystemExit), redirect_stdout(sys.stderr):
        app(arguments(command, place))  # here, so that every fork has all that is compiled
    for number in range(1, 1000):
        place, output, counted = folder / str(number), folder / f"{number}.txt", folder / "calls"
        prepared(place, anchor=command != "create")

        def work(place=place, number=number, counted=counted):
            shim.arm(f"{place}/".encode(), number, EVER if way == "full" else number, error)
            try:
                app(arguments(command, place))
            finally:
                shim.disarm()
                counted.write_text(str(shim.calls()))

        counted.write_text(str(number))
        code = run(work, output)
        reached = int(counted.read_text()) >= number
        result = {"number": number, "reached": reached, "code": code, "printed": output.read_text(), **found(place)}
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()
        shutil.rmtree(place)
        if not reached:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
