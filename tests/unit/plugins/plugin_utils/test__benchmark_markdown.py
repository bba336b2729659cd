# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._record_compare import compare_records
from ansible_collections.llmops.inference.plugins.plugin_utils import _benchmark_markdown as markdown
from ansible_collections.llmops.inference.tests.unit.benchmark_records import measured, point, record, repetition, start
from ansible_collections.llmops.inference.tests.unit.report_records import ATTACK, SWEEP, hostile
from ansible_collections.llmops.inference.tests.unit.report_records import record as realistic

QUIET = [repetition(rate, gpus=[], accept_length=None) for rate in (55.1, 55.2, 55.3)]
SAME = {"verdict": "no measurable difference", "metric": "output_tok_per_s", "ratio": 1.0, "low": 0.98, "high": 1.02, "reason": "r", "points": []}
RUN = """\
**decode on ct129: 55.2 tok/s (55.1 to 55.3), no measurable difference from the baseline (ratio 1.00, 0.98 to 1.02)**

| Load | tok/s | TTFT ms p50 / p90 / p99 | TPOT ms p50 / p90 / p99 | ITL ms p50 / p90 / p99 | E2E ms p50 / p90 / p99 | Cache hits | Spread | Repetitions |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| 1 stream | 55.2 (55.1 to 55.3) | 36.2 / 38.0 / 39.1 | 18.1 / 19.0 / 19.6 | 18.1 / 19.0 / 19.6 | 9,293 / 9,758 / 10,037 | 0 % | 0.1 % | 3 |

- The inventory had changes that were not committed.

<details>
<summary>Conditions</summary>
"""


def first_line(text):
    """The verdict."""
    return text.split("\n")[0].strip("*")


def test_a_report_of_a_run():
    made = record(starts=[start(point(QUIET))], silent_changes=[], inventory={"dirty": True})
    assert markdown.run_report(made, [SAME]).startswith(RUN)


@pytest.mark.parametrize(
    "changes, headline",
    [
        pytest.param({}, "decode on ct129: 55.2 tok/s (55.1 to 55.3)", id="no-baseline"),
        pytest.param(
            {"comparison": {**SAME, "verdict": "slower", "ratio": 0.95, "low": 0.94, "high": 0.96}},
            "decode on ct129: 55.2 tok/s (55.1 to 55.3), slower than the baseline (ratio 0.95, 0.94 to 0.96)",
            id="slower",
        ),
        pytest.param(
            {"comparison": {**SAME, "verdict": "not comparable", "differs": [{"name": "driver"}, {"name": "seed"}]}},
            "decode on ct129: 55.2 tok/s (55.1 to 55.3), not comparable with the baseline: driver, seed differ",
            id="not-comparable",
        ),
        pytest.param(
            {"comparison": {**SAME, "verdict": "not comparable", "differs": [], "reason": "there is no baseline"}},
            "decode on ct129: 55.2 tok/s (55.1 to 55.3), not comparable with the baseline: there is no baseline",
            id="nothing-to-compare",
        ),
        pytest.param(
            {"comparison": {**SAME, "low": None, "high": None, "reason": "nothing can be told"}},
            "decode on ct129: 55.2 tok/s (55.1 to 55.3), no verdict: nothing can be told",
            id="too-few-starts",
        ),
        pytest.param({"status": "contended"}, "decode on ct129: 55.2 tok/s (55.1 to 55.3); contended, so the numbers count for nothing", id="contended"),
        pytest.param({"status": "failed", "summary": {}}, "decode on ct129: failed", id="failed"),
        pytest.param({"summary": {}}, "decode on ct129: no number was measured", id="no-number"),
    ],
)
def test_the_verdict_comes_first(changes, headline):
    comparison = changes.pop("comparison", None)
    report = markdown.run_report(record(starts=[start(point(QUIET, **changes))]), [comparison] if comparison else [])
    assert first_line(report) == headline


def test_a_sweep_says_where():
    before, after = realistic(17, workload="chat", rates=SWEEP), realistic(18, workload="chat", rates={**SWEEP, 16: 500.0})
    comparison = compare_records([before], [after])
    report = markdown.run_report(after, [comparison])
    assert re.fullmatch(
        r"chat on ct129: 55\.\d tok/s \(.* to .*\) at 1 stream, 1,1\d\d at 64 streams, slower than the baseline at 16 streams \(ratio 0\.89, .*\)",
        first_line(report),
    )
    assert [line.split(" | ")[0] for line in report.split("\n")[2:8]] == ["| Load", "| ---", "| 1 stream", "| 4 streams", "| 16 streams", "| 64 streams"]
    assert "Requests/s within TTFT 2000 ms, TPOT 50 ms" in report and "15 in 3 starts" in report


def test_further_comparisons_follow():
    report = markdown.run_report(record(), [SAME, {**SAME, "metric": "ttft_ms_p99", "verdict": "slower", "ratio": 1.2, "low": 1.1, "high": 1.3}])
    assert "\n- TTFT p99: slower than the baseline (ratio 1.20, 1.10 to 1.30)\n" in report


def test_what_could_not_be_seen_is_said():
    point_ = {"concurrency": 1, "verdict": "no measurable difference", "smallest_pct": 4.21, "starts_needed": 4, "repetitions_needed": 9}
    report = markdown.run_report(record(), [{**SAME, "points": [point_]}])
    assert "- a change below 4.2 % could not have been seen; to tell 3 % takes more, about 4 server starts of 9 repetitions each." in report


def test_a_comparison():
    before, after = measured(100.0), measured(110.0, name="b", release={"subject": "b"}, flags=[{"name": "tp_size", "value": 4, "layer": "host"}])
    report = markdown.comparison_report(before, after, compare_records(before, after))
    assert first_line(report) == "decode on ct129: 110.0 against 100.0 tok/s, faster than the baseline (ratio 1.10, 1.09 to 1.11)"
    lines = report.split("\n")
    assert lines[2].startswith("| Load | tok/s, baseline | tok/s, now | Ratio | TTFT ms p50, baseline |")
    assert lines[4].split(" | ")[3] == "1.10, 1.09 to 1.11, faster"
    assert "Changed on purpose:\n\n- mem_fraction_static 0.85 -> not set\n" in report
    assert "- Both: 1 stream: GPU 0 was held back" in report
    assert "from 3 server starts in 3 records (baseline) and 3 server starts in 3 records (now)" in report
    assert report.count("<details>") == report.count("</details>") == 2


def test_conditions_that_differ_stand_before_what_was_changed():
    before, after = measured(100.0), measured(110.0, name="b", hardware={"driver": "590.1"}, workload={"cache": "warm"})
    report = markdown.comparison_report(before, after, compare_records(before, after))
    assert first_line(report) == "decode on ct129, not comparable with the baseline: driver, cache policy differ"
    assert "say nothing of the change:\n\n- driver: 580.159.04 -> 590.1\n- cache policy: flushed -> warm\n\nNothing was changed on purpose" in report
    assert "Ratio" not in report


@pytest.mark.parametrize(
    "text, escaped",
    [
        ("mem_fraction_static 0.88 -> 0.9", "mem_fraction_static 0.88 -> 0.9"),
        ("_x_ *b* `c`", "&#95;x&#95; &#42;b&#42; &#96;c&#96;"),
        ("<img src=x>|", "&#60;img src=x&#62;&#124;"),
        ("[a](https://b)", "&#91;a&#93;(https&#58;//b)"),
        ("www.example.org, WWW.x, awww. and a.b", "www&#46;example.org, WWW&#46;x, awww&#46; and a.b"),
        ("@all #12", "&#64;&#8203;all &#35;&#8203;12"),
        ("a\n# b", "a &#35; b"),
        ("&amp;", "&#38;amp;"),
    ],
)
def test_escape(text, escaped):
    assert markdown.escape(text) == escaped


@pytest.mark.parametrize(
    "text, made",
    [
        ("Qwen/Qwen3.6-27B", "Qwen/Qwen3.6-27B"),
        ("2026-11-30T10:15:00Z", "2026-11-30T10:15:00Z"),
        ("1. x", "<code>1. x</code>"),
        ("http://x", "<code>http&#58;//x</code>"),
        ("-x", "<code>-x</code>"),
        ("", "<code></code>"),
    ],
)
def test_code(text, made):
    assert markdown.code(text) == made


@pytest.mark.parametrize("attack", [ATTACK, "</details>", "\n\n# x", "](http://x)", "a|b|c", "``` \n", "<!--", "@all", "$`x`$"])
def test_nothing_of_a_record_is_structure(attack):
    made = hostile(attack)
    made["host"] = made["workload"]["name"] = attack
    comparison = {
        **SAME,
        "verdict": "not comparable",
        "reason": attack,
        "changed": [attack],
        "differs": [{"name": attack, "baseline": attack, "current": attack}],
    }
    for report in (
        markdown.run_report(made, [comparison, {**SAME, "metric": attack, "verdict": attack}]),
        markdown.comparison_report([made], [made], comparison),
    ):
        assert set(re.findall(r"</?[^>]*>", report)) <= {"<details>", "</details>", "<summary>", "</summary>", "<code>", "</code>"}
        assert report.count("<details>") == report.count("</details>") == report.count("Conditions") - report.count("Conditions that differ")
        assert not re.search(r"[@`$]|\]\(|^#", report, re.MULTILINE)
        widths = {line.count(" | ") for line in report.split("\n") if line.startswith("| ") and "Condition" not in line}
        assert len(widths) <= 2, "the cells of a table are as many as before"


def test_a_report_fits_into_a_comment():
    made = record(effective={f"flag_{i}": "x" * 500 for i in range(500)})
    assert len(markdown.run_report(made)) < 65536
    assert "and 464 more" in markdown.run_report(made)
