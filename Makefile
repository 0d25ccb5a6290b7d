# pagelab: `make run` sets up what is missing, builds, and measures this machine;
# `make test` sets up and passes the tests. `make help` lists the rest.

CARGO ?= cargo
PROFILE ?= release
# pagelab, and the libraries that traced and paged programs load.
PROGRAMS = -p pagelab -p pagelab-tracer -p pagelab-preload

.PHONY: help run build test test-setup setup lint prose book torture fuzz bench goals accuracy dist packages release aarch64 install clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what a build needs (a C compiler; Rust must be there)
	@scripts/setup build

test-setup: ## install what the tests need besides (Chromium, sqlite3, QEMU, two kernels, Prometheus, readers of exports)
	@scripts/setup test
	@scripts/kernels
	@scripts/prometheus
	@scripts/readers

build: setup ## the optimised binary, target/release/pagelab, and the libraries that other programs load beside it
	$(CARGO) build --release --locked $(PROGRAMS)

run: setup ## the standard suite on this machine: a verdict and report.html
	$(CARGO) build --profile quick --locked $(PROGRAMS)
	target/quick/pagelab run

test: test-setup ## every test
	@CARGO=$(CARGO) scripts/tests

lint: ## formatting, clippy, rustdoc, the prose rules, the dependencies' licences and advisories
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --workspace --locked
	@scripts/setup prose
	@scripts/prose
	@scripts/deny

prose: ## README, documentation and help against the rules in docs/styles
	@scripts/setup prose
	@scripts/prose

book: ## the documentation as HTML, in target/book
	@scripts/setup book
	@PATH="target/tools/bin:$$PATH" mdbook build docs

torture: build ## half an hour of kills, full disks and spoiled files against the release build (root; TORTURE_SECONDS)
	$(CARGO) run --release --locked -p pagelab-testing --bin torture

fuzz: ## every reader of files against spoiled ones, FUZZ_SECONDS each (60)
	FUZZ_SECONDS=$${FUZZ_SECONDS:-60} $(CARGO) test --workspace --locked --test fuzz -- --nocapture
	FUZZ_SECONDS=$${FUZZ_SECONDS:-60} $(CARGO) test --workspace --locked --bin pagelab no_words -- --nocapture

bench: setup ## the benchmarks (method and figures: docs/src/evidence/performance.md)
	$(CARGO) bench --workspace --locked

goals: build ## the goals of replay and curves, in docs/src/evidence/performance.md (python3; GOALS="--fetch" beside libCacheSim, or its parts)
	scripts/goals $(GOALS)

accuracy: build ## the live figures beside independent instruments, in docs/src/evidence/accuracy.md (root, python3; PARTS=… for some)
	@scripts/setup accuracy
	scripts/accuracy $(PARTS)

dist: setup ## a static binary for any x86-64 Linux, man pages and completions, in a folder of dist/
	@scripts/dist

packages: setup ## what is given away, in dist/: tarballs, .deb and .rpm for x86-64 and aarch64, checksums (TARGETS=… for one)
	@scripts/packages $(TARGETS)

release: setup ## the same from the tag of this commit, with its section of CHANGELOG.md
	@scripts/release

# The tests need one that is built quickly: its guest runs in an emulator anyway.
UNOPTIMISED = --config profile.dev.opt-level=0 --config profile.dev.debug=false

aarch64: ## an arm64 kernel image, a static binary for that processor, which its guests begin with (PROFILE=dev for the tests), and a check of the libraries
	@scripts/kernels arm64
	RUSTFLAGS="-C target-feature=+crt-static" scripts/cross aarch64-unknown-linux-gnu \
	$(CARGO) build --profile $(PROFILE) $(if $(filter dev,$(PROFILE)),$(UNOPTIMISED)) --locked -p pagelab --target aarch64-unknown-linux-gnu
	scripts/cross aarch64-unknown-linux-gnu $(CARGO) check --locked -p pagelab-tracer -p pagelab-preload --target aarch64-unknown-linux-gnu

# Without PREFIX the places of one user: cargo's folder of programs, which is on the PATH, and ~/.local/share.
BINDIR = $(if $(PREFIX),$(PREFIX)/bin,$(or $(CARGO_HOME),$(HOME)/.cargo)/bin)
SHAREDIR = $(if $(PREFIX),$(PREFIX)/share,$(or $(XDG_DATA_HOME),$(HOME)/.local/share))
FISH = $(DESTDIR)$(SHAREDIR)/fish/vendor_completions.d

install: build ## pagelab, its manual pages and completions for this user, or below DESTDIR and PREFIX
	install -d "$(DESTDIR)$(BINDIR)" "$(DESTDIR)$(SHAREDIR)/bash-completion/completions" \
		"$(DESTDIR)$(SHAREDIR)/zsh/site-functions" "$(FISH)"
	install target/release/pagelab "$(DESTDIR)$(BINDIR)"
	install -m 644 target/release/libpagelab_tracer.so target/release/libpagelab_preload.so "$(DESTDIR)$(BINDIR)"
	target/release/pagelab man "$(DESTDIR)$(SHAREDIR)/man/man1"
	target/release/pagelab completions bash >"$(DESTDIR)$(SHAREDIR)/bash-completion/completions/pagelab"
	target/release/pagelab completions zsh >"$(DESTDIR)$(SHAREDIR)/zsh/site-functions/_pagelab"
	target/release/pagelab completions fish >"$(FISH)/pagelab.fish"

clean: ## remove what was built
	$(CARGO) clean
	rm -rf dist
