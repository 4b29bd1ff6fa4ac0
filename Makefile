# Every target sets up what it needs in .venv by itself.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test test-quick test-faults lint types docs web check-wheel bench compare picture clean

run: .venv/ready  ## make the built-in data, train EDP on it, print the scores
	$(BIN)/edp train local/hopper-medium-expert --steps 15000

test: .venv/ready-dev  ## the test suite, and the branches of src that it does not reach
	$(BIN)/pytest --cov --cov-report=term:skip-covered

test-quick: .venv/ready-dev  ## mathematics and contracts in small (within two minutes on two cores)
	$(BIN)/pytest tests/test_networks.py tests/config tests/diffusion tests/policies tests/algorithms \
		--deselect tests/algorithms/test_contract.py

test-faults: .venv/ready-dev  ## many kills at random moments, much damage and malformed input (an hour or two)
	$(BIN)/python benchmarks/faults.py --kills 200 --damages 500 --fuzz 3000 --json results/faults.json
	EDP_KILLS=25 EDP_DAMAGES=25 $(BIN)/pytest -n0 tests/runs/test_checkpoints.py tests/runs/test_trust.py tests/training/test_resume.py tests/training/test_failures.py tests/training/test_removed.py

lint: .venv/ready-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-cache

types: .venv/ready-dev
	$(BIN)/pyright
	$(BIN)/pyright -p pyright-strict.json

docs: .venv/ready-dev  ## the documentation site, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

web: build/heating-trained | .venv/ready-dev  ## the page of examples/web with a policy for it, in build/web (needs npm)
	$(BIN)/python examples/web/build_page.py build/heating build/web

build/heating-trained: | .venv/ready-dev
	mkdir -p build
	rm -rf build/heating
	$(BIN)/python examples/heating/logs.py --out build/heating.csv --overwrite
	$(BIN)/edp train build/heating.csv --columns examples/heating/columns.toml --hidden 128,128 --critic-hidden 128,128 \
		--steps 5000 --eval-every 5000 --out build/heating
	touch $@

check-wheel:  ## install the wheel with the newest versions that pyproject.toml allows, and use it (some minutes)
	$(PYTHON) scripts/check_wheel.py

bench: .venv/ready  ## training, evaluation and data against the machine's own rates (wants an idle machine)
	$(BIN)/edp bench --json results/bench.json --picture docs/bench.png --overwrite
	$(BIN)/python benchmarks/train_step.py --json results/train_step.json
	$(BIN)/python benchmarks/evaluate.py --json results/evaluate.json
	$(BIN)/python benchmarks/checkpoint.py --json results/checkpoint.json
	$(BIN)/python benchmarks/act.py --json results/act.json
	$(BIN)/python benchmarks/data.py --json results/data.json
	$(BIN)/python benchmarks/startup.py --json results/startup.json
	$(BIN)/python benchmarks/memory.py --json results/memory.json
	$(BIN)/python scripts/fill_docs.py

compare: .venv/ready  ## every algorithm with two policies on the built-in data (about 90 minutes)
	$(BIN)/python benchmarks/compare.py --json results/compare.json

picture: .venv/ready-dev  ## the bandit of the README
	$(BIN)/python examples/bandit.py --out docs/bandit.png

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
