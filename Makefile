# Needs make and a Python of 3.11 or newer; everything else is fetched into .venv.

PYTHON ?= python3
PYTEST_ARGS ?= -n 2 --dist worksteal
BENCH_ARGS ?=
STORM_ROUNDS ?= 500

BIN := .venv/bin
PIP_OPTIONS := --disable-pip-version-check --no-input -qq
PIP := $(BIN)/python -m pip $(PIP_OPTIONS)
PACKAGES := $(wildcard notify policies watcher)
TYPED := $(PACKAGES) $(wildcard tests deploy/*.py)
# Folders too: one that lost a file is newer.
SOURCES := $(shell find $(PACKAGES) \( -name __pycache__ -o -name '.?*' \) -prune -o -print)

# What a person has set for the real thing must not reach tests, demo and bench.
unexport $(filter COVERAGE_% KODER_MONITOR_% PYTEST_%,$(.VARIABLES))
unexport PYTHONHOME PYTHONOPTIMIZE PYTHONPATH PYTHONSTARTUP PYTHONWARNINGS
unexport CLAUDE_CODE_SESSION_ID TTL VIRTUAL_ENV

.NOTPARALLEL:
.PHONY: help venv demo test check unit soak format bench clean

help: ## say what there is to make
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

venv: .venv/installed ## make .venv: the pinned tools and the package, built and installed

demo: ## show it at work, installed in a scratch folder with what it needs to run
	@set -eu; \
	scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; trap 'exit 130' INT TERM; \
	$(PYTHON) -m venv "$$scratch/venv"; \
	mkdir "$$scratch/source" "$$scratch/home"; \
	cp -R pyproject.toml LICENSE $(wildcard README.md) $(PACKAGES) "$$scratch/source"; \
	"$$scratch/venv/bin/python" -m pip $(PIP_OPTIONS) install \
		-c requirements/runtime.txt "$$scratch/source"; \
	unset XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR XDG_STATE_HOME; \
	HOME="$$scratch/home" PATH="$$scratch/venv/bin:$$PATH" \
		"$$scratch/venv/bin/python" deploy/demo.py

test: check unit ## format, lint, types, tests, coverage: what CI runs

check: .venv/installed ## format, lint, types
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy $(TYPED)

# Safe path: the tests import the installed package, never the folder beside them.
unit: export PYTHONSAFEPATH = 1
unit: .venv/installed ## tests and coverage; PYTEST_ARGS='-k lock -n 2'
	@sh tests/system-packages.sh
	@$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest $(PYTEST_ARGS)
	@$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage report
	$(BIN)/python -m coverage report --include='policies/*' --fail-under=100

soak: export PYTHONSAFEPATH = 1
soak: .venv/installed ## everything killed at random, for long; STORM_ROUNDS=500
	STORM_ROUNDS=$(STORM_ROUNDS) $(BIN)/python -m pytest tests/chaos $(PYTEST_ARGS)

format: .venv/installed ## format and mend what the linter can
	$(BIN)/python -m ruff format .
	$(BIN)/python -m ruff check --fix .

bench: .venv/installed ## measure; BENCH_ARGS is handed on
	$(BIN)/python -m tests.bench.run $(BENCH_ARGS)

clean: ## remove what make and the tools made
	rm -rf .venv build dist *.egg-info htmlcov .coverage .coverage.*
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

.venv/requirements: requirements/runtime.txt requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
		"Python 3.11 or newer, please: make PYTHON=python3.11")'
	rm -rf .venv
	$(PYTHON) -m venv .venv
	$(PIP) install -r requirements/runtime.txt -r requirements/dev.txt
	@touch $@

# setuptools puts into a new build what an older one left behind. The time that counts
# is that of the start: what is edited meanwhile is newer.
.venv/installed: .venv/requirements pyproject.toml $(wildcard README.md) $(SOURCES)
	@touch .venv/installing
	@rm -rf build *.egg-info
	$(PIP) install --no-build-isolation --no-deps --force-reinstall .
	@rm -rf build *.egg-info
	@$(BIN)/python -m pip --disable-pip-version-check -q check
	@mv .venv/installing $@
