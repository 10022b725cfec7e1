# Everything a newcomer needs. Each target makes the virtual environment it uses.

# The first interpreter that is 3.12 or newer; `make PYTHON=/path/to/python` to choose one.
PYTHON ?= $(shell for p in python3.12 python3.13 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1 && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: help demo test check bench clean
help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.12 or newer is needed; give it as make PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(READY) ## capture a scripted agent's session and report on it
	$(BIN)/python -m samples.demo

test: $(READY) ## run the tests
	$(BIN)/python -m pytest

check: $(READY) ## lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY) ## measure: report, storage, streaming
	$(BIN)/python -m tests.bench

clean: ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info
