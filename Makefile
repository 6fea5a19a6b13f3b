# make demo: a fresh machine's environment, then the main job on the embedded corpus, then the report's path.
# make test: a fresh machine's environment, then the tests that a change must pass: 40 minutes on two cores.
# make golden: the numbers and decisions of tiny audits beside their record in tests/golden; make test has it, too.
# make golden-all BASE=COMMIT: the same of trainings, papers and planted models, exactly, beside those of another commit.
# make shapes: one case of each fast test near tensors, with their shapes checked: 15 minutes on two cores.
# make check: ruff, mypy, the share of names in the package that say nothing, and each room's budget (budgets.toml).
# make test-all: every test, the exhaustive ones too, before a release (CONTRIBUTING.md says when else).
# make package: the source archive and the wheel, and the wheel tried in an environment without what is optional.
# make docs: the examples in docstrings and pages are run, and the site is built to build/docs, with a live report in its
# gallery; any warning is an error.
# make page: the report's JavaScript, built from page/ into the package. It ships with the package: only who changes page/
# needs node. make check-page: its types, lint and tests, and whether the bundles in the package are what page/ makes.
# make test-browser: the report in a real Chromium, where there is one (CHROMIUM names it): 3 minutes on two cores.
# make calibration CORPORA='sst news20': the rates that come with heedmap, and docs/calibration.md; two hours on two
# cores. CORPORA: folders of data sets that are planted on beside drawn texts. make calibration-kinds: the rates of bags,
# of pictures and of transformers of pairs alone, which chose no threshold: all other numbers stay; 40 minutes on two
# cores. KINDS: only these, such as KINDS=pictures.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test golden golden-all shapes test-all check docs package page check-page test-browser calibration calibration-kinds clean

demo: $(VENV)/.run
	$(BIN)/heedmap audit --data reviews --out runs/demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not exhaustive and not browser" -n auto --dist worksteal

golden: $(VENV)/.dev
	$(BIN)/python -m pytest tests/golden -m "slow or not slow" -n auto --dist worksteal

golden-all: $(VENV)/.dev
	$(BIN)/python scripts/golden_record.py compare $(BASE)

shapes: $(VENV)/.dev
	HEEDMAP_SHAPES=1 PYTHONPATH=tests $(BIN)/python -m pytest -p shapes -n auto --dist worksteal

test-all: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not browser" -n auto --dist worksteal

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/vague_names.py 1
	$(BIN)/python scripts/budgets.py

docs: $(VENV)/.dev
	$(BIN)/python -m pytest -o addopts=--quiet --doctest-modules --doctest-glob='*.md' src/heedmap docs
	$(BIN)/sphinx-build --quiet --fresh-env --nitpicky --fail-on-warning --keep-going docs build/docs
	$(BIN)/heedmap audit --data reviews --instances 200 --out build/live
	cp build/live/report.html build/docs/gallery/live.html

package: $(VENV)/.dev
	rm -rf build/lib build/bdist.* dist
	$(BIN)/python -m build --quiet --no-isolation
	$(BIN)/twine check --strict dist/*
	$(BIN)/python scripts/try_wheel.py dist/*.whl

page: page/node_modules/.installed
	cd page && npm run --silent build

check-page: page/node_modules/.installed
	cd page && npm run --silent check

page/node_modules/.installed: page/package-lock.json
	cd page && npm ci --silent
	touch $@

test-browser: $(VENV)/.dev
	$(BIN)/python -m pytest -m browser tests

calibration: $(VENV)/.run
	$(BIN)/python scripts/calibrate_packaged.py runs/calibration $(CORPORA)
	cp runs/calibration/rates.json src/heedmap/experiments/rates.json
	cp runs/calibration/calibration.md docs/calibration.md
	cp runs/calibration/plants.parquet docs/calibration/plants.parquet

# torch first and by its exact version: a range would bring the newest build, and gigabytes of CUDA.
$(VENV)/.run: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet $$(grep '^torch==' constraints.txt)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.run
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[all,dev,docs]'
	touch $@

calibration-kinds: $(VENV)/.run
	$(BIN)/python scripts/calibrate_kinds.py runs/calibration-kinds $(KINDS)

clean:
	rm -rf $(VENV) page/node_modules build dist .mypy_cache .ruff_cache .pytest_cache
