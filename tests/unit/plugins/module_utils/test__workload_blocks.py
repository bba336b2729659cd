# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.llmops.inference.plugins.module_utils._workload_blocks import BLOCKS


def test_blocks():
    assert len(set(BLOCKS)) == len(BLOCKS) >= 20
    assert all(400 <= len(block) <= 1000 and block.isascii() and block == block.strip() for block in BLOCKS)
