# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The groups as data. What lines lead to each row: test__diagnosis_table.py."""

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _diagnosis_host_rows as rows
from ansible_collections.llmops.inference.plugins.module_utils import _diagnosis_table as table

GROUPS = {name: group for name, group in vars(rows).items() if name.isupper() and not name.startswith("_") and isinstance(group, tuple)}


@pytest.mark.parametrize("name", GROUPS)
def test_every_group_is_asked_and_keeps_its_order(name):
    """A group that nobody asks is a cause that nobody names."""
    asked = [row for row in (*table.KERNEL, *table.ROWS) if row in GROUPS[name]]
    assert asked == list(GROUPS[name])


def test_a_row_stands_in_one_group():
    known = [row for name, group in GROUPS.items() for row in group if name != "RENDEZVOUS"]
    assert len(known) == len({id(row) for row in known}) > 20
