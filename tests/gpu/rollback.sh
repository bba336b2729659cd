#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs as root on a machine with systemd, one NVIDIA GPU, an engine and a model: deployments that succeed, fail on the GPU, are rolled back and refused.
#
#   rollback.sh WORK OUT SECONDS
#
# Goes through rollback_steps.json in order, leaves out what WORK has done already, and begins no step that would not end within SECONDS: called again, it goes
# on. OUT gets what was seen, cleaned: rollback.tar.xz and table.jsonl. ansible-playbook is taken from PATH or is the command in ANSIBLE_PLAYBOOK; INVENTORY and
# STEPS name other files. The server stays.
set -euo pipefail
work=$1 out=$2 deadline=$((SECONDS + $3))
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
inventory=${INVENTORY:-$here/rollback_inventory.yml} steps=${STEPS:-$here/rollback_steps.json}
python=${ENGINE_PYTHON:-/opt/sglang/engines/0.5.17-cuda-bundle-py312-x86_64/bin/python}
mkdir -p "$work" "$out"
touch "$work/table.jsonl"
export PYTHONDONTWRITEBYTECODE=1

# Identifiers of the machine are nobody's business: GPUs get made-up UUIDs in the order of their indices. Journals have long numbers of their own, so what looks
# like a serial number is one in nvidia-smi's output only.
uuids=$(nvidia-smi -L 2>/dev/null | sed -nE 's/.*UUID: (GPU-[0-9a-f-]+).*/\1/p' | awk '{ printf "s/%s/GPU-00000000-0000-4000-8000-%012d/g;", $1, NR }' || true)
zeros=00000000000000000000000000000000
boot=$(tr -d - </proc/sys/kernel/random/boot_id)
clean() {
  local folder=$1
  find "$folder" -type f ! -name 'nvidia-smi-*' -exec sed -E -i -e "$uuids" -e "s/$(cat /etc/machine-id)/$zeros/g" -e "s/$boot/$zeros/g" \
    -e "s/(\"_HOSTNAME\" ?: ?\")[^\"]*/\1gpu-host/" {} +
  find "$folder" -type f -name 'nvidia-smi-*' -exec sed -E -i -e "$uuids" -e 's/[0-9]{13}/0000000000000/g' {} +
}

pack() {
  local scratch
  scratch=$(mktemp -d)
  cp -r "$work" "$scratch/rollback"
  rm -f "$scratch/rollback/cursor"
  clean "$scratch/rollback"
  tar -C "$scratch" -cJf "$out/.rollback.tar.xz" rollback
  mv "$out/.rollback.tar.xz" "$out/rollback.tar.xz"
  cp "$scratch/rollback/table.jsonl" "$out/"
  rm -rf "$scratch"
}

status=0
while read -r name seconds; do
  if [ -e "$work/$name/done" ]; then continue; fi
  if ((SECONDS + seconds > deadline)); then
    echo "$name: no time left for it ($((deadline - SECONDS)) s)"
    break
  fi
  echo "== $name"
  if [ -e "$work/$name" ]; then mv "$work/$name" "$work/unfinished-$name-$(date +%s)"; fi
  step=0
  python3 "$here/rollback_step.py" "$steps" "$name" "$work" "$inventory" "$python" </dev/null || step=$?
  ((step == 0)) || status=$step
  pack
  # Without a server the steps after it would say nothing; the next call does this one anew.
  if ((step == 2)); then break; fi
  touch "$work/$name/done"
done < <(python3 -c 'import json, sys; [print(step["name"], step["seconds"]) for step in json.load(open(sys.argv[1]))]' "$steps")
exit "$status"
