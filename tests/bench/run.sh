#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Ratios from one run on one host: see preflight.py and bench.py. Takes about thirteen minutes, most of it imports, pip and server starts.
set -euo pipefail
# shellcheck source=tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/lib.sh"
cd "$root"

tools/engines.sh
python tests/bench/preflight.py
tools/hosts.sh up llmops-bench 30
trap 'tools/hosts.sh down llmops-bench' EXIT
python tests/bench/bench.py "$@"
