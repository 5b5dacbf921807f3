# make demo   set everything up, fit a private model, write demo/demo.png
# make test   set everything up, run lint, types, import contracts and tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RIVALS := $(VENV)/.rivals
FUZZER := $(VENV)/.fuzzer
FUZZ_SECONDS ?= 10

# Compiled modules are kept: without them each process that a test starts compiles the package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo reproduce lint types contracts tests test slow audit epsilon mutants attacks entries fuzz bench dist constraints manual architecture format clean

help: ## list the recipes
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY) ## virtual environment with everything that development needs

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dpoutlier needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

demo: $(READY) ## private model of breast cancer data: a table, and demo/demo.png
	$(BIN)/dpoutlier demo --out demo

reproduce: $(READY) ## the paper's experiments and all detectors, less than half an hour: reproduction/report.html (REPRODUCE=--quick for 2)
	$(BIN)/python -m experiments --out reproduction $(REPRODUCE)

lint: $(READY) ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY) ## mypy, strict
	$(BIN)/mypy

contracts: $(READY) ## check the import contracts
	$(BIN)/lint-imports --no-logo

tests: $(READY) ## the fast tests
	$(BIN)/python -m pytest -q -n 2

test: lint types contracts tests ## lint, types, contracts and the fast tests

slow: $(READY) ## the tests marked slow
	$(BIN)/python -m pytest -q -n 2 -m slow

audit: epsilon mutants attacks entries fuzz ## audits, planted bugs, attacks and fuzzing (half an hour): audit/audit.html, attacks/

epsilon: $(READY) ## lower bounds on epsilon, by experiment: audit/audit.html (AUDIT=--quick for less)
	$(BIN)/dpoutlier audit --out audit $(AUDIT)

mutants: $(READY) ## planted bugs, each caught by its test
	$(BIN)/python -m pytest -q -n 2 -m slow tests/mutants

attacks: $(READY) ## six attacks, with pictures: attacks/
	$(BIN)/python examples/attacks/run.py --out attacks

entries: $(READY) ## neighbours and planted values at every entry point
	$(BIN)/python -m pytest -q -n 2 -m 'slow or not slow' tests/entries

$(FUZZER): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,fuzz]'
	touch $(FUZZER)

fuzz: $(FUZZER) ## fuzz every reader, FUZZ_SECONDS each
	$(BIN)/python -m tests.helpers.fuzz.campaign --seconds $(FUZZ_SECONDS)

$(RIVALS): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,bench]'
	touch $(RIVALS)

bench: $(RIVALS) ## everything measured side by side: bench/results.md and a plot
	$(BIN)/python bench/run.py $(BENCH)

dist: $(READY) ## wheel and sdist in dist/
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

manual: $(READY) ## write docs/command-line.md from --help
	$(BIN)/python docs/make_manual.py

architecture: $(READY) ## write docs/architecture.md and its picture from the import contracts
	$(BIN)/python docs/make_architecture.py

format: $(READY) ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

constraints: $(READY) ## record the versions that are installed
	$(BIN)/python -m pip freeze --exclude-editable > constraints.txt

clean: ## remove what was made
	rm -rf $(VENV) dist demo reproduction audit attacks fuzz-findings .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
