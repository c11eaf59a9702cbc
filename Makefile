# Two commands for a newcomer: `make demo` and `make test`. Both make the environment they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
BUILT_FROM := pyproject.toml constraints.txt hatch_build.py src/warpline/native.py $(wildcard src/warpline/*/*.c src/warpline/sources/kineto/*.[ch])

.PHONY: browser page demo docs test check lint format bench score ranges write-ranges fuzz fuzz-native clean help

help:  ## what there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/'

$(VENV)/installed: $(BUILT_FROM)
	@echo "Installing warpline and what it needs into $(VENV): about a minute, once"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) --editable .
	@$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/developing: $(BUILT_FROM)
	@echo "Installing what the tests need into $(VENV), PyTorch among it: some minutes, once"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) --no-compile --editable '.[dev]' # Python compiles what it loads, which is a small part of all this
	@touch $(VENV)/installed $@

demo: $(VENV)/installed  ## diagnose the bundled trace of an H200
	$(BIN)/warpline demo
	@echo "To type the commands above: . $(BIN)/activate"

page/node_modules/installed: page/package-lock.json
	@if command -v npm >/dev/null; then cd page && npm ci --silent && touch node_modules/installed; else echo "no npm: the page's own tests are skipped"; fi

page: page/node_modules/installed $(VENV)/installed  ## build the page of `warpline report` into the package
	$(BIN)/python page/typescript.py
	cd page && npm run --silent check && npm run --silent build

browser:  ## install Chromium for the tests of the page, where that is possible
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get install -qq -y chromium >/dev/null; } || echo "no Chromium: the tests of the page in a browser are skipped"

test: $(VENV)/developing page/node_modules/installed browser  ## run the tests
	$(BIN)/python -m pytest -n auto --dist loadfile # what a file makes for its tests is made once

lint: $(VENV)/developing  ## ruff, mypy and import-linter
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test  ## everything that must hold before a commit: ruff, mypy, import-linter, pytest

format: $(VENV)/developing  ## format the code, sort imports and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/developing  ## build the docs site in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

bench: $(VENV)/developing  ## measure speed and memory; results go to benchmarks/results
	$(BIN)/python benchmarks/run.py

score: $(VENV)/developing  ## score the diagnosis on the planted faults
	$(BIN)/python -m faults.score

ranges: $(VENV)/developing  ## compute the constants of the ranges, and how often they hold
	$(BIN)/python -m faults.ranges

write-ranges: $(VENV)/developing  ## write those constants into the package, and their tables into docs/ranges.md
	$(BIN)/python -m faults.write_ranges

MINUTES ?= 10
JOBS ?= $(shell nproc)
fuzz: $(VENV)/developing  ## run every command on mutated profiles: make fuzz MINUTES=60 JOBS=8 SEED=7
	PYTHONPATH=.:tests/helpers $(BIN)/python -m tests.fuzz --minutes $(MINUTES) --jobs $(JOBS) $(if $(SEED),--seed $(SEED))

SCANNER := $(CURDIR)/src/warpline/sources/kineto/scan.c
fuzz-native: $(VENV)/developing  ## the compiled parts under sanitizers; with clang, the scanner under libFuzzer
	WARPLINE_FUZZ_ROUNDS=100000 $(BIN)/python -m pytest tests/fuzz/test_native.py tests/sources/test_scan_sanitized.py
	mkdir -p build/fuzz/corpus
	clang -std=c11 -g -O1 -DLIBFUZZER -DSCANNER='"$(SCANNER)"' -fsanitize=fuzzer,address,undefined \
	  -fno-sanitize-recover=all tests/sources/fuzz_scan.c -o build/fuzz/scan
	build/fuzz/scan build/fuzz/corpus -max_len=4096 -max_total_time=$$(( $(MINUTES) * 60 ))

clean:  ## remove the environment and what was built
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	rm -f src/warpline/sources/kineto/_scan.*so src/warpline/trace/_nest.*so src/warpline/replay/_simulate.*so
