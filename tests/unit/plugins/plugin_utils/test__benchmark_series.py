# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils import _benchmark_series as series
from ansible_collections.llmops.inference.tests.unit.report_records import baseline, by_host, record, weeks

WEEKS = weeks()


def test_records_come_in_the_order_of_time_and_in_series():
    found = series.entries(by_host(reversed(WEEKS)), {"ct129": baseline(WEEKS[4])})
    assert [entry.place for entry in found] == list(range(len(WEEKS)))
    assert [entry.record["measured_at"][8:10] for entry in found if entry.baseline] == ["17"]
    assert {key: len(own) for key, own in series.series_of(found).items()} == {
        ("ct129", "main", "decode"): 10,
        ("gpu-h200-1", "main", "decode"): 2,
        ("ct129", "main", "random_ids"): 2,
        ("ct129", "main", "short_cached"): 1,
    }


def test_what_does_not_count_is_passed_over():
    own = series.series_of(series.entries(by_host(WEEKS), {}))["ct129", "main", "decode"]
    days = [entry.record["measured_at"][8:10] for entry in own]
    assert not series.counts(own[days.index("26")].record) and series.before(own, 0) is None
    assert series.before(own, days.index("28")) is own[days.index("24")]


@pytest.mark.parametrize(
    "inventory, commit", [({"commit": "abc"}, "abc"), ({"commit": None}, ""), ({}, ""), ("text", ""), ({"commit": 7}, "7"), ({"commit": ["x"]}, "['x']")]
)
def test_the_commit_that_a_record_names(inventory, commit):
    assert series.commit_of({"inventory": inventory}) == commit


@pytest.mark.parametrize("instance, name", [("main", "ct129"), ("second", "ct129/second")])
def test_the_name_of_a_server(instance, name):
    assert series.server_name(("ct129", instance, "decode")) == name


def test_commits_that_are_wanted():
    made = [record(1), record(2), record(3, host="other"), record(4)]
    made[1]["inventory"]["commit"] = None
    ids, pairs = series.commits_wanted(by_host(made))
    assert ids == [made[0]["inventory"]["commit"], "", made[2]["inventory"]["commit"], made[3]["inventory"]["commit"]]
    assert pairs == [], "the record before names none"
    assert series.commits_wanted(by_host([made[0], made[3]]))[1] == [(made[0]["inventory"]["commit"], made[3]["inventory"]["commit"])]
