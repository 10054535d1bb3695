# setup, repro, test, check: the only commands a newcomer needs.
SHELL := /bin/bash
PYTHON ?= python3
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: help setup repro test check format
help:            ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/'

setup: .venv/.ready   ## create .venv with the pinned packages

.venv/.ready: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: Python 3.11 or newer is needed, found $$($(PYTHON) --version); set PYTHON=" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet uv
	.venv/bin/uv pip install --quiet --python .venv/bin/python -r requirements.txt
	.venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --editable .
	@touch $@

repro: setup     ## run the pipeline (what has not changed is not run again) and print the result
	dvc repro
	@python -m stages.report --print-only

test: setup      ## run all tests
	python -m pytest

check: setup     ## format, lint and types
	ruff format --check .
	ruff check .
	mypy

format: setup    ## put the code into the format that check demands
	ruff format .
	ruff check --fix .
