# One file lists what can be done here; `make help` prints it.

SHELL := /bin/bash
.DEFAULT_GOAL := help

version ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
commit  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
# When the source was made, in seconds since 1970: the image says so instead of
# when it was built, and is the same for everybody who builds this commit.
created ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

lockstep := bin/lockstep
ldflags  := -X github.com/lockstep-dev/lockstep/internal/cli/version.version=$(version) \
            -X github.com/lockstep-dev/lockstep/internal/cli/version.commit=$(commit)

# How long `make soak` kills at random, and how long it changes things without a
# pause. All writes of the story of test/crash take about a quarter of an hour more,
# in three ClusterSets side by side.
SOAK   ?= 10m
STEADY ?= 30m

# Which story `make demo` tells.
CHAPTER ?= share

# Where `make image` writes to, and `make push` reads from.
image := bin/image

# Where `make release` writes to.
release := bin/release

# Modules of their own that have tests.
tools := tools/charts tools/image

##@ Look

.PHONY: help
help: ## Print this list
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## See it work on this machine; CHAPTER=share, migrate or all
	$(lockstep) demo $(CHAPTER)

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

.PHONY: image
image: ## Build the container image for amd64 and arm64 into bin/image
	@go -C tools/image build -o $(CURDIR)/bin/imagemaker .
	@bin/imagemaker build --root . --out $(image) --version $(version) --commit $(commit) --created $(created)

.PHONY: push
push: ## Push what `make image` built: make push IMAGE=registry.example.com/lockstep:v1
	@[[ -n "$(IMAGE)" ]] || { echo "say where to: make push IMAGE=registry.example.com/lockstep:v1" >&2; exit 2; }
	@go -C tools/image build -o $(CURDIR)/bin/imagemaker .
	@bin/imagemaker push --out $(image) $(IMAGE)

.PHONY: release
release: ## Build the archives of the kubectl plugin, their sums and its krew manifest into bin/release
	@go -C tools/image build -o $(CURDIR)/bin/imagemaker .
	@bin/imagemaker release --root . --out $(release) --version $(version) --commit $(commit) --created $(created)

.PHONY: generate
generate: ## Make deep copies, CRDs, charts and docs/rules.md anew
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
	@for module in $(tools); do (set -x; go -C $$module test -count=1 -timeout=20m ./...) || exit 1; done

.PHONY: short
short: ## Run the tests that need no control plane
	go test -short ./...
	@for module in $(tools); do (set -x; go -C $$module test -short ./...) || exit 1; done

.PHONY: race
race: kube ## Run all tests with the race detector, which needs a C compiler
	go test -race -count=1 -timeout=40m ./...

.PHONY: soak
soak: kube ## Kill at random for SOAK (10m), at every write, and change without pause for STEADY (30m)
	LOCKSTEP_CHAOS_FOR=$(SOAK) LOCKSTEP_SOAK_FOR=$(STEADY) go test -count=1 -timeout=24h -v ./test/chaos
	LOCKSTEP_CRASH=all go test -count=1 -timeout=24h -v ./test/crash ./test/upgrade

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
	@for module in $(tools); do (set -x; go -C $$module vet ./...) || exit 1; done
