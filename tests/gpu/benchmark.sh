#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs as root on a machine with systemd, one NVIDIA GPU and an engine: a server of the 8B shape is deployed and measured on two starts, by the role and by the
# engine's own benchmark, and a slower release does not get through the gate.
#
#   benchmark.sh WORK OUT SECONDS
#
# See steps.sh; the records are in the archive under benchmarks/. MODEL names another folder for the model, which is made where it is not there. The server stays.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${ENGINE_PYTHON:-/opt/sglang/engines/0.5.17-cuda-bundle-py312-x86_64/bin/python}
model=${MODEL:-/opt/sglang/models/qwen3-8b-shape}
[ -e "$model/tokenizer.json" ] || "$python" "$here/benchmark_model.py" "$model"
exec "$here/steps.sh" benchmark "$@"
