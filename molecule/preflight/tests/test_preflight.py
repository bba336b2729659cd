# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deployments that the preflight refuses, over a server that goes on answering; what it does to the host; the upgrade check."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
UNIT = "sglang-main"
STORE = "/var/lib/llmops-inference/main"
ASK = (
    "while :; do curl -s -m 20 -o /dev/null -w '%{http_code}\\n' -H 'Content-Type: application/json' "
    '-d \'{"model": "tiny-qwen3", "prompt": "Hello", "max_tokens": 2}\' http://127.0.0.1:30000/v1/completions; sleep 0.2; done'
)


def flags(**values):
    """Beside the one that the host has."""
    return {"sglang_server_flags": {"disable_piecewise_cuda_graph": True, **values}}


# Name, by its case where it has one -> variables, and what the refusal says.
REFUSED = {
    "F10-context": (flags(context_length=99999), r"sglang_server_flags.context_length: the engine refuses: .*greater than the derived context_length \(4096\)"),
    "F07-colon": ({"sglang_server_served_model_name": "tiny:qwen3"}, r"sglang_server_served_model_name: the engine refuses: .*colon"),
    "F07-chunk": (flags(chunked_prefill_size=1000, page_size=64), r"sglang_server_flags.chunked_prefill_size.*the engine refuses: .*page_size"),
    "F07-padding": (flags(disable_cuda_graph_padding=True, enable_torch_compile=True), r"the engine refuses: .*padding"),
    "F07-nodes": (flags(tp_size=3, nnodes=2), r"the engine refuses: .*(nnodes|divisible)"),
    "fraction": (flags(mem_fraction_static=1.5), r"sglang_server_flags.mem_fraction_static: mem_fraction_static 1.5"),
    "lone-steps": (flags(speculative_num_steps=3), r"sglang_server_flags.speculative_num_steps: speculative_num_steps has no effect without"),
    "overlap": (flags(enable_single_batch_overlap=True), r"enable_single_batch_overlap has no effect: the model has no experts"),
    "F05-extra": ({"sglang_server_extra_args": ["--max-running-req", "4"]}, r"sglang_server_extra_args: .*max_running_req"),
    "busy-port": ({"sglang_server_port": 30055}, r"sglang_server_port: port 30055 is held by another process \(pid \d+, busy.service: .*http.server 30055"),
    "unreadable": ({"sglang_model_path": "/srv/private/tiny-qwen3"}, r"the service user sglang cannot read /srv/private/tiny-qwen3"),
    "hidden": ({"sglang_model_path": "/root/tiny-qwen3"}, r"/root/tiny-qwen3 is hidden from the server by ProtectHome=yes"),
    "missing": (flags(chat_template="/srv/models/none.jinja"), r"sglang_server_flags.chat_template: /srv/models/none.jinja does not exist on this host"),
    "certificate": (flags(ssl_certfile="/srv/none.pem", ssl_keyfile="/srv/none.key"), r"sglang_server_flags.ssl_certfile: /srv/none.pem does not exist"),
}


def deploy_each(tmp_path, playbook, cases, *options):
    """One run for all: the same machine under as many names."""
    hosts = {name: {"ansible_host": "llmops-preflight", "sglang_engine_version": "0.5.16", **variables} for name, (variables, _words) in cases.items()}
    inventory = tmp_path / "hosts.json"
    inventory.write_text(json.dumps({"sglang": {"hosts": hosts}}))
    together = ["-e", "sglang_rollout_serial=100%", "-e", "sglang_rollout_max_fail_percentage=100", "--forks", "2"]
    command = ["ansible-playbook", "-i", os.path.dirname(os.environ["MOLECULE_INVENTORY_FILE"]), "-i", str(inventory), "-l", ",".join(cases), *together]
    command += [*options, str(ROOT / "playbooks" / f"{playbook}.yml")]
    process = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert process.returncode == 2, process.stdout[-3000:]
    chunks = re.split(r"^fatal: \[([\w-]+)\]", process.stdout, flags=re.MULTILINE)
    return {name: " ".join(text.split()).replace("''", "'") for name, text in zip(chunks[1::2], chunks[2::2])}


@pytest.fixture(scope="module")
def invocation(host):
    return lambda: host.check_output(f"systemctl show {UNIT} --property=InvocationID --value")


@pytest.fixture(scope="module")
def refused(host, tmp_path_factory):
    """What each refused deployment says, while a client asks the server all the time."""
    host.check_output("systemd-run --unit=busy python3 -m http.server 30055")
    host.check_output("systemd-run --unit=asker --property=StandardOutput=file:/var/tmp/asked bash -c %s", ASK)
    before = host.check_output(f"systemctl show {UNIT} --property=InvocationID,NRestarts")
    told = deploy_each(tmp_path_factory.mktemp("refused"), "deploy", REFUSED)
    after = host.check_output(f"systemctl show {UNIT} --property=InvocationID,NRestarts")
    host.check_output("systemctl stop asker busy")
    return {"told": told, "same": before == after, "answers": host.file("/var/tmp/asked").content_string.split()}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_variable_and_reason(refused, name):
    text = refused["told"][name]
    assert re.search(REFUSED[name][1], text), text[:3000]
    assert "was not touched" in text or "Nothing was changed" in text


def test_no_request_was_lost(refused):
    assert refused["same"], "the server was restarted"
    assert len(refused["answers"]) > 50
    assert set(refused["answers"]) == {"200"}


def test_an_unchanged_run_asks_no_engine(deploy, host, invocation):
    before = invocation()
    kept = host.check_output("ls /var/cache/llmops-inference/preflight")
    run = deploy()
    assert "unchanged, answered from the cache" in run.text
    assert run.changed == []
    assert invocation() == before
    assert host.check_output("ls /var/cache/llmops-inference/preflight") == kept
    assert host.file("/var/cache/llmops-inference/preflight").mode == 0o700


def test_a_change_over_the_running_server_finds_its_own_ports_free(deploy, host, invocation):
    before = invocation()
    run = deploy(**flags(max_running_requests=4))
    assert "preflight passed" in run.text
    assert invocation() != before
    stored = json.loads(host.file(f"{STORE}/good/preflight.json").content_string)
    assert stored["verdict"] in ("passed", "warned")
    assert stored["effective"]["max_running_requests"] == 4
    assert {row["outcome"] for row in stored["flags"] if row["flag"] == "--max-running-requests"} == {"honoured"}
    assert host.file(f"{STORE}/good/preflight.json").mode == 0o600


def test_check_mode_runs_it_fully(playbook, invocation):
    before = invocation()
    run = playbook("deploy", "--check", expect=2, **flags(context_length=99999))
    assert "greater than the derived context_length" in run.text
    assert invocation() == before


def test_policies_decide_what_a_flag_without_effect_is_worth(playbook):
    run = playbook("preflight", **flags(speculative_num_steps=3), sglang_server_not_honoured="warn")
    assert "passed with warnings" in run.text
    assert "speculative_num_steps has no effect without speculative_algorithm" in run.text
    assert run.changed == []


def test_can_i_upgrade(playbook, deploy, host, invocation):
    """The flag of this host was removed in 0.5.23; the answer names what to write instead, and nothing changes."""
    deploy()
    before = invocation()
    # A version that no scenario brings to the mount that hosts share.
    missing = playbook("preflight", expect=2, sglang_engine_version="0.5.12").text
    assert "is not on llmops-preflight: bring it there" in missing
    assert "failed=0" in playbook("engine", sglang_engine_version="0.5.23").text
    run = playbook("preflight", expect=2, sglang_engine_version="0.5.23")
    assert "SGLang 0.5.16 -> 0.5.23: these flags would be refused" in run.text
    assert "--disable-piecewise-cuda-graph is not a flag of this engine" in run.text
    assert "SGLang 0.5.16 has it as an old spelling of --cuda-graph-backend-prefill=disabled" in run.text
    assert run.changed == []
    run = playbook("preflight", sglang_engine_version="0.5.23", sglang_server_flags={"cuda_graph_backend_prefill": "disabled"})
    assert "preflight passed: SGLang 0.5.23" in run.text
    assert invocation() == before


def test_the_probe_is_a_process_of_the_service_user_without_devices_and_network(host):
    """A stand-in for the interpreter tells what is left to it."""
    unit = host.file(f"/etc/systemd/system/{UNIT}.service").content_string
    arguments = {
        "python": "/usr/local/lib/tell-sandbox/bin/python",
        "engine": {"name": "none", "version": "0", "flavour": "cpu"},
        "argv": ["--port", "30055"],
        "secret_flags": ["api_key"],
        "environment": {"HOME": "/var/lib/sglang-main"},
        "unit": unit,
        "cache": "",
    }
    command = ["ansible", "-i", os.path.dirname(os.environ["MOLECULE_INVENTORY_FILE"]), "llmops-preflight", "-b", "-m", "llmops.inference.sglang_preflight"]
    done = subprocess.run([*command, "-a", json.dumps(arguments)], cwd=ROOT, text=True, capture_output=True, check=False)
    found = re.search(r"text: '.*?could not be told: (\{.*?\})'", " ".join(done.stdout.split()))
    assert found, done.stdout[-3000:] + done.stderr[-2000:]
    told = json.loads(found[1])
    assert told["user"] == "sglang"
    assert told["interfaces"] == ["lo"]
    assert told["server"] is False, "the loopback of the host is not its own"
    assert told["devices"] == []
    assert told["writes"] == ["/tmp"]
    assert told["root"] is False
    assert (told["home"], told["offline"]) == ("/tmp", "1")
    assert told["argvs"] == [["--port", "30055", "--api-key", "preflight"]]
