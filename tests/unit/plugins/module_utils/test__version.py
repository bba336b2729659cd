# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import yaml
from ansible_collections.llmops.inference.plugins.module_utils._version import VERSION

ROOT = Path(__file__).resolve().parents[4]


def test_it_is_the_collections_own():
    assert yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"] == VERSION
