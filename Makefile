# One file lists what can be done here; `make help` prints it.

SHELL := /bin/bash
.DEFAULT_GOAL := help

version ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
commit  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)

lockstep := bin/lockstep
ldflags  := -X github.com/lockstep-dev/lockstep/internal/cli/version.version=$(version) \
            -X github.com/lockstep-dev/lockstep/internal/cli/version.commit=$(commit)

# How long `make soak` kills at random, and how long it changes things without a
# pause. All writes of the story of test/crash take about a quarter of an hour more.
SOAK   ?= 10m
STEADY ?= 30m

##@ Look

.PHONY: help
help: ## Print this list
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## See it work: three real control planes, one ClusterSet, on this machine
	$(lockstep) demo share

##@ Build

# Not a file target: the go command knows better what has changed.
.PHONY: build
build: ## Build bin/lockstep
	go build -buildvcs=false -trimpath -ldflags '$(ldflags)' -o $(lockstep) ./cmd/lockstep

# etcd and the Kubernetes control plane, from source; takes minutes once.
# Progress is visible here and would not be from within a test.
.PHONY: kube
kube: build ## Build the control plane that lab, tests and demo run
	@$(lockstep) lab binaries >/dev/null

.PHONY: generate
generate: ## Make deep copies, CRDs and docs/rules.md anew
	go generate -tags generate .

.PHONY: clean
clean: ## Remove what was built here; the control plane stays in the user's cache
	rm -rf bin

##@ Check

# Nothing is taken from the test cache: most packages start real control
# planes, and a pass that was remembered says nothing about this machine.
.PHONY: test
test: kube ## Run all tests, against real control planes
	go test -count=1 -timeout=20m ./...

.PHONY: short
short: ## Run the tests that need no control plane
	go test -short ./...

.PHONY: race
race: kube ## Run all tests with the race detector
	go test -race -count=1 -timeout=40m ./...

.PHONY: soak
soak: kube ## Kill at random for SOAK (10m), at every write, and change without pause for STEADY (30m)
	LOCKSTEP_CHAOS_FOR=$(SOAK) LOCKSTEP_SOAK_FOR=$(STEADY) go test -count=1 -timeout=24h -v ./test/chaos
	LOCKSTEP_CRASH=all go test -count=1 -timeout=24h -v ./test/crash

.PHONY: bench
bench: kube ## Measure, and compare with the goals
	go run ./bench

.PHONY: lint
lint: ## Look for mistakes that compile
	@if command -v golangci-lint >/dev/null; then \
		golangci-lint run; \
	else \
		echo "golangci-lint is not installed; using gofmt and go vet"; \
		unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
		[[ -z "$$unformatted" ]] || { echo "not formatted: $$unformatted"; exit 1; }; \
		go vet ./...; \
	fi
