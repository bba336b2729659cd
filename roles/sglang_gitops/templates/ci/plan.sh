#!/usr/bin/env bash
# ci/plan.sh [HOSTS]: what a deployment of this commit would change on the hosts themselves. It runs this commit's code with their keys: after approval only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH=${LLMOPS_VENV:-$PWD/.venv}/bin:$PATH ANSIBLE_CONFIG=$PWD/ansible.cfg
exec ansible-playbook deploy.yml --check --diff --limit "${1:-sglang}"
