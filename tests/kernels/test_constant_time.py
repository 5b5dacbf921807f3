"""The compiled code of constant-time counts: no branch and no address depends on a secret, while both do in the quick way."""

import ast
import json
import os
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dpoutlier.kernels.constant_time as constant_time_kernels
from compiled_code import Code
from dpoutlier.counts.base import STREAM, kernel_table
from dpoutlier.counts.constant_time import in_constant_time
from dpoutlier.counts.keyed import KeyedCounts
from dpoutlier.kernels.counts import CONSTANT_TIME, KEYED_BY_TABLE, CountTable, look_up, new_scratch
from dpoutlier.kernels.jit import shared
from dpoutlier.kernels.walk import Buffers, walk_points
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.partitions.base import cell_ids
from dpoutlier.partitions.grid import Grid
from dpoutlier.scoring.nearest_cells import NearestCells

# Ids of cells, the key of their places, and the room where ids and places are kept while they are looked up.
SUBKEY, GUIDED, TABLE = (CountTable._fields.index(name) for name in ("subkey", "guided", "constant_time"))
PUBLIC = ["low", "high", f"table.{TABLE}.1", "scratch.2.0"]


def leaks_by_kind():
    """What a newly compiled ``look_up`` does with secrets: (reasons for CONSTANT_TIME, reasons for KEYED_BY_TABLE)."""
    ids = cell_ids(range(100))
    held = KeyedCounts(ids[::7].copy(), np.arange(1, 16), bytes(32), bytes(16), DiscreteLaplace(Fraction(1)))
    counts = in_constant_time(held)
    compiled, out = shared(look_up.py_func), np.empty(len(ids), np.int64)
    compiled(kernel_table(counts), ids[:, 1].copy(), ids[:, 0].copy(), new_scratch(len(ids), STREAM), out)
    assert kernel_table(counts).constant_time._fields[1] == "place_key"
    found = {kind: Code(compiled, PUBLIC, {"table.0": kind}) for kind in (CONSTANT_TIME, KEYED_BY_TABLE)}
    assert len(found[CONSTANT_TIME].secrets()) > 200
    return [
        [reason for reason, _ in found[kind].leaks() if reason != "raised?"] for kind in (CONSTANT_TIME, KEYED_BY_TABLE)
    ]


@pytest.mark.slow
def test_no_branch_and_no_address_depends_on_a_secret():
    constant_time_leaks, quick_leaks = leaks_by_kind()
    assert constant_time_leaks == []
    assert quick_leaks.count("branch") > 10  # so these would be seen
    assert quick_leaks.count("address") > 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processor", "needs"), [("x86-64", "sse2"), ("x86-64-v3", "avx2"), ("skylake-avx512", "avx512f")]
)
def test_no_secret_dependent_code_on_other_processors(processor, needs):
    """The code runs once, so this machine must have the instructions that it is compiled to."""
    import llvmlite.binding as llvm

    if "x86_64" not in llvm.get_process_triple():
        pytest.skip("code for other machines cannot be made here")
    if not llvm.get_host_cpu_features().get(needs):
        pytest.skip(f"this processor has no {needs}, and cannot run code for {processor}")
    program = (
        "import json; from tests.kernels.test_constant_time import leaks_by_kind; print(json.dumps(leaks_by_kind()))"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    environment = {
        **kept,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "NUMBA_CPU_NAME": processor,
        "NUMBA_CPU_FEATURES": "",
        "DPOUTLIER_KERNEL_CACHE": "0",
    }
    run = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    constant_time_leaks, quick_leaks = json.loads(run.stdout)
    assert constant_time_leaks == []
    assert "branch" in quick_leaks


def compiled_code_of(function, *arguments):
    compiled = shared(function)
    compiled(*arguments)
    return compiled


def adds_up(values, secret, out):
    total = np.uint64(0)
    for i in range(values.shape[0]):
        total += secret[values[i]]
    out[0] = total


def looks_up_twice(values, secret, out):
    for i in range(values.shape[0]):
        out[i] = secret[secret[values[i]]]


def stops_early(values, secret, out):
    for i in range(values.shape[0]):
        if secret[values[i]] == np.uint64(3):
            out[0] = np.uint64(i)
            return


def divides(values, secret, out):
    for i in range(values.shape[0]):
        out[i] = values[i] // (secret[i] + np.uint64(1))


def tells(values, secret, out):
    values[0] = secret[0]


@pytest.mark.parametrize(
    ("function", "reasons"),
    [
        (adds_up, set()),
        (looks_up_twice, {"address"}),
        (stops_early, {"branch"}),
        (divides, {"slow"}),
        (tells, {"made public"}),
    ],
)
def test_the_reader_of_code_sees_what_it_should(function, reasons):
    arrays = [np.arange(8, dtype=np.uint64) for _ in range(3)]
    compiled = compiled_code_of(function, *arrays)
    found = {reason for reason, _ in Code(compiled, ["values"], {}, module="tests").leaks()}
    assert reasons <= found
    assert bool(found) == bool(reasons)


def test_no_kernel_raises():
    """So that the status of a call, which tells whether it raised, tells nothing."""
    files = sorted(Path(constant_time_kernels.__file__).parent.glob("*.py"))
    nodes = [(file.name, node) for file in files for node in ast.walk(ast.parse(file.read_text()))]
    assert {"look_up", "constant_time_block", "walk_points"} <= {
        n.name for _, n in nodes if isinstance(n, ast.FunctionDef)
    }
    raising = [(name, node.lineno) for name, node in nodes if isinstance(node, ast.Raise | ast.Assert)]
    assert raising == []


@pytest.mark.slow
def test_a_whole_walk_learns_noisy_counts_and_nothing_else():
    """In a process of its own: what a compiler makes of a kernel depends on what it made before."""
    path = os.pathsep.join(sys.path)
    program = "from tests.kernels.test_constant_time import check_a_whole_walk; check_a_whole_walk()"
    run = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


def check_a_whole_walk():
    """Secrets flow into the array of noisy counts, and into three branches: is there noise that could not be decided?"""
    import dpoutlier.scoring.nearest_cells as module

    compiled = shared(walk_points.py_func)
    module.walk_points = compiled
    held = KeyedCounts(cell_ids(range(20)), np.arange(1, 21), bytes(32), bytes(16), DiscreteLaplace(Fraction(1)))
    NearestCells().outlier_scores(np.full((3, 3), 5, np.uint32), Grid((5, 5, 5)), in_constant_time(held))
    place = [*Buffers._fields].index
    secret = {f"table.{SUBKEY}", *(f"table.{TABLE}.{i}" for i in (0, 2, 3)), f"buffers.{place('scratch')}.2.1"}
    arrays = {name[5:-2] for name in Code(compiled, [], {}).arguments if re.fullmatch(r"%arg\..*\D\d+\.4", name)}
    arrays = {name for name in arrays if name not in {"grid", "rule", "table", f"table.{GUIDED}", f"table.{TABLE}"}} | {
        "positions"
    }
    assert secret < arrays
    walk = Code(compiled, arrays - secret, {"table.0": CONSTANT_TIME})
    leaks = walk.leaks()
    stored = {
        root
        for reason, text in leaks
        if reason == "made public"
        for root in walk.roots(re.search(r"ptr (\S+)$", text)[1])
    }
    assert stored == {f"%arg.buffers.{place('counts')}.4"}
    left = [leak for leak in leaks if leak[0] not in {"made public", "raised?"}]
    assert [reason for reason, _ in left] == ["branch"] * 3, left
    quick = Code(compiled, arrays - secret, {"table.0": KEYED_BY_TABLE}).leaks()
    assert len([reason for reason, _ in quick if reason in {"branch", "address"}]) > 20
