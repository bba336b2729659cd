# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.llmops.inference.plugins.filter.summary import FilterModule
from ansible_collections.llmops.inference.plugins.module_utils._failure_report import releases, report
from ansible_collections.llmops.inference.plugins.module_utils._preflight_difference import compare, lines
from ansible_collections.llmops.inference.plugins.module_utils._summary import status, summarise
from ansible_collections.llmops.inference.tests.unit.benchmark_records import record
from ansible_collections.llmops.inference.tests.unit.plugins.module_utils.test__failure_report import RESULT
from ansible_collections.llmops.inference.tests.unit.plugins.module_utils.test__preflight_difference import real
from ansible_collections.llmops.inference.tests.unit.plugins.module_utils.test__summary import FACTS, SERVER

FILTERS = FilterModule().filters()


def test_sglang_summary():
    told = FILTERS["sglang_summary"]({name: value for name, value in FACTS.items() if name not in ("speed", "records")})
    assert told == summarise(FACTS) and len(told) > 5


STORED = {"format": 2, "records": [record()]}
NUMBERS = "decode: 100.0 tok/s (99.4 to 100.6) at concurrency 1"


def test_a_summary_of_what_was_measured_before():
    release = {**FACTS["release"], "benchmark": STORED}
    told = FILTERS["sglang_summary"]({**FACTS, "release": release, "kept": []})
    assert [line for line in told if "tok/s" in line] == [f"  speed   {NUMBERS}"]


def test_sglang_status():
    assert FILTERS["sglang_status"](SERVER, "ct129") == status({**SERVER, "speed": []}, "ct129")
    assert f"  speed   {NUMBERS}" in FILTERS["sglang_status"]({**SERVER, "benchmark": STORED}, "ct129")
    assert FILTERS["sglang_status"](SERVER, "ct129")[0].startswith("ct129: ")


def test_sglang_upgrade():
    """F05"""
    current, other = real("0.5.16", "graphs"), real("0.5.23", "graphs")
    told = FILTERS["sglang_upgrade"](current, other, "ct129")
    assert told == lines(compare(current, other), "ct129")
    assert told[:2] == [
        "ct129: SGLang 0.5.16 -> 0.5.23: these flags would be refused",
        "  refused   --enforce-piecewise-cuda-graph is not a flag of this engine",
    ]


def test_sglang_failure():
    told = FILTERS["sglang_failure"](RESULT, "ct129")
    assert told == report(RESULT, "ct129")
    assert told[0] == "ct129: release 0f3a9c1be27d failed, 77ab01c4f3e9 serves again"


def test_sglang_releases():
    one = {"release": "77ab01c4f3e9", "state": "good", "good": True, "since": 5.0, "cause": ""}
    result = {**RESULT, "releases": [one]}
    told = FILTERS["sglang_releases"](result, "ct129")
    assert told == releases(result, "ct129")
    assert told[1] == "  77ab01c4f3e9  good now"
