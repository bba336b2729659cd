#!/usr/bin/env bash
# ci/check.sh [BASE [OPTIONS OF ANSIBLE]]: judges what this commit changes against BASE, without access to any host; writes check/.
# Nothing is fetched: BASE has to be here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH=${LLMOPS_VENV:-$PWD/.venv}/bin:$PATH ANSIBLE_CONFIG=$PWD/ansible.cfg
branch='@{ sglang_gitops_branch }@'
base=${1:-${SGLANG_CHECK_BASE:-origin/$branch}}
status=0
rm -rf check
# The inventory itself is read in copies without its secrets only.
ansible-playbook -i localhost, llmops.inference.check -e "sglang_check_base=$base" "${@:2}" || status=$?
# Last, where whoever opens the log looks first.
if [[ -f check/check.md ]]; then
  cat check/check.md
fi
exit "$status"
