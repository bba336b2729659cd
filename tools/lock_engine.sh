#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes the lock of one engine: every package pinned, hashes from the index, what it needs of a host in the header.
#   lock_engine.sh VERSION FLAVOUR [PYTHON [DIRECTORY]]      e.g. lock_engine.sh 0.5.23 cuda 3.12
# DIRECTORY is where the lock and its overrides are when they are not shipped (tests/engines/locks); VERSION-cpu.excludes.txt there leaves out more.
# Indexes and find-links come from uv's own settings (UV_DEFAULT_INDEX, UV_FIND_LINKS, ...) and pip's PIP_FIND_LINKS.
set -euo pipefail
# shellcheck source=tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=${1:?version} flavour=${2:?flavour: cuda or cpu} python=${3:-3.11}
shipped=$root/roles/sglang_engine/files/locks
locks=${4:-$shipped}
target=$locks/$version-$flavour-py${python/./}.txt
export UV_FIND_LINKS=${UV_FIND_LINKS:-${PIP_FIND_LINKS:-}}

arguments=(--python-version "$python" --python-platform x86_64-manylinux_2_34 --generate-hashes --no-header --no-annotate)
needs="python=$python architecture=x86_64 glibc=2.34"
if [ "$flavour" = cpu ]; then
  overrides=$locks/$version-cpu.overrides.txt
  [ -e "$overrides" ] || die "$overrides is missing: it names the CPU build of torch that stands in for the release's pin"
  excludes=("$shipped/cpu.excludes.txt")
  [ ! -e "$locks/$version-cpu.excludes.txt" ] || excludes+=("$locks/$version-cpu.excludes.txt")
  # A local build tag (+cpu) is bound to a platform tag of its own; the wheel's platform is left to the index.
  arguments=(--python-version "$python" --generate-hashes --no-header --no-annotate --overrides "$overrides" "${excludes[@]/#/--excludes=}")
  needs+=" disk_gb=4"
else
  needs+=" disk_gb=16"
fi

scratch=$(mktemp) constraints=$(mktemp)
# Pins of a lock that is there are kept where they still fit; remove it first to take the newest of everything.
[ ! -e "$target" ] || grep -v '^# ' "$target" >"$scratch"
resolve() { echo "sglang==$version" | uv pip compile --quiet "${arguments[@]}" --constraints "$constraints" - --output-file "$scratch" >/dev/null; }
resolve
if [ "$flavour" = cuda ]; then
  # The CUDA runtime that torch pulls decides which drivers and GPUs can run the engine (plugins/module_utils/_compat.py).
  cuda=$(sed -n 's/^nvidia-cuda-runtime==\([0-9]*\.[0-9]*\).*/\1/p' "$scratch")
  [ -n "$cuda" ] || die "the lock pulls no CUDA runtime"
  needs+=" cuda=$cuda"
  # A compiler builds only against headers of its own minor version, and what compiles at run time (NVRTC, nvJitLink) belongs to them. What pulls these
  # packages (humming-kernels, cuda-toolkit) leaves their minor version open: they follow the runtime. No pin of the release is changed by this.
  for package in nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm nvidia-cuda-cccl nvidia-cuda-nvrtc nvidia-nvjitlink; do
    ! grep -q "^$package==" "$scratch" || echo "$package==$cuda.*" >>"$constraints"
  done
  resolve
fi
{
  echo "# Made by tools/lock_engine.sh $version $flavour $python. Do not edit."
  for need in $needs; do echo "# llmops: $need"; done
  if [ "$flavour" = cpu ]; then
    sed -n 's/^\([a-z][^ #]*\).*/# deviation: \1 instead of what the release pins/p' "$overrides"
    sed -n 's/^\([a-z][^ #]*\).*/# deviation: without \1/p' "${excludes[@]}"
  fi
  cat "$scratch"
} >"$target"
rm -f "$scratch" "$constraints"
say "$target: $(grep -c '^[a-zA-Z0-9]' "$target") packages"
