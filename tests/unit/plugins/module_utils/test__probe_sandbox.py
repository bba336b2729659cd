# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _engine_probe
from ansible_collections.llmops.inference.plugins.module_utils._probe_sandbox import Probe, ProbeError, probe_sources, write_probe
from ansible_collections.llmops.inference.plugins.module_utils._systemd import parse_unit

UNIT = """\
[Unit]
Description=SGLang server main
After=network.target
[Service]
Type=exec
User=sglang
Group=sglang
SupplementaryGroups=video render
ExecStart=/e/bin/python -m sglang.launch_server --port 30000
ExecStartPre=/bin/true
EnvironmentFile=/var/lib/llmops-inference/main/secrets/environment
Environment="A=1"
LoadCredential=api_key:/etc/key
Restart=on-failure
DevicePolicy=closed
DeviceAllow=/dev/nvidia0 rw
DeviceAllow=char-nvidia-uvm rw
PrivateDevices=no
PrivateNetwork=no
PrivateTmp=yes
IPAddressDeny=any
ProtectSystem=strict
ProtectHome=yes
ReadWritePaths=/var/lib/sglang
StateDirectory=sglang
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
LimitNOFILE=65536
LimitMEMLOCK=infinity
MemoryMax=100G
WorkingDirectory=/var/lib/sglang
UMask=0077
[Install]
WantedBy=multi-user.target
"""
SHARED = [
    "User=sglang",
    "Group=sglang",
    "SupplementaryGroups=video render",
    "PrivateTmp=yes",
    "ProtectSystem=strict",
    "ProtectHome=yes",
    "SystemCallFilter=@system-service",
    "SystemCallFilter=~@privileged",
    "LimitNOFILE=65536",
    "UMask=0077",
]
CARRIED = (
    "AmbientCapabilities",
    "BindPaths",
    "BindReadOnlyPaths",
    "CapabilityBoundingSet",
    "Group",
    "InaccessiblePaths",
    "LimitNOFILE",
    "LockPersonality",
    "MemoryDenyWriteExecute",
    "NoExecPaths",
    "NoNewPrivileges",
    "PrivateIPC",
    "PrivateTmp",
    "PrivateUsers",
    "ProcSubset",
    "ProtectClock",
    "ProtectControlGroups",
    "ProtectHome",
    "ProtectHostname",
    "ProtectKernelLogs",
    "ProtectKernelModules",
    "ProtectKernelTunables",
    "ProtectProc",
    "ProtectSystem",
    "ReadOnlyPaths",
    "RemoveIPC",
    "RestrictAddressFamilies",
    "RestrictNamespaces",
    "RestrictRealtime",
    "RestrictSUIDSGID",
    "SupplementaryGroups",
    "SystemCallArchitectures",
    "SystemCallErrorNumber",
    "SystemCallFilter",
    "TemporaryFileSystem",
    "UMask",
    "User",
)
NO_MACHINE = ["PrivateDevices=yes", "PrivateNetwork=yes", "PrivateTmp=yes", "IPAddressDeny=any"]
LIMITS = ["RuntimeMaxSec=120", "MemoryMax=8G", "WorkingDirectory=/"]
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
MOVED = ("HOME", "XDG_CACHE_HOME", "HF_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "FLASHINFER_WORKSPACE_BASE", "CUDA_CACHE_PATH")
START = ["-s", "-c", "import sys; sys.path.insert(0, '/s'); from llmops_engine_probe.run import main; main()"]


def sandboxed(**more):
    return Probe("/e/bin/python", unit=parse_unit(UNIT), **{"timeout": 120.4, **more})


def after(command, option):
    return [word.partition("=")[2] for word in command if word.startswith(f"{option}=")]


def test_the_sandbox_is_the_servers_own_without_machine():
    command = sandboxed().command(Path("/s"))
    assert command[:6] == ["systemd-run", "--quiet", "--wait", "--pipe", "--collect", "--service-type=exec"]
    assert after(command, "--property") == [*SHARED, *NO_MACHINE, *LIMITS], "what denies comes after what the unit says"
    assert command[command.index("--") :] == ["--", "/e/bin/python", *START]


@pytest.mark.parametrize(
    "word", ["DeviceAllow", "DevicePolicy", "nvidia", "EnvironmentFile", "secrets", "LoadCredential", "launch_server", "PrivateDevices=no", "StateDirectory"]
)
def test_what_is_not_carried_over(word):
    assert word not in " ".join(sandboxed().command(Path("/s")))


@pytest.mark.parametrize(
    "directive",
    CARRIED,
)
def test_each_directive_that_is_carried_over(directive):
    probe = Probe("/p", unit={"Unit": [(directive, "not this")], "Service": [(directive, "a b"), (directive, "")]})
    assert after(probe.command(Path("/s")), "--property")[:2] == [f"{directive}=a b", f"{directive}="]
    assert "not this" not in str(probe.command(Path("/s")))


def test_a_unit_without_a_service_has_no_sandbox_of_its_own():
    command = Probe("/p", unit={}).command(Path("/s"))
    assert after(command, "--property") == [*NO_MACHINE, "RuntimeMaxSec=300", "MemoryMax=8G", "WorkingDirectory=/"]


def test_the_environment_in_the_sandbox():
    """Caches are the probe's own; what the server has besides takes part in what the engine decides."""
    command = sandboxed(environment={"SGLANG_X": "a b", "HF_HOME": "/models", "HF_HUB_OFFLINE": "0"}).command(Path("/s"))
    given = dict(word.split("=", 1) for word in after(command, "--setenv"))
    assert given == {"SGLANG_X": "a b", **dict.fromkeys(MOVED, "/tmp"), **OFFLINE}
    assert after(command, "--setenv") == sorted(after(command, "--setenv")), "the same command every time"


@pytest.mark.parametrize("given, seconds", [({}, "300"), ({"timeout": 120.4}, "120")], ids=["default", "own"])
def test_without_a_unit_it_runs_directly_and_not_for_ever(given, seconds):
    assert Probe("/e/bin/python", {"A": "1"}, **given).command(Path("/s")) == ["timeout", seconds, "/e/bin/python", *START]


class Runner:
    """Plays run_command; looks at the files of the probe while they are there."""

    def __init__(self, status=0, output='{"unexplained": null}', error=""):
        self.answer = (status, output, error)

    def __call__(self, command, text, environment):
        self.command, self.request, self.environment = command, json.loads(text), environment
        self.folder = Path(next(word for word in command if "sys.path" in word).split("'")[1])
        self.modes = {str(path.relative_to(self.folder)): oct(stat.S_IMODE(path.stat().st_mode)) for path in [self.folder, *self.folder.rglob("*")]}
        if isinstance(self.answer[1], Exception):
            raise self.answer[1]
        return self.answer


@pytest.fixture(name="python")
def fixture_python(tmp_path):
    python = tmp_path / "python"
    python.touch()
    return str(python)


@pytest.mark.parametrize("unit", [None, {"Service": [("User", "sglang")]}], ids=["direct", "sandbox"])
def test_ask(python, tmp_path, unit):
    runner, folder = Runner(output='{"candidates": [1]}'), tmp_path / "run"
    assert Probe(python, {"A": "1"}, unit, folder=str(folder)).ask(runner, {"argvs": []}) == {"candidates": [1]}
    assert runner.request == {"argvs": []}
    assert runner.environment == ({} if unit else {"A": "1", **OFFLINE}), "systemd-run itself needs none"
    assert folder.exists() is (unit is not None)
    if unit:
        assert runner.folder.parent == folder and oct(stat.S_IMODE(folder.stat().st_mode)) == "0o755"
    assert not runner.folder.exists(), "nothing is left"
    package = {f"llmops_engine_probe/{name}.py": "0o644" for name in probe_sources()}
    assert runner.modes == {".": "0o755", "llmops_engine_probe": "0o755", **package}


def test_nothing_is_left_after_an_exception(python):
    runner = Runner(output=OSError("x"))
    with pytest.raises(OSError, match="x"):
        Probe(python).ask(runner, {})
    assert not runner.folder.exists()


IN_SANDBOX = "the sandbox of the probe could not be set up (status "


@pytest.mark.parametrize(
    "unit, status, error, why",
    [
        (True, 217, "", f"{IN_SANDBOX}217/USER)"),
        (True, 225, "x", f"{IN_SANDBOX}225/NETWORK)"),
        (True, 226, "x", f"{IN_SANDBOX}226/NAMESPACE)"),
        (True, 200, "", f"{IN_SANDBOX}200/CHDIR)"),
        (True, 216, "", f"{IN_SANDBOX}216/GROUP)"),
        (True, 218, "", f"{IN_SANDBOX}218/CAPABILITIES)"),
        (True, 228, "", f"{IN_SANDBOX}228/SECCOMP)"),
        (True, 203, "", "the probe ended with status 203 and no answer"),
        (True, 1, "a\n\n  last line \n\n", "the probe ended with status 1 and no answer: last line"),
        (False, 226, "", "the probe ended with status 226 and no answer"),
        (False, 124, "", "the probe ended with status 124 and no answer"),
        (False, -9, "Killed", "the probe ended with status -9 and no answer: Killed"),
    ],
)
def test_why_there_is_no_answer(python, tmp_path, unit, status, error, why):
    probe = Probe(python, unit={"Service": []} if unit else None, folder=str(tmp_path))
    with pytest.raises(ProbeError) as caught:
        probe.ask(Runner(status, "no JSON", error), {})
    assert str(caught.value) == why


def test_an_answer_counts_whatever_the_status(python):
    assert Probe(python).ask(Runner(1, '{"unexplained": "x"}'), {}) == {"unexplained": "x"}


def test_a_missing_interpreter_is_not_started(tmp_path):
    with pytest.raises(ProbeError, match=rf"^the engine's interpreter {tmp_path}/python is not on this host$"):
        Probe(f"{tmp_path}/python").ask(None, {})


def test_the_sources_are_the_whole_package(tmp_path):
    folder = Path(_engine_probe.__file__).parent
    expected = {path.stem: path.read_text() for path in folder.glob("*.py")}
    assert probe_sources() == expected and len(expected) > 5
    write_probe(tmp_path)
    assert {path.stem: path.read_text() for path in (tmp_path / "llmops_engine_probe").iterdir()} == expected
