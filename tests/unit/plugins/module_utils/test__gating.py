# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._gate import GateError
from ansible_collections.llmops.inference.plugins.module_utils._gating import Gate
from ansible_collections.llmops.inference.plugins.module_utils._host import HostError
from ansible_collections.llmops.inference.plugins.module_utils._readiness import Expectation
from ansible_collections.llmops.inference.plugins.module_utils._record import subject
from ansible_collections.llmops.inference.plugins.module_utils._release import Candidate, Store
from ansible_collections.llmops.inference.plugins.module_utils._repetition import BenchmarkError, BenchmarkFailed
from ansible_collections.llmops.inference.plugins.module_utils._standing import Settings
from ansible_collections.llmops.inference.plugins.module_utils._switch import Switch
from ansible_collections.llmops.inference.tests.unit.benchmark_records import measured, point
from ansible_collections.llmops.inference.tests.unit.machine import UNIT, Machine

EXPECT = Expectation(30000, "qwen", timeout=60.0)
UNIT_TEXT = "[Service]\nEnvironmentFile=@RELEASE@/environment\nExecStart=/opt/e/bin/python -m sglang.launch_server {}\n"


def candidate(*words):
    return Candidate(UNIT_TEXT.format(" ".join(words)), words)


ONE, TWO = candidate("--one"), candidate("--two")


class Bench:
    """A host that serves ONE, with a gate before whatever comes next; the benchmark is played."""

    def __init__(self, path):
        self.machine = Machine.below(path)
        self.store = Store(path / "store" / "main")
        self.rate = 100.0
        self.rates = []
        self.trouble = None
        self.measured = []
        self.baseline = []

    def gate(self, **asked):
        good = subject(self.store.read(self.store.good, "release")) if self.store.good else ""
        self.baseline = measured(100.0, release={"subject": good}) if good else []
        inputs = {"settings": {"tolerance_pct": 5}, "baseline": self.baseline, "history": self.baseline, "host": "ct129", "flags": []}
        return Gate({**inputs, **asked}, self.store, self._measure)

    def _measure(self, release):
        self.measured.append(release)
        if self.trouble:
            self.trouble()
        rate = self.rates.pop(0) if self.rates else self.rate
        (record,) = measured(
            rate if isinstance(rate, float) else 100.0,
            boots=(1.0,),
            name="now",
            release={"id": release, "subject": subject(self.store.read(release, "release"))},
        )
        if not isinstance(rate, float):
            record["starts"][0]["points"] = [point(rate)]
        # The host does not know how the controller calls it.
        return [{name: value for name, value in record.items() if name not in ("host", "flags", "verdict")}]

    def deploy(self, release, gate=None, **settings):
        self.machine.commands.clear()
        switch = Switch(self.store, self.machine, self.machine.run, EXPECT, Settings(UNIT, **settings), places=self.machine.places, gate=gate)
        return switch.deploy(release)

    def fails(self, error):
        def trouble():
            raise error

        self.trouble = trouble


@pytest.fixture(name="bench")
def fixture_bench(tmp_path, monkeypatch):
    exists = os.path.exists
    monkeypatch.setattr(os.path, "exists", lambda path: str(path).startswith("/opt/e") or exists(path))
    return Bench(tmp_path)


@pytest.fixture(name="served")
def fixture_served(bench):
    assert bench.deploy(ONE).action == "deployed"
    bench.machine.now += 10
    return bench


@pytest.mark.parametrize(
    ("rate", "action", "outcome", "serves"),
    [
        pytest.param(100.0, "deployed", "passed", TWO, id="as-fast"),
        pytest.param(97.0, "deployed", "passed", TWO, id="B05-within-the-tolerance"),
        pytest.param(120.0, "deployed", "passed", TWO, id="faster"),
        pytest.param(85.0, "rolled_back", "regression", ONE, id="slower"),
    ],
)
def test_a_release_that_is_slower_does_not_stay(served, rate, action, outcome, serves):
    served.rate = rate
    result = served.deploy(TWO, served.gate())
    assert (result.action, result.gate["outcome"], served.store.good) == (action, outcome, serves.id)
    assert served.measured == [TWO.id]
    assert served.store.read(TWO.id, "benchmark")["records"][0]["release"]["id"] == TWO.id, "what was measured is kept in any case"


def test_a_regression_is_told_and_not_tried_again(served):
    served.rate = 85.0
    result = served.deploy(TWO, served.gate())
    diagnosis = result.outcome.diagnosis
    assert (diagnosis.code, diagnosis.where) == ("slower_than_baseline", "release")
    assert "output_tok_per_s of decode at concurrency 1 is worse by 15" in diagnosis.cause and "tolerated 5 %" in diagnosis.cause
    assert "-e sglang_benchmark_accept=true" in diagnosis.hint
    assert result.rollback.ready
    served.machine.now += 10
    again = served.deploy(TWO, served.gate())
    assert (again.action, again.outcome.diagnosis.code) == ("refused", "slower_than_baseline")
    assert served.measured == [TWO.id], "a refused release is not measured"


@pytest.mark.parametrize(
    ("rates", "action", "times"),
    [
        pytest.param([[85.0, 50.0, 92.0, 60.0, 88.0], [85.0, 84.0, 86.0, 85.0, 84.5]], "rolled_back", 2, id="slower"),
        pytest.param([[85.0, 50.0, 100.0, 70.0, 110.0], [100.0, 101.0, 99.0, 100.0, 100.5]], "deployed", 2, id="as-fast"),
        pytest.param([[100.0, 99.0, 101.0, 98.0, 100.0]], "deployed", 1, id="no-doubt"),
        pytest.param([[85.0, 84.0, 86.0, 85.0, 84.5]], "rolled_back", 1, id="no-doubt-that-it-is-slower"),
    ],
)
def test_a_loss_that_is_not_shown_is_measured_once_more(served, rates, action, times):
    """On an H200 a release that was four times slower passed, by two noisy repetitions."""
    served.rates = rates
    result = served.deploy(TWO, served.gate())
    assert (result.action, len(served.measured)) == (action, times)
    assert len(served.store.read(TWO.id, "benchmark")["records"]) == times, "both are kept"


def test_what_is_good_already_is_not_measured(served):
    assert served.deploy(ONE, served.gate()).action == "unchanged"
    assert served.measured == []


@pytest.mark.parametrize(
    ("asked", "outcome"),
    [
        pytest.param({"baseline": [], "history": []}, "no baseline", id="B05-none"),
        pytest.param({"baseline": measured(100.0, release={"subject": "of-long-ago"})}, "passed", id="of-an-earlier-release"),
        pytest.param({"baseline": measured(0.0)}, "invalid baseline", id="B05-zero"),
        pytest.param({"baseline": measured(200.0, workload={"cache": "warm"})}, "stale", id="B05-cache"),
    ],
)
def test_what_cannot_be_judged_stays_and_is_told(served, asked, outcome):
    gate = served.gate()
    if outcome == "invalid baseline":
        asked = {
            "baseline": [{**record, "release": {**record["release"], "subject": served.baseline[0]["release"]["subject"]}} for record in asked["baseline"]]
        }
    gate = served.gate(**asked)
    result = served.deploy(TWO, gate)
    assert (result.action, result.gate["outcome"], served.store.good) == ("deployed", outcome, TWO.id)
    assert result.gate["text"]


THREE = candidate("--three")


@pytest.mark.parametrize(
    ("second", "third", "outcome", "words"),
    [
        pytest.param(130.0, 102.0, "regression", "against the release that it replaces", id="what-was-won-and-not-accepted"),
        pytest.param(97.0, 94.0, "regression", "the baseline is of an earlier release", id="each-loses-a-little"),
        pytest.param(130.0, 128.0, "passed", "the baseline is of an earlier release", id="as-fast"),
    ],
)
def test_after_a_release_whose_number_nobody_accepted(served, second, third, outcome, words):
    """The baseline stays that of ONE: neither may the third release lose what the second has won, nor both lose less than is tolerated."""
    gate, baseline = served.gate(), served.baseline
    served.rate = second
    assert served.deploy(TWO, gate).action == "deployed"
    served.machine.now += 10
    served.rate = third
    result = served.deploy(THREE, served.gate(baseline=baseline, history=baseline))
    assert (result.gate["outcome"], served.store.good) == (outcome, TWO.id if outcome == "regression" else THREE.id)
    assert words in result.gate["text"]


def test_the_first_release_of_a_host_passes(bench):
    result = bench.deploy(ONE, bench.gate())
    assert (result.action, result.gate["outcome"]) == ("deployed", "no baseline")


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(BenchmarkError("4 of 4 requests failed: HTTP 500"), id="B04-requests"),
        pytest.param(HostError("systemctl restart sglang-main.service failed"), id="a-restart"),
    ],
)
def test_a_server_that_fails_its_benchmark_does_not_stay(served, error):
    """Of a server that fails its requests there is no number, and it is none to keep."""
    served.fails(error)
    result = served.deploy(TWO, served.gate())
    assert (result.action, result.gate["outcome"], served.store.good) == ("rolled_back", "failed", ONE.id)
    assert result.outcome.diagnosis.code == "gate_failed"
    assert str(error) in result.outcome.diagnosis.cause


def test_what_was_measured_before_a_failure_is_kept(served):
    """Of the first measurement, and of the second one as far as it came."""
    first = []

    def trouble():
        served.rates = [[85.0, 50.0, 92.0, 60.0, 88.0]]
        if first:
            raise BenchmarkFailed("decode, concurrency 1: 1 of 4 requests failed (repetition 2 of 5)", [{"kind": "benchmark", "failed": True}])
        first.append(1)

    served.trouble = trouble
    result = served.deploy(TWO, served.gate())
    assert (result.action, result.gate["outcome"], served.store.good) == ("rolled_back", "failed", ONE.id)
    kept = served.store.read(TWO.id, "benchmark")["records"]
    assert len(kept) == 2 and kept[1] == {"kind": "benchmark", "failed": True}
    assert "decode, concurrency 1: 1 of 4 requests failed (repetition 2 of 5)" in result.outcome.diagnosis.cause


def test_a_server_that_dies_under_the_benchmark_says_what_it_died_of(served):
    def die():
        served.machine.dies["--two"] = []
        served.machine.run(["systemctl", "stop", UNIT])
        raise BenchmarkError("the load generator ended")

    served.trouble = die
    result = served.deploy(TWO, served.gate())
    assert (result.action, served.store.good) == ("rolled_back", ONE.id)
    assert result.outcome.diagnosis.code != "gate_failed", "its journal is asked, not the load generator"


def test_a_job_that_is_killed_in_the_gate_asks_it_again(served):
    """The trial was proven to serve, and never judged."""

    def kill():
        raise KeyboardInterrupt

    served.trouble, served.rate = kill, 85.0
    with pytest.raises(KeyboardInterrupt):
        served.deploy(TWO, served.gate())
    assert (served.store.good, served.store.read(TWO.id, "state")["state"]) == (ONE.id, "ready")
    served.trouble = None
    result = served.deploy(TWO, served.gate())
    assert (result.action, result.gate["outcome"], served.store.good) == ("rolled_back", "regression", ONE.id)
    assert served.measured == [TWO.id, TWO.id]
    assert served.machine.called("restart", UNIT) == 1, "only the good one was started again"


def test_a_gate_that_starts_the_server_anew(served):
    """Starts differ: the run that stays is the last one."""
    served.trouble = lambda: served.machine.run(["systemctl", "restart", UNIT])
    result = served.deploy(TWO, served.gate())
    assert (result.action, served.store.good) == ("deployed", TWO.id)
    assert served.store.read(TWO.id, "state")["invocation"] == served.machine.unit_state().invocation
    served.trouble = None
    assert served.deploy(TWO, served.gate()).action == "unchanged"


def test_settings_are_read_before_anything_is_done(served):
    with pytest.raises(GateError, match="sglang_server_gate.tolerance is no setting of the gate; did you mean tolerance_pct"):
        served.gate(settings={"tolerance": 5})
