# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._record_conditions import Change
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_history import history
from ansible_collections.llmops.inference.plugins.plugin_utils._commits import Between, Commit, Commits
from ansible_collections.llmops.inference.tests.unit.report_records import SWEEP, by_host, record, weeks

WEEKS = weeks()


def steps(*made, commits=None):
    """The only series, the newest first."""
    (found,) = history(by_host(made), commits or Commits())
    return found.steps


@pytest.fixture(scope="module", name="decode")
def fixture_decode():
    return {step.measured_at[8:10]: step for step in next(one for one in history(by_host(WEEKS), Commits()) if one.workload == "decode").steps}


def test_each_server_and_workload_has_its_own():
    found = history(by_host([*WEEKS, {**record(4), "instance": "second"}]), Commits())
    assert [(one.server, one.workload, len(one.steps)) for one in found] == [
        ("ct129", "decode", 10),
        ("ct129", "random_ids", 2),
        ("ct129", "short_cached", 1),
        ("ct129/second", "decode", 1),
        ("gpu-h200-1", "decode", 2),
    ]
    assert [step.measured_at[8:10] for step in found[0].steps] == ["30", "28", "26", "24", "21", "17", "12", "08", "05", "03"]
    assert history({}, Commits()) == []


@pytest.mark.parametrize(
    "day, verdict, changes",
    [
        ("05", "faster", [Change("flag", "speculative_algorithm", "not set", "NEXTN", "host")]),
        ("08", "no measurable difference", [Change("flag", "mem_fraction_static", "0.88", "0.9", "host")]),
        ("17", "faster", [Change("engine", "engine", "0.5.19", "0.5.23")]),
        (
            "24",
            "slower",
            [
                Change("flag", "enforce_piecewise_cuda_graph", "true", "not set", "host"),
                Change("flag", "speculative_num_steps", "not set", "5", "host"),
            ],
        ),
        ("26", "not comparable", []),
    ],
)
def test_what_was_changed_and_what_it_did(decode, day, verdict, changes):
    step = decode[day]
    assert (step.comparison["verdict"], step.changes, step.load) == (verdict, changes, "")


def test_the_numbers_are_those_before_and_after(decode):
    assert decode["28"].old == decode["24"].new, "a contended record is nothing to hold another against"
    assert decode["26"].status == "contended" and decode["26"].new is not None
    first = decode["03"]
    assert (first.comparison, first.old, first.changes) == (None, None, []) and first.new.low < first.new.median < first.new.high


def test_a_sweep_is_told_at_the_load_of_its_verdict():
    worse = {**SWEEP, 16: 0.8 * SWEEP[16]}
    new, old = steps(record(1, rates=SWEEP), record(2, rates=worse))
    assert (new.comparison["verdict"], new.load, old.load) == ("slower", "16 streams", "1 stream")
    assert new.new.median < 0.85 * new.old.median


def test_models_and_releases_are_changes_too():
    old, new = record(1), record(2, release="b70fee4a3c06")
    assert steps(old, new)[0].changes == [Change("release", "release", "3494591af2ee", "b70fee4a3c06")]
    new["model"]["name"] = "other"
    told = steps(old, new)[0]
    assert told.changes == [Change("model", "model", "qwen3.6-27b", "other")] and told.comparison["verdict"] == "not comparable"
    new["model"].update(name=old["model"]["name"], revision="0000")
    assert steps(old, new)[0].changes == [Change("model", "model revision", "9d2f1e0c", "0000")]


def test_messages_belong_to_the_commits_that_records_name():
    old, new = record(1), record(2)
    ids = [made["inventory"]["commit"] for made in (old, new)]
    message, between = Commit(ids[1], "2026-11-02T09:00:00Z", "Ada", "Fewer steps"), Between([Commit("f" * 40, "2026-11-01T12:00:00Z", "Bob", "Words")], 3)
    told = steps(old, new, commits=Commits({ids[1]: message}, {(ids[0], ids[1]): between}))
    assert (told[0].commit, told[0].known, told[0].between) == (ids[1], message, between)
    assert (told[1].commit, told[1].known, told[1].between) == (ids[0], None, Between([]))
    new["inventory"].update(commit=None, dirty=None)
    assert (steps(old, new)[0].commit, steps(old, new)[0].dirty) == ("", False)
