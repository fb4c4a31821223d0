# Two commands: `make conformance` and `make test`. Both set up all they need in .venv.
# ci/test --help says how to run a part of `make test` or `make everything`.
.DEFAULT_GOAL := help
.PHONY: help conformance test everything affected scenario site lint unit reference real oldest kind allure matrix bench gpu-check fuzz allocators image stubs clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT := build

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

conformance: $(VENV)/.ready ## Every scenario on the reference: prints the table, writes reports
	$(BIN)/dra-conformance run --target reference --output $(OUT)/conformance

test: $(VENV)/.ready ## Lint, unit tests, scenarios on the reference and on a real cluster
	@ci/test

everything: $(VENV)/.ready ## All the rest, too; goes on where an earlier one ended
	@ci/test everything

affected: $(VENV)/.ready ## Which parts of `make everything` a change touches (SINCE=HEAD)
	@ci/test --affected $(SINCE)

site: $(VENV)/.site ## The documentation site, with the pages that are made: build/site
	$(BIN)/python -m ci.site

scenario: $(VENV)/.ready ## What a new scenario alone notices, and its row (FILE=scenarios/..., REASON=)
	@$(BIN)/python -m tests.scenario.add_scenario "$$FILE" --reason "$$REASON"

lint: $(VENV)/.ready ## Lint, formatting, types, import layers
	@ci/test lint

unit: $(VENV)/.ready ## Unit tests
	@ci/test unit

reference: $(VENV)/.ready ## Scenarios on the reference, by pytest and xdist
	@ci/test reference

real: $(VENV)/.ready ## Tests and scenarios on a real local cluster (Linux, root)
	@ci/test real

oldest: $(VENV)/.ready ## Core scenarios on the oldest Kubernetes, on a real local cluster
	@ci/test oldest

kind: $(VENV)/.ready ## Scenarios on a real kind cluster, Docker and image included (Debian, root)
	@ci/test kind

allure: ## The Allure 3 report of the last `make conformance` (Node.js, npm)
	@ci/allure/build $(OUT)/conformance/allure-results $(OUT)/allure

matrix: $(VENV)/.ready ## Every scenario on every Kubernetes minor; and mixture of two
	ci/matrix
	ci/matrix --skew

bench: $(VENV)/.ready ## Measure the suite, the driver, the allocator and CEL
	$(BIN)/python -m benchmarks.start
	$(BIN)/python -m benchmarks.suite
	$(BIN)/python -m benchmarks.driver
	$(BIN)/python -m benchmarks.allocator
	$(BIN)/python -m benchmarks.cel
	$(BIN)/python -m benchmarks.scale --against 1.36

# Where the machine has no Go of its own, it is there.
fuzz: export PATH := $(PATH):$(CURDIR)/$(BIN)
N ?= 2000
MINOR ?= 1.37
fuzz: $(VENV)/.ready ## N random problems, expressions and CDI folders, ours against upstream's (N=2000 MINOR=1.37)
	ci/fuzz --kubernetes $(MINOR) -n $(N)
	ci/fuzz-cel $(N) "" $(MINOR)
	ci/fuzz-cdi $(N)

allocators: export PATH := $(PATH):$(CURDIR)/$(BIN)
allocators: $(VENV)/.ready ## Others' allocators and upstream's, asked the same questions (COUNT=1000)
	ci/allocators/build karpenter kueue volcano
	for minor in 1.34 1.35 1.36 1.37 1.38; do ci/upstream/build $$minor allocate || exit 1; done
	$(BIN)/python -m ci.allocators.measure -n $(or $(COUNT),1000)

gpu-check: $(VENV)/.ready ## The driver on real GPUs, with and without a cluster (Linux, root, an NVIDIA GPU)
	ci/gpu/check
	ci/gpu/cluster $(OUT)/gpu

image: ## Build the driver's image as an archive (buildah, mmdebstrap; see docs/deploying.md)
	ci/deploy/build-image $(OUT)/nvml-dra-driver.tar

stubs: $(VENV)/.ready ## Generate the gRPC stubs of the kubelet APIs again
	$(BIN)/python -m kube.kubelet.generate

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group dev
	command -v cc >/dev/null || $(BIN)/python -m pip install --quiet --editable '.[compiler]'
	$(BIN)/python -c 'from localkube.gocommand import find_go; find_go()' 2>/dev/null || \
		$(BIN)/python -m pip install --quiet --editable '.[go]'
	touch $@

$(VENV)/.site: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --group site
	touch $@

clean: ## Remove what was made here (not the caches below ~/.cache)
	rm -rf $(OUT) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
