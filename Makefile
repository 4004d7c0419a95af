# Penstock. `make help` lists the targets; `make demo` and `make test` need nothing installed but Python 3.11+, a C++20
# compiler and make.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PY     := $(BIN)/python
NATIVE := native/build.sh
GTEST  := tools/debian_packages.sh libgtest-dev=include/gtest/gtest.h
SOURCES := $(shell find native/src native/bindings -name '*.cpp' -o -name '*.hpp') CMakeLists.txt native/build.sh
PYTEST := $(PY) -m pytest -n 2 --dist loadgroup

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-cluster up test test-python test-native test-rdma test-spark test-helm test-k8s test-tsan test-long test-long-spark lint tidy format bench docs wheel clean

help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

# A stamp per step, so that a second call does only what changed.
$(VENV)/.tools: pyproject.toml tools/requirements.py
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(PY) tools/requirements.py > $(VENV)/requirements.txt
	$(PY) -m pip install --quiet --disable-pip-version-check -r $(VENV)/requirements.txt
	$(PY) tools/requirements.py --link
	@touch $@

$(VENV)/.dev: $(VENV)/.tools
	$(PY) tools/requirements.py dev cluster protobuf > $(VENV)/requirements-dev.txt
	$(PY) -m pip install --quiet --disable-pip-version-check -r $(VENV)/requirements-dev.txt
	@touch $@

$(VENV)/.native: $(VENV)/.tools $(SOURCES)
	PYTHON=$(PY) $(NATIVE) module
	@touch $@

setup: $(VENV)/.native ## Virtual environment and native module

demo: setup ## Standing queries over real city sensors, live (SECONDS=20)
	$(BIN)/penstock demo --seconds $(or $(SECONDS),20)

demo-cluster: setup $(VENV)/.dev $(if $(filter spark,$(ADAPTOR)),$(VENV)/.spark) ## A cluster on a real broker, its processes killed, every result checked (ADAPTOR=spark SEED=1)
	$(BIN)/penstock demo-cluster --adaptor $(or $(ADAPTOR),plain) $(if $(SEED),--seed $(SEED))

up: setup $(VENV)/.dev ## A cluster on this machine with a Kafka broker, in ./cluster; Ctrl-C stops it
	$(BIN)/penstock up ./cluster

test: test-native test-python ## Everything that must pass, native tests under ASan/UBSan included

test-python: setup $(VENV)/.dev
	$(PYTEST) -m "not long and not spark and not helm"

test-native: $(VENV)/.dev
	$(GTEST)
	PYTHON=$(PY) $(NATIVE) asan

test-rdma: setup $(VENV)/.dev ## Data plane and stores over RDMA: on a device, or in a virtual machine with soft-RoCE
	$(GTEST)
	PYTHON=$(PY) tools/test_rdma.sh

$(VENV)/.spark: $(VENV)/.dev
	$(PY) tools/requirements.py spark > $(VENV)/requirements-spark.txt
	$(PY) -m pip install --quiet --disable-pip-version-check -r $(VENV)/requirements-spark.txt
	@touch $@

test-spark: setup $(VENV)/.spark ## Bulk load and stream adaptor on a real Spark, against the plain ones, and killed
	$(PY) -m pytest -m "spark and not long"

test-helm: setup $(VENV)/.dev ## The Helm chart: lint, schema, rendered resources; builds Helm where there is none
	PYTHON=$(PY) tools/helm.sh version
	$(PY) -m pytest -n 0 -m helm tests/helm

test-k8s: setup $(VENV)/.dev ## The Helm chart on a real Kubernetes of one node: installed, killed, scaled, upgraded (root; KUBE_SH=kube.sh)
	PYTHONPATH=.:libs $(PY) -m tools.kubernetes $(if $(KEEP),--keep)

test-long-spark: setup $(VENV)/.spark ## The same with ten million triples
	$(PY) -m pytest -m "spark and long"

test-tsan: $(VENV)/.dev ## Native tests that meet threads, under TSan
	$(GTEST)
	PYTHON=$(PY) $(NATIVE) tsan

test-long: setup $(VENV)/.dev test-tsan test-long-spark ## Thousands of random cases, fuzzing, minutes of torn-read checks
	PENSTOCK_LONG=1 PYTHON=$(PY) $(NATIVE) test 'store_(compaction|replace)'
	$(PY) -m pytest -m "long and not spark"
	tools/fuzz.sh

lint: setup $(VENV)/.dev ## ruff, mypy --strict, stubtest, import-linter, clang-format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=libs $(BIN)/stubtest penstock.core._native --concise --ignore-disjoint-bases --allowlist tools/stubtest_allowlist.txt --ignore-unused-allowlist
	PYTHONPATH=libs $(BIN)/lint-imports --no-logo
	find native \( -name '*.cpp' -o -name '*.hpp' \) -print0 | xargs -0 $(BIN)/clang-format --dry-run -Werror

tidy: $(VENV)/.dev ## clang-tidy over the native sources (minutes)
	PYTHON=$(PY) tools/clang_tidy.sh

format: $(VENV)/.dev ## Rewrite sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	find native \( -name '*.cpp' -o -name '*.hpp' \) -print0 | xargs -0 $(BIN)/clang-format -i

$(VENV)/.bench: $(VENV)/.dev
	$(PY) tools/requirements.py bench > $(VENV)/requirements-bench.txt
	$(PY) -m pip install --quiet --disable-pip-version-check -r $(VENV)/requirements-bench.txt
	@touch $@

bench: setup $(VENV)/.bench $(VENV)/.spark ## All benchmarks; writes docs/measurements (half an hour; BENCH=lsbench: one, nothing written)
	tools/debian_packages.sh libbenchmark-dev=include/benchmark/benchmark.h
	PYTHON=$(PY) $(PY) -m benchmarks $(BENCH)

$(VENV)/.docs: $(VENV)/.dev
	$(PY) tools/requirements.py docs > $(VENV)/requirements-docs.txt
	$(PY) -m pip install --quiet --disable-pip-version-check -r $(VENV)/requirements-docs.txt
	@touch $@

docs: setup $(VENV)/.docs ## The documentation site, in build/site; warnings are errors
	tools/debian_packages.sh graphviz=bin/dot
	DISABLE_MKDOCS_2_WARNING=true NO_MKDOCS_2_WARNING=1 PYTHONPATH=. $(BIN)/mkdocs build

wheel: $(VENV)/.tools ## A wheel in dist/
	$(PY) -m pip wheel --quiet --no-deps --wheel-dir dist .

clean: ## Remove what make built
	rm -rf $(VENV) build dist libs/penstock/core/_native*.so
