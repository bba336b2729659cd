# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.ONESHELL:

CACHE := $(or $(LLMOPS_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/llmops-inference)
export PATH := $(CACHE)/controller/bin:$(PATH)
export LLMOPS_CACHE := $(CACHE)
export ANSIBLE_COLLECTIONS_PATH := $(CURDIR)/collections:$(CACHE)/collections
PORT ?= 30000
SCENARIOS := cuda engine gitops model preflight server two_servers

.PHONY: help setup apt hosts-up hosts-down deploy init test lint unit sanity build engines report molecule $(addprefix molecule-,$(SCENARIOS)) newest drills bench lock docs clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

setup:  ## bring Ansible, the collections we depend on, podman and the cpu engine's wheels
	@tools/setup.sh controller
	tools/setup.sh hosts
	tools/setup.sh wheelhouse

apt: setup  ## make the signed apt repositories that the hosts of the scenario cuda install from
	@tools/apt_repositories.sh

hosts-up: setup  ## start the sandbox host
	@tools/hosts.sh up sandbox 10

hosts-down:  ## remove all test hosts, their network and forwarders
	@tools/hosts.sh down-all

deploy: hosts-up  ## deploy the sandbox: a real server on a real systemd host on this machine
	@ansible-playbook deploy.yml -l sandbox
	tools/hosts.sh forward sandbox $(PORT)
	curl --silent --fail --retry 5 --retry-connrefused --retry-delay 1 --noproxy '*' --output /dev/null http://127.0.0.1:$(PORT)/v1/models
	printf '\nThe server answers on this machine as well. Try:\n\n  %s\n\n' \
	  "curl -s http://127.0.0.1:$(PORT)/v1/completions -H 'Content-Type: application/json' -d '{\"model\": \"tiny-qwen3\", \"prompt\": \"Hello\", \"max_tokens\": 16}'"

init: setup  ## make DIR=... init: write a GitOps repository of your own
	@ansible-playbook -i localhost, playbooks/init.yml -e 'sglang_gitops_dir=$(or $(DIR),$(error say where: make DIR=path init))'

test: setup apt  ## everything that CI runs: lint, units, sanity, build, molecule, the newest core
	@tools/test.sh

lint: setup  ## yamllint, ruff, mypy, ansible-lint (production), changelog
	@tools/lint.sh

unit: setup  ## unit tests
	@tools/ansible_test.sh units

sanity: setup  ## ansible-test sanity
	@tools/ansible_test.sh sanity

build: setup  ## build the collection, install it alone and deploy a server with it
	@tools/build.sh

engines: setup  ## hold the preflight to real engines of six versions
	@tools/engine_tests.sh

report: setup  ## look at the page of all records in headless Chromium, and draw the pictures
	@tools/report_test.sh

molecule: $(addprefix molecule-,$(SCENARIOS))  ## all molecule scenarios; molecule-NAME runs one

$(addprefix molecule-,$(SCENARIOS)): molecule-%: setup apt
	@tools/molecule.sh $*

newest: setup  ## sanity, units and one scenario on the newest ansible-core, where a newer Python is present
	@tools/setup.sh newest
	tools/newest.sh

drills: setup  ## all fault drills on a real host; writes docs/drills.md
	@tools/drills.sh

bench: setup  ## ratios: unchanged run, engine installation, seconds without service
	@tests/bench/run.sh

lock: setup  ## make ENGINE=0.5.23 FLAVOUR=cuda [PYTHON=3.12] lock: pin one engine
	@tools/lock_engine.sh $(ENGINE) $(FLAVOUR) $(or $(PYTHON),3.11)

docs: setup  ## write the generated parts of the role READMEs and the reference
	@python tools/role_readmes.py

clean: hosts-down  ## remove the cache as well
	@rm -rf $(CACHE)
