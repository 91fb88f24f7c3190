# Everything runs in .venv, in versions of requirements.lock: `make help` lists the targets.
# It begins as what a user installs, for the demo; a target that needs more adds it.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.installed
USER_READY := .venv/.user
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

OLDEST := (3, 11)
NEWEST := (3, 13)

.DEFAULT_GOAL := help
.PHONY: help demo test test-all bench embedded gpu referee docs lint types wheel clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(USER_READY) ## track a trajectory with a five-bar; writes pictures and data
	$(BIN)/holoctl demo

# A process for each core, at most 8 (400 MB each): JOBS=2 takes two, JOBS=0 works without.
JOBS ?= auto
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --maxprocesses 8 --dist worksteal --durations 15

test: $(READY) ## all tests but the slow ones, on all cores; JOBS=2: on two
	$(PYTEST) -m "not slow"

test-all: $(READY) ## all tests
	$(PYTEST)

lint: $(USER_READY) ## style: ruff
	@$(BIN)/ruff --version >/dev/null 2>&1 || $(PIP) install -c requirements.lock ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# PEERS=1: in .venv-peers, which has Drake, Exudyn and MuJoCo as well; one without a wheel is left out.
# TSID=PYTHON: limits beside TSID too, with the Python of an environment that benchmarks/limits_tsid.py tells.
PEERS ?=
TSID ?=
PEERS_READY := .venv-peers/.installed
BENCH_READY := $(if $(PEERS),$(PEERS_READY),$(READY))
bench: $(BENCH_READY) ## how long things take; PEERS=1: beside Drake and MuJoCo
	$(dir $(BENCH_READY))bin/python benchmarks/bench.py $(if $(PEERS),--peers) $(if $(TSID),--tsid $(TSID))

# ROBOTS="five_bar delta", or exported folders. What is missing is told, with its packages.
ROBOTS ?=
embedded: $(READY) ## exported C on other processors, in QEMU; ROBOTS=five_bar: of one robot
	$(BIN)/python benchmarks/boards.py $(ROBOTS)
	$(BIN)/python benchmarks/boards.py $(ROBOTS) --single

gpu: $(READY) ## kernels of many robots: rates, and memory of a thread on a GPU, by NVIDIA's compiler
	$(BIN)/python -m pip install --quiet -c requirements.lock -e ".[cuda]"
	$(BIN)/python benchmarks/gpu.py >benchmarks/KERNELS.md

referee: $(BENCH_READY) ## published problems simulated; PEERS=1: beside Exudyn and MuJoCo
	PYTHONPATH=benchmarks $(dir $(BENCH_READY))bin/python -m referee $(if $(PEERS),--peers) \
	    $(if $(HISTORIES),--histories "$(HISTORIES)") $(if $(DVRK),--dvrk "$(DVRK)") $(if $(REWRITE),--rewrite)

# Strict: a warning ends it. No notice of what may come after this version of the generator.
docs: $(READY) ## the documentation as a site: out/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "open out/site/index.html"

$(PEERS_READY): requirements.lock benchmarks/peers.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) not found; name a Python: make PYTHON=..."; exit 1; }
	@$(PYTHON) -c "$$CHECK_PYTHON"
	@echo "Installing into .venv-peers (about a minute)"
	@$(PYTHON) -m venv --clear .venv-peers
	@.venv-peers/bin/python -m pip --disable-pip-version-check --quiet install -r requirements.lock
	@.venv-peers/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --no-build-isolation -e .
	@for peer in $$(cat benchmarks/peers.txt); do \
		.venv-peers/bin/python -m pip --disable-pip-version-check --quiet install --only-binary :all: \
			-c requirements.lock $$peer || echo "warning: no $$peer here; its column will say so"; \
	done
	@touch $@

types: $(READY) ## types: mypy, strict
	$(BIN)/mypy

wheel: $(READY) ## sdist and wheel, in dist/, as an index would take them
	$(BIN)/python -m build --no-isolation .
	$(BIN)/python -m twine check --strict dist/*

clean: ## remove the environments, caches and built files
	rm -rf .venv .venv-peers dist build out *.egg-info .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(USER_READY): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) not found; name a Python: make PYTHON=..."; exit 1; }
	@$(PYTHON) -c "$$CHECK_PYTHON"
	@echo "Installing into .venv (half a minute)"
	@$(PYTHON) -m venv --clear .venv
	@$(PIP) install -c requirements.lock -e ".[plot]"
	@touch $@

$(READY): $(USER_READY)
	@echo "Installing what tests, types and documentation need (about a minute)"
	@$(PIP) install -r requirements.lock
	@touch $@

define CHECK_PYTHON
import sys
have, oldest, newest = sys.version_info[:2], $(OLDEST), $(NEWEST)
name = lambda version: "Python %d.%d" % version
if have < oldest:
    sys.exit("error: holoctl needs %s or newer; $(PYTHON) is %s; name another: make PYTHON=..." % (name(oldest), name(have)))
if have > newest:
    sys.stderr.write("warning: $(PYTHON) is %s; tested up to %s\n" % (name(have), name(newest)))
endef
export CHECK_PYTHON
