# Jackfield: `make demo` shows it, `make test` tests it, `make check` is what CI runs.
# It needs Python 3.11 or newer, pip and make. Everything is installed into .venv/ and .tools/ of this folder.

SHELL := /bin/bash
PYTHON ?= python3
# More than two cores have: many tests wait for a process or a server.
JOBS ?= 4
ARGS ?=
export PYTHON

BIN := .venv/bin
PROJECTS := core/pyproject.toml $(sort $(wildcard plugins/*/*/pyproject.toml))
SOURCES := $(addsuffix src,$(dir $(PROJECTS)))
INSTALL_INPUTS := pyproject.toml constraints.txt scripts/bootstrap.sh $(PROJECTS)

# Where pip looks for wheels besides its index, uv does, too. Where there is no such place, torch comes as its build for
# CPUs, which has a tenth of the size of the one with CUDA.
LINKS := $(or $(UV_FIND_LINKS),$(PIP_FIND_LINKS),$(shell $(PYTHON) -m pip config get global.find-links 2>/dev/null))
ifneq ($(LINKS),)
export UV_FIND_LINKS := $(LINKS)
else
export UV_TORCH_BACKEND ?= cpu
endif

# uv trusts the certificates that the system trusts, as pip does: here, and where tests start it. The second name is that of
# versions before 0.11.
export UV_SYSTEM_CERTS ?= 1
export UV_NATIVE_TLS ?= $(UV_SYSTEM_CERTS)

# Images for containers often forbid to write bytecode. Here a thousand processes would compile all that they import.
unexport PYTHONDONTWRITEBYTECODE

# Debian packages that tests need and that pip cannot bring. Tests that need one are skipped where it cannot be installed.
# chromium-headless-shell, which not every Debian has, halves the time of tests that otherwise use chromium.
SYSTEM_PACKAGES := bubblewrap chromium chromium-headless-shell fish tesseract-ocr zsh

.PHONY: help demo web test nightly check style bench quality attack real-servers mutants format release size \
	constraints known charts recordings docs clean system

help:
	@echo "make demo         answer a question about real documents, without a key (ARGS=… are handed on)"
	@echo "make web          talk to the demonstration's agent on its web page, without a key (ARGS=… are handed on)"
	@echo "make test         install what tests need and run all of them (ARGS=… are handed to pytest)"
	@echo "make nightly      make test in random order with the tests marked nightly and 2,000 new examples of each property, then make mutants"
	@echo "make check        what CI runs: make style, then make test"
	@echo "make style        check style, types and layers"
	@echo "make bench        measure beside the peers (ARGS=… are handed on)"
	@echo "make quality      measure how well searchers find, against recorded floors (ARGS=… are handed on)"
	@echo "make attack       attack it for four minutes: tried, held, broke (ARGS=… are handed on)"
	@echo "make real-servers test against servers and clients of others (ARGS: transformers, litellm, clients, proxies, llama-cpp; that one builds long)"
	@echo "make mutants      change the code in small ways and see whether tests notice (ARGS: an area, --count, --seed, --record)"
	@echo "make format       put the code into the house's form"
	@echo "make release      build, check and try every distribution, into dist/ (ARGS=… names some; --tag puts tags)"
	@echo "make size         measure the minimal install beside Qwen-Agent's (QWEN_PYTHON=…), into docs/"
	@echo "make constraints  move constraints.txt to the newest versions"
	@echo "make known        write anew what is made from the code: known plugins, pins, the core's API, public names"
	@echo "make charts       draw the recorded figures of benchmarks/figures.toml, into docs/"
	@echo "make recordings   record the terminal's pictures anew, into docs/"
	@echo "make docs         build the documentation, into site/"
	@echo "make clean        remove whatever these made"

# What `make demo` needs, and not torch, which is larger than all the rest.
.venv/.installed: $(INSTALL_INPUTS)
	@WITHOUT=plugins/llms/transformers scripts/bootstrap.sh
	@touch $@

.venv/.installed-dev: $(INSTALL_INPUTS)
	@scripts/bootstrap.sh --group dev
	@touch .venv/.installed $@

system:
	@missing=(); for package in $(SYSTEM_PACKAGES); do \
	  dpkg -s "$$package" >/dev/null 2>&1 || missing+=("$$package"); \
	done; \
	if [ $${#missing[@]} -gt 0 ]; then \
	  sudo=""; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	  $$sudo apt-get update -qq >/dev/null 2>&1; \
	  for package in "$${missing[@]}"; do \
	    $$sudo apt-get install -y -qq --no-install-recommends "$$package" >/dev/null 2>&1 \
	      || echo "make system: could not install $$package; the tests that need it are skipped"; \
	  done; \
	fi

web: .venv/.installed
	@$(BIN)/jackfield web $(ARGS)

demo: .venv/.installed
	@$(BIN)/python examples/documents-and-code/main.py $(ARGS)

test: system .venv/.installed-dev
	@$(BIN)/python -m pytest -q -n $(JOBS) $(ARGS)

nightly: system .venv/.installed-dev
	@HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest -q -n $(JOBS) -p randomly -p tests.support.stalls --timeout=1800 $(ARGS)
	@$(BIN)/python scripts/mutants.py --minutes 90

check: .venv/.installed-dev
	@TIMEFORMAT="style, types and layers: %0R s"; time $(MAKE) --no-print-directory style
	@$(MAKE) --no-print-directory test

style: .venv/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/ruff format --check --config docs/pages.toml
	$(BIN)/mypy $(SOURCES) core/tests/typed_programs.py attacks benchmarks quality --exclude /peer_
	$(BIN)/lint-imports

bench: .venv/.installed-dev
	@$(BIN)/python -m benchmarks $(ARGS)

# Threads of numpy wait for each other by spinning: on a busy machine they cost more than they save.
quality: .venv/.installed-dev
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m quality $(ARGS)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m quality.manual $(ARGS)
	@$(BIN)/python -m quality.held_out

attack: .venv/.installed-dev
	@$(BIN)/python -m attacks $(ARGS)

real-servers: .venv/.installed-dev
	@$(BIN)/python scripts/real_servers.py $(ARGS)

mutants: .venv/.installed-dev
	@$(BIN)/python scripts/mutants.py $(ARGS)

format: .venv/.installed-dev
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	$(BIN)/ruff format --config docs/pages.toml

release: .venv/.installed-dev
	@$(BIN)/python scripts/release.py $(ARGS)

size: .venv/.installed-dev
	@$(BIN)/python -m benchmarks.install_size $(ARGS)

constraints: .venv/.installed-dev
	scripts/constraints.sh

known: .venv/.installed-dev
	$(BIN)/python scripts/known_plugins.py
	$(BIN)/python scripts/api_index.py
	$(BIN)/python scripts/pins.py
	$(BIN)/python scripts/public_names.py

charts: .venv/.installed-dev
	@$(BIN)/python scripts/charts.py

recordings: .venv/.installed-dev
	@rm -f docs/assets/terminal/*.svg
	@HYPOTHESIS_PROFILE=nightly RECORD=1 $(BIN)/python -m pytest -q tests/test_gallery.py tests/test_recordings.py plugins/servers/web/tests/test_page.py $(ARGS)

docs: .venv/.installed-dev
	$(BIN)/python scripts/reference.py
	$(BIN)/zensical build --strict

clean:
	rm -rf .venv .tools dist dist-extension site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find core plugins tests scripts examples benchmarks attacks -name __pycache__ -type d -prune -exec rm -rf {} +
