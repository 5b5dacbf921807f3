"""Run beside the tests: a process that has imported everything, and forks fits which are killed or race each other.

``python ledger_children.py kill FOLDER SEED ROUNDS`` or ``race FOLDER ROUNDS``; prints one line of JSON for each round.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from dpoutlier import DPMarginals, Ledger
from dpoutlier.cli.app import app
from dpoutlier.exceptions import BudgetExceededError


def child(work):
    """The process id of a fork that does some work, and exits with what it returns."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = work()
    except SystemExit as left:
        code = int(left.code or 0)
    except BaseException:  # noqa: BLE001 - whatever it was, the fork must end here
        code = 70
    os._exit(code or 0)


def tell(content):
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


def fit(folder, number):
    app(
        [
            *("fit", str(folder / "rows.csv"), "--features", str(folder / "features.toml"), "--epsilon", "1/100"),
            *("--n-rows-hint", "1000", "-o", str(folder / f"model-{number}")),
            *("--ledger", str(folder / "budget.ledger"), "--dataset", "patients"),
        ]
    )


def kill(folder, seed, rounds):
    """Kill a fit at a random moment of its life, which is measured first."""
    draws = random.Random(seed)
    started = time.perf_counter()
    os.waitpid(child(lambda: fit(folder, 0)), 0)
    life = time.perf_counter() - started
    for number in range(1, rounds + 1):
        moment = draws.uniform(0, 1.1 * life)
        pid = child(lambda number=number: fit(folder, number))
        time.sleep(moment)
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        killed = os.WIFSIGNALED(status)
        tell({"number": number, "moment": moment / life, "killed": killed})


def race(folder, rounds):
    """Two processes want the last of a budget at the same moment. Exit codes: 0 has it, 3 was refused."""

    def spend(path, start):
        rows = np.full((10, 2), 0.5)
        detector = DPMarginals(1, features=(0, 1), bins=2, ledger=path, dataset="patients")
        while time.time() < start:
            pass
        try:
            detector.fit(rows)
        except BudgetExceededError:
            return 3
        return 0

    for number in range(rounds):
        path = folder / f"{number}.ledger"
        ledger = Ledger.create(path, anchor=folder / f"{number}.anchor")
        ledger.open_budget("patients", "3/2")
        start = time.time() + 0.02
        pids = [child(lambda start=start, path=path: spend(path, start)) for _ in range(2)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        tell({"codes": sorted(codes), "spent": str(ledger.balance("patients").spent)})


if __name__ == "__main__":
    what, folder, *numbers = sys.argv[1:]
    {"kill": kill, "race": race}[what](Path(folder), *map(int, numbers))
