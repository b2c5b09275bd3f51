# One command each; all of them make the environment they need in .venv, once.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY  := $(VENV)/.ready
PYTEST_ARGS ?=

.PHONY: demo test lint check compat fuzz hostile keys kills golden media operations findings commands bench clean

demo: $(INSTALLED)              ## open the debugger on the first lesson
	@$(BIN)/gviz demo

test: $(READY)                  ## run the tests; those against PyTorch only where it is installed
	@$(BIN)/python -m compileall -q gviz  # once, not in each program a test starts where Python writes no bytecode
	$(BIN)/python -m pytest -n auto --dist worksteal $(PYTEST_ARGS)

lint: $(READY)                  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint test

compat:                         ## the adapter's tests on each PyTorch from 2.4 on; needs 6 GB of disk: make compat ARGS="2.8.0"
	@$(PYTHON) tests/compat.py $(ARGS)

N ?= 2000
fuzz: $(READY)                  ## N random programs under PyTorch (which must be installed) and the engine: make fuzz N=10000 SEED=7
	$(BIN)/python tests/engine/fuzz.py $(N) $(if $(SEED),--seed $(SEED))

hostile: $(READY)               ## N traces damaged at random, and N expressions that want too much: make hostile N=10000
	GVIZ_HOSTILE=$(N) $(BIN)/python -m pytest -q -s tests/trace/test_mutated.py tests/query_syntax/test_hostile_expressions.py

keys: $(READY)                  ## press N random keys in terminals of five sizes, on a trace, a program and the lesson: make keys N=10000
	GVIZ_KEYS=$(N) GVIZ_REQUIRE_TMUX=1 $(BIN)/python -m pytest -q -s -x --timeout 0 tests/tui/test_random_keys.py

KILLS ?= 50
kills: $(READY)                 ## kill program and debugger at so many random moments each: make kills KILLS=50
	GVIZ_KILLS=$(KILLS) $(BIN)/python -m pytest -q tests/live/test_killed.py

golden: $(READY)                ## write the golden files anew, and show what changed
	GVIZ_WRITE_GOLDEN=1 $(BIN)/python -m pytest -q -n auto -k golden
	git --no-pager diff --stat -- tests

media: $(READY)                 ## draw the pictures of the README anew
	$(BIN)/python docs/make_media.py

operations: $(READY)            ## write docs/operations.md, what the engine has of PyTorch, anew
	$(BIN)/python -m docs.make_operations

gallery: $(READY)               ## draw docs/gallery.md and its pictures anew
	$(BIN)/python -m docs.make_gallery

findings: $(READY)              ## write docs/findings.md, what check looks for, anew
	$(BIN)/python -m docs.make_findings

commands: $(READY)             ## write docs/commands.md, the keys and commands of the debugger, anew
	$(BIN)/python -m docs.make_commands

bench: $(READY)                 ## measure, and print the table
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .compat .mypy_cache .ruff_cache .pytest_cache .hypothesis

# pip would spend most of its time on the bytecode of modules that the demo never imports.
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --no-compile

$(INSTALLED): pyproject.toml    # gviz and what it needs to run
	@echo "Installing gviz into $(VENV), once. This downloads about 70 MB."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gviz needs Python 3.11 or newer: make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) -e .
	@touch $@

$(READY): $(INSTALLED)          # what its tests need
	@echo "Installing what the tests need into $(VENV), once."
	@$(INSTALL) -qq -e ".[test]"
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true  # the tests start many programs, and some may not write bytecode
	@touch $@
