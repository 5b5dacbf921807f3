"""Run inputs of the corpus one by one in this process, under all limits, and say what became of each as a line of JSON.

``python -m tests.helpers.fuzz.replay [TARGET ...] [--traced]``. A hang ends the process; the last line says at which input.
"""

import argparse
import faulthandler
import json
import sys
import traceback
from pathlib import Path

from .corpus_files import content_of, inputs
from .guards import Finding, guarded, limited_address_space, unwatched
from .targets import TARGETS

PATIENCE, COMPILING = 6, 240
"""A target's seconds times the first, and the second besides, are waited for before the process is ended: a kernel may have to be
compiled first."""


def warm(name):
    """Run what is valid once, unwatched, so that modules are imported and kernels compiled."""
    with unwatched():
        for key, data in inputs(name).items():
            if key in VALID.get(name, "").split():
                TARGETS[name].run(data)


VALID = {
    "model_file": "grid-dense grid-keyed grid-keyed-wide-noise grid-sparse grid-private-rows grid-mixed grid-seeded "
    "forest forest-mixed merged marginals marginals-mixed twin-grid twin-forest",
    "features_toml": "example",
    "features_json": "example",
    "csv_points": "points two-columns",
    "csv_reference": "people",
    "server_body": "json json-lists csv arrow arrow-floats arrow-dictionary json-explain arrow-types",
    "client_answer": "models description scores explanation threshold",
    "ledger_file": "plain",
    "anchor_file": "plain",
    "key_file": "plain",
    "keys_file": "plain",
    "audit_log": "plain",
}
"""Inputs of each target that are valid, by name."""


def outcome_of(target, data, *, traced):
    """(outcome, None) or (None, what was found)."""
    faulthandler.dump_traceback_later(PATIENCE * target.seconds + COMPILING, exit=True)
    try:
        return guarded(target, data, traced=traced), None
    except Finding as error:
        return None, str(error)
    except Exception:  # noqa: BLE001 - any other is what is looked for
        return None, "".join(traceback.format_exc().splitlines(keepends=True)[-12:])
    finally:
        faulthandler.cancel_dump_traceback_later()


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="target", choices=[*TARGETS, []], help=", ".join(TARGETS))
    parser.add_argument("--traced", action="store_true", help="count allocations, touched or not")
    parser.add_argument("--file", type=Path, help="replay this file instead of the corpus; .gz is unpacked")
    asked = parser.parse_args(arguments)
    if asked.file is not None and not asked.file.is_file():
        parser.error(f"--file {asked.file} is not a file")
    for name in asked.targets or list(TARGETS):
        warm(name)
    limited_address_space()
    found = 0
    for name in asked.targets or list(TARGETS):
        chosen = inputs(name) if asked.file is None else {asked.file.name: content_of(asked.file)}
        for key, data in chosen.items():
            sys.stdout.write(json.dumps({"target": name, "input": key}) + "\n")
            sys.stdout.flush()
            outcome, finding = outcome_of(TARGETS[name], data, traced=asked.traced)
            found += finding is not None
            said = {"outcome": outcome[:3000]} if finding is None else {"finding": finding}
            sys.stdout.write(json.dumps({"target": name, "input": key, **said}) + "\n")
            sys.stdout.flush()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
