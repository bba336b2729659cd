#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs as root on a machine with systemd, one NVIDIA GPU, an engine and a model: deployments that succeed, fail on the GPU, are rolled back and refused.
#
#   rollback.sh WORK OUT SECONDS
#
# See steps.sh. The server stays.
exec "$(dirname "${BASH_SOURCE[0]}")/steps.sh" rollback "$@"
