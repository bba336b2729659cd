# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Crashes, reboots, and the end."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

UNIT = "sglang-main"
TOOLS = Path(__file__).resolve().parents[3] / "tools"
PODMAN, HOSTS = str(TOOLS / "podman"), str(TOOLS / "hosts.sh")


def test_a_killed_scheduler_is_restarted(host, show, generate, eventually):
    host.check_output("pkill -KILL -f [s]glang::scheduler")
    eventually(lambda: int(show(UNIT, "NRestarts")) >= 1, what="systemd's restart")
    eventually(lambda: generate()[0] == 200, what="the restarted server's answer")


def test_a_server_that_keeps_dying_after_its_weights_are_loaded_is_given_up(deploy, host, show, eventually):
    """The start limit's interval holds all starts, however long each takes: five in ten seconds would never trip."""
    deploy(sglang_server_start_limit_burst=2, sglang_server_restart_delay_seconds=1)
    killed = set()

    def kill_after_weights():
        if show(UNIT, "ActiveState") == "failed":
            return True
        invocation = show(UNIT, "InvocationID")
        loaded = "Load weight end" in host.run(f"journalctl -o cat _SYSTEMD_INVOCATION_ID={invocation}").stdout
        if loaded and invocation not in killed:
            killed.add(invocation)
            host.run("kill -KILL $(systemctl show %s --property=MainPID --value)", UNIT)
        return False

    eventually(kill_after_weights, seconds=600, what="systemd giving up")
    assert show(UNIT, "Result") == "start-limit-hit"
    assert len(killed) in (2, 3), "the start before the promotion's daemon-reload may not count"


def test_the_next_deployment_starts_it_again(deploy, generate):
    deploy()
    assert generate()[0] == 200


def test_it_serves_after_a_reboot(host, generate, eventually):
    subprocess.run([PODMAN, "restart", "--time", "20", "llmops-server"], check=True, capture_output=True)
    eventually(lambda: generate()[0] == 200, what="the server's answer after the reboot")
    assert host.service(UNIT).is_enabled


@pytest.fixture
def bare_container(host):
    """A container of the same image whose first process is no systemd."""
    subprocess.run([HOSTS, "bare", "llmops-bare"], check=True, capture_output=True)
    yield "llmops-bare"
    subprocess.run([HOSTS, "down", "llmops-bare"], check=True, capture_output=True)


def test_a_host_without_systemd_is_refused_before_anything_is_brought_there(deploy, bare_container):
    """I05: the manager is read from the host, not assumed."""
    output = deploy(expect=1, ansible_host=bare_container).text
    assert "A server is a unit of systemd 247 or newer; llmops-server runs" in output
    assert "changed=0" in output


def test_removal_is_clean_and_keeps_engine_and_model(playbook, host):
    playbook("remove")
    for path in (f"/etc/systemd/system/{UNIT}.service", "/var/lib/llmops-inference/main", f"/var/lib/{UNIT}", f"/var/cache/{UNIT}"):
        assert not host.file(path).exists, path
    assert host.run("pgrep -u sglang").rc == 1
    assert host.file("/opt/sglang/engines").exists
    assert playbook("remove").changed == []


def test_a_bare_host_can_be_checked(deploy):
    run = deploy("--check", "--diff")
    assert "no release of this server is known to be good" in run.output
