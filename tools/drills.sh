#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs all fault drills on a host of the scenario server and writes docs/drills.md: drills.sh [pytest's options]
set -euo pipefail
# shellcheck source=tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

scenario=server
tools/molecule.sh "$scenario" destroy
tools/molecule.sh "$scenario" create
tools/molecule.sh "$scenario" converge
exec 9>"$cache/molecule-$scenario.lock"
flock 9
export ANSIBLE_COLLECTIONS_PATH=$root/collections:$cache/collections ANSIBLE_PODMAN_EXECUTABLE=$root/tools/podman
export NO_COLOR=1 ANSIBLE_NOCOLOR=1 ANSIBLE_CALLBACK_RESULT_FORMAT=yaml
# shellcheck disable=SC2012
MOLECULE_INVENTORY_FILE=$(ls -dt "$HOME"/.ansible/tmp/molecule.*."$scenario" | head -n 1)/inventory/ansible_inventory.yml
export MOLECULE_INVENTORY_FILE LLMOPS_DRILLS=all LLMOPS_DRILLS_TABLE=$root/docs/drills.md
cd "molecule/$scenario"
python -m pytest -p no:cacheprovider --hosts podman://llmops-server -v tests/test_4_drills.py "$@" 9>&-
flock -u 9
cd "$root"
tools/molecule.sh "$scenario" destroy
