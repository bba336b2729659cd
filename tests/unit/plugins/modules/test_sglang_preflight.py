# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _host_checks
from ansible_collections.llmops.inference.plugins.module_utils._host import HostError
from ansible_collections.llmops.inference.plugins.module_utils._proc import Listener
from ansible_collections.llmops.inference.plugins.modules import sglang_preflight
from ansible_collections.llmops.inference.tests.unit.plugins.module_utils.test__outcome import answer
from ansible_collections.llmops.inference.tests.unit.plugins.module_utils.test__preflight_host import FACTS

CASES = ("F05", "F07")
SOURCES = {"language_only": "sglang_server_flags.language_only"}
REFUSED = (
    'sglang_server_flags.language_only: the engine refuses: "requires at least one encoder urls to be set via --encoder-urls" '
    "(because `self.language_only and len(self.encoder_urls) == 0`)."
)
UNIT = "[Service]\nUser=sglang\nPrivateTmp=yes\nDeviceAllow=/dev/nvidia0 rw\n"
PROBE = sglang_preflight.Probe
PASSED = ("0.5.23", "plain")
REJECTED = ("0.5.12", "language")


class Bench:
    """The module with a played engine.

    Attributes:
        probes: commands that asked the engine, with what they were given.
        commands: all other commands.
        gathered: how often facts of this host were gathered.
    """

    def __init__(self, path, run_module):
        self.path = path
        self.run_module = run_module
        self.python = path / "engines" / "own" / "bin" / "python"
        self.python.parent.mkdir(parents=True)
        self.python.touch()
        self.candidate = PASSED
        self.output = None
        self.probes, self.commands, self.gathered = [], [], 0

    def command(self, words, data=None, environ_update=None):
        if any("llmops_engine_probe" in word for word in words):
            self.probes.append((words, json.loads(data), environ_update))
            document = json.dumps({"candidates": [answer(*self.candidate)], "unexplained": None})
            return self.output or (0, document, "")
        self.commands.append(words)
        show = words[:2] == ["systemctl", "show"]
        return 0, "ControlGroup=/system.slice/sglang-main.service\n" if show else "", ""

    def gather(self):
        self.gathered += 1
        return FACTS

    def run(self, check_mode=False, **args):
        engine = {"name": "own", "version": "0.5.23", "flavour": "cpu", "cuda": "13.0"}
        common = {"python": str(self.python), "engine": engine, "argv": ["--model-path", "org/model"], "sources": SOURCES, "cache": str(self.path / "cache")}
        given = {name: value for name, value in {**common, **args}.items() if value is not None}
        return self.run_module(sglang_preflight, given, command=self.command, check_mode=check_mode)


@pytest.fixture(name="bench")
def fixture_bench(tmp_path, monkeypatch, run_module):
    bench = Bench(tmp_path, run_module)
    monkeypatch.setattr(sglang_preflight, "GpuHost", lambda ask, files: SimpleNamespace(collect=bench.gather))
    monkeypatch.setattr(_host_checks.judge_ports, "__defaults__", (lambda number: [], lambda group: set(), lambda pid: ""))
    return bench


OUTCOMES = [
    pytest.param(PASSED, {}, "passed", False, id="passed"),
    pytest.param(("0.5.12", "plain"), {}, "warned", False, id="warned"),
    pytest.param(("0.5.12", "plain"), {"silently_disabled": "ignore"}, "passed", False, id="ignored"),
    pytest.param(("0.5.12", "plain"), {"silently_disabled": "fail"}, "rejected", True, id="not-silently"),
    pytest.param(REJECTED, {}, "rejected", True, id="F07-refused-by-the-engine"),
    pytest.param(REJECTED, {"fail_on_rejection": False}, "rejected", False, id="told-only"),
    pytest.param(("0.5.12", "removed"), {}, "rejected", True, id="not-honoured"),
    pytest.param(("0.5.12", "removed"), {"not_honoured": "warn"}, "warned", False, id="not-honoured-is-a-warning"),
    pytest.param(("0.5.12", "short"), {}, "rejected", True, id="F05-words"),
]


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize("candidate, args, verdict, failed", OUTCOMES)
def test_the_same_keys_whatever_happens(bench, documented, candidate, args, verdict, failed, check_mode):
    bench.candidate = candidate
    ran = bench.run(check_mode=check_mode, **args)
    assert (ran.result["preflight"]["verdict"], ran.failed, ran.status) == (verdict, failed, int(failed))
    assert ran.keys == documented(sglang_preflight) and ran.result.get("changed", False) is False
    assert bool(ran.result["rejection"]) is (verdict == "rejected")
    assert ran.result["report"][0].startswith("preflight ") and len(bench.probes) == 1
    if failed:
        assert ran.result["msg"] == ran.result["rejection"]


def test_the_message_names_the_variable(bench):
    """F07"""
    bench.candidate = REJECTED
    assert bench.run().result["msg"] == REFUSED
    told = bench.run(fail_on_rejection=False).result
    assert told["rejection"] == REFUSED and "msg" not in told


def test_a_second_run_does_not_ask_the_engine(bench):
    first, second = bench.run().result, bench.run(check_mode=True).result
    assert (first["cached"], second["cached"], len(bench.probes)) == (False, True, 1)
    assert first["preflight"] == second["preflight"]
    assert second["report"][0].endswith("; unchanged, answered from the cache")
    assert bench.run(argv=["--model-path", "org/other"]).result["cached"] is False


def test_no_cache(bench):
    assert [bench.run(cache="").result["cached"] for _time in range(2)] == [False, False]
    assert len(bench.probes) == 2 and not (bench.path / "cache").exists()


@pytest.mark.parametrize(
    "flavour, facts, gathered, gpus",
    [("cpu", None, 0, 0), ("cuda", None, 1, 2), ("cuda", FACTS, 0, 2), ("cpu", FACTS, 0, 2)],
    ids=["cpu", "cuda-looks-itself", "cuda-is-told", "cpu-for-another-host"],
)
def test_whose_gpus(bench, flavour, facts, gathered, gpus):
    result = bench.run(engine={"version": "0.5.23", "flavour": flavour}, gpu_facts=facts).result["preflight"]
    assert (bench.gathered, len(result["hardware"]["gpus"])) == (gathered, gpus)
    assert (bench.probes[0][1]["hardware"] is None) is (gpus == 0)


def test_recorded_facts(bench):
    result = bench.run(gpu_facts=FACTS, recorded=True, instance="main", argv=["--model-path", "/gone"]).result["preflight"]
    assert result["hardware"]["recorded"] is True and bench.commands == []
    assert not [row for row in result["findings"] if row["code"].startswith("path_")]


@pytest.mark.parametrize(
    "marker, engine, cuda",
    [
        ('{"cuda": "12.9"}', {}, "12.9"),
        ('{"cuda": "12.9"}', {"cuda": "13.0"}, "13.0"),
        ('{"cuda": null}', {}, "13.0"),
        ("{", {}, "13.0"),
        ("", {}, "13.0"),
        ("[]", {}, "13.0"),
        ("null", {}, "13.0"),
        (b"\xff\xfe\x00", {}, "13.0"),
        (None, {}, "13.0"),
    ],
    ids=["marker", "told", "marker-without", "broken", "empty", "list", "none", "no-text", "driver"],
)
def test_which_cuda(bench, marker, engine, cuda):
    if marker is not None:
        (bench.python.parent.parent / "engine.json").write_bytes(marker if isinstance(marker, bytes) else marker.encode())
    bench.run(engine={"version": "0.5.23", "flavour": "cpu", **engine}, gpu_facts=FACTS)
    assert bench.probes[0][1]["hardware"]["cuda"] == cuda


def test_secrets_are_only_named(bench):
    """U09"""
    bench.run(secret_flags=["api_key"], environment={"SGLANG_N": 1, "B": True})
    words, request, environment = bench.probes[0]
    assert request["argvs"] == [["--model-path", "org/model", "--api-key", "preflight"]]
    assert (environment["SGLANG_N"], environment["B"]) == ("1", "True"), "an environment is text"
    assert words[:3] == ["timeout", "300", str(bench.python)]


def test_with_a_unit_it_runs_in_its_sandbox(bench, monkeypatch):
    monkeypatch.setattr(sglang_preflight, "Probe", lambda *args: PROBE(*args, folder=str(bench.path / "run")))
    bench.run(unit=UNIT, timeout=60, argv=["--model-path", str(bench.path)], environment={"A": "1"})
    words, _request, environment = bench.probes[0]
    assert words[0] == "systemd-run" and environment == {}
    assert {"--property=User=sglang", "--property=PrivateDevices=yes", "--property=RuntimeMaxSec=60", "--setenv=A=1"} <= set(words)
    assert "DeviceAllow" not in str(words)
    assert [command[:3] for command in bench.commands] == [["runuser", "-u", "sglang"]]


def test_a_sandbox_that_cannot_be_set_up_is_told_and_does_not_pass(bench, monkeypatch):
    monkeypatch.setattr(sglang_preflight, "Probe", lambda *args: PROBE(*args, folder=str(bench.path / "run")))
    bench.output = (226, "", "")
    ran = bench.run(unit=UNIT)
    assert (ran.failed, ran.result["preflight"]["verdict"], ran.result["preflight"]["explained"]) == (False, "warned", False)
    assert "226/NAMESPACE" in ran.result["preflight"]["findings"][0]["text"]
    assert bench.run(unit=UNIT).result["cached"] is False


@pytest.mark.parametrize("listener, held", [(Listener(900, "own"), False), (Listener(455, "python3 -m http.server"), True)], ids=["own", "another"])
def test_ports(bench, monkeypatch, listener, held):
    """N08: what the replaced unit holds counts as free."""
    groups = {"/system.slice/sglang-main.service": {900}, "": set()}
    monkeypatch.setattr(_host_checks.judge_ports, "__defaults__", (lambda number: [listener] if number == 30000 else [], groups.__getitem__, lambda pid: ""))
    ran = bench.run(instance="main")
    assert bench.commands[0][:2] == ["systemctl", "show"] and "sglang-main.service" in bench.commands[0]
    assert ran.failed is held and ("http.server" in ran.result["rejection"]) is held
    assert bench.run().failed is True, "without an instance everyone is another"


@pytest.mark.parametrize(
    "args, message",
    [({"unit": "no unit"}, "not a unit file: the line 'no unit' is neither a section nor an assignment"), ({"not_honoured": "x"}, "not_honoured")],
)
def test_arguments_that_cannot_be_used(bench, args, message):
    ran = bench.run(**args)
    assert ran.failed and message in ran.result["msg"] and bench.probes == []


def test_a_host_that_cannot_be_asked(bench, monkeypatch, documented):
    def collect():
        raise HostError("nvidia-smi failed")

    monkeypatch.setattr(sglang_preflight, "GpuHost", lambda ask, files: SimpleNamespace(collect=collect))
    ran = bench.run(engine={"version": "1", "flavour": "cuda"})
    assert ran.failed and ran.result["msg"] == "nvidia-smi failed" and ran.keys == documented(sglang_preflight)
