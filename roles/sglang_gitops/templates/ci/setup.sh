#!/usr/bin/env bash
# Brings ansible-playbook and the pinned collection; what is there already is left alone.
# LLMOPS_VENV names a virtual environment outside this directory, which CI may empty before every job.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv=${LLMOPS_VENV:-$PWD/.venv}
export PATH=$venv/bin:$PATH ANSIBLE_CONFIG=$PWD/ansible.cfg
if ! command -v ansible-playbook >/dev/null; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --requirement requirements.txt
fi
# Asks no server where these versions are on ANSIBLE_COLLECTIONS_PATH.
ansible-galaxy collection install --requirements-file requirements.yml
