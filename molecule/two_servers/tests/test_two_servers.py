# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two inventory hosts on one machine: two servers that know nothing of each other."""

from __future__ import annotations

import json
import re

import pytest

UNITS = {"first": 30001, "second": 30002}


@pytest.mark.parametrize(("instance", "port"), UNITS.items())
def test_both_serve(host, generate, instance, port):
    assert host.service(f"sglang-{instance}").is_running
    assert generate(port)[0] == 200


def test_they_share_the_engine_and_nothing_else(host, show):
    engines = {show(f"sglang-{instance}", "ExecStart").split("path=")[1].split(" ")[0] for instance in UNITS}
    assert len(engines) == 1
    for instance in UNITS:
        assert show(f"sglang-{instance}", "StateDirectory") == f"sglang-{instance}"
        assert host.file(f"/var/lib/llmops-inference/{instance}/good").is_symlink


def test_only_the_second_has_its_own_flag(host):
    assert "--max-running-requests 4" in host.file("/etc/systemd/system/sglang-second.service").content_string
    assert "--max-running-requests" not in host.file("/etc/systemd/system/sglang-first.service").content_string


def test_a_change_of_one_leaves_the_other_alone(deploy, show, generate):
    before = {instance: show(f"sglang-{instance}", "InvocationID") for instance in UNITS}
    run = deploy("-l", "second", sglang_server_flags={"max_running_requests": 8})
    assert run.changed == ["llmops.inference.sglang_server : Bring the server to the release"]
    assert show("sglang-first", "InvocationID") == before["first"]
    assert show("sglang-second", "InvocationID") != before["second"]
    assert generate(30001)[0] == generate(30002)[0] == 200


def test_the_port_of_the_other_is_refused_before_anything_is_touched(deploy, show, generate):
    before = show("sglang-second", "InvocationID")
    run = deploy("-l", "second", expect=1, sglang_server_port=30001)
    assert re.search(r"port 30001 is held by another process \(pid \d+, sglang-first.service: ", run.text)
    assert show("sglang-second", "InvocationID") == before
    assert generate(30002)[0] == 200


def test_the_load_may_come_from_another_host(playbook, tmp_path):
    """Here it is the same machine under its other name; the record says where it came from, by which client."""
    small = {"sglang_benchmark_requests": 1, "sglang_benchmark_output_tokens": 16, "sglang_benchmark_warmup_repetitions": 1}
    where = {"sglang_benchmark_client_host": "second", "sglang_benchmark_client": "openai", "sglang_benchmark_server_address": "127.0.0.1"}
    playbook("benchmark", "-l", "first", **small, **where, sglang_benchmark_records_dir=str(tmp_path))
    (path,) = tmp_path.glob("first/2*.json")
    record = json.loads(path.read_text())
    assert (record["client"]["where"], record["client"]["name"], record["instance"]) == ("second", "openai", "first")
    (point,) = record["starts"][0]["points"]
    assert (point["status"], len(point["repetitions"])) == ("ok", 5)
    assert all(repetition["output_tokens"] == 16 for repetition in point["repetitions"])


def test_removing_one_keeps_the_other(playbook, host, generate):
    playbook("remove", "-l", "second")
    assert not host.file("/etc/systemd/system/sglang-second.service").exists
    assert not host.file("/var/lib/llmops-inference/second").exists
    assert generate(30001)[0] == 200
    assert "sglang-second.service not-found" in playbook("status", "-l", "second").output
