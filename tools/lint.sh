#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# All linters; the first one that complains ends the run.
set -euo pipefail
# shellcheck source=tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

say "yamllint"
yamllint --strict .
say "ruff"
ruff check --quiet .
ruff format --quiet --check .
say "mypy (strict on module_utils)"
mypy --no-error-summary --strict -p ansible_collections.llmops.inference.plugins.module_utils
mypy --no-error-summary -p ansible_collections.llmops.inference.plugins
say "shellcheck"
shellcheck tools/*.sh tools/hosts/host-init roles/sglang_gitops/templates/ci/*.{sh,bash} tests/bench/*.sh tests/gpu/*.sh .ci/run
say "changelog"
antsibull-changelog lint
say "ansible-lint (profile production, no rule skipped)"
ansible-lint --offline --profile production -q
say "generated documentation"
python tools/role_readmes.py --check
