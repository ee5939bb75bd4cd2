# Every target sets up what it needs by itself and may be repeated at will.

SHELL := /bin/bash
NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p $(NEW_ENOUGH) 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest

# Two processes: all tests on Spark, which share a session, in one; those of a file stay together.
SIDE_BY_SIDE = --numprocesses 2 --dist loadgroup

# Asked for in each recipe, after a Java may have been installed; empty when there is none.
WITH_JAVA = JAVA_HOME="$$(scripts/find_java.sh)"
DEMO = $$(test -n "$$(scripts/find_java.sh)" && echo demo || echo --placement local demo --no-spark-pass)

.PHONY: help setup java postgres demo test proof long fuzz soak check format clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# Without Java, `setup` and `demo` go on after one line that says how to install it; the tests stop.
setup: $(INSTALLED)  ## virtual environment, dependencies, Java if none is found
	@scripts/install_java.sh || true

$(INSTALLED): pyproject.toml
	@test -n "$(PYTHON)" && $(PYTHON) $(NEW_ENOUGH) \
	  || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 …" >&2; exit 1; }
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 --editable '.[dev]'
	touch $@

java:
	@scripts/install_java.sh

postgres:
	@scripts/install_postgres.sh

demo: setup  ## a small TPC-H warehouse under a stream of changes, start to end
	$(WITH_JAVA) $(BIN)/slackwater $(DEMO)

test: $(INSTALLED) java postgres  ## a seeded sample of every test, under 12 minutes
	$(WITH_JAVA) $(PYTEST) $(SIDE_BY_SIDE) -m "not proof"

proof: $(INSTALLED) java postgres  ## every test in its long form, under 30 minutes
	$(WITH_JAVA) SLACKWATER_PROOF=1 $(PYTEST) $(SIDE_BY_SIDE) -m ""

# What takes longer than a proof may; the files name what else they do when they have the time. The
# queries of TPC-DS are played in slices, each with a Spark of its own: `make long SLICES=3/9` for one.
SLICES ?= 1/9 2/9 3/9 4/9 5/9 6/9 7/9 8/9 9/9
LONG = tests/test_steady.py tests/test_traps_more.py::test_ten_thousand_tiny_batches
long: $(INSTALLED) java  ## all of TPC-DS on both placements, 10,000 batches, 1,000 refreshes
	set -e; export $(WITH_JAVA) SLACKWATER_LONG=1; for slice in $(SLICES); do \
	  echo "TPC-DS, slice $$slice"; \
	  SLACKWATER_SLICE=$$slice $(PYTEST) -q -m "" --timeout 7200 tests/test_tpcds_stream.py; done
	$(WITH_JAVA) SLACKWATER_LONG=1 $(PYTEST) $(SIDE_BY_SIDE) -m "" --timeout 7200 $(LONG)

HOURS ?= 8
fuzz: $(INSTALLED)  ## random view-streams for HOURS (8), until one fails; then its minimal case
	$(BIN)/python -m scripts.fuzz --hours $(HOURS)

KILLS ?= 200
MINUTES ?= 30
soak: $(INSTALLED)  ## KILLS (200) random kills of a running stream, in at most MINUTES (30)
	$(BIN)/python -m scripts.soak --kills $(KILLS) --minutes $(MINUTES)

check: $(INSTALLED)  ## format, lint, types, layers, doctests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(PYTEST) -q tests/test_layers.py
	$(PYTEST) -q --doctest-modules slackwater

format: $(INSTALLED)  ## rewrite the code in the one form
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove the environment, caches and what the demo left
	rm -rf $(VENV) *.egg-info build dist warehouse demo-data .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
