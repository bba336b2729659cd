#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs on a machine with two NVIDIA GPUs: facts, compatibility and links, and the raw outputs that the facts were made of.
#
#   environment.sh ENGINE_PYTHON SITE OUT
#
# ENGINE_PYTHON has torch; SITE is a directory with an engine's packages for PYTHONPATH (empty where the interpreter has them).
# ansible-playbook is taken from PATH or from the function that the caller exports as ap. Nothing is changed on the machine.
set -euo pipefail
python=$1 site=$2 out=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$out/raw"

# Serial numbers and identifiers of the machine are nobody's business; GPUs get made-up UUIDs in the order of their indices.
uuids=$(nvidia-smi -L | sed -nE 's/.*UUID: (GPU-[0-9a-f-]+).*/\1/p' | awk '{ printf "s/%s/GPU-00000000-0000-4000-8000-%012d/g;", $1, NR }')
clean() {
  sed -E -e "$uuids" -e 's/(<serial>|<chassis_serial_number>)[^<]*/\1N\/A/' \
    -e 's/(<pdi>|<gpu_fabric_guid>|<board_id>)[^<]*/\1N\/A/' -e 's/[0-9]{13}/0000000000000/g'
}

# record NAME COMMAND...: as the fixtures of tests/unit/fixtures/gpu are: the command, its output, its status.
record() {
  local name=$1 status=0
  shift
  { printf '$ %s\n' "$*"; "$@" 2>&1 || status=$?; printf 'rc=%s\n' "$status"; } | clean >"$out/raw/$name"
}

record qx.xml nvidia-smi -q -x
record capability.csv nvidia-smi --query-gpu=index,uuid,compute_cap --format=csv,noheader,nounits
record list.txt nvidia-smi -L
record topo-m.txt nvidia-smi topo -m
record topo-mp.txt nvidia-smi topo -mp
record topo-p2p-r.txt nvidia-smi topo -p2p r
record topo-p2p-w.txt nvidia-smi topo -p2p w
record version.txt cat /proc/driver/nvidia/version
record nodes.txt sh -c 'ls -d /dev/nvidia*'

play=(ansible-playbook -i "localhost," -c local)
if declare -F ap >/dev/null; then play=(ap); fi
"${play[@]}" "$here/environment.yml" -e "engine_python=$python" -e "engine_site=$site" -e "out=$out"
for file in "$out"/*.json; do clean <"$file" >"$file.clean" && mv "$file.clean" "$file"; done
