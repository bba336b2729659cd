#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes the lock of one engine: every package pinned, hashes from the index, what it needs of a host in the header.
#   lock_engine.sh VERSION FLAVOUR [PYTHON]      e.g. lock_engine.sh 0.5.23 cuda 3.12
# Indexes and find-links come from uv's own settings (UV_DEFAULT_INDEX, UV_FIND_LINKS, ...) and pip's PIP_FIND_LINKS.
set -euo pipefail
# shellcheck source=tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=${1:?version} flavour=${2:?flavour: cuda or cpu} python=${3:-3.11}
locks=$root/roles/sglang_engine/files/locks
target=$locks/$version-$flavour-py${python/./}.txt
export UV_FIND_LINKS=${UV_FIND_LINKS:-${PIP_FIND_LINKS:-}}

arguments=(--python-version "$python" --python-platform x86_64-manylinux_2_34 --generate-hashes --no-header --no-annotate)
needs="python=$python architecture=x86_64 glibc=2.34"
if [ "$flavour" = cpu ]; then
  overrides=$locks/$version-cpu.overrides.txt
  [ -e "$overrides" ] || die "$overrides is missing: it names the CPU build of torch that stands in for the release's pin"
  # A local build tag (+cpu) is bound to a platform tag of its own; the wheel's platform is left to the index.
  arguments=(--python-version "$python" --generate-hashes --no-header --no-annotate --overrides "$overrides" --excludes "$locks/cpu.excludes.txt")
  needs+=" disk_gb=4"
else
  needs+=" disk_gb=16"
fi

scratch=$(mktemp)
echo "sglang==$version" | uv pip compile --quiet "${arguments[@]}" - --output-file "$scratch" >/dev/null
if [ "$flavour" = cuda ]; then
  # The CUDA runtime that torch pulls decides which driver is old enough (CUDA toolkit release notes, table "CUDA minor version compatibility").
  cuda=$(sed -n 's/^nvidia-cuda-runtime==\([0-9]*\.[0-9]*\).*/\1/p' "$scratch")
  case $cuda in
    12.*) needs+=" cuda=$cuda driver=525.60.13" ;;
    13.*) needs+=" cuda=$cuda driver=580.65.06" ;;
    *) die "the lock pulls CUDA runtime '$cuda', for which this script knows no driver" ;;
  esac
fi
{
  echo "# Made by tools/lock_engine.sh $version $flavour $python. Do not edit."
  for need in $needs; do echo "# llmops: $need"; done
  if [ "$flavour" = cpu ]; then
    sed -n 's/^\([a-z][^ #]*\).*/# deviation: \1 instead of what the release pins/p' "$overrides"
    sed -n 's/^\([a-z][^ #]*\).*/# deviation: without \1/p' "$locks/cpu.excludes.txt"
  fi
  cat "$scratch"
} >"$target"
rm -f "$scratch"
say "$target: $(grep -c '^[a-zA-Z0-9]' "$target") packages"
