# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a converged host looks like. Nothing in here changes it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

PODMAN = str(Path(__file__).resolve().parents[3] / "tools" / "podman")

UNIT = "sglang-main"
STORE = "/var/lib/llmops-inference/main"


def test_it_serves(host, generate):
    assert host.service(UNIT).is_running
    assert host.service(UNIT).is_enabled
    status, body = generate()
    assert status == 200
    assert json.loads(body)["usage"]["completion_tokens"] == 4


def test_etc_holds_the_good_release_and_run_holds_nothing(host):
    good = host.check_output(f"readlink -f {STORE}/good")
    assert host.file(f"/etc/systemd/system/{UNIT}.service").content == host.file(f"{good}/unit.service").content
    assert json.loads(host.file(f"{good}/state.json").content_string)["state"] == "good"
    assert not host.file(f"/run/systemd/system/{UNIT}.service").exists
    assert not host.file(f"/run/systemd/system/{UNIT}.service.d").exists or host.check_output(f"ls /run/systemd/system/{UNIT}.service.d") == ""


def test_the_record_names_phases_and_vital_signs(host):
    vitals = json.loads(host.file(f"{STORE}/good/vitals.json").content_string)
    assert [entry["phase"] for entry in vitals["phases"]][:2] == ["process", "arguments"]
    assert vitals["vitals"]["kv_cache_tokens"] == 8192
    assert vitals["vitals"]["context_length"] == 2048


def test_only_root_reads_the_store(host):
    assert host.file(STORE).mode == host.file(f"{STORE}/releases").mode == host.file(f"{STORE}/secrets").mode == 0o700
    assert host.file(STORE).user == "root"


def test_the_service_user_writes_its_state_and_cache_and_nothing_else(host):
    engine = host.check_output(f"systemctl show {UNIT} --property=ExecStart --value").split("path=")[1].split("/bin/")[0]
    for path in (engine, "/opt/sglang", STORE, "/srv/models", "/etc/systemd/system"):
        assert host.run(f"runuser -u sglang -- test -w {path}").rc == 1, path
    for path in (f"/var/lib/{UNIT}", f"/var/cache/{UNIT}"):
        assert host.run(f"runuser -u sglang -- test -w {path}").rc == 0, path


@pytest.mark.parametrize("name", ["HOME", "HF_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "FLASHINFER_WORKSPACE_BASE"])
def test_caches_are_writable_directories_of_the_unit(host, show, name):
    """U05: without HOME and cache variables, libraries try /.cache or a read-only home."""
    environment = dict(pair.split("=", 1) for pair in show(UNIT, "Environment").split())
    assert environment[name].startswith((f"/var/lib/{UNIT}", f"/var/cache/{UNIT}"))


def test_a_server_that_dies_late_trips_the_start_limit(show):
    """U04: in [Unit], finite, and longer than burst starts of the longest kind."""
    burst, interval = int(show(UNIT, "StartLimitBurst")), show(UNIT, "StartLimitIntervalUSec")
    assert burst == 3
    assert interval == "1h 30min 15s"


def test_the_sandbox_is_as_tight_as_documented(host):
    """The figure stands in roles/sglang_server/README.md."""
    output = host.run(f"systemd-analyze security --no-pager {UNIT}.service").stdout
    exposure = float(re.search(r"Overall exposure level for \S+: ([\d.]+)", output)[1])
    assert exposure <= 3.1, output[-3000:]


def test_status_names_everything(playbook):
    output = playbook("status").output
    for word in ("active since", "healthy", "0.5.23-cpu-", "/srv/models/tiny-qwen3", "--max-total-tokens 8192", "30000"):
        assert word in output, word


def test_check_mode_changes_nothing_and_says_so(deploy, host):
    run = deploy("--check", "--diff")
    assert run.changed == []
    assert "check mode: nothing to do" in run.output


@pytest.mark.parametrize("name", ["status", "benchmark", "remove"])
def test_every_play_has_a_check_mode(playbook, show, name):
    before = show(UNIT, "InvocationID")
    playbook(name, "--check", "--diff")
    assert show(UNIT, "InvocationID") == before


def test_a_user_with_a_sudo_password_can_deploy_over_ssh(deploy, host, tmp_path):
    """ssh talks to an sshd of its own through podman exec: no packet to the host's address is needed."""
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    host.check_output("mkdir -p -m 700 /run/sshd /home/ops/.ssh")
    host.check_output("printf %s %s > /home/ops/.ssh/authorized_keys && chown -R ops: /home/ops/.ssh", "%s", (tmp_path / "key.pub").read_text())
    proxy = f"{PODMAN} exec -i llmops-server /usr/sbin/sshd -i"
    options = f"-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ControlMaster=no -o ProxyCommand='{proxy}'"
    run = deploy(
        ansible_connection="ssh",
        ansible_user="ops",
        ansible_ssh_private_key_file=str(key),
        ansible_ssh_common_args=options,
        ansible_become_password="ops-password",
    )
    assert run.changed == []
