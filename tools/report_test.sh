#!/usr/bin/env bash
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
# Looks at the page of all benchmark records in headless Chromium, and draws the pictures with matplotlib: report_test.sh [pytest's options]
#
# Chromium comes from Debian (113 MB to download, 414 MB on disk), matplotlib into a folder of its own (requirements/report.txt, 137 MB).
# LLMOPS_REPORT_SHOTS names a folder for the screenshots.
set -euo pipefail
# shellcheck source=tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

if ! command -v chromium chromium-browser google-chrome >/dev/null; then
  command -v apt-get >/dev/null || die "this machine has no apt-get: install Chromium by hand"
  [ -n "$(find /var/lib/apt/lists -name '*_Packages*' -mmin -1440 -print -quit)" ] || working "Updating the package lists" as_root apt-get update -qq
  working "Installing Chromium" as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium
fi

lock=$root/requirements/report.txt
extra=$cache/report-$(sha256sum <"$lock" | cut -c -12)
if [ ! -e "$extra/.complete" ]; then
  rm -rf "$extra"
  working "Installing matplotlib" "$cache/controller/bin/uv" pip install --quiet --python "$cache/controller/bin/python" --target "$extra" --require-hashes --requirement "$lock"
  touch "$extra/.complete"
fi

collection=$root/collections/ansible_collections/llmops/inference
say "report: pytest"
LLMOPS_REPORT_TEST=1 PYTHONPATH=$root/collections:$extra python -m pytest -q -p no:cacheprovider --rootdir "$collection" \
  "$collection/tests/report" "$collection/tests/unit/plugins/plugin_utils/test__benchmark_plots.py" "$@"
