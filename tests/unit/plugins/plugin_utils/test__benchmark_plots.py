# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import sys
import xml.etree.ElementTree as ET

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils import _benchmark_plots as plots
from ansible_collections.llmops.inference.tests.unit.benchmark_records import point, start
from ansible_collections.llmops.inference.tests.unit.benchmark_records import record as plain
from ansible_collections.llmops.inference.tests.unit.report_records import SWEEP, hostile, record, weeks

try:
    import matplotlib
except ImportError:
    matplotlib = None

# ansible-test has no extras; tools/report_test.sh has it, and fails where it is missing.
drawn = pytest.mark.skipif(matplotlib is None and "LLMOPS_REPORT_TEST" not in os.environ, reason="matplotlib is an extra: tools/report_test.sh draws these")
PNG = b"\x89PNG\r\n\x1a\n"


def texts(svg):
    """The texts of a picture; it is well-formed and has no script."""
    root = ET.fromstring(svg)
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert names.isdisjoint({"script", "foreignObject", "image", "a"})
    return ["".join(element.itertext()).strip() for element in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("draw", [plots.run_plot, lambda made, *form: plots.history_plot([made], *form)])
def test_without_matplotlib_it_says_what_to_do(monkeypatch, draw):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(plots.PlotError, match="pictures need matplotlib on the controller, for example `pip install matplotlib`"):
        draw(plain())


@pytest.mark.parametrize("form", ["pdf", "", "SVG"])
def test_other_forms_are_refused(form):
    with pytest.raises(plots.PlotError, match="is no form of a picture: svg, png"):
        plots.run_plot(plain(), form)


@pytest.mark.parametrize("draw", [plots.run_plot, lambda made: plots.history_plot([made])])
def test_nothing_to_draw(draw):
    with pytest.raises(plots.PlotError, match="no throughput|no record has"):
        draw(plain(starts=[start(point(status="failed", summary={}))]))


@drawn
@pytest.mark.parametrize(
    "rates, titles",
    [
        (SWEEP, ["Throughput (median, 95 % interval)", "Latency (p50 of the requests, 95 % interval)", "concurrency (streams)", "output tok/s", "TPOT", "64"]),
        ({1: 55.2}, ["Throughput of the repetitions (line: median, band: 95 % interval)", "Latency (p50 / p90 / p99 of the requests)", "repetition", "15"]),
    ],
)
def test_a_run(rates, titles):
    svg = plots.run_plot(record(rates=rates))
    assert {*titles, "Time between two tokens of an answer (ITL)", "ms"} <= set(texts(svg))
    assert plots.run_plot(record(rates=rates), "png").startswith(PNG)


@drawn
@pytest.mark.parametrize(
    "draw",
    [
        lambda form: plots.run_plot(record(rates=SWEEP), form),
        lambda form: plots.comparison_plot([record(1), record(2)], form),
        lambda form: plots.history_plot(weeks()[:10], form),
    ],
    ids=["run", "comparison", "history"],
)
@pytest.mark.parametrize("form", plots.FORMS)
def test_the_same_records_give_the_same_picture(draw, form):
    assert len({draw(form) for _time in range(3 if form == "svg" else 2)}) == 1
    if form == "svg":
        assert b"<dc:date" not in draw(form) and b"matplotlib.org" not in draw(form).split(b"<style")[0].split(b"<metadata")[-1]


@drawn
def test_runs_side_by_side():
    found = texts(plots.comparison_plot([record(1, rates=SWEEP), record(2, rates=SWEEP, host="other")]))
    assert {"ct129 2026-11-01 3494591af2ee", "other 2026-11-02 3494591af2ee", "TTFT (p50 of the requests, 95 % interval)"} <= set(found)


@drawn
def test_a_history_says_what_was_changed():
    found = texts(plots.history_plot(reversed(weeks()[:10])))
    assert "1  11-05 05d0005:  + speculative_algorithm NEXTN" in found
    assert "6  11-24 18d0005:  - enforce_piecewise_cuda_graph;  + speculative_num_steps 5" in found
    assert "contended" in found and "output tok/s" in found


@drawn
def test_a_history_of_a_latency():
    assert "TTFT p50 (ms)" in texts(plots.history_plot(weeks()[:3], metric="ttft_ms"))


@drawn
def test_a_long_history():
    made = [record(day, flags={"mem_fraction_static": day / 100}) for day in range(1, 29)]
    found = texts(plots.history_plot(made))
    assert len([text for text in found if "mem_fraction_static" in text]) == 20


@drawn
@pytest.mark.parametrize("attack", ["</svg><script>alert(1)</script>", "$\\frac{1}{0}$", "$x", "&amp;", "\u202e\x00"])
def test_texts_of_records_stay_texts(attack):
    made = hostile(attack)
    made["host"] = made["workload"]["name"] = attack
    texts(plots.run_plot(made))
    texts(plots.history_plot([record(1, host=attack), made]))


@drawn
def test_a_request_rate():
    assert "request rate (requests/s)" in texts(
        plots.run_plot(plain(starts=[start(*(point([rate * 50.0], concurrency=None, request_rate=rate) for rate in (1.0, 2.0)))]))
    )
