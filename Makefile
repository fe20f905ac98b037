# Everything a newcomer types. `make help` lists it.

VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

.DEFAULT_GOAL := help
.PHONY: help setup demo tour test judges test-connect test-cluster check format bench nightly docs dist test-dist lock clean

help: ## list these commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY) ## make .venv with everything pinned in requirements.lock

$(READY): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Lakebed needs Python 3.11 or newer: install it, or run make PYTHON=/path/to/python"; exit 1; }
	@echo "setting up $(VENV) (once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY) ## the main job: a live PostgreSQL into the lake, streams behind it, compared row by row at the end; LAKE=my_lake keeps it
	@$(BIN)/python examples/shop.py $(LAKE)

tour: $(READY) ## the tables alone in a minute: write, upsert, travel in time, evolve, SQL on Spark
	@$(BIN)/python examples/tour.py

test: judges ## all tests but the nightly ones
	@$(BIN)/python -m pytest -n $$(( $$(nproc 2>/dev/null || echo 2) + 1 )) --dist worksteal

judges: $(READY) ## other implementations of Paimon, and Kafka, which tests compare with and use
	@$(BIN)/python -m tests.compat.judges

test-connect: $(READY) ## the tests on Spark once more, on a local Spark Connect server
	@LAKEBED_TEST_CONNECT=1 $(BIN)/python -m pytest tests/spark tests/cdc/pipeline/test_on_spark.py tests/cdc/pipeline/test_postgres_workload.py tests/cdc/mysql/test_spark.py

test-cluster: $(READY) ## tables, streams, CDC and kills on a Spark cluster of two workers with the lake in an S3 server
	@$(BIN)/python -m pytest -m "nightly or not nightly" tests/cluster

check: $(READY) ## formatter, linter, types
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet . && $(BIN)/mypy --no-error-summary && echo "check: all good"

format: $(READY) ## let the formatter and the linter mend what they can
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

bench: $(READY) ## benchmarks against the peers (minutes)
	@for b in append_table bucket_hash metadata keyed_write crossings merge_read compaction lookup_changelog views memory lazy_outputs deletion_vectors dynamic_buckets spark_read spark_upsert stream_core stream_latency stream_thousand cdc kafka_messages continuous metrics_cost why; do echo "== $$b"; $(BIN)/python -m benchmarks.$$b || exit 1; done

nightly: $(READY) ## the long random runs, the unit tests with many more examples, and those with Java on its newest release
	@$(BIN)/python -m pytest -n 2 -m nightly
	@$(BIN)/python -m pytest -n 2 tests/unit --hypothesis-profile thorough
	@LAKEBED_JAVA_JUDGE=java2 $(BIN)/python -m pytest -n 2 tests/compat -k java

docs: $(READY) ## write the generated reference pages and pictures again
	@$(BIN)/python -m lakebed.options > docs/reference/options.md
	@$(BIN)/python -m lakebed.definition.statement_rules > docs/reference/statements.md
	@$(BIN)/python -m lakebed.schema > docs/reference/changes.md
	@$(BIN)/python -m docs.reference.python_page > docs/reference/python.md
	@$(BIN)/python -m lakebed.metrics > docs/reference/metrics.md
	@$(BIN)/python -m docs.reference.tpch_page > docs/reference/tpch.md
	@$(BIN)/python -m docs.pictures

dist: $(READY) ## the wheel and the sdist, in dist/
	@rm -rf dist && $(BIN)/python -m hatchling build -d dist

test-dist: dist ## what is in them, and the README run from the wheel in empty environments, with each extra
	@LAKEBED_DIST=dist $(BIN)/python -m pytest -m "nightly or not nightly" tests/package

lock: $(READY) ## pin the newest versions that pyproject.toml allows
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --upgrade \
		--no-header --all-extras --group dev pyproject.toml --output-file requirements.lock

clean: ## remove what make has made
	@rm -rf $(VENV) .oracles dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
