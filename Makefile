# Orrery: two commands for users (make up, make test); `make help` lists all.
SHELL   := /bin/bash
GO      := packaging/go
VERSION := $(shell packaging/version)
PREFIX  ?= /usr/local
DESTDIR ?=
SITE    ?= examples/toykat
GROUP   ?= orrery

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22

.PHONY: up
up: packages bin/orrery bin/orrery-guest ## bring up SITE (default: examples/toykat)
	bin/orrery -C $(SITE) up
	@echo "  (the program is bin/orrery; make install copies it to $(PREFIX)/bin)"

.PHONY: down
down: bin/orrery ## destroy the nodes of SITE
	bin/orrery -C $(SITE) down

.PHONY: packages
packages: ## install the packages that nodes need on this host
	@packaging/packages run

.PHONY: vm-packages
vm-packages: packages ## install the packages that virtual machines also need
	@packaging/packages vm

.PHONY: test-packages
test-packages: packages
	@packaging/packages test

GO_FILES := $(shell find cmd internal -name '*.go' -o -name '*.toml' -path '*/control/draft/*') go.mod go.sum
# What the programs show of the documentation, and write by orrery init --example.
EMBEDDED := $(wildcard docs/*.go) docs/site-file.md docs/roles.md docs/commands.md $(shell find examples roles -type f -not -path '*/__pycache__/*')
bin/orrery: $(GO_FILES) $(EMBEDDED) ## build the program
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X orrery/internal/cli.Version=$(VERSION)' -o $@ ./cmd/orrery

# Only of the lab: orrery itself is what every host of a site has a copy of.
bin/orrery-lab: $(GO_FILES) $(EMBEDDED) ## build the program behind orrery lab
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X orrery/internal/cli.Version=$(VERSION)' -o $@ ./cmd/orrery-lab

# Static, as it runs before anything else is there. Of the same sources it is always the same, so that what it is packed into is made once.
bin/orrery-guest: $(GO_FILES) ## build the program that virtual machines boot with
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '-s -w -buildid=' -o $@ ./cmd/orrery-guest

# A static program, so that it runs in every place as it is.
bin/orrery-micro: $(wildcard cmd/orrery-micro/*.c cmd/orrery-micro/*.h) ## build the program that measures single operations of the kernel, for the lab
	@packaging/packages build
	@mkdir -p bin
	$(CC) -std=c11 -O2 -Wall -Wextra -Werror -static -o $@ $(filter %.c,$^)

.PHONY: lab
lab: packages bin/orrery bin/orrery-lab bin/orrery-micro bin/orrery-guest ## measure what a container costs on this host
	bin/orrery lab run

.PHONY: test
test: test-packages bin/orrery bin/orrery-lab bin/orrery-micro bin/orrery-guest ## everything: style, unit and integration tests (as root)
	-bench/lab/spead/install
	$(MAKE) lint
	@mkdir -p build
	@# The longest package first, so that the others are tested beside it; make lint has vetted all of them. Without
	@# symbols (-s) each of 170 programs is linked in half the time.
	ORRERY_INTEGRATION=1 packaging/gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg --jsonfile build/test.json -- \
	  -count=1 -vet=off -ldflags=-s -p 3 -parallel 5 -timeout 90m ./test ./...

.PHONY: mutate
mutate: ## find mutations of a package that its hermetic tests miss: make mutate PKG=./internal/plan N=40
	$(GO) run ./test/mutate -n $${N:-40} -seed $${SEED:-1} -tests "$${TESTS:-}" $(PKG)

.PHONY: draw
draw: ## print thirty texts drawn at random, to be read against the rules for language: make draw OF=comments|messages|sentences SEED=7
	@$(GO) run ./test/draw -seed $${SEED:-1} $(OF)

.PHONY: test-race
test-race: ## run concurrent operations in one process, under the race detector
	CGO_ENABLED=1 $(GO) test -race -count=1 -timeout 30m -run '^TestTwoAtOnce$$' ./internal/control

.PHONY: test-chaos
test-chaos: test-packages bin/orrery-micro bin/orrery-guest ## run random verbs with kills, full disks and other faults: 200 new histories (make test: the same 30 each time), 300,000 rows, many more kills
	ORRERY_INTEGRATION=1 ORRERY_CHAOS_RUNS=$${ORRERY_CHAOS_RUNS:-200} \
	  $(GO) test -count=1 -timeout 90m -v -run '^TestChaos$$' ./test
	ORRERY_INTEGRATION=1 ORRERY_FARCHAOS_RUNS=$${ORRERY_FARCHAOS_RUNS:-20} \
	  $(GO) test -count=1 -timeout 90m -v -run '^TestFarChaos$$' ./test
	ORRERY_INTEGRATION=1 ORRERY_ACKED_ROWS=$${ORRERY_ACKED_ROWS:-300000} \
	  $(GO) test -count=1 -timeout 90m -v -run '^TestAcknowledged$$' ./test
	ORRERY_INTEGRATION=1 ORRERY_TEST_LONG=1 \
	  $(GO) test -count=1 -p 1 -timeout 30m -v -run '^Test(SwitchKill|SwitchHistory|KilledRemount)$$' ./test ./internal/engine/kvm

.PHONY: test-cloud
test-cloud: test-packages bin/orrery bin/orrery-guest ## test a cloud disk as a node: built here, booted by UEFI, configured over SSH with a role that installs a package
	ORRERY_INTEGRATION=1 $(GO) test -count=1 -tags cloud -timeout 60m -v -run '^TestCloud$$' ./test

METAL         ?= containers kvm
METAL_TIMEOUT ?= 1500
.PHONY: test-metal
test-metal: test-packages bin/orrery bin/orrery-lab bin/orrery-guest ## prove the program on ordinary servers in QEMU's software emulation; METAL="containers kvm xen" says which
	for of in $(METAL); do scenarios/metal/run --$$of --orrery bin/orrery --timeout $(METAL_TIMEOUT) || exit; done

.PHONY: lint
lint: ## gofmt, go vet, golangci-lint
	@unformatted=$$(gofmt -l cmd internal test bench docs scenarios); [ -z "$$unformatted" ] || { echo "gofmt: $$unformatted"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags cloud ./test
	packaging/golangci-lint run

.PHONY: bench
bench: test-packages bin/orrery bin/orrery-guest ## measure against the floor and the peers; writes build/bench
	bench/run

.PHONY: install
install: bin/orrery bin/orrery-lab bin/orrery-micro bin/orrery-guest ## install program, completions, manual pages and the unit that resumes sites after a reboot
	install -D -m 755 bin/orrery $(DESTDIR)$(PREFIX)/bin/orrery
	install -D -m 755 bin/orrery-lab $(DESTDIR)$(PREFIX)/lib/orrery/orrery-lab
	install -D -m 755 bin/orrery-micro $(DESTDIR)$(PREFIX)/lib/orrery/orrery-micro
	install -D -m 755 bin/orrery-guest $(DESTDIR)$(PREFIX)/lib/orrery/orrery-guest
	sed 's|@BIN@|$(PREFIX)/bin|g' packaging/orrery-member > $(DESTDIR)$(PREFIX)/bin/orrery-member && chmod 755 $(DESTDIR)$(PREFIX)/bin/orrery-member
	install -d $(DESTDIR)$(PREFIX)/share/orrery
	sed 's|@BIN@|$(PREFIX)/bin|g; s|@GROUP@|$(GROUP)|g' packaging/sudoers > $(DESTDIR)$(PREFIX)/share/orrery/sudoers
	@visudo=$$(command -v visudo || echo /usr/sbin/visudo); [ ! -x $$visudo ] || $$visudo -cqf $(DESTDIR)$(PREFIX)/share/orrery/sudoers
	@echo "to let users other than root call orrery-member: make members GROUP=$(GROUP), with the sudo rule in $(PREFIX)/share/orrery/sudoers"
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	bin/orrery completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/orrery
	bin/orrery completion zsh  > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_orrery
	bin/orrery completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/orrery.fish
	$(GO) run ./packaging/man $(DESTDIR)$(PREFIX)/share/man $(VERSION)
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's|@BIN@|$(PREFIX)/bin|' packaging/orrery.service > $(DESTDIR)$(PREFIX)/lib/systemd/system/orrery.service
	@DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) packaging/unit enable
	@echo "to have this host resolve the names of nodes (NODE.SITE): make names"

.PHONY: members
members: ## let the members of GROUP call orrery-member by sudo
	DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) packaging/members $(GROUP)

.PHONY: names
names: ## keep the names of nodes in /etc/hosts of this host
	$(PREFIX)/bin/orrery names --install

.PHONY: uninstall
uninstall: ## remove what make install installed
	@# nobody else would remove the names from /etc/hosts
	-@[ -n "$(DESTDIR)" ] || [ ! -x $(PREFIX)/bin/orrery ] || $(PREFIX)/bin/orrery names --uninstall
	@DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) packaging/unit disable
	@rule=$(DESTDIR)/etc/sudoers.d/orrery; ! grep -qs ' $(PREFIX)/bin/orrery-member$$' $$rule || rm -f $$rule # another one may be installed elsewhere
	rm -f $(DESTDIR)$(PREFIX)/bin/orrery-member $(DESTDIR)$(PREFIX)/share/orrery/sudoers
	rm -f $(DESTDIR)$(PREFIX)/bin/orrery $(DESTDIR)$(PREFIX)/lib/orrery/orrery-lab $(DESTDIR)$(PREFIX)/lib/orrery/orrery-micro $(DESTDIR)$(PREFIX)/lib/orrery/orrery-guest \
	  $(DESTDIR)$(PREFIX)/share/bash-completion/completions/orrery \
	  $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_orrery $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/orrery.fish \
	  $(DESTDIR)$(PREFIX)/share/man/man[157]/orrery*.[157] $(DESTDIR)$(PREFIX)/lib/systemd/system/orrery.service

.PHONY: dist
dist: ## build Debian packages, tarballs, SBOMs and checksums for amd64 and arm64 in build/dist
	-@packaging/packages dist
	packaging/dist

# Only what the site shows: the documents, pictures, and the files of examples that the documents name.
PAGES := '*.md' docs/images docs/reply.schema.json 'examples/*.toml' ':!changelog/unreleased'
.PHONY: docs
docs: ## make a website of the documents in build/site, with search; a dead link fails
	@packaging/packages docs
	rm -rf build/pages build/site
	@mkdir -p build/pages
	git ls-files -z -- $(PAGES) | xargs -0 cp --parents -t build/pages
	mkdocs build --strict --quiet -f packaging/site/mkdocs.yml

.PHONY: clean
clean: ## remove what was built here
	rm -rf bin build
