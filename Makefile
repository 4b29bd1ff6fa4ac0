# Every target sets up what it needs in .venv by itself.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test lint types bench clean

run: .venv/ready  ## generate the built-in data, train EDP on it, print the scores
	$(BIN)/edp train local/hopper-medium-expert $(RUN)

test: .venv/ready-dev  ## the test suite
	$(BIN)/pytest

lint: .venv/ready-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: .venv/ready-dev
	$(BIN)/pyright

bench: .venv/ready  ## training steps against the machine's matmul rate (wants an idle machine)
	$(BIN)/python benchmarks/train_step.py --json results/train_step.json

# The locks pin every package to the version that was tested, most of all MuJoCo: its physics differ between versions.
.venv/ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

.venv/ready-dev: .venv/ready requirements-dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	touch $@

clean:
	rm -rf .venv build dist
