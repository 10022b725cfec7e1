# Everything a newcomer needs. Each target makes the virtual environment it uses.

# The first interpreter that is 3.12 or newer; `make PYTHON=/path/to/python` to choose one.
PYTHON ?= $(shell for p in python3.12 python3.13 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1 && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

# Real tokenizers for the tests, and the environment of the real vLLM (`make VLLM_VENV=DIR` takes one that is there).
TOKENIZERS := $(CURDIR)/.tokenizers
VLLM_VENV ?= .venv-vllm
# vLLM takes 3.11 or newer; 3.11 first, for which builds of PyTorch without CUDA are most often at hand.
VLLM_PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python; do \
	$$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)

# The coding agents to play, and where they are installed (`make CLIENTS=aider CLIENTS_DIR=DIR`).
CLIENTS ?= codex opencode qwen aider
CLIENTS_DIR ?= .clients

.PHONY: help demo test test-wire test-vllm test-clients check bench clean
help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.12 or newer is needed; give it as make PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(READY) ## capture a scripted agent's session and report on it
	$(BIN)/python -m samples.demo

test: $(READY) ## run the tests
	@LOCALITY_TEST_TOKENIZERS=$(TOKENIZERS) $(BIN)/python -m tests.tokenizers
	LOCALITY_TEST_TOKENIZERS=$(TOKENIZERS) $(BIN)/python -m pytest --numprocesses=auto --dist=loadfile

test-wire: $(READY) ## pass 10,000 random exchanges through the proxy and compare both ends
	LOCALITY_WIRE_EXCHANGES=10000 $(BIN)/python -m pytest --durations=3 tests/wire

test-vllm: $(READY) ## hold ids, counts and hits against a real vLLM on the CPU
	@LOCALITY_TEST_TOKENIZERS=$(TOKENIZERS) $(BIN)/python -m tests.tokenizers
	@test -n "$(VLLM_PYTHON)" || { echo "vLLM needs Python 3.11 or newer" >&2; exit 1; }
	@$(VLLM_PYTHON) -m tests.vllm.build $(VLLM_VENV); code=$$?; \
	if [ $$code = 75 ]; then exit 0; elif [ $$code != 0 ]; then exit $$code; fi; \
	LOCALITY_TEST_VLLM=$(VLLM_VENV) LOCALITY_TEST_TOKENIZERS=$(TOKENIZERS) \
		$(BIN)/python -m pytest --durations=12 tests/vllm/live.py tests/vllm/live_cache.py tests/vllm/live_ledger.py \
		tests/test_export_readers.py

test-clients: $(READY) ## play real coding agents through the proxy, and hold the report on their prompts
	@LOCALITY_TEST_TOKENIZERS=$(TOKENIZERS) $(BIN)/python -m tests.tokenizers
	@$(BIN)/python -m tests.clients.install $(CLIENTS_DIR) $(CLIENTS); code=$$?; \
	if [ $$code = 75 ]; then exit 0; elif [ $$code != 0 ]; then exit $$code; fi; \
	LOCALITY_TEST_CLIENTS=$(CLIENTS_DIR) LOCALITY_TEST_CLIENT_NAMES="$(CLIENTS)" \
		LOCALITY_TEST_VLLM=$(patsubst %/bin/vllm,%,$(wildcard $(VLLM_VENV)/bin/vllm)) \
		LOCALITY_TEST_TOKENIZERS=$(TOKENIZERS) $(BIN)/python -m pytest --durations=12 tests/clients/live.py

check: $(READY) ## lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY) ## measure: report, causes, storage, the proxy beside bare mitmproxy, sealing, simulated cache
	$(BIN)/python -m tests.bench

clean: ## remove the environments, what was fetched for the tests, and caches
	rm -rf $(VENV) .venv-vllm .vllm-models .tokenizers .clients .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info
