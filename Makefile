# Two commands do everything on a machine that has only Python and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Hundreds of short processes start in the tests: compiled modules halve what each costs.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help demo test test-bare lint types check shared scores extras index new-cause rename-cause recognise questions ask accuracy ablate others recipes bench soak fuzz lock audit pages docs clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

# One line a step; what pip prints is in .venv/setup.log.
$(VENV)/.installed: pyproject.toml
	@$(PYTHON) .ci/setup.py package
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	@$(PYTHON) .ci/setup.py dev
	@touch $@

# What some tests need besides: an MCP client, CPU PyTorch, Ray, Chromium. The tests of what cannot be had are skipped.
$(VENV)/.extras: $(VENV)/.dev
	@$(PYTHON) .ci/setup.py extras
	@touch $@

demo: $(VENV)/.installed ## install and diagnose a real bundled example
	@$(BIN)/stallwise diagnose examples/traces/loader_slow

# Many tests wait for processes of their own: four workers keep two cores busy. Those processes keep real time, which a
# crowded machine takes from them now and then: what failed in the crowd is asked once more, alone, and then decides.
PYTEST := $(BIN)/python -m pytest
TIMES := $(if $(CI),--durations=40 --durations-min=3)
test: $(VENV)/.extras ## all tests, with the packages they need
	@$(PYTEST) -n 4 --dist loadfile --no-loadscope-reorder $(TIMES) tests </dev/null || \
	  { [ $$? = 1 ] && echo "once more, alone:" && $(PYTEST) --last-failed --last-failed-no-failures none -v tests </dev/null; }

test-bare: ## the command line with nothing but its own dependencies
	@$(PYTHON) -m venv .venv-bare && .venv-bare/bin/python -m pip install --quiet --disable-pip-version-check .
	@.venv-bare/bin/stallwise diagnose examples/traces/loader_slow --json >/dev/null && .venv-bare/bin/stallwise --help >/dev/null
	@rm -rf .venv-bare && echo "runs bare"

extras: $(VENV)/.dev ## ask again for the optional packages that some tests need
	@$(PYTHON) .ci/setup.py extras && touch $(VENV)/.extras

lint: $(VENV)/.dev ## style
	@$(BIN)/ruff check src tests bench examples
	@$(BIN)/ruff format --check src tests bench examples

types: $(VENV)/.dev ## mypy, strict
	@$(BIN)/mypy

check: lint types test ## style, types and all tests

# One mark a score: what failed is asked again by the next call, what held is not.
SHARED ?= ../shared
CHECKS := $(SHARED)/checks
SCORES := $(if $(wildcard $(CHECKS)),$(addprefix $(VENV)/.scored-,expect expect_real expect_cases scenarios retold_1 retold_17))
$(VENV)/.scored-expect: NEED := 1.0
$(VENV)/.scored-expect_real: NEED := 0.68
$(VENV)/.scored-expect_cases: NEED := 0.966
$(VENV)/.scored-%: $(VENV)/.dev
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python $(CHECKS)/score_diagnose.py $(CHECKS)/$*.jsonl $(SHARED)/data \
	  --anonymous --clear 0 --need $(NEED) > $@.log || { grep -v ^right $@.log; exit 1; }
	@tail -1 $@.log && touch $@
$(VENV)/.scored-scenarios: $(VENV)/.dev
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python $(CHECKS)/seed_scenarios.py $(SHARED)/seeds/000_*.txt > $@.log || { cat $@.log; exit 1; }
	@tail -1 $@.log && grep -q "^8 of 8 " $@.log && touch $@
$(VENV)/.scored-retold_%: $(VENV)/.dev
	@awk "NR % 48 == $*" $(CHECKS)/expect_cases.jsonl > $@.jsonl
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python $(CHECKS)/retell.py $@.jsonl $(SHARED)/data --need 0.98 && touch $@
scores: $(SCORES)
	@$(if $(SCORES),,echo "no shared data here: scoring skipped")
shared: $(VENV)/.dev ## score against the shared cases, where that folder is
	@rm -f $(VENV)/.scored-* && $(MAKE) --no-print-directory -k -j2 scores

index: $(VENV)/.dev ## compile what causes and measures look at, so that a start loads only what it needs
	@$(BIN)/python .ci/index.py

new-cause: ## write the two files of a cause: NAME=late-gather FAMILY=distributed
	@$(PYTHON) .ci/new_cause.py "$(NAME)" "$(FAMILY)"

rename-cause: $(VENV)/.dev ## rename a cause everywhere: OLD=slow-rank NEW=straggler-rank
	@$(PYTHON) .ci/rename_cause.py "$(OLD)" "$(NEW)"
	@$(BIN)/python .ci/index.py

FEATURES := $(VENV)/features.jsonl
$(FEATURES): $(VENV)/.dev
	@$(BIN)/python bench/case_features.py $@

recognise: $(VENV)/.dev ## read all cases on record anew, fit the classifier to them, and compile its weights
	@$(BIN)/python bench/case_features.py $(FEATURES)
	@$(BIN)/python bench/fit_recognise.py $(FEATURES) --write --scores $(VENV)/scores.json

questions: $(FEATURES) ## count anew how often each answer is given under each cause
	@$(BIN)/python bench/fit_questions.py $(FEATURES) --write

ask: $(FEATURES) ## first answers after 0, 1, 3 and 5 questions on incidents masked to their first sentence
	@$(BIN)/python bench/ask_masked.py $(FEATURES)

accuracy: $(FEATURES) ## first answers with each project left out, written to docs/accuracy.md
	@$(BIN)/python bench/fit_recognise.py $(FEATURES) --scores $(VENV)/scores.json
	@$(BIN)/python bench/accuracy.py $(FEATURES) $(VENV)/scores.json --write

ablate: $(FEATURES) ## what each part of the classifier is worth, with each project left out
	@$(BIN)/python bench/ablate.py $(FEATURES)

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

audit: $(VENV)/.dev ## known vulnerabilities of the pinned packages, where a database can be reached
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit >/dev/null 2>&1 || true
	@$(BIN)/python .ci/audit.py

lock: $(VENV)/.dev ## pin what the gate installs, with hashes
	@$(BIN)/python .ci/lock.py

pages: $(VENV)/.extras ## every kind of report and page in Chromium, wide and narrow, light and dark; sizes in pages.tsv
	@rm -f pages.tsv; STALLWISE_ALL_PAGES=1 STALLWISE_PAGE_SIZES=pages.tsv $(BIN)/python -m pytest -q tests/web/test_pages_fit.py && sort -n pages.tsv

docs: $(VENV)/.extras ## the documentation site in site/, with the pages that are generated from the code
	@$(BIN)/python -m stallwise.physics.costs.formulas._write docs/formulas
	@$(BIN)/python -m mkdocs build --strict --quiet

clean: ## remove what was made
	rm -rf $(VENV) .venv-bare .venv-others .mypy_cache .ruff_cache .pytest_cache site
