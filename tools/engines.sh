#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes the cpu engines that the tests resolve flags with, through the role; $cache/engines/index.json names their interpreters. 4 minutes and 5 GB at
# first, seconds when they are there. As root or with sudo. The locks are for Python 3.11: LLMOPS_ENGINE_PYTHON names one that is not found here.
set -euo pipefail
# shellcheck source=tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

[ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null || die "the role that makes engines needs root, or sudo that asks for no password"
python=
for candidate in ${LLMOPS_ENGINE_PYTHON:-/usr/bin/python3 /usr/bin/python3.11 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.11.*/bin/python3}; do
  if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
    python=$(command -v "$candidate")
    break
  fi
done
[ -n "$python" ] || die "the engines of the tests need Python 3.11 with venv, and there is none: LLMOPS_ENGINE_PYTHON names one"

# One run at a time: the role makes uv's environment without a lock.
exec 9>"$cache/engines.lock"
flock 9
ANSIBLE_COLLECTIONS_PATH=$root/collections:$cache/collections working "Engines of the tests" \
  ansible-playbook -i localhost, tests/engines/engines.yml -e "engines_root=$cache/engines" -e "engines_python=$python" 9>&-
