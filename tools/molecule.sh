#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs one scenario: molecule.sh NAME [molecule's command, `test` unless told]
set -euo pipefail
# shellcheck source=tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

scenario=${1:?scenario} command=${2:-test}
export ANSIBLE_COLLECTIONS_PATH=$root/collections:$cache/collections
export NO_COLOR=1 ANSIBLE_NOCOLOR=1 COLUMNS=200
export ANSIBLE_PODMAN_EXECUTABLE=$root/tools/podman
log=$cache/molecule-$scenario.log
# One run of a scenario at a time: its hosts have fixed names and addresses.
exec 9>"$cache/molecule-$scenario.lock"
flock 9
started=$SECONDS
say "scenario $scenario: $command (whole log: $log)"
set +e
molecule "$command" --scenario-name "$scenario" 2>&1 9>&- | tee "$log" |
  grep -E --line-buffered '(PLAY|RECAP|fatal:|CRITICAL|ERROR) |[0-9]+ (passed|failed)|    [a-z0-9_-]+ \| |(PASSED|FAILED|ERROR)|E   '
status=${PIPESTATUS[0]}
set -e
[ "$status" = 0 ] || tail -n 60 "$log" >&2
say "scenario $scenario: $command took $((SECONDS - started)) s, status $status"
exit "$status"
