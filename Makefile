# The front door: short names for what meson, ninja and the scripts in tools/ do.

FUZZ_SECONDS ?= 60
EXECD_PORT ?= 44772

.PHONY: help deps build run demo check lint fmt fuzz bench guest run-execd clean

help:
	@echo 'make deps       install what is missing from the Debian packages'
	@echo 'make build      build the programs into build/ (release)'
	@echo 'make run        build, serve on 127.0.0.1:PORT (8080) and show a first sandbox'
	@echo 'make demo       the same once, leaving nothing behind'
	@echo 'make check      build in every way, then run all tests and checks'
	@echo 'make lint       format, layer, style, API and clang-tidy checks alone'
	@echo 'make fmt        format all C files in place'
	@echo 'make fuzz       fuzz each target for FUZZ_SECONDS (default $(FUZZ_SECONDS))'
	@echo 'make bench      measure execd, the server, images, egress and osb (release build), print the tables'
	@echo 'make guest      limits on a unified cgroup hierarchy, in an emulated machine'
	@echo 'make run-execd  start build/execd on 127.0.0.1:$(EXECD_PORT)'
	@echo 'make clean      remove all build directories'

deps:
	@tools/deps.sh all

build:
	@tools/deps.sh build
	@tools/build.sh

run: build
	@/usr/bin/python3 tools/run.py

demo: build
	@/usr/bin/python3 tools/run.py --once

check:
	@tools/check.sh

lint:
	@tools/deps.sh all
	@tools/lint.sh

fmt:
	@tools/format.sh

fuzz:
	@tools/deps.sh all
	@tools/fuzz.sh $(FUZZ_SECONDS)

bench: build
	@/usr/bin/python3 bench/execd.py
	@/usr/bin/python3 bench/code.py
	@/usr/bin/python3 bench/server.py
	@/usr/bin/python3 bench/image.py
	@tools/deps.sh bench
	@/usr/bin/python3 bench/proxy.py
	@/usr/bin/python3 bench/egress.py
	@/usr/bin/python3 bench/vault.py
	@/usr/bin/python3 bench/cli.py

guest: build
	@tools/deps.sh guest
	@/usr/bin/python3 tools/guest.py || [ $$? -eq 77 ]

run-execd: build
	@tools/run_execd.sh $(EXECD_PORT)

clean:
	rm -rf build build-check build-fuzz .cache
