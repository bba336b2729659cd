# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import functools

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._http import Reply
from ansible_collections.llmops.inference.plugins.module_utils._progress import Progress
from ansible_collections.llmops.inference.plugins.modules import sglang_ready
from ansible_collections.llmops.inference.tests.unit.machine import UNIT, Machine

SECRET = "s3cret-of-the-server"
ARGS = {"instance": "main", "port": 30000, "model_name": "qwen", "api_key": SECRET, "timeout": 60}


@pytest.fixture(name="machine")
def fixture_machine(tmp_path, monkeypatch):
    """A machine whose server was just started."""
    machine = Machine.below(tmp_path)
    (machine.places.etc / UNIT).write_text("[Service]\nExecStart=/bin/sglang --word\n")
    machine.run(["systemctl", "daemon-reload"])
    machine.run(["systemctl", "restart", UNIT])
    monkeypatch.setattr(sglang_ready, "make_host", lambda run, params: machine)
    monkeypatch.setattr(sglang_ready, "Progress", functools.partial(Progress, folder=tmp_path / "progress"))
    return machine


@pytest.mark.parametrize("check_mode", [False, True])
def test_ready(machine, run_module, documented, tmp_path, check_mode):
    ran = run_module(sglang_ready, ARGS, check_mode=check_mode)
    assert (ran.status, ran.failed, ran.result["changed"], ran.result["ready"]) == (0, False, False, True)
    assert ran.keys == documented(sglang_ready)
    assert ran.result["vitals"]["kv_cache_tokens"] == 8192
    assert (ran.result["diagnosis"], ran.result["journal"]) == ({}, [])
    assert SECRET not in ran.output
    assert list((tmp_path / "progress").iterdir()) == [], "nothing to follow is left"


def test_progress_has_the_titles_of_the_phases(machine, run_module, tmp_path):
    machine.replies["/ready"] = Reply(503)
    seen = set()
    machine.sleep = lambda seconds: (seen.update(path.read_text() for path in (tmp_path / "progress").glob("sglang_ready-main")), setattr(machine, "now", 99))
    run_module(sglang_ready, ARGS)
    assert seen == {"starting the HTTP server"}


def test_a_server_that_died(machine, run_module, documented):
    """U09: what the engine printed is shown, its keys are not."""
    machine.dies["--word"] = [f"server_args=ServerArgs(api_key='{SECRET}')", f"RuntimeError: bad {SECRET}"]
    ran = run_module(sglang_ready, ARGS)
    assert (ran.status, ran.failed, ran.result["ready"]) == (1, True, False)
    assert ran.keys == documented(sglang_ready)
    assert ran.result["msg"].startswith("sglang-main.service is not ready: the engine stopped with RuntimeError: bad ********")
    assert ran.result["diagnosis"]["code"] == "exception" and len(ran.result["journal"]) == 2
    assert SECRET not in ran.output


def test_a_key_that_is_not_the_servers(machine, run_module):
    """N04"""
    machine.replies["/v1/models"] = Reply(401)
    ran = run_module(sglang_ready, ARGS)
    assert (ran.result["diagnosis"]["code"], ran.result["elapsed"]) == ("probe_unauthorized", 0.0)
    assert SECRET not in ran.output


def test_a_host_that_cannot_be_asked(run_module, documented, monkeypatch, tmp_path):
    monkeypatch.setattr(sglang_ready, "Progress", functools.partial(Progress, folder=tmp_path / "progress"))
    ran = run_module(sglang_ready, ARGS, command=lambda words: (1, "", "Failed to connect to bus"))
    assert (ran.status, ran.failed) == (1, True)
    assert ran.result["msg"].endswith("failed with status 1: Failed to connect to bus")
    assert ran.keys == documented(sglang_ready)


@pytest.mark.parametrize("missing", ["instance", "port", "model_name"])
def test_required_options(run_module, missing):
    ran = run_module(sglang_ready, {name: value for name, value in ARGS.items() if name != missing})
    assert ran.failed and ran.result["msg"] == f"missing required arguments: {missing}"
