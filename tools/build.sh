#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Builds the collection, installs the build where nothing of the checkout is seen, and proves that it works with nothing but
# meta/, plugins/, roles/ and playbooks/: `ansible-playbook llmops.inference.deploy`, in check mode, on this machine.
set -euo pipefail
# shellcheck source=tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
ansible-galaxy collection build "$root" --output-path "$scratch" --force >/dev/null
mkdir -p "$scratch/site"
cp -r "$cache/collections/ansible_collections" "$scratch/site/"
cd "$scratch"
export ANSIBLE_COLLECTIONS_PATH=$scratch/site ANSIBLE_CONFIG=/dev/null
ansible-galaxy collection install --offline --no-deps --collections-path "$scratch/site" "$scratch"/llmops-inference-*.tar.gz >/dev/null
installed=$scratch/site/ansible_collections/llmops/inference
find "$installed" -mindepth 1 -maxdepth 1 ! -name meta ! -name plugins ! -name roles ! -name playbooks ! -name MANIFEST.json ! -name FILES.json -exec rm -rf {} +
cat >inventory.yml <<INVENTORY
sglang:
  hosts:
    built:
      ansible_connection: local
      ansible_become: false
      ansible_python_interpreter: $(command -v python)
      sglang_engine_python_version: "3.11"
      sglang_model_source: local
      sglang_model_path: $cache/models/tiny-qwen3
INVENTORY
for playbook in deploy benchmark status remove; do
  ansible-playbook -i inventory.yml "llmops.inference.$playbook" --syntax-check >/dev/null
done
say "built $(basename "$scratch"/llmops-inference-*.tar.gz), installed it alone, and its playbooks load"
ansible-doc -t module llmops.inference.sglang_ready >/dev/null
