# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Runs the probe with an engine's interpreter: as the service user in a transient unit with the server's own sandbox, or directly.

Sources: systemd-run(1); systemd.exec(5) for the exit statuses of a sandbox that cannot be set up.
"""

from __future__ import annotations

import inspect
import json
import shutil
import tempfile
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils import _engine_probe
from ansible_collections.llmops.inference.plugins.module_utils._engine_probe import command_line, explain, machine, run, source, values, watch
from ansible_collections.llmops.inference.plugins.module_utils._systemd import Unit

_FILES = {
    "__init__": _engine_probe,
    **{module.__name__.rsplit(".", maxsplit=1)[-1]: module for module in (command_line, explain, machine, run, source, values, watch)},
}
_PACKAGE = "llmops_engine_probe"

# What of the server's unit applies to the probe as well. Devices are left out on purpose: it gets none.
_SHARED = (
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
_NO_MACHINE = ("PrivateDevices=yes", "PrivateNetwork=yes", "PrivateTmp=yes", "IPAddressDeny=any")
# A first import may write caches; the probe's /tmp is its own, and gone with it.
_CACHES = ("HOME", "XDG_CACHE_HOME", "HF_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "FLASHINFER_WORKSPACE_BASE", "CUDA_CACHE_PATH")
_SANDBOX_FAILURES = {200: "CHDIR", 216: "GROUP", 217: "USER", 218: "CAPABILITIES", 225: "NETWORK", 226: "NAMESPACE", 228: "SECCOMP"}

Command = t.Callable[[t.List[str], str, t.Dict[str, str]], t.Tuple[int, str, str]]


class ProbeError(RuntimeError):
    """The probe gave no answer; the message says why."""


@dataclass(frozen=True)
class Probe:
    """How to start the probe.

    Attributes:
        python: interpreter of the engine.
        environment: the server's environment without secrets.
        unit: the server's unit, for its sandbox; None runs the probe directly, as the user of this process.
        timeout: seconds.
        memory_gib: limit in a sandbox.
        folder: where the probe's files are put, readable by the service user.
    """

    python: str
    environment: t.Mapping[str, str] = field(default_factory=dict)
    unit: Unit | None = None
    timeout: float = 300.0
    memory_gib: int = 8
    folder: str = "/run/llmops-inference"

    def ask(self, run_command: Command, request: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Returns the probe's answer to a request.

        Raises:
            ProbeError: it did not answer.
        """
        if not Path(self.python).exists():
            raise ProbeError(f"the engine's interpreter {self.python} is not on this host")
        parent = None
        if self.unit is not None:
            Path(self.folder).mkdir(mode=0o755, parents=True, exist_ok=True)
            parent = self.folder
        scratch = Path(tempfile.mkdtemp(prefix="probe-", dir=parent))
        try:
            scratch.chmod(0o755)
            write_probe(scratch)
            status, output, error = run_command(self.command(scratch), json.dumps(request), self._own_environment())
        finally:
            shutil.rmtree(scratch)
        try:
            return dict(json.loads(output))
        except ValueError:
            raise ProbeError(self._why(status, error)) from None

    def command(self, scratch: Path) -> list[str]:
        """Returns the command that starts the probe from the files in ``scratch``."""
        start = [self.python, "-s", "-c", f"import sys; sys.path.insert(0, {str(scratch)!r}); from {_PACKAGE}.run import main; main()"]
        if self.unit is None:
            return ["timeout", f"{self.timeout:.0f}", *start]
        shared = [f"{key}={value}" for key, value in self.unit.get("Service", []) if key in _SHARED]
        limits = [f"RuntimeMaxSec={self.timeout:.0f}", f"MemoryMax={self.memory_gib}G", "WorkingDirectory=/"]
        properties = [f"--property={line}" for line in (*shared, *_NO_MACHINE, *limits)]
        environment = [f"--setenv={name}={value}" for name, value in sorted(self._environment().items())]
        return ["systemd-run", "--quiet", "--wait", "--pipe", "--collect", "--service-type=exec", *properties, *environment, "--", *start]

    def _environment(self) -> dict[str, str]:
        away = dict.fromkeys(_CACHES, "/tmp") if self.unit is not None else {}
        return {**self.environment, **away, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}

    def _own_environment(self) -> dict[str, str]:
        return self._environment() if self.unit is None else {}

    def _why(self, status: int, error: str) -> str:
        last = [line.strip() for line in error.splitlines() if line.strip()][-1:]
        if self.unit is not None and status in _SANDBOX_FAILURES:
            return f"the sandbox of the probe could not be set up (status {status}/{_SANDBOX_FAILURES[status]})"
        return f"the probe ended with status {status} and no answer{': ' + last[0] if last else ''}"


def write_probe(folder: Path) -> None:
    """Writes the probe's package into a folder."""
    package = folder / _PACKAGE
    package.mkdir()
    package.chmod(0o755)
    for name, text in probe_sources().items():
        path = package / f"{name}.py"
        path.write_text(text)
        path.chmod(0o644)


def probe_sources() -> dict[str, str]:
    """Returns the probe's files by name: they are part of what a cached answer depends on."""
    return {name: inspect.getsource(module) for name, module in _FILES.items()}
