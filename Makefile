# Two commands do everything on a machine that has only Python and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Hundreds of short processes start in the tests: compiled modules halve what each costs.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help demo test test-bare lint types check shared scores extras knowledge accuracy others recipes bench soak fuzz lock pages docs clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	@$(PIP) -e '.[dev]'
	@touch $@

# What some tests need besides: an MCP client, CPU PyTorch, Ray. Each is optional; its tests are skipped without it.
# The two large ones are compiled when they are first imported: most of their modules never are.
$(VENV)/.clients: $(VENV)/.dev
	@$(PIP) -e '.[mcp,url,test]' || echo "some optional packages are missing: their tests will be skipped"
	@touch $@

$(VENV)/.extras: $(VENV)/.clients
	@$(PIP) --no-compile -e '.[ray]' || echo "no Ray here: its tests will be skipped"
	@$(PIP) --no-compile torch==2.13.0 || echo "no CPU build of PyTorch here: its tests will be skipped"
	@touch $@

demo: $(VENV)/.installed ## install and diagnose a real bundled example
	@$(BIN)/stallwise diagnose examples/traces/loader_slow

# Many tests wait for processes of their own: four workers keep two cores busy. Those processes keep real time, which a
# crowded machine takes from them now and then: what failed in the crowd is asked once more, alone, and then decides.
PYTEST := $(BIN)/python -m pytest
test: $(VENV)/.dev ## all tests that can run here
	@$(PYTEST) -n 4 --dist loadfile --no-loadscope-reorder --durations=40 --durations-min=3 tests </dev/null || \
	  { [ $$? = 1 ] && echo "once more, alone:" && $(PYTEST) --last-failed --last-failed-no-failures none -v tests </dev/null; }

test-bare: ## the command line with nothing but its own dependencies
	@$(PYTHON) -m venv .venv-bare && .venv-bare/bin/python -m pip install --quiet --disable-pip-version-check .
	@.venv-bare/bin/stallwise diagnose examples/traces/loader_slow --json >/dev/null && .venv-bare/bin/stallwise --help >/dev/null
	@rm -rf .venv-bare && echo "runs bare"

extras: $(VENV)/.extras ## optional packages that more tests need

lint: $(VENV)/.dev ## style
	@$(BIN)/ruff check src tests bench examples
	@$(BIN)/ruff format --check src tests bench examples

types: $(VENV)/.dev ## mypy, strict
	@$(BIN)/mypy

check: lint types test ## what CI runs

# One mark a score: what failed is asked again by the next call, what held is not.
SHARED ?= ../shared
CHECKS := $(SHARED)/checks
SCORES := $(if $(wildcard $(CHECKS)),$(addprefix $(VENV)/.scored-,expect expect_real expect_cases retold_1 retold_17))
$(VENV)/.scored-expect: NEED := 1.0
$(VENV)/.scored-expect_real: NEED := 0.68
$(VENV)/.scored-expect_cases: NEED := 0.966
$(VENV)/.scored-%: $(VENV)/.dev
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python $(CHECKS)/score_diagnose.py $(CHECKS)/$*.jsonl $(SHARED)/data \
	  --anonymous --clear 0 --need $(NEED) > $@.log || { grep -v ^right $@.log; exit 1; }
	@tail -1 $@.log && touch $@
$(VENV)/.scored-retold_%: $(VENV)/.dev
	@awk "NR % 48 == $*" $(CHECKS)/expect_cases.jsonl > $@.jsonl
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python $(CHECKS)/retell.py $@.jsonl $(SHARED)/data --need 0.98 && touch $@
scores: $(SCORES)
	@$(if $(SCORES),,echo "no shared data here: scoring skipped")
shared: $(VENV)/.dev ## score against the shared cases, where that folder is
	@rm -f $(VENV)/.scored-* && $(MAKE) --no-print-directory -k -j2 scores

knowledge: $(VENV)/.dev ## count the cases anew, fit what is fitted to them, and say what moved
	@$(BIN)/python bench/knowledge.py

accuracy: $(VENV)/.dev ## first answers with each project left out, written to docs/accuracy.md
	@$(BIN)/python bench/accuracy.py --write

# TraceLens has no package under its name: it comes from its own repository.
others: ## HTA and TraceLens in a folder of their own, for `make bench`
	@$(PYTHON) -m venv .venv-others && .venv-others/bin/python -m pip install --quiet --disable-pip-version-check HolisticTraceAnalysis || true
	@.venv-others/bin/python -m pip install --quiet --disable-pip-version-check git+https://github.com/AMD-AGI/TraceLens || true

recipes: $(VENV)/.dev ## famous recipes predicted and planned, written to docs/planner.md
	@$(BIN)/python bench/famous_recipes.py

bench: $(VENV)/.dev ## speed as ratios taken in one run, and growth, written to docs/benchmarks.md
	@$(BIN)/python bench/speed.py --write

SECONDS_OF_FUZZ ?= 1800
fuzz: $(VENV)/.dev ## damaged inputs on all cores for half an hour, and a hundred kills; report and failures in fuzz/
	@$(BIN)/python -m tests.trust.kills --times 100
	@$(BIN)/python -m tests.fuzz.many --seconds $(SECONDS_OF_FUZZ) --seed $$(date +%Y%m%d) --out fuzz \
	  --seeds $$(ls -d $(SHARED)/data/cases $(SHARED)/data/h200 2>/dev/null) </dev/null

lock: $(VENV)/.dev ## pin what the gate installs, with hashes
	@$(BIN)/python .ci/lock.py

pages: $(VENV)/.extras ## every kind of report and page in Chromium, wide and narrow, light and dark; sizes in pages.tsv
	@rm -f pages.tsv; STALLWISE_ALL_PAGES=1 STALLWISE_PAGE_SIZES=pages.tsv $(BIN)/python -m pytest -q tests/web/test_pages_fit.py && sort -n pages.tsv

docs: $(VENV)/.extras ## the documentation site in site/, with the pages that are generated from the code
	@$(BIN)/python -m stallwise.costs.formulas._write docs/formulas
	@$(BIN)/python -m mkdocs build --strict --quiet

clean: ## remove what was made
	rm -rf $(VENV) .venv-bare .venv-others .mypy_cache .ruff_cache .pytest_cache site
