# The build verbs. Each one sets up what it needs, on a fresh machine as well; a second run is fast.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TORCH := $(VENV)/.torch
TRANSFORMERS := $(VENV)/.transformers
# Folders that hold Python code, for the linter and the type checker.
CODE := proto server agent client tests deploy examples
# One test file or folder: make test T=tests/unit
T ?=
# Processes of the suite.
WORKERS ?= 2

# Hundreds of tests start a process; without bytecode each compiles every module again, which takes longer than the test.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help dev gen lint type test demo bench soak gpu-check package test-programs

help: ## lists the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

dev: $(READY) ## creates .venv with the project (editable) and every tool

$(READY): pyproject.toml scripts/setup.sh scripts/unpack_helm.py
	PYTHON="$(PYTHON)" sh scripts/setup.sh $(VENV)
	@touch $@

$(TORCH): $(READY) tests/constraints.txt
	$(BIN)/python -m pip install --quiet --constraint tests/constraints.txt torch numpy
	@touch $@

$(TRANSFORMERS): $(TORCH)
	$(BIN)/python -m pip install --quiet --constraint tests/constraints.txt transformers accelerate
	@touch $@

gen: $(READY) ## regenerates the protobuf code, the dashboards, the page of metrics, the chart's copies and the kustomize base
	$(BIN)/python proto/generate.py
	$(BIN)/python deploy/grafana/build.py
	$(BIN)/python deploy/prometheus/reference.py
	$(BIN)/python deploy/helm/generate.py

lint: $(READY) ## ruff on the code, buf on the API
	$(BIN)/ruff check $(CODE)
	@image=$$(mktemp) && $(BIN)/python proto/generate.py --image $$image && mv $$image $$image.binpb \
	  && $(BIN)/buf lint $$image.binpb --config proto/buf.yaml; status=$$?; rm -f $$image $$image.binpb; exit $$status

type: $(READY) ## mypy, strict
	$(BIN)/mypy $(CODE)

test-programs:
	@sh scripts/setup_test_programs.sh

test: $(READY) test-programs $(if $(PEAKGATE_TEST_TORCH),$(TRANSFORMERS)) lint type ## lint, type and the whole suite; PEAKGATE_TEST_TORCH=1 adds the tests that run PyTorch
	$(BIN)/python -m pytest --numprocesses=$(WORKERS) --dist=worksteal $(T)

demo: $(READY) ## shows the whole loop on real jobs and a simulated GPU
	$(BIN)/python examples/demo.py

bench: $(READY) test-programs ## cost of a prediction, cold start, accuracy on published jobs, how fast peaks are stored
	$(BIN)/python -m tests.bench

soak: $(READY) test-programs ## the property tests and the slow tests, for long
	PEAKGATE_TEST_SLOW=1 $(BIN)/python -m pytest --hypothesis-profile=soak --timeout=1800 $(or $(T),$(wildcard tests/property tests/unit tests/integration))

gpu-check: $(TRANSFORMERS) ## compares real jobs on this machine's GPU with their predictions
	$(BIN)/python -m tests.gpu.gpu_check

package: $(READY) ## builds the wheel and the sdist into dist/
	$(BIN)/python -m build --outdir dist
