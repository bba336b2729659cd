#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs the steps of a scenario on this machine, one after the other, and hands out what was seen, without what identifies the machine.
#
#   steps.sh SCENARIO WORK OUT SECONDS
#
# Goes through SCENARIO_steps.json in order, leaves out what WORK has done already, and begins no step that would not end within SECONDS: called again, it goes
# on. OUT gets SCENARIO.tar.xz (all of WORK) and table.jsonl (one line a step). ansible-playbook is taken from PATH or is the command in ANSIBLE_PLAYBOOK;
# INVENTORY and STEPS name other files.
set -euo pipefail
scenario=$1 work=$2 out=$3 deadline=$((SECONDS + $4))
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
inventory=${INVENTORY:-$here/${scenario}_inventory.yml} steps=${STEPS:-$here/${scenario}_steps.json}
python=${ENGINE_PYTHON:-/opt/sglang/engines/0.5.17-cuda-bundle-py312-x86_64/bin/python}
mkdir -p "$work" "$out"
touch "$work/table.jsonl"
export PYTHONDONTWRITEBYTECODE=1 XZ_OPT=-3

# Identifiers of the machine are nobody's business: GPUs get made-up UUIDs in the order of their indices. Journals have long numbers of their own, so what looks
# like a serial number is one in nvidia-smi's output only.
uuids=$(nvidia-smi -L 2>/dev/null | sed -nE 's/.*UUID: (GPU-[0-9a-f-]+).*/\1/p' | awk '{ printf "s/%s/GPU-00000000-0000-4000-8000-%012d/g;", $1, NR }' || true)
zeros=00000000000000000000000000000000
boot=$(tr -d - </proc/sys/kernel/random/boot_id)
machine=$(cat /etc/machine-id)
# Releases and progress name who asked for them; a machine that is called localhost says nothing.
name=$(uname -n)
case $name in "" | localhost | *[!A-Za-z0-9.-]*) name= ;; *) name="s/\\b${name//./\\.}\\b/gpu-host/g" ;; esac
clean() {
  local folder=$1
  find "$folder" -type f ! -name 'nvidia-smi-*' -exec sed -E -i -e "$uuids" -e "${machine:+s/$machine/$zeros/g}" -e "s/$boot/$zeros/g" \
    -e "s/(\"_HOSTNAME\" ?: ?\")[^\"]*/\1gpu-host/" -e "$name" {} +
  find "$folder" -type f -name 'nvidia-smi-*' -exec sed -E -i -e "$uuids" -e 's/[0-9]{13}/0000000000000/g' {} +
}

pack() {
  local scratch
  scratch=$(mktemp -d)
  cp -r "$work" "$scratch/$scenario"
  rm -f "$scratch/$scenario/cursor"
  clean "$scratch/$scenario"
  tar -C "$scratch" -cJf "$out/.$scenario.tar.xz" "$scenario"
  mv "$out/.$scenario.tar.xz" "$out/$scenario.tar.xz"
  cp "$scratch/$scenario/table.jsonl" "$out/"
  rm -rf "$scratch"
}

status=0
while read -r name_of_step seconds; do
  if [ -e "$work/$name_of_step/done" ]; then continue; fi
  if ((SECONDS + seconds > deadline)); then
    echo "$name_of_step: no time left for it ($((deadline - SECONDS)) s)"
    break
  fi
  echo "== $name_of_step ($((deadline - SECONDS)) s left)"
  if [ -e "$work/$name_of_step" ]; then mv "$work/$name_of_step" "$work/unfinished-$name_of_step-$(date +%s)"; fi
  step=0
  python3 "$here/${scenario}_step.py" "$steps" "$name_of_step" "$work" "$inventory" "$python" </dev/null || step=$?
  ((step == 0)) || status=$step
  pack
  # Without a server the steps after it would say nothing; the next call does this one anew.
  if ((step == 2)); then break; fi
  touch "$work/$name_of_step/done"
done < <(python3 -c 'import json, sys; [print(step["name"], step["seconds"]) for step in json.load(open(sys.argv[1]))]' "$steps")
exit "$status"
