# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
import yaml
from ansible.errors import AnsibleActionFail
from ansible_collections.llmops.inference.plugins.action.sglang_snapshot import ARGUMENTS, ActionModule
from ansible_collections.llmops.inference.plugins.modules import sglang_snapshot as module
from ansible_collections.llmops.inference.plugins.plugin_utils import _controller
from ansible_collections.llmops.inference.tests.unit.gitops_repository import FACTS, GPUS, MODEL, options_of, run_action

NOW = "2026-11-30T10:20:00Z"


@pytest.fixture(autouse=True)
def fixture_clock(monkeypatch):
    monkeypatch.setattr(_controller.time, "strftime", lambda form, now: NOW)


def run(tmp_path, host="ct129", facts=None, check_mode=False, **args):
    return run_action(ActionModule, {"snapshots_dir": str(tmp_path / "snapshots"), **args}, host, check_mode, ansible_facts=FACTS if facts is None else facts)


def test_it_is_recorded_and_read(tmp_path):
    result = run(tmp_path, gpu_facts=GPUS, model=MODEL)
    names = ["gpu.json", "host.json", "model.json", "model/config.json", "model/model.safetensors.index.json"]
    assert (result["changed"], result["files"], result["snapshot"]) == (True, names, {})
    again = run(tmp_path, gpu_facts=GPUS, model=MODEL)
    assert (again["changed"], again["files"]) == (False, [])
    found = run(tmp_path, state="read", facts={})
    assert found["changed"] is False and found["ansible_facts"]["systemd"] == {"version": 252}
    assert found["ansible_facts"]["llmops_gpu"]["gpus"][0]["name"] == "NVIDIA RTX A6000"
    assert found["snapshot"].pop("model_digest")
    model_dir = str(tmp_path / "snapshots" / "ct129" / "model")
    assert found["snapshot"] == {"recorded_at": NOW, "model": {name: value for name, value in MODEL.items() if name != "files"}, "model_dir": model_dir}
    assert json.dumps(found), "Ansible hands it on"


def test_a_host_without_gpus_and_model(tmp_path):
    run(tmp_path)
    found = run(tmp_path, state="read")
    assert "llmops_gpu" not in found["ansible_facts"]
    assert found["snapshot"] == {"recorded_at": NOW, "model": {}, "model_dir": "", "model_digest": ""}


def test_check_mode_writes_nothing(tmp_path):
    result = run(tmp_path, check_mode=True)
    assert (result["changed"], result["files"]) == (True, ["host.json"]) and not list(tmp_path.iterdir())


@pytest.mark.parametrize("host", ["a/b", "../a", ""])
@pytest.mark.parametrize("state", ["recorded", "read"])
def test_names_that_are_none_of_files(tmp_path, host, state):
    result = run(tmp_path, host, state=state)
    assert result["failed"] and "rename it" in result["msg"] and not list(tmp_path.iterdir())


def test_no_snapshot(tmp_path):
    result = run(tmp_path, state="read")
    assert result["failed"] and "ct129 has no snapshot in" in result["msg"] and "ansible_facts" not in result


def test_a_damaged_snapshot(tmp_path):
    run(tmp_path)
    (tmp_path / "snapshots/ct129/host.json").write_text("no JSON")
    assert "host.json is damaged: " in run(tmp_path, state="read")["msg"]
    assert run(tmp_path)["files"] == ["host.json"] and "failed" not in run(tmp_path, state="read")


def test_a_directory_that_cannot_be_written(tmp_path):
    (tmp_path / "snapshots").write_text("a file")
    result = run(tmp_path)
    assert result["failed"] and result["msg"].startswith("the snapshot of ct129 cannot be read or written: ")


@pytest.mark.parametrize("args", [{"state": "other"}, {"model": "x"}, {"other": 1}])
def test_wrong_options(tmp_path, args):
    with pytest.raises(AnsibleActionFail):
        run(tmp_path, **args)


def test_options_are_those_of_the_action():
    assert options_of(yaml.safe_load(module.DOCUMENTATION)) == ARGUMENTS
