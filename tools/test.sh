#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# What CI runs.
set -euo pipefail
# shellcheck source=tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

started=$SECONDS
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# Two lanes, since there are two cores and scenarios mostly wait for servers to start. The scenario cuda waits for podman and hardly counts; it begins
# when the build has put the engine on the mount that the hosts share.
first_lane() {
  tools/molecule.sh server || return 1
  tools/setup.sh newest || return 1
  tools/newest.sh || return 1
  tools/molecule.sh engine || return 1
}

second_lane() {
  local status=0
  { tools/lint.sh && tools/ansible_test.sh units && tools/ansible_test.sh sanity && tools/build.sh; } >"$logs/fast" 2>&1 || status=1
  cat "$logs/fast"
  tools/molecule.sh cuda &
  local cuda=$!
  tools/engine_tests.sh || status=1
  tools/report_test.sh || status=1
  tools/molecule.sh gitops || status=1
  tools/molecule.sh preflight || status=1
  tools/molecule.sh model || status=1
  wait $cuda || status=1
  return $status
}

status=0
first_lane &
first=$!
second_lane || status=1
wait $first || status=1
say "whole test: $((SECONDS - started)) s, $([ $status = 0 ] && echo green || echo RED)"
exit $status
