# Two commands do everything on a machine that has only Python and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help
.PHONY: help demo test lint types check bench docs clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(VENV)/.installed ## install and diagnose a real bundled example
	@$(BIN)/stallwise diagnose examples/traces/loader_slow

test: $(VENV)/.dev ## all tests
	@$(BIN)/python -m pytest -n 2 --dist loadfile tests

lint: $(VENV)/.dev ## style
	@$(BIN)/ruff check src tests bench
	@$(BIN)/ruff format --check src tests bench

types: $(VENV)/.dev ## mypy, strict
	@$(BIN)/mypy

check: lint types test ## what CI runs

clean: ## remove what was made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
