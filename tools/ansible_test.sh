#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs ansible-test on a copy of this checkout, because it insists on .../ansible_collections/llmops/inference.
#
#   ansible_test.sh sanity|units [ARGUMENT OF ANSIBLE-TEST]...
#
# The ansible-core in question is the one whose bin directory comes first on PATH.
set -euo pipefail
# shellcheck source=tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

command=${1:-}
case $command in
  sanity | units) shift ;;
  *) die "usage: $0 sanity|units [ARGUMENT OF ANSIBLE-TEST]..." ;;
esac

# In a git hook these would turn every git below to the committing repository.
mapfile -t git_variables < <(git rev-parse --local-env-vars)
unset "${git_variables[@]}"

ansible_test=$(command -v ansible-test) || die "no ansible-test on PATH: put an ansible-core's bin directory first"
version=$(ansible --version)
core=$(sed -n 's/^ansible \[core \([^]]*\)\].*/\1/p' <<< "$version")
python=$(sed -n 's/^ *python version = .*(\([^()]*\))$/\1/p' <<< "$version")

mkdir -p "$cache/ansible-test/$core"
work=$(cd "$cache/ansible-test/$core" && pwd -P)
copy=$work/ansible_collections/llmops/inference
mkdir -p "$copy/tests/output"
exec 9> "$work/lock"
flock 9

# As a repository of its own, the copy is not taken for a part of one further up.
git init -q "$copy"
echo /tests/output/ > "$copy/.git/info/exclude"
find "$copy" -mindepth 1 -maxdepth 1 ! -name .git ! -name tests -exec rm -rf {} +
find "$copy/tests" -mindepth 1 -maxdepth 1 ! -name output -exec rm -rf {} +
LC_ALL=C comm -z -23 \
  <(git -C "$root" ls-files -z --cached --others --exclude-standard -- ':!/collections' | LC_ALL=C sort -zu) \
  <(git -C "$root" ls-files -z --deleted | LC_ALL=C sort -zu) |
  tar -C "$root" --create --no-recursion --null --files-from=- | tar -C "$copy" --extract

for namespace in ansible community containers; do
  if dependency=$(realpath -e "$cache/collections/ansible_collections/$namespace" 2> /dev/null); then
    ln -sfn "$dependency" "$work/ansible_collections/$namespace"
  fi
done

case $command in
  sanity)
    "$python" "$root/tools/get_pip_shim.py" install
    # pyenv has a shim for every interpreter but only the selected ones run; ansible-test believes in all of them.
    if command -v pyenv > /dev/null; then
      PATH=${ansible_test%/*}:$(printf '%s:' "$(pyenv root)"/versions/*/bin)$PATH
    fi
    ;;
  units)
    # pytest and its plugins are installed for this interpreter only.
    set -- --python "$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')" "$@"
    ;;
esac

cd "$copy"
status=0
ansible-test "$command" --local --color no "$@" 2>&1 | tee "$work/$command.log" || status=$?

if skipped=$(grep -E 'Skipping|Required program' "$work/$command.log" | sort -u); then
  printf 'Not run with ansible-core %s:\n%s\n' "$core" "$skipped"
fi
exit "$status"
