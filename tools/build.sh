#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Builds the collection, installs the build where nothing of the checkout is seen, deletes everything but meta/, plugins/, roles/ and
# playbooks/ from it, and deploys a server to a host of its own with `ansible-playbook llmops.inference.deploy`.
set -euo pipefail
# shellcheck source=tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
ansible-galaxy collection build "$root" --output-path "$scratch" --force >/dev/null
mkdir -p "$scratch/site"
cp -r "$cache/collections/ansible_collections" "$scratch/site/"
cd "$scratch"
: >ansible.cfg
export ANSIBLE_COLLECTIONS_PATH=$scratch/site ANSIBLE_CONFIG=$scratch/ansible.cfg ANSIBLE_PODMAN_EXECUTABLE=$root/tools/podman
ansible-galaxy collection install --offline --no-deps --collections-path "$scratch/site" "$scratch"/llmops-inference-*.tar.gz >/dev/null
installed=$scratch/site/ansible_collections/llmops/inference
find "$installed" -mindepth 1 -maxdepth 1 ! -name meta ! -name plugins ! -name roles ! -name playbooks ! -name MANIFEST.json ! -name FILES.json -exec rm -rf {} +
mkdir inventory
echo "sglang: {hosts: {built: {ansible_host: llmops-build}}}" >inventory/hosts.yml
mkdir -p inventory/group_vars
cp "$root/molecule/shared/common.yml" inventory/group_vars/sglang.yml
"$root/tools/hosts.sh" up llmops-build 31
trap '"$root/tools/hosts.sh" down llmops-build; rm -rf "$scratch"' EXIT
ansible-playbook -i inventory llmops.inference.deploy >deploy.log || { cat deploy.log; exit 1; }
ansible-playbook -i inventory llmops.inference.status | grep 'active since.*healthy'
for playbook in benchmark remove; do
  ansible-playbook -i inventory "llmops.inference.$playbook" --syntax-check >/dev/null
done
ansible-doc -t module llmops.inference.sglang_ready >/dev/null
say "built $(basename "$scratch"/llmops-inference-*.tar.gz), installed it alone, and deployed a server with it"
