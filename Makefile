# Every target sets up .venv by itself, and again only when the set-up files change.
# Another interpreter: make PYTHON=python3.12 test

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := demo/$(shell date +%Y%m%d-%H%M%S)

# The first that runs, is of a supported version and can make environments. Those that
# Procgen (the coinrun suite) is published for come first.
SUITABLE := import ensurepip, sys; sys.exit(not (3, 10) <= sys.version_info < (3, 15))
CANDIDATES := python3.12 python3.11 python3.10 python3.13 python3.14 python3
PYTHON ?= $(shell for p in $(CANDIDATES); do \
	$$p -c '$(SUITABLE)' >/dev/null 2>&1 && echo $$p && break; done)

.PHONY: demo test lint bench evidence clean soak chaos nightly

demo: $(STAMP)  ## two MinAtar games with ARROW on the CPU, then its report
	$(BIN)/rllib train file tuned_examples/demo.yaml --storage $(DEMO) --name run
	$(BIN)/rllib report $(DEMO)/run --out $(DEMO)/report

test: $(STAMP)  ## everything that takes seconds
	$(BIN)/python -m pytest

nightly: $(STAMP)  ## everything that takes minutes
	$(BIN)/python -m pytest -m slow --timeout 3600

soak: $(STAMP)  ## hours under load
	$(BIN)/python -m pytest -m soak --timeout 0

chaos: $(STAMP)  ## processes are killed, runs survive
	$(BIN)/python -m pytest -m chaos --timeout 3600

lint: $(STAMP)  ## style, imports, formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

bench: $(STAMP)  ## one JSON line per claim
	$(BIN)/python -m pip install --quiet --constraint constraints.txt \
		--editable ".[bench]"
	@set -e; for name in collection replay learner epoch scaling sac report startup; do \
		$(BIN)/python -m benchmarks.$$name; done

evidence: $(STAMP)  ## all runs of docs/results, continued where they stopped; FAST=1 a short try
	$(BIN)/python -m benchmarks.evidence $(if $(FAST),--fast) $(ARGS)

clean:  ## what can be made again; results stay
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): setup.cfg constraints.txt
	@test -n "$(PYTHON)" || { echo "No Python 3.10 to 3.14 found:" \
		"install one, or name it: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt \
		--editable ".[dev]"
	@touch $@
