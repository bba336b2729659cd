# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
import yaml
from ansible_collections.llmops.inference.plugins.module_utils._http import Client, Reply
from ansible_collections.llmops.inference.plugins.module_utils._release import Candidate, Store
from ansible_collections.llmops.inference.plugins.modules import sglang_server_info

RUNNING = {
    "ActiveState": "active",
    "SubState": "running",
    "MainPID": "900",
    "NRestarts": "2",
    "ControlGroup": "/system.slice/sglang-main.service",
    "ExecMainStartTimestampMonotonic": "1000000",
}
HEALTHY = Reply(200)
ARGV = ("--model-path", "/m", "--host", "::", "--port", "30001")


@pytest.fixture(name="store")
def fixture_store(tmp_path, monkeypatch):
    """The store of a host with one good release."""
    store = Store(tmp_path / "store" / "main")
    store.prepare()
    candidate = Candidate("[Service]\nType=exec\n", ARGV, {"A": "1"}, {"name": "e"}, {"path": "/m"}, ("api_key",))
    store.stage(candidate)
    store.mark_good(candidate.id)
    store.write(candidate.id, "vitals", {"seconds": 51.3})
    store.write(candidate.id, "benchmark", {"output_tok_per_s": 198.1})
    monkeypatch.setattr(sglang_server_info, "cgroup_pids", lambda group: {900} if group else set())
    monkeypatch.setattr(sglang_server_info, "ports_of", lambda pids: [30001, 40001] if pids else [])
    return store


@pytest.fixture(name="info")
def fixture_info(tmp_path, run_module, monkeypatch):
    """Runs the module on a host whose unit and health endpoint are played."""

    def run(show=None, reply=HEALTHY, status=0, check_mode=False, told=None, **more):
        asked = []
        answers = {"/server_info": Reply(404) if told is None else Reply(200, json.dumps(told)), "/get_server_info": Reply(404)}
        monkeypatch.setattr(Client, "request", lambda self, path, body=None, timeout=5.0: asked.append(self.url + path) or answers.get(path, reply))
        output = "".join(f"{name}={value}\n" for name, value in (show or RUNNING).items())
        answer = (status, output, "Failed to connect to bus" if status else "")
        args = {"instance": "main", "store": str(tmp_path / "store"), **more}
        ran = run_module(sglang_server_info, args, command=lambda words: answer, check_mode=check_mode)
        ran.asked = asked
        return ran

    return run


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_server_that_serves(store, info, check_mode):
    ran = info(check_mode=check_mode)
    server = ran.result["server"]
    assert (ran.status, ran.result["changed"], ran.keys) == (0, False, {"server"})
    assert set(server) == set(yaml.safe_load(sglang_server_info.RETURN)["server"]["contains"])
    assert (server["unit"], server["state"], server["restarts"]) == ("sglang-main.service", "active", 2)
    assert (server["healthy"], server["health"], server["ports"]) == (True, "HTTP 200", [30001, 40001])
    assert server["release"]["argv"] == list(ARGV) and server["release"]["secrets"] == ["api_key"]
    assert (server["start"], server["benchmark"]) == ({"seconds": 51.3}, {"output_tok_per_s": 198.1})
    assert server["since"].endswith("Z") and len(server["since"]) == 20
    assert ran.asked == ["http://[::1]:30001/health"], "asked where the release listens"


@pytest.mark.parametrize(
    "reply, health", [(Reply(503), "HTTP 503"), (Reply(0, error="timed out"), "timed out"), (Reply(401), "HTTP 401")], ids=["503", "slow", "401"]
)
def test_a_server_that_is_not_healthy(store, info, reply, health):
    server = info(reply=reply).result["server"]
    assert (server["healthy"], server["health"], server["state"]) == (False, health, "active")


def promise(store, **effective):
    store.write(store.good, "preflight", {"effective": effective, "flags": []})


def test_what_a_server_runs_with(store, info):
    promise(store, tp_size=2)
    told = {"version": "0.5.23", "tp_size": 1}
    ran = info(told=told, effective=True)
    expected = {"version": "0.5.23", "differences": ["tp_size: preflight said 2, the server runs with 1"], "problem": ""}
    assert ran.result["server"]["effective"] == expected
    assert ran.asked == ["http://[::1]:30001/health", "http://[::1]:30001/server_info"]
    assert info(told={**told, "tp_size": 2}, effective=True).result["server"]["effective"]["differences"] == []


@pytest.mark.parametrize(
    "told, promised, problem",
    [
        (None, {"tp_size": 2}, "the server does not tell what it runs with"),
        ({"version": "1"}, None, "its release was stored without a preflight"),
        ({"version": "1"}, [1], "what it runs with could not be compared: AttributeError"),
    ],
    ids=["silent", "no-preflight", "another-version"],
)
def test_what_it_runs_with_is_not_known(store, info, told, promised, problem):
    if promised is not None:
        store.write(store.good, "preflight", {"effective": promised})
    effective = info(told=told, effective=True).result["server"]["effective"]
    assert effective["problem"].startswith(problem) and effective["differences"] == []


@pytest.mark.parametrize("more", [{"show": {"ActiveState": "failed", "MainPID": "0"}}, {"reply": Reply(503)}], ids=["stopped", "unhealthy"])
def test_a_server_that_cannot_be_asked_what_it_runs_with(store, info, more):
    ran = info(effective=True, told={"version": "1"}, **more)
    assert ran.result["server"]["effective"] == {} and not [url for url in ran.asked if url.endswith("server_info")]


def test_the_key_does_not_show(store, info):
    promise(store, note="a")
    ran = info(effective=True, told={"note": "top-secret-key"}, api_key="top-secret-key")
    assert "top-secret-key" not in ran.output


def test_a_server_that_does_not_run(store, info):
    ran = info(show={"ActiveState": "failed", "MainPID": "0"})
    server = ran.result["server"]
    assert (server["state"], server["since"], server["health"], server["ports"]) == ("failed", "", "not running", [])
    assert ran.asked == [] and server["release"]["argv"] == list(ARGV)


def test_no_server(info):
    server = info(show={"ActiveState": "inactive", "MainPID": "0"}).result["server"]
    assert (server["state"], server["release"], server["start"], server["benchmark"]) == ("not-found", {}, {}, {})


def test_a_server_that_somebody_else_made(info):
    ran = info()
    assert (ran.result["server"]["state"], ran.result["server"]["health"], ran.asked) == ("active", "not running", [])


def test_a_server_that_speaks_https(store, run_module, tmp_path, monkeypatch):
    store.write(store.good, "release", {"argv": [*ARGV, "--ssl-certfile", "/c.pem"]})
    clients = []

    class Recorder:
        def __init__(self, url, ca_path=None):
            clients.append((url, ca_path))

        def request(self, path, timeout):
            return HEALTHY

    monkeypatch.setattr(sglang_server_info, "Client", Recorder)
    args = {"instance": "main", "store": str(tmp_path / "store"), "ca_path": "/ca.pem"}
    show = "".join(f"{name}={value}\n" for name, value in RUNNING.items())
    assert run_module(sglang_server_info, args, command=lambda words: (0, show, "")).result["server"]["healthy"] is True
    assert clients[-1] == ("https://[::1]:30001", "/ca.pem")


def test_a_host_that_cannot_be_asked(store, info):
    ran = info(status=1)
    assert (ran.status, ran.failed, ran.result["server"], ran.keys) == (1, True, {}, {"server"})
    assert "Failed to connect to bus" in ran.result["msg"]


@pytest.mark.parametrize(
    "argv, default, value",
    [(["--port", "1"], "9", "1"), (["--port"], "9", "9"), ([], "9", "9"), (["--port", "1", "--port", "2"], "9", "1")],
)
def test_option_of(argv, default, value):
    assert sglang_server_info.option_of(argv, "--port", default) == value
