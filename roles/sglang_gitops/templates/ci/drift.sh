#!/usr/bin/env bash
# ci/drift.sh [OPTIONS OF ANSIBLE]: says where hosts differ from this commit; changes nothing on them. The report is reports/drift.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH=${LLMOPS_VENV:-$PWD/.venv}/bin:$PATH ANSIBLE_CONFIG=$PWD/ansible.cfg
# shellcheck source=/dev/null
source ci/records.bash
prepare
overlay
rm -f reports/drift.md
status=0
ansible-playbook llmops.inference.drift "$@" || status=$?
if [[ -f reports/drift.md ]]; then
  cat reports/drift.md
fi
exit "$status"
