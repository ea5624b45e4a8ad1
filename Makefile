# Everything a person does with this repository, from nothing but Python >= 3.11 and Java >= 17.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
VENV41 := .venv-spark41
BIN := $(VENV)/bin
PYTEST_ARGS ?=

# A stamp is newer than what it was made from, so an environment is made once and renewed when the lock changes.
STAMP := $(VENV)/.installed
STAMP41 := $(VENV41)/.installed
FRAME := pyproject.toml requirements.lock scripts/make-venv scripts/pip-retry

.PHONY: help
help:  ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(STAMP): $(FRAME)
	@scripts/make-venv $(VENV)
	@$(BIN)/seiche prepare || echo "going on without it"
	@touch $@

$(STAMP41): $(FRAME) requirements-spark41.txt
	@scripts/make-venv $(VENV41) requirements-spark41.txt
	@touch $@

.PHONY: setup
setup: $(STAMP)  ## create .venv with the locked versions (done once)

.PHONY: demo
demo: setup  ## watch views stay up to date through a kill -9, and compare them with Spark's answer
	@$(BIN)/seiche doctor --quiet
	@$(BIN)/seiche demo

.PHONY: test
test: setup  ## all tests but the long ones
	@$(BIN)/seiche doctor --quiet
	@$(BIN)/python scripts/run-tests -- $(PYTEST_ARGS)

.PHONY: test-long
test-long: setup  ## TPC-H and Nexmark as views, every operator by affected keys, every slt file with kills (an hour)
	@$(BIN)/python -m pytest -m long $(PYTEST_ARGS)

.PHONY: test-kills
test-kills: setup  ## all slt files with the server killed around each CREATE and DROP, and a short soak (minutes)
	@$(BIN)/python -m pytest -m kills tests/slt tests/crash $(PYTEST_ARGS)

.PHONY: soak
soak: setup  ## half an hour of mixed work with kills: memory and open files stay flat, views are right at the end
	@$(BIN)/python -m tests.crash.soak --minutes $(or $(MINUTES),30)

.PHONY: test-fast
test-fast: setup  ## tests that need no Spark (seconds)
	@$(BIN)/python -m pytest tests/unit -m "not spark" $(PYTEST_ARGS)

.PHONY: smoke-spark41
smoke-spark41: $(STAMP41)  ## the smoke tests on the oldest supported Spark, in an environment of its own
	@$(VENV41)/bin/python -m pytest -m smoke $(PYTEST_ARGS)

.PHONY: lint
lint: setup  ## ruff, mypy and the import layers; changes nothing
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

.PHONY: fmt
fmt: setup  ## format the code and fix what ruff can fix
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

.PHONY: bench
bench: setup  ## measure the figures of the README on this machine (minutes)
	@$(BIN)/python -m benchmarks

.PHONY: clean
clean:  ## remove environments, caches and the default data folder
	rm -rf $(VENV) $(VENV41) build dist *.egg-info seiche-data spark-warehouse metastore_db derby.log bench-results
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
