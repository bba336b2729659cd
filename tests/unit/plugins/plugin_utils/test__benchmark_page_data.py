# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils import _benchmark_page_data
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_page_data import page_data
from ansible_collections.llmops.inference.plugins.plugin_utils._commits import Between, Commit, Commits
from ansible_collections.llmops.inference.tests.unit.benchmark_records import record as plain
from ansible_collections.llmops.inference.tests.unit.report_records import SWEEP, baseline, by_host, record, weeks

WEEKS = weeks()


@pytest.fixture(scope="module", name="data")
def make_data():
    return page_data(by_host(WEEKS), {"ct129": baseline(WEEKS[4])}, ["x.json: damaged"])


def of(data, day, host="ct129", workload="decode"):
    """A record of the page."""
    (found,) = [one for one in data["records"] if (one["date"][8:10], one["host"], one["workload"]) == (f"{day:02d}", host, workload)]
    return found


def test_records_come_in_the_order_of_time(data):
    dates = [one["date"] for one in data["records"]]
    assert len(dates) == len(WEEKS) == len({one["id"] for one in data["records"]}) and dates == sorted(dates)
    assert data["skipped"] == ["x.json: damaged"]


@pytest.mark.parametrize(
    "day, verdict, changed",
    [
        (3, None, []),
        (5, "faster", ["+ speculative_algorithm NEXTN"]),
        (8, "no measurable difference", ["mem_fraction_static 0.88 -> 0.9"]),
        (17, "faster", ["engine 0.5.19 -> 0.5.23"]),
        (24, "slower", ["- enforce_piecewise_cuda_graph", "+ speculative_num_steps 5"]),
        (26, "not comparable", []),
        (28, "faster", ["- speculative_num_steps"]),
    ],
)
def test_each_record_is_held_against_the_one_before(data, day, verdict, changed):
    told = of(data, day)
    assert (told["verdict"] and told["verdict"]["verdict"], told["changed"]) == (verdict, changed)


def test_a_contended_record_is_nothing_to_hold_another_against(data):
    contended, after = of(data, 26), of(data, 28)
    assert contended["status"] == "contended"
    assert data["records"][after["before"]] is of(data, 24)


def test_the_baseline_is_known_by_its_file(data):
    assert [one["date"][8:10] for one in data["records"] if one["baseline"]] == ["17"]
    assert of(data, 17)["against_baseline"] is None and of(data, 30)["against_baseline"]["verdict"] == "faster"
    assert of(data, 20, "gpu-h200-1")["against_baseline"] is None, "another host's baseline is none of this one"


def test_every_two_records_of_a_series_have_a_verdict(data):
    places = [place for place, one in enumerate(data["records"]) if (one["host"], one["workload"]) == ("ct129", "decode")]
    pairs = {f"{old},{new}" for old in places for new in places if old < new}
    assert pairs <= data["pairs"].keys() and len(data["pairs"]) == len(pairs) + 2
    assert all(data["pairs"][pair]["ratio"] is None for pair in pairs if f"{data['records'].index(of(data, 26))}" in pair.split(","))


def test_conditions_that_differ_have_no_ratio(data):
    old, new = (data["records"].index(of(data, day, "gpu-h200-1")) for day in (10, 20))
    pair = data["pairs"][f"{old},{new}"]
    assert (pair["verdict"], pair["ratio"], pair["differs"]) == ("not comparable", None, [["driver", "580.159.04", "585.10.01"]])


def test_the_points_of_a_sweep_have_their_own_verdicts(data):
    old, new = (data["records"].index(of(data, day, workload="random_ids")) for day in (17, 29))
    points = data["pairs"][f"{old},{new}"]["points"]
    assert {name: point["verdict"] for name, point in points.items()} == {
        "1 stream": "no measurable difference",
        "4 streams": "faster",
        "16 streams": "faster",
        "64 streams": "faster",
    }
    assert [row["load"] for row in of(data, 29, workload="random_ids")["rows"]] == list(SWEEP)


def test_a_ratio_without_an_interval_tells_nothing():
    data = page_data(by_host([plain(measured_at="2026-11-01T00:00:00Z"), plain(measured_at="2026-11-02T00:00:00Z", starts=plain()["starts"])]), {})
    assert data["records"][1]["verdict"]["verdict"] == "no verdict" and data["records"][1]["verdict"]["low"] is None


def test_of_many_records_only_the_newest_are_held_against_each_other(monkeypatch):
    monkeypatch.setattr(_benchmark_page_data, "PAIRED", 3)
    calls = []

    def compare(before, after, **options):
        calls.append((before, after, options))
        return {"verdict": "faster", "ratio": 1.1, "low": 1.0, "high": float("nan"), "reason": "r"}

    made = [record(day) for day in range(1, 7)]
    data = page_data(by_host(made), {}, compare=compare)
    assert sorted(data["pairs"]) == ["0,1", "1,2", "2,3", "3,4", "3,5", "4,5"]
    assert data["pairs"]["0,1"] == {"verdict": "faster", "ratio": 1.1, "low": 1.0, "high": None, "reason": "r", "differs": [], "changed": [], "points": {}}
    assert all(options == {"metric": "output_tok_per_s", "history": made} for _before, _after, options in calls)


def test_instances_of_one_machine_are_series_of_their_own():
    data = page_data(by_host([record(1), {**record(2), "instance": "second"}]), {})
    assert [(one["host"], one["before"]) for one in data["records"]] == [("ct129", None), ("ct129/second", None)]


def test_facts_are_kept_once(data):
    assert len(data["facts"]) == len({tuple(fact) for fact in data["facts"]})
    facts = [data["facts"][place] for place in of(data, 24)["facts"]]
    assert ["Requested flags", "speculative_num_steps (host)", "5"] in facts


def test_messages_of_commits():
    made = [record(1), record(2)]
    ids = [one["inventory"]["commit"] for one in made]
    own, other = Commit(ids[1], "2026-11-02T09:00:00Z", "Ada", "Fewer\u2028steps"), Commit("f" * 40, "2026-11-01T12:00:00Z", "Bob", "Words")
    told = page_data(by_host(made), {}, commits=Commits({ids[1]: own}, {(ids[0], ids[1]): Between([other], 3, "apart")}))["records"]
    keys = ("message", "others", "left_out", "apart")
    assert [told[0][key] for key in keys] == [None, [], 0, ""], "git does not know it"
    assert [told[1][key] for key in keys] == ["Fewer steps", [["fffffff", "2026-11-01", "Words"]], 3, "apart"]
    assert [one["message"] for one in page_data(by_host(made), {})["records"]] == ["", ""], "git was not asked"
    made[0]["inventory"]["commit"] = None
    assert page_data(by_host(made), {}, commits=Commits())["records"][0]["message"] == "", "there is none to know"


def test_no_record_is_a_page_too():
    assert page_data({}, {}) == {"records": [], "facts": [], "pairs": {}, "skipped": []}
