# Every command a person or CI runs. `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --warn-undefined-variables --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Compiled crates outlive a clone, so that only the first one on a machine waits for them.
XDG_CACHE_HOME ?=
PROGRAM ?=
SKILLET_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/skillet
CARGO_TARGET_DIR ?= $(SKILLET_CACHE)/target
export SKILLET_CACHE CARGO_TARGET_DIR

CLUSTER := e2e/cluster/cluster.sh
LANES := e2e/lanes.sh

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  \033[1m%-18s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Run

.PHONY: demo
demo: deploy ## Bring up a cluster with Skillet, run every example, a SKILL.md and skills that reach a host, and let an agent talk to a scripted model
	@PATH="$(CURDIR)/target/bin:$$PATH" e2e/in-cluster.sh target/bin/skillet-demo

.PHONY: cluster
cluster: ## Give a Kubernetes cluster: yours (KUBECONFIG), kind, or one node built here
	@$(CLUSTER) up

.PHONY: cluster-down
cluster-down: ## Remove the local node and everything of it
	@$(CLUSTER) down

.PHONY: deploy
deploy: sources ## Install or upgrade Skillet by its chart in the cluster; its programs are of SKILLET_PROFILE (dev)
	@e2e/deploy.sh build
	@e2e/deploy.sh up

.PHONY: undeploy
undeploy: ## Uninstall Skillet; skills and executions stay
	@e2e/deploy.sh down

##@ Build

.PHONY: build
build: sources ## Build every crate for development
	cargo build --workspace

# Before anything is compiled in the folder that clones share.
.PHONY: sources
sources:
	@e2e/share-target-dir.sh

.PHONY: images
images: sources ## Build the six images of a release into target/images
	@SKILLET_PROFILE=release sandbox-images/build.sh

.PHONY: cli
cli: sources ## Build kubectl-skill into target/bin, by SKILLET_PROFILE (dev)
	@e2e/build.sh programs

.PHONY: crds
crds: sources ## Generate crds/ from operator/api
	SKILLET_WRITE_CRDS=1 cargo test -q --workspace --exclude skillet-runner --test crds

.PHONY: golden
golden: sources ## Write the golden files of sandbox manifests and the chart
	SKILLET_WRITE_GOLDEN=1 cargo test -q -p skillet-controller manifest
	charts/test.sh --update

.PHONY: fmt
fmt: ## Format the code
	cargo fmt --all

##@ Test

.PHONY: test
test: ## Run every lane
	@$(LANES)

.PHONY: lint
lint: ## Formatting, clippy, links of doc comments, shellcheck, commit subjects
	@$(LANES) lint

.PHONY: deny
deny: ## Licences, sources and bans of dependencies
	@$(LANES) deny

.PHONY: advisories
advisories: ## Known vulnerabilities of dependencies; needs the network's advisory database, and no other target runs it
	@e2e/lanes/deny.sh advisories

.PHONY: test-unit
test-unit: ## Decisions, golden files, CRD drift, house rules
	@$(LANES) unit

.PHONY: test-journeys
test-journeys: ## Conversations of several turns over every SDK, against the strict provider
	@$(LANES) journeys

.PHONY: test-sandbox
test-sandbox: ## Runner confinement and attacks under runc
	@$(LANES) sandbox

.PHONY: test-images
test-images: ## What is in the images
	@$(LANES) images

.PHONY: test-chart
test-chart: ## Rendered chart against golden files
	@$(LANES) chart

.PHONY: test-integration
test-integration: ## A real API server: CEL, rights, ownership
	@$(LANES) integration

.PHONY: test-e2e
test-e2e: ## A whole node: journeys, limits, faults
	@$(LANES) e2e

.PHONY: soak
soak: sources ## The long forms of tests, for hours, or one of them: make soak PROGRAM=kills; writes docs/soak.md
	@e2e/soak.sh $(PROGRAM)

.PHONY: times
times: ## Write the table of lanes into CONTRIBUTING.md, from the runs of this machine
	@e2e/times.sh

# Figures are of releases.
bench bench-egress: export SKILLET_PROFILE := release

.PHONY: bench
bench: deploy ## Measure; writes target/bench.json
	@e2e/in-cluster.sh cargo run --release -q -p skillet-bench

.PHONY: bench-gateway
bench-gateway: sources ## Measure the gateway, a skill call where a cluster answers; adds to target/bench.json
	@cargo run --release -q -p skillet-bench -- --only offer,gateway
	@if e2e/in-cluster.sh kubectl version --request-timeout 10s >/dev/null 2>&1; then \
	  e2e/in-cluster.sh cargo run --release -q -p skillet-bench -- --only call; \
	else echo "call is not measured: no cluster answers (make deploy)"; fi

.PHONY: bench-egress
bench-egress: deploy ## Measure connections of sandboxes and HTTP skills; adds to target/bench.json
	@e2e/in-cluster.sh cargo run --release -q -p skillet-bench -- --only egress-requests,egress-throughput,egress-idle,http-skills,egress-memory

.PHONY: clean
clean: ## Remove what was built; the cluster's programs stay
	cargo clean
	rm -rf target
