# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Sourced by the tools: names every path outside the tree once, and says what takes long.
# shellcheck shell=bash
# shellcheck disable=SC2034
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${LLMOPS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/llmops-inference}
mkdir -p "$cache"

say() { printf '%s  %s\n' "$(date +%H:%M:%S)" "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# Runs a command as root: directly, or through sudo.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -- "$@"; fi
}

# working STEP COMMAND...: prints a line when it starts, one every ten seconds while it runs, and its log when it fails.
working() {
  local step=$1 log started pid status=0
  shift
  log=$(mktemp)
  started=$SECONDS
  say "$step ..."
  "$@" >"$log" 2>&1 &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2
    if (( SECONDS - started >= 10 && (SECONDS - started) % 10 == 0 )); then
      say "$step: $((SECONDS - started)) s ($(tail -n 1 "$log" | tr '\r' '\n' | tail -n 1 | cut -c -100))"
      sleep 1
    fi
  done
  wait "$pid" || status=$?
  if [ "$status" != 0 ]; then
    tail -n 40 "$log" >&2
    rm -f "$log"
    die "$step failed with status $status"
  fi
  say "$step: done in $((SECONDS - started)) s"
  rm -f "$log"
}
