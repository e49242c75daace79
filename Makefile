# Two commands do everything on a fresh machine: `make verify` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help verify test lint benchmark clean

help:
	@echo "make verify     prove every algorithm over the toy pairs (core dependencies only)"
	@echo "make test       the whole test suite, linters and types (adds torch on the CPU)"
	@echo "make benchmark  measured ratios and times, side by side"

verify: .venv/core
	$(BIN)/specref verify

test: .venv/test lint
	$(BIN)/pytest -n 2

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

benchmark: .venv/test
	$(BIN)/python -m proofs_tests.benchmarks.exact
	$(BIN)/python -m proofs_tests.benchmarks.bench_simulate
	$(BIN)/python -m proofs_tests.benchmarks.campaign
	$(BIN)/python -m proofs_tests.benchmarks.power --runs 3
	$(BIN)/python -m proofs_tests.benchmarks.counting
	$(BIN)/python -m proofs_tests.benchmarks.lazy_slrs
	$(BIN)/python -m proofs_tests.benchmarks.bench_speed
	$(BIN)/python -m gpu_tests.benchmarks.verification

.venv/core: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/test: .venv/core constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[torch,test]'
	touch $@

clean:
	rm -rf .venv
