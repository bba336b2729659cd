# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._record_conditions import Change
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_history import Series, Step, history
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_view import Range
from ansible_collections.llmops.inference.plugins.plugin_utils._commits import Between, Commit, Commits
from ansible_collections.llmops.inference.plugins.plugin_utils._history_markdown import history_report
from ansible_collections.llmops.inference.tests.unit.report_records import ATTACK, by_host, hostile, record

OWN = Commit("1c34fe0f2c0a4d1e8b7a6f5e4d3c2b1a09f8e7d6", "2026-11-30T09:00:00Z", "Ada", "Draft three tokens ahead")
OTHER = Commit("abcdef0f2c0a4d1e8b7a6f5e4d3c2b1a09f8e7d6", "2026-11-29T09:00:00Z", "Bob", "More memory for the cache")
COMPARED = {"verdict": "faster", "ratio": 1.1, "low": 1.05, "high": 1.15, "reason": "r", "differs": []}
FLAG = Change("flag", "speculative_num_steps", "2", "3", "model")
REPORT = """\
# History of performance

1 record of 1 server, 2026-11-30 to 2026-11-30. Each is held against the record before it of the same server and workload; numbers are output tokens per \
second, the median with its 95 % interval. Under a commit are the others of the inventory since that record.

- something is not known

## ct129

### decode

| Measured | Commit | Changed | tok/s before | tok/s | Verdict |
| --- | --- | --- | ---: | ---: | --- |
| 2026-11-30 10:15 | 1c34fe0 Draft three tokens ahead | <code>speculative_num_steps</code> 2 -> 3 (model) | 50.0 (49.0 to 51.0) | 55.0 (54.0 to 56.0) | \
**faster**, 1.10 (1.05 to 1.15) |
"""


def step(**changes):
    whole = {
        "measured_at": "2026-11-30T10:15:00Z",
        "release": "3494591af2ee",
        "status": "ok",
        "commit": OWN.id,
        "dirty": False,
        "known": OWN,
        "between": Between([]),
        "changes": [FLAG],
        "load": "",
        "old": Range(50.0, 49.0, 51.0),
        "new": Range(55.0, 54.0, 56.0),
        "comparison": COMPARED,
    }
    return Step(**{**whole, **changes})


def cells(authors=False, **changes):
    """The cells of the one line."""
    line = history_report([Series("ct129", "decode", [step(**changes)])], authors=authors).strip().splitlines()[-1]
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def test_a_report():
    told = history_report([Series("ct129", "decode", [step()])], ["something is not known"])
    assert told.replace("speculative_num_steps 2", "<code>speculative_num_steps</code> 2") == REPORT


@pytest.mark.parametrize(
    "changes, words",
    [
        pytest.param({}, "1c34fe0 Draft three tokens ahead", id="known"),
        pytest.param({"known": None}, "1c34fe0 (git does not know it here)", id="not-known"),
        pytest.param({"commit": "", "known": None}, "the record names none", id="none"),
        pytest.param({"commit": "--x|", "known": None}, "<code>--x&#124;</code> (git does not know it here)", id="no-id"),
        pytest.param({"dirty": True}, "1c34fe0 Draft three tokens ahead<br>and changes that were not committed", id="dirty"),
        pytest.param({"authors": True}, "1c34fe0 Draft three tokens ahead (Ada)", id="author"),
        pytest.param(
            {"between": Between([OTHER], 2)}, "1c34fe0 Draft three tokens ahead<br>abcdef0 More memory for the cache<br>and 2 more commits", id="others"
        ),
        pytest.param({"between": Between([], 0, "apart")}, "1c34fe0 Draft three tokens ahead<br>(apart)", id="apart"),
    ],
)
def test_a_commit(changes, words):
    assert cells(**changes)[1] == words


@pytest.mark.parametrize(
    "changes, words",
    [
        ([], "nothing"),
        (
            [FLAG, Change("environment", "NCCL_P2P_LEVEL", "not set", "PHB")],
            "speculative_num_steps 2 -> 3 (model)<br>NCCL_P2P_LEVEL not set -> PHB (environment)",
        ),
        ([Change("flag", "tp_size", "1", "2", "model -> host")], "tp_size 1 -> 2 (model -> host)"),
        ([Change("engine", "engine", "0.5.19", "0.5.23")], "engine 0.5.19 -> 0.5.23"),
        ([Change("release", "release", "a1", "b2")], "release a1 -> b2, in nothing that a record names"),
        ([FLAG] * 14, "<br>".join(["speculative_num_steps 2 -> 3 (model)"] * 12 + ["and 2 more"])),
    ],
)
def test_what_was_changed(changes, words):
    assert cells(changes=changes)[2] == words


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"comparison": None}, "first record"),
        ({"status": "contended"}, "contended, counts for nothing"),
        ({"comparison": {**COMPARED, "verdict": "slower"}}, "**slower**, 1.10 (1.05 to 1.15)"),
        ({"comparison": {**COMPARED, "verdict": "no measurable difference"}}, "no measurable difference, 1.10 (1.05 to 1.15)"),
        (
            {"comparison": {**COMPARED, "verdict": "no measurable difference", "low": None, "reason": "nothing can be told: one start each"}},
            "no verdict: one start each",
        ),
        (
            {"comparison": {**COMPARED, "verdict": "not comparable", "differs": [{"text": "driver: 1, now 2"}, {"text": "kernel: 3, now 4"}]}},
            "not comparable: driver: 1, now 2; kernel: 3, now 4",
        ),
        ({"comparison": {**COMPARED, "verdict": "not comparable", "reason": "it is contended"}}, "not comparable: it is contended"),
        ({"comparison": {**COMPARED, "verdict": "invalid baseline", "reason": "it is 0"}}, "invalid baseline: it is 0"),
    ],
)
def test_a_verdict(changes, words):
    assert cells(**changes)[5] == words


def test_the_accepted_baseline_is_told_where_it_says_something():
    slower = {"verdict": "slower", "ratio": 0.157, "low": 0.0988, "high": 0.248}
    assert cells(accepted=slower)[-1].endswith("<br>**slower** than the accepted baseline, 0.16 (0.10 to 0.25)")
    for accepted, status in (({}, "ok"), ({"verdict": "no measurable difference"}, "ok"), (slower, "contended")):
        assert "accepted" not in cells(accepted=accepted, status=status)[-1]


def test_the_load_of_a_sweep_and_no_number():
    assert cells(load="16 streams", old=None)[3:5] == ["-", "55.0 (54.0 to 56.0) at 16 streams"]


def test_without_records():
    assert history_report([]) == "# History of performance\n\nThere is no record yet.\n"


def test_texts_of_anybody_are_no_structure():
    made = [record(1, workload="chat"), hostile()]
    for one in made:
        one["host"], one["workload"]["name"] = f"x{ATTACK}", f"chat{ATTACK}"
    commits = Commits(
        {one["inventory"]["commit"]: Commit(one["inventory"]["commit"], "", ATTACK, f"{ATTACK} www.example.org http://example.org #1") for one in made},
        {(made[0]["inventory"]["commit"], made[1]["inventory"]["commit"]): Between([OTHER._replace(subject=ATTACK)], 1, ATTACK)},
    )
    told = history_report(history(by_host(made), commits), [ATTACK], authors=True)
    assert not re.search(r"<(?!br>|/?code>)|@(?!&)|`|www\.|://|#1\b", told)
    assert all(line.count(" | ") == 5 for line in told.splitlines() if line.startswith("|"))
