# The only commands a newcomer needs; `make` alone lists them.
SHELL := /bin/bash
PYTHON ?= python3
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: help setup repro test test-fast coverage check bench benchmark tables docs dist format
help:            ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/'

setup: .venv/.ready   ## make .venv with the pinned packages

.venv/.ready: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: expected Python 3.11 or newer, found $$($(PYTHON) --version); try make PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet uv
	.venv/bin/uv pip install --quiet --compile-bytecode --python .venv/bin/python -r requirements.txt
	.venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --editable .
	@touch $@

repro: setup     ## run the pipeline (what has not changed does not run again) and print the result
	dvc repro
	@mela summary

test: setup      ## run all tests
	python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder --durations 10

test-fast: setup ## run the quick tests, which need no real DVC, no browser and few other processes
	python -m pytest --numprocesses auto --dist loadfile -m "not slow"

coverage: setup  ## run all tests, and print which branches of the code they leave out
	python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder --cov --cov-report term

check: setup     ## format, lint, security, types, and that dvc.lock belongs to this code
	ruff format --check .
	ruff check .
	mypy
	python .ci/audit.py
	dvc repro --quiet code
	dvc repro --allow-missing --dry | grep 'up to date'

bench: setup     ## measure speed against references in the same run: studies/results/bench.json
	python -m studies speed.labeler
	python -m studies speed.train_steps
	python -m studies speed.heads
	python -m studies speed.pipeline

benchmark: setup ## train and measure all systems on the same tasks: hours; benchmark/params.yaml says which
	@python -m benchmark.matrix
	cells=$$(python -m benchmark.due) || exit $$?; test -z "$$cells" || dvc --cd benchmark repro --keep-going $$cells; \
	ended=$$?; python -m benchmark.due --mark > /dev/null && python -m benchmark.report.systems_page && exit $$ended

tables: setup    ## write the tables of systems from what is measured, and the pages of docs/_templates
	@python -m benchmark.due --mark > /dev/null
	@python -m benchmark.report.systems_page
	@python -m docs._tools.pages

docs: setup      ## build the documentation's site: site/index.html
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict

dist: setup      ## build the wheel and the sdist, with the version of the last tag: dist/
	rm -rf dist
	python -m build --no-isolation --outdir dist .
	python -m twine check --strict dist/*

format: setup    ## put the code into the format that check demands
	ruff format .
	ruff check --fix .
