# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import json

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils import _drift
from ansible_collections.llmops.inference.plugins.plugin_utils._drift import Finding, Places, describe
from ansible_collections.llmops.inference.tests.unit.benchmark_records import record

GOOD, OTHER = "3494591af2ee", "0f3a9c1be27d"
NAME = f"20261130T101500Z-decode-{GOOD}.json"
RELEASE = {"id": GOOD, "argv": ["--tp-size", "2"], "environment": {}, "engine": {"name": "0.5.12-cuda"}, "model": {"path": "/m"}, "secrets": ["api_key"]}
FACTS = {
    "distribution": "Debian",
    "distribution_version": "12.11",
    "python": {"version": {"major": 3, "minor": 11, "micro": 2}},
    "systemd": {"version": 252},
}
GPUS = {"gpus": [{"name": "NVIDIA RTX A6000", "memory_total_mib": 49140}] * 2, "driver": {"version": "580.159.04"}}
MODEL = {"path": "/m", "revision": "9d2f", "weights": {"bytes": 54_000_000_000}}
LOOK = {
    "server": {"unit": "sglang-main.service", "health": "HTTP 200", "release": RELEASE, "effective": {"version": "0.5.12", "differences": [], "problem": ""}},
    "release": {"action": "unchanged", "asked": GOOD, "reasons": [], "holder": {}, "msg": ""},
    "asked": {name: RELEASE[name] for name in ("argv", "environment", "engine", "model", "secrets")},
    "engine": {"name": "0.5.12-cuda", "version": "0.5.12", "installed": True},
    "credentials_differ": False,
    "benchmark": {"expected": False, "records_dir": "", "gate": {}},
    "facts": FACTS,
    "gpus": GPUS,
    "model": MODEL,
}


def changed(**changes):
    """What was seen of a host without drift, but for these parts (``a__b`` is b inside a)."""
    look = copy.deepcopy(LOOK)
    for name, value in changes.items():
        *outer, last = name.split("__")
        part = look
        for key in outer:
            part = part[key]
        part[last] = value
    return look


@pytest.fixture(name="places")
def fixture_places(tmp_path):
    """An inventory that keeps neither snapshots nor records of deployments."""
    return Places(tmp_path / "snapshots", tmp_path / "deployed")


@pytest.fixture(name="kept")
def fixture_kept(places):
    """An inventory that keeps both, of a host without drift."""
    places.deployed.mkdir()
    (places.deployed / "ct129.json").write_text(json.dumps({"format": 1, "kind": "deployed", "host": "ct129", "release": GOOD}))
    folder = places.snapshots / "ct129"
    folder.mkdir(parents=True)
    (folder / "host.json").write_text(json.dumps({"format": 1, "kind": "host", "recorded_at": "2026-11-01T00:00:00Z", "facts": FACTS}))
    (folder / "gpu.json").write_text(json.dumps(GPUS))
    (folder / "model.json").write_text(json.dumps(MODEL))
    return places


def texts(look, places, **more):
    return [one["text"] for one in describe("ct129", look, places, **more)["findings"]]


def test_a_host_without_drift(kept):
    assert describe("ct129", LOOK, kept) == {
        "host": "ct129",
        "status": "same",
        "asked": GOOD,
        "there": GOOD,
        "findings": [],
        "remarks": [],
        "repairable": False,
        "repaired": [],
        "repair": {},
    }


@pytest.mark.parametrize(
    "look, status, text",
    [
        ({"unreachable": "no route to host"}, "unreachable", "the host cannot be reached: no route to host"),
        ({}, "unreachable", "the host cannot be reached: it stopped answering before it was looked at"),
        ({"failed": "Check the port: no"}, "not judged", "it could not be looked at: Check the port: no"),
        (
            changed(release__action="busy", release__holder={"purpose": "deploying x", "since": "now", "by": "ops@a"}),
            "not judged",
            "another run is at it: deploying x, since now, by ops@a",
        ),
        (changed(release__action="busy"), "not judged", "another run is at it: unknown, since unknown, by unknown"),
    ],
    ids=["unreachable", "lost", "failed", "busy", "busy-unknown"],
)
def test_a_host_that_was_not_judged_never_counts_as_the_same(places, look, status, text):
    entry = describe("ct129", look, places)
    assert (entry["status"], [one["text"] for one in entry["findings"]]) == (status, [text])
    assert (entry["findings"][0]["kind"], entry["repairable"]) == ("host", False)


SERVER = [
    pytest.param({"release__reasons": ["the unit in /etc was edited by hand"]}, ["the unit in /etc was edited by hand"], id="edited"),
    pytest.param({"release__reasons": ["the server is not running", "a secret changed"]}, ["the server is not running", "a secret changed"], id="two"),
    pytest.param(
        {"release__reasons": [f"the release changes from {GOOD} to {OTHER}"], "asked__argv": ["--tp-size", "1"]},
        [f"the release changes from {GOOD} to {OTHER}: --tp-size: 2 -> 1"],
        id="other-flag",
    ),
    pytest.param(
        {"release__reasons": [f"the release changes from {GOOD} to {OTHER}"], "asked__argv": [f"--a{i}" for i in range(9)], "server__release__argv": []},
        [f"the release changes from {GOOD} to {OTHER}: " + "; ".join(f"--a{i}: not set -> on" for i in range(6)) + "; and 3 more"],
        id="many-flags",
    ),
    pytest.param(
        {"release__reasons": [f"the release changes from {GOOD} to {OTHER}"]}, [f"the release changes from {GOOD} to {OTHER}: its unit differs"], id="unit-only"
    ),
    pytest.param({"credentials_differ": True}, ["the file with the secret flags is other than the inventory's"], id="credentials"),
    pytest.param({"server__health": "HTTP 503"}, ["the server does not answer as it should: HTTP 503"], id="unhealthy"),
    pytest.param({"engine__installed": False}, ["engine 0.5.12-cuda, which the inventory asks for, is not on the host"], id="engine-gone"),
]


@pytest.mark.parametrize("changes, told", SERVER)
def test_what_a_deployment_repairs(places, changes, told):
    entry = describe("ct129", changed(release__action="would_change", **changes), places)
    assert [one["text"] for one in entry["findings"] if one["text"] in told] == told
    assert (entry["status"], entry["repairable"]) == ("drift", True)


def test_the_credentials_of_another_release_are_another_file(places):
    look = changed(release__action="would_change", release__asked=OTHER, release__reasons=["the release changes"], credentials_differ=True)
    assert texts(look, places) == ["the release changes: its unit differs"]


@pytest.mark.parametrize("action", ["refused", "failed"])
def test_what_a_deployment_does_not_repair(places, action):
    entry = describe("ct129", changed(release__action=action, release__msg="it failed here before"), places)
    assert ([one["text"] for one in entry["findings"]], entry["repairable"]) == (["it failed here before"], False)


def test_an_engine_that_is_not_there_and_not_known(places):
    look = changed(release={"action": "", "asked": "", "reasons": [], "holder": {}, "msg": ""}, engine__installed=False)
    assert texts(look, places) == ["engine 0.5.12-cuda, which the inventory asks for, is not on the host; without it the release could not be compared"]


@pytest.mark.parametrize(
    "effective, told",
    [
        ({"version": "0.5.16", "differences": [], "problem": ""}, ["the server that runs says that it is SGLang 0.5.16, its release is of 0.5.12"]),
        ({"version": "", "differences": ["tp_size: 2, 1"], "problem": ""}, ["tp_size: 2, 1"]),
        ({"version": "", "differences": [], "problem": "it tells nothing"}, ["the effective flags are not known: it tells nothing"]),
        ({}, []),
    ],
    ids=["version", "flag", "unknown", "not-asked"],
)
def test_what_the_server_runs_with(places, effective, told):
    entry = describe("ct129", changed(server__effective=effective), places)
    assert ([one["text"] for one in entry["findings"]], entry["repairable"]) == (told, False)


def test_another_engine_that_is_asked_for_is_told_once(places):
    look = changed(engine__name="0.5.16-cuda", engine__version="0.5.16", release__reasons=["the release changes"], release__action="would_change")
    look["asked"]["engine"] = {"name": "0.5.16-cuda"}
    assert texts(look, places) == ["the release changes: engine: 0.5.12-cuda -> 0.5.16-cuda"]


def measured(tmp_path, **benchmark):
    return changed(benchmark={"expected": True, "records_dir": str(tmp_path / "benchmarks"), "gate": {}, **benchmark})


def test_records(tmp_path, places):
    missing = f"there is no benchmark record of the release that serves ({GOOD})"
    baseline = "the gate is on, and there is no baseline of decode to judge a change by"
    gated = measured(tmp_path, gate={"tolerance_pct": 5})
    assert texts(measured(tmp_path), places) == [missing]
    assert texts(gated, places) == [missing, baseline]
    folder = tmp_path / "benchmarks" / "ct129"
    folder.mkdir(parents=True)
    (folder / NAME).write_text(json.dumps(record()))
    assert texts(measured(tmp_path), places) == [] and texts(gated, places) == [baseline]
    accepted = {"format": 1, "baselines": {"decode": {"records": [NAME], "accepted_at": "2026-11-30T11:40:01Z", "commit": None}}}
    (folder / "baseline.json").write_text(json.dumps(accepted))
    assert texts(gated, places) == []
    (folder / NAME).unlink()
    assert "there is no such record" in texts(gated, places)[0]


def test_records_that_nobody_expects(tmp_path, places):
    assert texts(measured(tmp_path, expected=False), places) == []
    nothing = measured(tmp_path)
    nothing["server"]["release"] = {}
    assert texts(nothing, places) == []


def test_a_gate_that_is_none(tmp_path, places):
    assert texts(measured(tmp_path, gate={"tolerance": 5}), places) == ["sglang_server_gate.tolerance is no setting of the gate; did you mean tolerance_pct?"]


def test_what_is_not_in_use_is_a_remark(places):
    remarks = describe("ct129", LOOK, places)["remarks"]
    assert remarks == ["there are no records of deployments to compare with", "there are no snapshots to compare with"]


@pytest.mark.parametrize(
    "text, told",
    [
        (json.dumps({"format": 1, "kind": "deployed", "release": OTHER}), f"{OTHER} is recorded as deployed last, and the host has {GOOD}"),
        ("[]", "ct129.json does not say what was deployed"),
        ("{", "ct129.json is damaged"),
        (None, f"no deployment is recorded, and the host has {GOOD}"),
    ],
    ids=["other", "list", "no-json", "missing"],
)
def test_what_was_recorded_as_deployed(kept, text, told):
    path = kept.deployed / "ct129.json"
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    (found,) = texts(LOOK, kept)
    assert told in found


def test_a_host_that_has_nothing(kept):
    look = changed(server__release={}, model={})
    assert f"{GOOD} is recorded as deployed last, and the host has none" in texts(look, kept)
    (kept.deployed / "ct129.json").unlink()
    assert texts(look, kept) == ["the snapshot says a model in /m, the host has none there"]


SNAPSHOT = [
    ({"facts__python": {"version": {"major": 3, "minor": 12}}}, "Python 3.11", "Python 3.12"),
    ({"facts__distribution_version": "13"}, "Debian 12.11", "Debian 13"),
    ({"facts__systemd": {"version": 257}}, "systemd 252", "systemd 257"),
    ({"gpus__gpus": GPUS["gpus"][:1]}, "2x NVIDIA RTX A6000 (49140 MiB)", "1x NVIDIA RTX A6000 (49140 MiB)"),
    ({"gpus__gpus": []}, "2x NVIDIA RTX A6000 (49140 MiB)", "no GPU"),
    ({"gpus__driver": {"version": "590.1"}}, "driver 580.159.04", "driver 590.1"),
    ({"gpus__driver": {}}, "driver 580.159.04", "driver none"),
    ({"model__revision": ""}, "model revision 9d2f", "model revision none"),
    ({"model__weights": {"bytes": 1}}, "54,000,000,000 bytes of weights", "1 bytes of weights"),
]


@pytest.mark.parametrize("changes, before, after", SNAPSHOT, ids=[str(list(row[0])[0]) for row in SNAPSHOT])
def test_a_stale_snapshot(kept, changes, before, after):
    entry = describe("ct129", changed(**changes), kept)
    assert entry["findings"] == [
        vars(Finding("snapshot", f"the snapshot says {before}, the host has {after}", "ansible-playbook llmops.inference.snapshot -l ct129"))
    ]


def test_a_security_update_of_python_is_no_drift(kept):
    assert texts(changed(facts__python={"version": {"major": 3, "minor": 11, "micro": 9}}), kept) == []


def test_a_host_whose_gpus_nobody_looks_at(kept):
    assert texts(changed(gpus=None), kept) == []


def test_a_snapshot_that_is_missing_or_damaged(kept):
    (kept.snapshots / "ct129" / "host.json").write_text("[")
    assert "is damaged" in texts(LOOK, kept)[0]
    (kept.snapshots / "ct129" / "host.json").unlink()
    assert texts(LOOK, kept)[0].startswith("ct129 has no snapshot in ")


def test_a_model_that_the_snapshot_does_not_know(kept):
    (kept.snapshots / "ct129" / "model.json").unlink()
    assert texts(LOOK, kept) == ["the snapshot says no model, the host has a model in /m"]


@pytest.mark.parametrize(
    "action, msg, restarted", [("repaired", "", False), ("restarted", "", True), ("started", "", True), ("deployed", "", True), ("failed", "it died", None)]
)
def test_a_repair(places, action, msg, restarted):
    before = describe("ct129", changed(release__action="would_change", release__reasons=["a secret changed"]), places)
    after = LOOK if not msg else changed(release__action="would_change", release__reasons=["a secret changed"])
    entry = describe("ct129", after, places, before, {"action": action, "msg": msg})
    assert entry["repair"] == {"action": action, "restarted": restarted, "msg": msg}
    assert (entry["status"], entry["repaired"]) == (("drift", []) if msg else ("repaired", ["a secret changed"]))


def test_what_is_gone_without_a_repair_was_not_repaired(places):
    before = describe("ct129", changed(release__action="would_change", release__reasons=["a secret changed"]), places)
    assert describe("ct129", LOOK, places, before, {})["status"] == "same"


def test_a_repair_that_leaves_something(places):
    reasons = ["a secret changed", "the server is not running"]
    before = describe("ct129", changed(release__action="would_change", release__reasons=reasons), places)
    entry = describe("ct129", changed(release__action="would_change", release__reasons=reasons[1:]), places, before, {"action": "restarted", "msg": ""})
    assert (entry["status"], entry["repaired"], len(entry["findings"])) == ("drift", reasons[:1], 1)


def test_statuses_are_told_apart():
    assert len({_drift.SAME, _drift.DRIFT, _drift.REPAIRED, _drift.UNJUDGED, _drift.UNREACHABLE}) == 5
