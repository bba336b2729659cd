#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Units, sanity and one scenario on the newest ansible-core, where `setup.sh newest` found a Python for it; prints what ran.
set -euo pipefail
# shellcheck source=tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

if [ ! -x "$cache/newest/bin/ansible-playbook" ]; then
  say "no newest ansible-core here: its scenario runs on the usual one"
  tools/molecule.sh two_servers
  exit 0
fi
export PATH=$cache/newest/bin:$PATH
version=$(ansible --version)
say "${version%%$'\n'*} on $("$cache/newest/bin/python" --version)"
tools/ansible_test.sh units
tools/ansible_test.sh sanity
tools/molecule.sh two_servers
say "ran on ${version%%$'\n'*}: units, sanity, scenario two_servers"
