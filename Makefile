# Thin on purpose: each target calls one script or one SwiftPM command. `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help demo build test lint test-bluez test-brokers test-homeassistant test-web test-debian13 deb app \
  release test-clients test-deb test-release bench scale soak fuzz sanitize clean

help: ## list these targets
	@sed -n 's/^\([a-z0-9-]*\): ## /\1|/p' Makefile | while IFS='|' read -r target what; do printf '  make %-18s %s\n' "$$target" "$$what"; done

demo: ## see it work without any hardware: 3 virtual micro:bits, a private broker, the gateway
	@scripts/demo

build: ## build the release programs
	@scripts/build

test: ## lint, build, unit and integration tests
	@scripts/test

lint: ## check the Swift sources' format
	@swift format lint --strict --parallel --recursive Sources Tests Package.swift

test-bluez: ## the gateway against a real bluetoothd with virtual controllers
	@scripts/build && GATEWAY=$$(swift build -c release --show-bin-path)/microbit-gateway Tests/RealBlueZ/run

test-brokers: ## the gateway with another broker: Debian's ejabberd, alone and as a cluster
	@scripts/test-brokers $(TESTS)

test-homeassistant: ## the gateway together with a real Home Assistant (needs Python 3.13)
	@scripts/test-homeassistant

test-web: ## the page in Debian's Chromium, the metrics in its Prometheus
	@scripts/test-web

test-clients: ## the simulator with other clients of micro:bits: KaspersMicrobit, bluezero, busctl
	@scripts/test-clients

test-debian13: ## build and test with Debian 13's own Swift, in a root of its own (needs root or sudo)
	@scripts/test-debian13

deb: ## build the Debian packages for amd64 and arm64 (ARCH=… for one of them), into .build/deb
	@scripts/deb $(ARCH)

app: ## assemble the app for Home Assistant OS from the packages, in .build/app
	@scripts/app

release: ## all that a release has, into .build/dist (KEY=… signs the apt repository, ADDRESS=… is its place)
	@scripts/release

test-deb: ## install, set up in a browser, break, repair, upgrade, remove them in clean Debian 12 and 13 roots (ONLY=walk, app …)
	@scripts/test-deb $(ONLY)

test-release: ## whether two builds in two folders make the same packages (ARCH=…); a bill of materials without gaps
	@scripts/test-release $(ARCH)

bench: ## measure CPU, latency, memory and throughput, beside a C program
	@scripts/bench

scale: ## measure 40 gateways with 2,000 micro:bits at one broker
	@scripts/scale

soak: ## 100 virtual micro:bits and random faults for 20 minutes
	@scripts/soak

fuzz: ## search for inputs that the parsers cannot cope with, for an hour (SECONDS=… NAMES=…)
	@scripts/fuzz $(SECONDS) $(NAMES)

sanitize: ## all tests with the thread and the address sanitizer
	@scripts/sanitize

clean: ## remove what was built here (not the caches outside the tree)
	@swift package clean
