# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator changes, and what of it reaches the server. Each test leaves a healthy server behind."""

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
# What no preflight sees: the engine looks for a tokenizer only when it starts.
NO_TOKENIZER = {"tokenizer_path": "/srv/models"}
SWITCH = "llmops.inference.sglang_server : Bring the server to the release"


@pytest.fixture
def invocation(show):
    """Id of the running server's run: another one means a restart."""
    return lambda: show(UNIT, "InvocationID")


def test_one_changed_flag_restarts_once_and_changes_nothing_else(deploy, host, show, generate, invocation):
    before = invocation()
    run = deploy(sglang_server_flags={"max_running_requests": 4})
    assert run.changed == [SWITCH]
    assert invocation() != before
    assert show(UNIT, "NRestarts") == "0"
    assert generate()[0] == 200
    after = invocation()
    assert deploy(sglang_server_flags={"max_running_requests": 4}).changed == []
    assert invocation() == after


BAD_INPUT = {
    "misspelt": (
        {"sglang_server_flags": {"max_runing_requests": 4}},
        "sglang_server_flags.max_runing_requests: SGLang 0.5.23 has no flag .* max_running_requests",
    ),
    "type": ({"sglang_server_flags": {"max_running_requests": "many"}}, "invalid int value: 'many'"),
    "layer": ({"sglang_server_flag": {}}, "sglang_server_flag is no variable of this collection; did you mean sglang_server_flags"),
    "no-mapping": ({"sglang_server_flags": "x"}, "sglang_server_flags must be a mapping of flags to values, not text"),
    "port": ({"sglang_server_port": 70000}, "sglang_server_port 70000 is no TCP port"),
    "open": ({"sglang_server_host": "0.0.0.0"}, "there is no sglang_server_api_key: anybody could use the server"),
    "instance": ({"sglang_server_instance": "A b"}, "sglang_server_instance 'A b' is part of a unit's name"),
    "model": ({"sglang_model_path": "/srv/models/nothing"}, "sglang_model_path /srv/models/nothing holds no config.json"),
    "U06-mdwe": ({"sglang_server_unit_options": {"MemoryDenyWriteExecute": True}}, "sglang_server_unit_options.MemoryDenyWriteExecute: True breaks the server"),
    "directive": ({"sglang_server_unit_options": {"NoSuchDirective": "x"}}, "systemd refuses the unit: .*NoSuchDirective"),
    "environment": ({"sglang_server_env": {"A": True}}, "sglang_server_env.A: True is a boolean"),
    "F01-json": ({"sglang_server_flags": {"json_model_override_args": "{a: 1}"}}, "json_model_override_args.* is not JSON"),
}


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """What one deployment says of each bad input: the same machine under as many names, so that they cost one run."""
    hosts = {name: {"ansible_host": "llmops-server", **variables} for name, (variables, _message) in BAD_INPUT.items()}
    inventory = tmp_path_factory.mktemp("bad") / "hosts.json"
    inventory.write_text(json.dumps({"sglang": {"hosts": hosts}}))
    together = ["-e", "sglang_rollout_serial=100%", "-e", "sglang_rollout_max_fail_percentage=100", "--forks", "4"]
    command = ["ansible-playbook", "-i", os.path.dirname(os.environ["MOLECULE_INVENTORY_FILE"]), "-i", str(inventory), "-l", ",".join(BAD_INPUT), *together]
    process = subprocess.run([*command, str(ROOT / "playbooks" / "deploy.yml")], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert process.returncode == 2, process.stdout[-3000:]
    chunks = re.split(r"^fatal: \[([\w-]+)\]", process.stdout, flags=re.MULTILINE)
    return {name: " ".join(text.split()).replace("''", "'") for name, text in zip(chunks[1::2], chunks[2::2])}


@pytest.mark.parametrize(("name", "message"), [(name, message) for name, (_variables, message) in BAD_INPUT.items()], ids=BAD_INPUT.keys())
def test_bad_input_is_a_sentence_and_the_server_stays(refused, generate, host, name, message):
    assert re.search(message, refused[name]), refused[name][:3000]
    assert host.check_output(f"systemctl show {UNIT} --property=NRestarts --value") == "0"
    assert generate()[0] == 200


def test_a_release_that_dies_is_named_and_the_good_one_serves_again(deploy, host, generate):
    """Also when the good one answers on another port than the candidate."""
    good = host.check_output(f"readlink {STORE}/good")
    unit = host.file(f"/etc/systemd/system/{UNIT}.service").content
    output = deploy(expect=1, sglang_server_flags=NO_TOKENIZER, sglang_server_port=30005).text
    assert "preflight passed" in output, "flags can be right and the start fail"
    assert "is serving again" in output
    assert host.check_output(f"readlink {STORE}/good") == good
    assert host.file(f"/etc/systemd/system/{UNIT}.service").content == unit
    assert host.check_output(f"ls /run/systemd/system/{UNIT}.service.d") == ""
    assert generate()[0] == 200
    failed = json.loads(host.check_output(f"grep -l '\"failed\"' {STORE}/releases/*/state.json | xargs cat"))
    assert "tokenizer" in failed["diagnosis"]["cause"].lower()


def test_a_release_that_died_of_itself_is_not_tried_again(deploy, host, generate, invocation):
    """The server is not touched; the refusal tells the stored diagnosis and how to insist."""
    before = invocation()
    output = deploy(expect=1, sglang_server_flags=NO_TOKENIZER, sglang_server_port=30005).text
    assert "is not tried again: it failed here on " in output and "tokenizer" in output
    assert "-e sglang_server_retry_failed_enabled=true" in output and "The server was not touched" in output
    assert invocation() == before and generate()[0] == 200


def test_going_back_by_hand(deploy, playbook, host, generate, invocation):
    deploy(sglang_server_flags={"max_running_requests": 6})
    deploy(sglang_server_flags={"max_running_requests": 7})
    bad = host.check_output(f"readlink {STORE}/good")
    output = playbook("rollback", sglang_rollback_to="previous").text
    good = host.check_output(f"readlink {STORE}/good")
    assert good != bad and "--max-running-requests 6" in host.file(f"/etc/systemd/system/{UNIT}.service").content_string
    assert "good now" in output and "was good" in output, "what else there is to go back to"
    assert generate()[0] == 200
    before = invocation()
    assert playbook("rollback").changed == [], "the good release serves"
    assert invocation() == before
    assert "there is no release 'ffffff' of this server here" in playbook("rollback", expect=1, sglang_rollback_to="ffffff").text
    assert generate()[0] == 200


def test_without_a_rollback_the_server_stays_down_until_somebody_goes_back(deploy, playbook, host, generate, show):
    deploy(sglang_server_flags={"max_running_requests": 4})
    flags = {**NO_TOKENIZER, "max_running_requests": 3}
    output = deploy(expect=1, sglang_server_flags=flags, sglang_server_rollback_enabled=False).text
    assert "sglang_server_rollback_enabled is off: the server is down" in output
    assert show(UNIT, "ActiveState") == "inactive" and host.run(f"ls /run/systemd/system/{UNIT}.service.d").stdout != ""
    playbook("rollback")
    assert generate()[0] == 200 and host.run(f"ls /run/systemd/system/{UNIT}.service.d").stdout == ""


def test_a_unit_edited_by_hand_is_repaired_without_a_restart(deploy, host, invocation):
    path = f"/etc/systemd/system/{UNIT}.service"
    deploy(sglang_server_flags={"max_running_requests": 4})
    unit, before = host.file(path).content, invocation()
    host.check_output(f"sed -i 's/^RestartSec=.*/RestartSec=99/' {path} && mkdir -p {path}.d && printf '[Service]\\nNice=7\\n' > {path}.d/mine.conf")
    host.check_output("systemctl daemon-reload")
    output = deploy(sglang_server_flags={"max_running_requests": 4}).text
    assert "edited by hand" in output and "mine.conf was added by hand" in output
    assert host.file(path).content == unit
    assert not host.file(f"{path}.d/mine.conf").exists
    assert host.check_output(f"find {STORE}/set-aside -name mine.conf") != ""
    assert invocation() == before


def test_a_stopped_server_is_started(deploy, host, generate):
    host.check_output(f"systemctl stop {UNIT}")
    assert host.check_output(f"systemctl show {UNIT} --property=Result --value") == "success", "a stop is no failure"
    assert host.run("pgrep -u sglang").rc == 1, "no scheduler survives a stop"
    assert "started" in deploy(sglang_server_flags={"max_running_requests": 4}).output
    assert generate()[0] == 200


class TestSecrets:
    """U09, N04: a key is asked for, and stands nowhere where it can be read."""

    key = "a-%k $ey;\"with'all"
    variables = {"sglang_server_api_key": key, "sglang_server_env": {"HF_TOKEN": "hf_abcdefghijkl", "LABEL": "100%"}}

    def test_it_is_asked_for(self, deploy, host, generate):
        run = deploy("--diff", "-v", **self.variables)
        assert host.run("curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:30000/v1/models").stdout == "401"
        answer = host.run("curl -s -o /dev/null -w '%%{http_code}' -H %s http://127.0.0.1:30000/v1/models", f"Authorization: Bearer {self.key}")
        assert answer.stdout == "200"
        assert self.key not in run.output and "hf_abcdefghijkl" not in run.output
        assert "LABEL" in run.output

    def test_it_stands_nowhere(self, host):
        pid = host.check_output(f"systemctl show {UNIT} --property=MainPID --value")
        for place in (f"/etc/systemd/system/{UNIT}.service", f"/proc/{pid}/cmdline", f"{STORE}/good/release.json", f"{STORE}/good/environment"):
            for secret in (self.key, "hf_abcdefghijkl"):
                assert secret not in host.file(place).content_string, place
        for place in ("secrets.yaml", "environment"):
            assert host.file(f"{STORE}/secrets/{place}").mode == 0o600
        assert "--config" in host.file(f"/proc/{pid}/cmdline").content_string

    def test_a_changed_key_restarts_once(self, deploy, host, invocation):
        before, release = invocation(), host.check_output(f"readlink {STORE}/good")
        assert deploy(**self.variables).changed == []
        changed = {**self.variables, "sglang_server_api_key": "another-key"}
        assert "a secret changed" in deploy(**changed).output
        assert invocation() != before
        assert host.check_output(f"readlink {STORE}/good") == release, "a key is no part of a release"
        assert deploy(**changed).changed == []

    def test_it_works_as_a_file_too(self, deploy, host):
        deploy(**self.variables, sglang_server_credentials="file")
        assert host.file("/etc/llmops-inference/main.yaml").mode == 0o400
        assert host.file("/etc/llmops-inference/main.yaml").user == "sglang"
        assert "LoadCredential" not in host.file(f"/etc/systemd/system/{UNIT}.service").content_string


def test_check_mode_shows_the_diff(deploy, invocation):
    before = invocation()
    output = deploy("--check", "--diff", sglang_server_flags={"max_running_requests": 9}).output
    assert re.search(r"^\+ExecStart=.*--max-running-requests 9", output, re.MULTILINE)
    assert invocation() == before


SHORT = {"sglang_benchmark_requests": 2, "sglang_benchmark_output_tokens": 64, "sglang_benchmark_warmup_repetitions": 2}


def kept(folder):
    """The records below a folder, the oldest first."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*/2*.json"))]


def test_the_benchmark_leaves_a_record(deploy, playbook, tmp_path, host):
    variables = {**SHORT, "sglang_benchmark_records_dir": str(tmp_path)}
    run = deploy(**variables, sglang_server_benchmark_enabled=True)
    (record,) = kept(tmp_path)
    (point,) = record["starts"][0]["points"]
    assert (point["status"], point["summary"]["output_tok_per_s"]["repetitions"]) == ("ok", 5)
    assert point["summary"]["output_tok_per_s"]["median"] > 1
    assert all(repetition["completed"] == 2 and repetition["output_tokens"] == 128 for repetition in point["repetitions"])
    assert record["vitals"]["kv_cache_tokens"] == 8192
    assert {flag["name"]: flag["layer"] for flag in record["flags"]}["device"] == "hardware"
    assert "tok/s" in run.output and "no baseline" in " ".join(run.output.split())
    assert deploy(**variables, sglang_server_benchmark_enabled=True).changed == [], "an unchanged release is not measured again"
    measured = playbook("benchmark", **variables, sglang_benchmark_accept=True)
    assert "Measure the server" in " ".join(measured.changed)
    baseline = json.loads((next(tmp_path.glob("*/baseline.json"))).read_text())
    assert len(baseline["baselines"]["decode"]["records"]) == 2
    page = tmp_path / "page.html"
    assert playbook("report", sglang_report_records_dir=str(tmp_path), sglang_report_path=str(page)).changed
    assert "decode" in page.read_text()


def as_three_starts(path):
    """Makes one measured start a baseline of three, half a percent apart: beside other work starts differ by factors, and nothing could be shown."""
    record = json.loads(path.read_text())
    (measured,) = record["starts"]
    starts = []
    for number, factor in enumerate((1.0, 0.995, 1.005)):
        start = json.loads(json.dumps(measured))
        start["invocation"] = f"{number}{start['invocation'][1:]}"
        for repetition in start["points"][0]["repetitions"]:
            repetition["output_tok_per_s"] = round(repetition["output_tok_per_s"] * factor, 2)
        starts.append(start)
    path.write_text(json.dumps({**record, "starts": starts}, sort_keys=True, indent=1))


def test_a_change_that_makes_it_slower_is_rolled_back(playbook, tmp_path, host, generate, invocation):
    """A quarter of a processor: it starts, it serves, and it is several times slower, which no noise of a busy test machine hides."""
    variables = {**SHORT, "sglang_benchmark_records_dir": str(tmp_path), "sglang_server_gate": {"tolerance_pct": 10}}
    first = playbook("benchmark", **variables, sglang_benchmark_accept=True)
    assert "baseline of decode: 1 record, 1 start" in " ".join(first.output.split())
    as_three_starts(next(tmp_path.glob("*/2*.json")))
    good = host.check_output(f"readlink {STORE}/good")
    run = playbook("deploy", expect=2, **variables, sglang_server_unit_options={"CPUQuota": "25%"})
    said = " ".join(run.output.split())
    assert "output_tok_per_s of decode at concurrency 1 is worse by" in said and "tolerated 10 %" in said
    assert "is serving again" in said
    assert host.check_output(f"readlink {STORE}/good") == good and generate()
    before, after = kept(tmp_path)
    assert (before["verdict"], after["verdict"]["verdict"]) == ({}, "slower")
    assert before["release"]["id"] != after["release"]["id"]
    proven = invocation()
    again = playbook("deploy", expect=2, **variables, sglang_server_unit_options={"CPUQuota": "25%"})
    assert "is not tried again" in " ".join(again.output.split()) and invocation() == proven
    assert playbook("deploy", **variables).changed == []
