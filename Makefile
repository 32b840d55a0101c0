# Everything that a developer or a new user runs. `make demo` shows the product, `make test` proves it.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
CARGO ?= cargo
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

# Real parts that the tests need: OpenSSH, what builds package repositories and root folders, what a Kubernetes control plane is
# built and certified with, and what the lab is made with.
TEST_PACKAGES := openssh-server openssh-client sudo lldpd createrepo-c rpm iproute2 gnupg apt-utils iputils-ping procps strace util-linux openssl ca-certificates python3-venv
LAB_PACKAGES := qemu-system-x86 qemu-utils mmdebstrap e2fsprogs kmod cpio busybox-static grub-pc-bin grub-common dpkg-dev gnupg apt-utils openssh-client util-linux uidmap

.PHONY: help
help: ## This list
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*##/\t/' | expand -t 16

.PHONY: tools
tools:
	@missing=; for tool in git cc $(CARGO); do command -v $$tool >/dev/null || missing="$$missing $$tool"; done; \
	if [ -n "$$missing" ]; then echo "missing:$$missing"; \
	  echo "  git, cc: sudo apt-get install -y git gcc make"; \
	  echo "  cargo:   rustup's stable toolchain, https://rustup.rs"; exit 1; fi
	@version=$$($(CARGO) --version | awk '{print $$2}'); \
	if [ "$$(printf '1.89.0\n%s\n' "$$version" | sort -V | head -1)" != 1.89.0 ]; then \
	  echo "cargo $$version is too old; railwright needs 1.89: rustup update stable"; exit 1; fi

.PHONY: build
build: tools ## The program: target/debug/railwright
	$(CARGO) build

.PHONY: demo
demo: tools ## Two bare virtual machines become an RDMA pair, end to end
	@PACKAGES="$(LAB_PACKAGES)" SUDO="$(SUDO)" CARGO="$(CARGO)" tests/demo/pair.sh

.PHONY: demo-kubernetes
demo-kubernetes: tools ## Two virtual machines as nodes of a real Kubernetes: one plan for hosts and cluster, RDMA from pod to pod
	@PACKAGES="$(LAB_PACKAGES) openssl python3-venv" SUDO="$(SUDO)" CARGO="$(CARGO)" tests/demo/kubernetes.sh

.PHONY: test
test: tools test-packages ## All tests with all rigs, format, lints; a missing rig is a failure
	@PACKAGES="$(TEST_PACKAGES) $(LAB_PACKAGES)" CARGO="$(CARGO)" tests/run.sh

.PHONY: check
check: tools ## Format, lints, unit tests and house rules: minutes, no rig
	$(CARGO) fmt --all --check
	$(CARGO) clippy --quiet --workspace --all-targets -- -D warnings
	INSTA_UPDATE=no $(CARGO) test --quiet --workspace --lib --bins
	INSTA_UPDATE=no $(CARGO) test --quiet --workspace --test plan --test tidy

.PHONY: test-deep
test-deep: tools test-packages ## The long runs: 10,000 schedules of every law, 10,000 cases of every property, 20 kills on a machine, real operators
	@CARGO="$(CARGO)" tests/deep.sh

.PHONY: test-packages
test-packages:
	@tests/packages.sh "$(SUDO)" $(TEST_PACKAGES) $(LAB_PACKAGES)

.PHONY: deny
deny: tools ## Licences, sources, doubled versions and known vulnerabilities of what we build on, by cargo-deny (deny.toml)
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny --locked check $(DENY)

.PHONY: third-party
third-party: tools ## THIRD-PARTY: what the program holds of others, with the licences, by cargo-about (about.toml)
	@command -v cargo-about >/dev/null || $(CARGO) install --locked cargo-about --features cli
	$(CARGO) fetch --locked
	$(CARGO) about generate --locked --offline --fail about.hbs --output-file THIRD-PARTY

.PHONY: bench
bench: tools ## Measurements against other readers, in the same run
	$(CARGO) bench --bench spec_load
	$(CARGO) bench --bench fleet
	$(CARGO) bench --bench observe_host
	$(CARGO) bench --bench job_log
	$(CARGO) bench --bench kubernetes
	$(CARGO) bench --bench peers
