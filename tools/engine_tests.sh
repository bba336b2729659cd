#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Holds the preflight to real engines of six versions (cpu builds; no server starts).
set -euo pipefail
# shellcheck source=tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

tools/engines.sh
say "real engines: pytest"
PYTHONPATH=$root/collections python -m pytest -q -p no:cacheprovider --rootdir collections/ansible_collections/llmops/inference \
  collections/ansible_collections/llmops/inference/tests/engines
