# Everything a person or a machine does here. `make help` lists it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# bench/inside is typed by nobody: its names come from the page's console.
BENCH := $(filter-out bench/common.py,$(sort $(wildcard bench/*.py)))
CODE := pyapp buildtools bench/loading build_wheel.py fixtures/make.py fixtures/make_games.py training/evaluate.py training/export_onnx.py bench/common.py $(BENCH)
UV ?= uv

# python3 first: pyenv reads .python-version. A pyenv without 3.12 has a python3 that fails, hence the call.
FIND_PYTHON = for python in python3 python3.12 "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.12*/bin/python3; do \
	if "$$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 12))' 2>/dev/null; then echo "$$python"; exit; fi; done; \
	echo "error: no Python 3.12 found (python3 is $$(python3 --version 2>&1 | tail -1)) – install it, or run 'pyenv install 3.12'" >&2; exit 1

.PHONY: help
help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

.PHONY: run
run: build ## Install, build the site, and serve it; prints the address
	@$(BIN)/pyapp serve

.PHONY: build
build: .venv/.run-stamp node_modules/.stamp ## Build the whole site into dist/
	@$(BIN)/python build_wheel.py

.PHONY: test
test: ## Everything that must be green: lint, build, unit, browser and page tests
	@$(MAKE) lint
	@$(MAKE) build
	@$(MAKE) test-unit
	@$(MAKE) test-training
	@$(MAKE) test-browser
	@$(MAKE) test-page

.PHONY: lint
lint: .venv/.test-stamp node_modules/.stamp ## Style and types, of Python and JavaScript
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy $(CODE)
	npm run --silent check

.PHONY: test-unit
test-unit: .venv/.test-stamp ## Tests on CPython alone
	$(BIN)/pytest tests/unit

# PyTorch for the CPU comes as a wheel for Python 3.11, so training has an environment of its own.
FIND_PYTHON_3_11 = for python in python3.11 "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.11*/bin/python3 "$$($(UV) python find 3.11 2>/dev/null)"; do \
	if "$$python" -c 'import ensurepip, sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then echo "$$python"; exit; fi; done

.PHONY: test-training
test-training: ## Types and tests of the training, in its own environment; needs Python 3.11
	@python=$$($(FIND_PYTHON_3_11)); \
	if [ -z "$$python" ]; then echo "training is not tested: no Python 3.11 found ('pyenv install 3.11' brings one)"; exit; fi; \
	if [ ! .venv-training/.stamp -nt training/requirements.txt ]; then \
		echo "creating .venv-training ($$("$$python" --version)): PyTorch takes a while"; \
		rm -rf .venv-training; "$$python" -m venv .venv-training; \
		log=.venv-training/install.log; \
		if ! .venv-training/bin/python -m pip --disable-pip-version-check install --require-hashes -r training/requirements.txt >$$log 2>&1; then \
			if grep -q 'No matching distribution found for torch' $$log; then \
				echo "training is not tested: pip finds no PyTorch for the CPU (training/README.md says where there is one)"; exit; fi; \
			cat $$log >&2; exit 1; fi; \
		touch .venv-training/.stamp; fi; \
	.venv-training/bin/python -m mypy --config-file training/mypy.ini; \
	.venv-training/bin/python -m pytest tests/training

.PHONY: test-browser
test-browser: .venv/.test-stamp chromium ## Tests inside Pyodide; needs dist/
	$(BIN)/pytest tests/browser

.PHONY: test-page
test-page: .venv/.test-stamp node_modules/.stamp chromium firefox nginx java ## Tests of the page through Selenium; needs dist/
	$(BIN)/pytest tests/page

# $(1): packages; $(2): what to do where there is no apt-get.
define apt
	if ! command -v apt-get >/dev/null; then $(2); fi; \
	sudo=; if [ "$$(id -u)" != 0 ]; then sudo=sudo; fi; \
	echo "installing $(1) (apt)"; \
	$$sudo apt-get update -qq; \
	DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends $(1) >/dev/null
endef
no_apt = echo "error: $(1) is missing, and there is no apt-get to install it – put it on PATH" >&2; exit 1

.PHONY: chromium
chromium:
	@if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then exit; fi; \
$(call apt,chromium chromium-driver,$(call no_apt,chromium or chromedriver))

.PHONY: firefox
firefox:
	@if command -v firefox-esr >/dev/null; then exit; fi; \
$(call apt,firefox-esr,$(call no_apt,firefox-esr))

.PHONY: nginx
nginx:
	@if command -v nginx >/dev/null || [ -x /usr/sbin/nginx ]; then exit; fi; \
$(call apt,nginx,$(call no_apt,nginx))

# A Selenium Grid runs on it.
.PHONY: java
java:
	@if command -v java >/dev/null; then exit; fi; \
$(call apt,default-jre-headless,echo "no java and no apt-get to install it: tests on a grid are skipped"; exit)

.PHONY: bench
bench: .venv/.test-stamp chromium ## Every benchmark, one after the other, and their last lines together; needs dist/
	@output=$$(mktemp); trap 'rm -f "$$output"' EXIT; lines=(); failed=0; \
	for script in $(BENCH); do \
		echo "== $$script"; \
		PYTHONUNBUFFERED=1 $(BIN)/python "$$script" | tee "$$output" || failed=1; \
		line=$$(tail -n 1 "$$output"); \
		if [[ $$line != \{* ]]; then line="$$script ended without a result"; fi; \
		lines+=("$$line"); \
	done; \
	echo "== all"; printf '%s\n' "$${lines[@]}"; exit $$failed

.PHONY: fixtures
fixtures: .venv/.test-stamp ## Make the states and Python's answers again, from the committed model
	$(BIN)/python fixtures/make.py
	$(BIN)/python fixtures/make_games.py

COMPILE = $(UV) pip compile pyproject.toml --quiet --python-version 3.12 --generate-hashes --no-header --no-emit-index-url

.PHONY: lock
lock: ## Write requirements/*.txt anew from pyproject.toml (needs uv)
	@command -v $(UV) >/dev/null || { echo "error: uv is missing ($(UV)) – run 'pip install uv'" >&2; exit 1; }
	$(COMPILE) --universal --extra build --extra browser --output-file requirements/run.txt >/dev/null
	$(COMPILE) --universal --extra build --extra browser --extra native --extra test --output-file requirements/test.txt >/dev/null
	$(COMPILE) --no-emit-package numpy --output-file requirements/site.txt >/dev/null

.PHONY: reference
reference: ## Write docs/api.md anew from the docstrings
	$(BIN)/python -m pyapp.reference > docs/api.md

.PHONY: browsers
browsers: .venv/.test-stamp node_modules/.stamp chromium firefox ## Write the table of browsers anew, from what each can do; needs dist/
	PYAPP_KEEP_BROWSERS=1 $(BIN)/pytest tests/page/test_firefox.py

.PHONY: clean
clean: ## Remove what was built (the environment and the caches stay)
	rm -rf dist build tests/output .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/bin/python:
	@python=$$($(FIND_PYTHON)); echo "creating .venv ($$("$$python" --version))"; "$$python" -m venv .venv

# The tests' requirements hold those of running, at the same versions: whichever comes first, the other is quick.
.venv/.%-stamp: requirements/%.txt pyproject.toml | .venv/bin/python
	@echo "installing Python packages (requirements/$*.txt)"
	@$(PIP) install --require-hashes -r requirements/$*.txt
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

# No package that we use needs its install script.
node_modules/.stamp: package.json package-lock.json .npmrc
	@command -v npm >/dev/null || { echo "error: npm is missing – install Node 20 or newer" >&2; exit 1; }
	@node -e 'process.exit(+(parseInt(process.versions.node) < 20))' || \
		{ echo "error: Node $$(node --version) is too old – install Node 20 or newer" >&2; exit 1; }
	@echo "installing npm packages"
	@npm ci --ignore-scripts --no-progress --loglevel=error
	@touch $@
