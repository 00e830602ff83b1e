# Everything a developer or a new user runs. It needs Python >= 3.11, git and make.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.comet-installed
# Files in their own order, as those with few tests are among the longest, and would come last.
PYTEST := $(BIN)/pytest --dist loadfile --no-loadscope-reorder -n $$(getconf _NPROCESSORS_ONLN)

# Without byte code, each of the hundreds of processes that tests start would compile comet again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help venv demo test checks exhaustive matrix fuzz oracle pytest filecheck lint format types typing coverage clean

help:
	@echo "make demo   compile a sample to COMET files and to a Triton kernel, and run it"
	@echo "make test   run lint, types, lit and pytest"
	@echo "make exhaustive run pytest with all combinations of what its tests vary"
	@echo "make matrix run every program of several ranks on the CPU, for an hour or more"
	@echo "make fuzz   try random and mutated inputs for a minute, or FUZZ_SECONDS"
	@echo "make oracle compare what all samples compile to with what was frozen, half an hour"
	@echo "make venv   only make the virtual environment in $(VENV)"

venv: $(STAMP)

# What is imported is compiled then, and most of torch never: that saves a third of the time.
$(STAMP): pyproject.toml setup.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "comet needs Python >= 3.11; name one: make PYTHON=/path/to/python3 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[dev,run]'
	touch $@

demo: venv
	$(BIN)/python -m comet.tools.demo

test: lint checks

# Types are checked once lit has ended, by one process with a lower priority: in what
# pytest, whose processes wait at times, leaves of the processors.
checks: venv
	$(MAKE) --jobs=2 filecheck pytest types

# Where `make pytest` takes combinations in which all values meet, this takes all of them.
exhaustive: venv
	EVERY_CASE=1 $(PYTEST)

# MATRIX names a part of it: make matrix MATRIX='--ranks 3 --seeds 2'
matrix: venv
	$(BIN)/python tests/support/rank_matrix.py $(MATRIX)

# FUZZ_SECONDS says for how long, FUZZ_SEED repeats a run; findings go to out/fuzz
fuzz: venv
	$(BIN)/python tests/support/fuzz.py $(FUZZ)

# ORACLE names a part of it, or freezes anew: make oracle ORACLE='--only comet/edge'
oracle: venv
	$(BIN)/python tests/support/oracle.py $(ORACLE)

pytest: venv
	$(PYTEST)

filecheck: venv
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/lit -v --order=lexical tests/filecheck

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: venv
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# A larger young generation is collected less often, which saves a sixth of the time.
types: typing
	NODE_OPTIONS="$$NODE_OPTIONS --max-semi-space-size=256" nice -n 5 $(BIN)/basedpyright

typing: venv
	$(BIN)/python tests/support/typing_tree.py

coverage: venv
	$(BIN)/coverage erase
	$(BIN)/coverage run -p -m pytest
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/lit -q -DCOVERAGE=1 tests/filecheck
	$(BIN)/coverage combine
	$(BIN)/coverage report

clean:
	rm -rf out build dist *.egg-info
