# Everything sets itself up: a virtual environment in .venv, renewed when pyproject.toml changes.
# Needs Python 3.11 or newer, pip and make. PYTHON=... names another interpreter for a new .venv.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test proof exhaustive release dist extras lowest audit check docs format bench clean

NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python python3.14 python3.13 python3.12 python3.11; do \
	$$p -c '$(NEW_ENOUGH)' >/dev/null 2>&1 && echo $$p && break; done)
VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
# What checks and builds the site is installed when it is first asked for: the demo and the tests do not wait for it.
CHECK_READY := $(VENV)/.check-ready

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# Where this is set, as in many containers, each of the hundreds of fresh processes of the tests would compile the package.
export PYTHONDONTWRITEBYTECODE :=

# Always anew: what was read before would keep its warnings to itself.
BUILD_DOCS := rm -rf build/docs && $(PY) -m sphinx -W --keep-going -q -E -j auto -d build/.doctrees docs build/docs

help: ## list the targets
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(READY) ## a licence audit that is killed in the middle and goes on
	@$(PY) -m rehydrate.demo.licence_audit --demo

test: $(READY) ## all tests but the long proofs; more workers than cores, since they wait for the disk
	@$(PY) -m pytest -q -n 3

proof: $(READY) ## the long proofs, and the table of what was tried for each promise; 45 minutes at most
	@$(PY) -m pytest -q -n 3 -m "(proof or promise or notices) and not exhaustive"

exhaustive: $(READY) ## the proofs with every seed that there is: some hours, before a release
	@$(PY) -m pytest -q -n 3 -m "proof or promise or notices or exhaustive"

release: $(READY) ## all that has to be true of a release, from the build to the audit, and one table
	@$(PY) -m release

dist: $(READY) ## a wheel and an sdist in dist/, built twice, compared and looked into
	@$(PY) -m release dist

extras: $(READY) ## the wheel in clean environments: each extra alone, each missing, all on other Pythons
	@$(PY) -m release dist extras pythons

lowest: $(READY) ## all tests on the lowest releases that pyproject.toml allows; TESTS=... names some
	@TESTS="$(TESTS)" $(PY) -m release lowest

audit: $(READY) ## known vulnerabilities of the package with all extras; ADVISORIES=... where no service is reached
	@ADVISORIES="$(ADVISORIES)" $(PY) -m release dist audit

check: $(CHECK_READY) ## format, lint, types, layers, and the site without a warning
	@$(PY) -m ruff format --check --quiet . || { echo "make check: run 'make format'" >&2; exit 1; }
	@$(PY) -m ruff check --quiet .
	@$(PY) -m pyright
	@$(VENV)/bin/lint-imports --no-logo
	@$(BUILD_DOCS)

docs: $(CHECK_READY) ## the documentation as a site, in build/docs
	@echo "make: building the site, half a minute on an idle core; nothing is said until it is there" >&2
	@$(BUILD_DOCS)
	@echo "make: build/docs/index.html"

format: $(READY) ## format and sort imports in place
	@$(PY) -m ruff check --quiet --select I --fix .
	@$(PY) -m ruff format --quiet .

bench: $(READY) ## measure, compare with the floor
	@$(PY) -m benchmarks
	@$(PY) -m benchmarks.stores --supersteps 1000
	@$(PY) -m benchmarks.growth

clean: ## remove the environment and everything made by the other targets
	@rm -rf $(VENV) .venv-lowest* .venv-proof-* build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp holds the path of the checkout: an environment that came along with a copy still runs the original's code.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif

$(READY): pyproject.toml
	@echo "make: setting up $(VENV), a minute or two; again only when pyproject.toml has changed" >&2
	@[ ! -f $(READY) ] || [ "$$(cat $(READY))" = "$(CURDIR)" ] || rm -rf $(VENV)
	@if ! $(PY) -c '$(NEW_ENOUGH)' 2>/dev/null; then \
		[ -n "$(PYTHON)" ] && $(PYTHON) -c '$(NEW_ENOUGH)' 2>/dev/null || { \
			echo "make: no Python 3.11 or newer at '$(PYTHON)'; install one, or name it: make PYTHON=/path/to/python" >&2; \
			exit 1; }; \
		$(PYTHON) -m venv --clear $(VENV) || { \
			echo "make: cannot make $(VENV); on Debian and Ubuntu install python3-venv" >&2; exit 1; }; \
	fi
	@echo "make: installing what the package, its tests and its checks need, some 70 packages" >&2
	@$(PY) -m pip install -qq -e '.[dev]' || { \
		echo "make: pip could not install the requirements; its words are above. If its index cannot be reached," >&2; \
		echo "make: check the network and 'pip config list', then run make again." >&2; exit 1; }
	@echo "make: $(VENV) is ready" >&2
	@echo "$(CURDIR)" >$@

$(CHECK_READY): $(READY)
	@echo "make: installing what builds the site and checks the code" >&2
	@$(PY) -m pip install -qq -e '.[docs,lint]'
	@touch $@
