# Two commands matter: `make run` and `make test`. Everything they need installs itself;
# only Python 3.11, Node 20 and make must be there.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
SERVE := $(BIN)/python -m schema.cli
WEB := explorer/dist/index.html
WEB_SOURCES := $(wildcard explorer/*.html explorer/*.json explorer/*.ts explorer/src/*)
CLIENTS := tests/conformance/node_modules/.package-lock.json
HAS_NODE := $(shell command -v npm 2>/dev/null)

.PHONY: run test check web sdl bench seed user db-revision clean
.DEFAULT_GOAL := run

run: $(VENV)/run.stamp
	@$(MAKE) --no-print-directory web || echo "The web pages were not built: the server starts without them."
	@exec $(SERVE) serve

test: check $(CLIENTS)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# What can be said about the code without running it.
check: $(VENV)/dev.stamp web
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

ifdef HAS_NODE
web: $(WEB)
else
web:
	@echo "Node is missing: the server starts without its web pages."
endif

$(WEB): $(WEB_SOURCES)
	cd explorer && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && npm run build --silent
	@touch $@

sdl: $(VENV)/run.stamp
	$(SERVE) sdl

# make user name=ada [role=administrator|auditor|member] [revoke=yes]
user: $(VENV)/run.stamp
	@$(SERVE) user "$(name)" $(if $(role),--role $(role)) $(if $(revoke),--revoke)

# make seed scale=1000: that many nodes in trees of a character of the local user.
# make seed scale=small|medium|large: a story of the local user's.
seed: $(VENV)/run.stamp
	$(BIN)/python -m bench seed $(or $(scale),1000)

bench: $(VENV)/dev.stamp
	$(BIN)/python -m bench run

# make db-revision m="what it makes possible"
db-revision: $(VENV)/run.stamp
	$(SERVE) revision "$(m)"

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/run.stamp: requirements.lock | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(VENV)/dev.stamp: requirements-dev.lock | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@ $(VENV)/run.stamp

$(CLIENTS): tests/conformance/package-lock.json
	cd tests/conformance && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error

clean:
	rm -rf $(VENV) explorer/dist explorer/node_modules tests/conformance/node_modules
