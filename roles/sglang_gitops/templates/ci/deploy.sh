#!/usr/bin/env bash
# ci/deploy.sh [OPTIONS OF ANSIBLE]: brings the hosts to this commit, and keeps what was recorded on a branch of its own, whatever came of it. It never
# pushes to another branch.
# Of records.bash: branch, main, recorded, scratch.
# shellcheck disable=SC2154
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH=${LLMOPS_VENV:-$PWD/.venv}/bin:$PATH ANSIBLE_CONFIG=$PWD/ansible.cfg
attempts=5
# shellcheck source=/dev/null
source ci/records.bash

# Commits what the run left in the work tree on top of the scratch tree, if that is anything new: commit, hosts, and what was measured.
commit() {
  local path hosts effects
  for path in "${recorded[@]}"; do
    if [[ -e $path ]]; then
      rm -rf "${scratch:?}/tree/$path"
      mkdir -p "$scratch/tree/$(dirname "$path")"
      cp -a "$path" "$scratch/tree/$path"
      in_scratch add --all -- "$path"
    fi
  done
  if in_scratch diff --cached --quiet; then
    return 0
  fi
  hosts=$(in_scratch diff --cached --name-only -- inventory/deployed | sed -n 's|.*/\(.*\)\.json$|\1|p' | paste -sd ,)
  effects=$(in_scratch diff --cached --name-only --diff-filter=A -z -- 'inventory/benchmarks/*.md' |
    (cd "$scratch/tree" && xargs -0 --no-run-if-empty -n 1 sed -n '1s/\*\*//gp'))
  in_scratch commit --quiet -m "Records of ${main:0:12}: ${hosts:-no host deployed}" -m "$effects"
}

# Never forced: where somebody was faster, the records of this run go onto theirs.
push() {
  local own attempt
  own=$(in_scratch rev-parse HEAD)
  for ((attempt = 1; attempt <= attempts; attempt++)); do
    if in_scratch push --quiet origin "HEAD:refs/heads/$branch"; then
      return 0
    fi
    echo "$branch was not taken (attempt $attempt of $attempts): putting the records onto what is there now" >&2
    sleep "$((attempt - 1))"
    prepare
    in_scratch cherry-pick --allow-empty --keep-redundant-commits -X theirs "$own" >/dev/null
  done
  echo "the records of this run were not pushed to $branch; the next run finds the hosts as they are" >&2
  return 1
}

prepare
overlay

status=0
ansible-playbook llmops.inference.rollout "$@" || status=$?
ansible-playbook llmops.inference.history || status=$((status ? status : $?))
before=$(in_scratch rev-parse HEAD)
commit
if [[ $(in_scratch rev-parse HEAD) != "$before" ]]; then
  push
fi
exit "$status"
