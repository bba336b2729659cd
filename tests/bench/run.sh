#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Ratios from one run on one host: see the programs. Takes about half an hour, most of it imports, pip and server starts. With arguments, those of bench.py alone.
set -euo pipefail
# shellcheck source=tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/lib.sh"
cd "$root"

if [ $# -eq 0 ]; then
  tools/engines.sh
  python tests/bench/preflight.py
  python tests/bench/error_rates.py
  python tests/bench/client.py
  python tests/bench/overhead.py
fi
tools/hosts.sh up llmops-bench 30
trap 'tools/hosts.sh down llmops-bench' EXIT
python tests/bench/bench.py "$@"
