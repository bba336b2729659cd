# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.llmops.inference.plugins.plugin_utils._check_document import check_document
from ansible_collections.llmops.inference.plugins.plugin_utils._check_groups import groups
from ansible_collections.llmops.inference.tests.unit.check_changes import mixed, useful


def names(hosts):
    return [[host["host"] for host in group] for group in groups(hosts)]


def test_hosts_that_are_changed_alike_are_one_group():
    changes, preflights = useful("ct129", "ct130", "ct131")
    changes["hosts"][1]["after"]["release"].update(id="77ab01c4f3ea", unit="another port")
    changes["hosts"][2]["after"]["release"]["environment"]["A"] = "1"
    assert names(check_document(changes, preflights)["hosts"]) == [["ct129", "ct130"], ["ct131"]]


def test_the_worst_first():
    assert names(check_document(*mixed())["hosts"]) == [["ct129"], ["ct130"], ["ct133"], ["ct131", "ct132"], ["ct134"]]
