#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# What CI runs. The fast half runs beside the scenarios, which mostly wait for servers to start.
set -euo pipefail
# shellcheck source=tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

started=$SECONDS
fast_log=$(mktemp)
trap 'rm -f "$fast_log"' EXIT
(
  set -e
  tools/lint.sh
  tools/ansible_test.sh units
  tools/ansible_test.sh sanity
  tools/build.sh
) >"$fast_log" 2>&1 &
fast=$!

status=0
for scenario in engine server two_servers; do
  tools/molecule.sh "$scenario" || { status=1; say "scenario $scenario FAILED"; }
done
if ! wait "$fast"; then
  status=1
  say "lint, units, sanity or build FAILED"
fi
cat "$fast_log"
tools/setup.sh newest
tools/newest.sh || { status=1; say "newest core FAILED"; }
say "whole test: $((SECONDS - started)) s, $([ $status = 0 ] && echo green || echo RED)"
exit $status
