# Two commands do everything: `make book` builds the course, `make test` checks all that CI checks.
# Every target creates .venv and installs what it needs the first time. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# The matrices of the course are small: threads cost more than they bring, and one thread adds up
# in the same order everywhere.
export OPENBLAS_NUM_THREADS := 1

VENV := .venv
BIN := $(VENV)/bin
HTML := _build/html
PORT ?= 8000
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c '$(SUPPORTED)' 2>/dev/null && echo $$p && break; done)

.PHONY: help fresh book serve pdf lab notebooks test lint test-code test-notebooks test-book test-coursework reproducible \
	lighthouse release grade solutions bench lock clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(VENV)/installed: requirements.lock pyproject.toml
	@$(if $(PYTHON),,echo "Python 3.11, 3.12 or 3.13 is needed and none was found on PATH."; \
	  echo "Install one, or say where it is: make PYTHON=/path/to/python3.12 ..."; exit 1;)
	@echo "== creating $(VENV) with $$($(PYTHON) --version) =="
	@$(PYTHON) -m venv --clear $(VENV) || { echo "python -m venv failed. On Debian or Ubuntu: \
	apt install python3-venv"; exit 1; }
	@echo "== installing the packages of requirements.lock (about 1 GB on disk) =="
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv || true
	@if [ -x $(BIN)/uv ] && VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install -r requirements.lock; then :; \
	else echo "== uv did not work here, falling back to pip =="; \
	  $(BIN)/python -m pip install -r requirements.lock || { echo "Installing failed: see the \
	message above. A proxy or an offline machine is the usual cause."; exit 1; }; fi
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

# What Sphinx and its cache of outputs do not know: chapters depend on posenc, pages on book/.
CHANGED = $$(find $(1) -newer _build/started \( -name '*.py' -o -name '*.js' -o -name '*.npy' \
	-o -name '*.yml' \) -not -path 'book/vendor/*' -print -quit)

fresh:
	@if [ ! -e _build/started ] || [ -n "$(call CHANGED,src)" ]; then rm -rf _build; \
	elif [ -n "$(call CHANGED,book)" ]; then rm -rf _build/html _build/singlehtml _build/.doctrees; fi
	@mkdir -p _build && touch _build/started

book: $(VENV)/installed fresh ## build the book; says where to open it
	@echo "== fetching what the pages need to work offline =="
	@$(BIN)/python book/vendor.py
	@echo "== building the book (runs every chapter; a warning is an error) =="
	@$(BIN)/jupyter-book build --quiet -W -n --keep-going . || { echo; echo "The book was not \
	built. The first line with WARNING or ERROR above names the file; a failing cell leaves its \
	traceback in _build/html/reports."; exit 1; }
	@echo "Built. Open $(HTML)/index.html in a browser, or run: make serve"

serve: book ## build the book and show it on http://127.0.0.1:8000 (PORT=...)
	@echo "Serving on http://127.0.0.1:$(PORT) — stop with Ctrl-C"
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory $(HTML) $(PORT)

pdf: $(VENV)/installed fresh ## print the whole course to _build/pdf (needs Chromium)
	@$(BIN)/python book/vendor.py
	@echo "== building the course as one page =="
	@$(BIN)/jupyter-book build --quiet -n --keep-going --builder singlehtml .
	@$(BIN)/python book/pdf.py

lab: $(VENV)/installed ## open the chapters in JupyterLab
	@$(BIN)/jupyter lab --notebook-dir . chapters

notebooks: $(VENV)/installed ## run every chapter and store its outputs (twice changes nothing)
	@$(BIN)/python book/notebooks.py

test: lint test-code test-notebooks test-book test-coursework ## everything that CI checks
	@echo "All checks passed."

lint: $(VENV)/installed ## style, types and workflow files
	@echo "== lint =="
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(BIN)/zizmor --offline --quiet .github/workflows

test-code: $(VENV)/installed ## unit, property, golden and doc tests of posenc
	@echo "== tests of the code =="
	@$(BIN)/pytest --doctest-modules --cov --cov-report=term-missing:skip-covered \
	  --cov-fail-under=95 -n 2 --dist loadfile \
	  --ignore=tests/book --ignore=tests/coursework tests src

test-notebooks: $(VENV)/installed ## run every chapter and compare every stored output, strictly
	@echo "== every number of every chapter, recomputed =="
	@$(BIN)/pytest --nbval --nbval-current-env --nbval-sanitize-with tests/nbval.cfg \
	  -p no:warnings -n 2 --dist loadfile chapters

test-book: book ## build the book and check its pages in a browser
	@echo "== the built pages in a browser =="
	@$(BIN)/pytest -n 2 tests/book

reproducible: $(VENV)/installed ## build the committed book twice and compare every byte
	@$(BIN)/python book/vendor.py
	@book/reproducible.sh

lighthouse: book ## let Lighthouse judge three pages (fetched from npm; needs Chromium)
	@$(BIN)/python book/lighthouse.py

GRADER = cd coursework && $(CURDIR)/$(BIN)/python -m posenc_grader

release: $(VENV)/installed ## write the student notebooks of the coursework
	@$(GRADER) release

grade: $(VENV)/installed ## grade SUBMISSIONS=folder [SECRET=...]; can be stopped and started again
	@$(if $(SUBMISSIONS),,echo "Say what to grade: make grade SUBMISSIONS=folder [SECRET=...]"; exit 2;)
	@$(if $(SECRET),export COURSEWORK_SECRET='$(SECRET)';) submissions=$$(realpath '$(SUBMISSIONS)'); \
	  $(GRADER) grade "$$submissions"

solutions: $(VENV)/installed ## write the coursework with folded solutions, for self-learners
	@$(GRADER) solutions

test-coursework: $(VENV)/installed ## the grader against a made class, cheats included
	@echo "== the grader, against a made class =="
	@$(BIN)/pytest tests/coursework

bench: $(VENV)/installed ## measure the speed of posenc; writes a table to bench/results
	@$(BIN)/python bench/run.py

lock: $(VENV)/installed ## resolve requirements.txt and the dependency groups again
	@$(BIN)/uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 \
	  requirements.txt --group test --group coursework --no-emit-package posenc --no-header \
	  --annotation-style line --output-file requirements.lock

clean: ## remove everything that the commands above made
	@rm -rf $(VENV) _build build book/vendor bench/results .pytest_cache .ruff_cache .mypy_cache \
	  .hypothesis .coverage htmlcov
	@find src tests coursework -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
