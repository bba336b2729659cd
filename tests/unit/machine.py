# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine with systemd and one server, for tests: real unit files in a scratch directory, everything else played."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._http import Reply
from ansible_collections.llmops.inference.plugins.module_utils._journal import Line
from ansible_collections.llmops.inference.plugins.module_utils._patience import Activity
from ansible_collections.llmops.inference.plugins.module_utils._proc import Listener
from ansible_collections.llmops.inference.plugins.module_utils._unit_files import Places
from ansible_collections.llmops.inference.plugins.module_utils._watch import UnitState

UNIT = "sglang-main.service"
EPOCH = 5000.0
REPLIES = {
    "/ready": Reply(200),
    "/health": Reply(200),
    "/v1/models": Reply(200, json.dumps({"data": [{"id": "qwen"}]})),
    "/generate": Reply(200, json.dumps({"meta_info": {"completion_tokens": 4}})),
}


@dataclass
class Start:
    """What stood where when the server was started: the loaded command line, the unit and drop-ins in /etc, the trial's files in /run."""

    exec_start: str
    etc_unit: str
    dropins: list[str]
    trial: list[str]


@dataclass
class Machine:
    """Implements Host of _watch and run of AnsibleModule. What a server does is decided by words of its command line.

    Attributes:
        dies: word -> journal lines of a server that dies one second after its start.
        breaks: word -> exception that the machine raises while such a server is watched.
        refuses: word -> what systemctl says when it cannot start such a server.
        verify_says: what systemd-analyze says of a unit.
        strangers: listeners on the port that are not the server's.
    """

    places: Places
    dies: dict = field(default_factory=dict)
    breaks: dict = field(default_factory=dict)
    refuses: dict = field(default_factory=dict)
    replies: dict = field(default_factory=lambda: dict(REPLIES))
    verify_says: str = ""
    verified: list = field(default_factory=list)
    strangers: list = field(default_factory=list)
    commands: list = field(default_factory=list)
    starts: list = field(default_factory=list)
    enabled: bool | None = None
    loaded: str = ""
    state: UnitState = field(default_factory=UnitState)
    now: float = 0.0

    @classmethod
    def below(cls, path: Path, **options) -> Machine:
        places = Places(path / "etc", path / "run")
        places.etc.mkdir()
        return cls(places, **options)

    # -- systemd ------------------------------------------------------------------------------------------------------------

    def run(self, command: list[str]) -> tuple[int, str, str]:
        """Plays systemctl and systemd-analyze. What only asks is not among the commands."""
        if command == ["systemctl", "is-enabled", UNIT]:
            return (0, "enabled\n", "") if self.enabled else (1, "disabled\n", "")
        self.commands.append(command)
        if command[:2] == ["systemd-analyze", "verify"]:
            self.verified.append(Path(command[-1]).read_text())
            return (1 if self.verify_says else 0), "", self.verify_says
        assert command[0] == "systemctl", command
        handler = getattr(self, "_" + command[1].replace("-", "_"))
        assert command[-1] == (UNIT if command[1] != "daemon-reload" else "daemon-reload"), command
        return handler(command) or (0, "", "")

    def _daemon_reload(self, command):
        files = [path for path in (self.places.etc / UNIT, self.places.run / UNIT) if path.exists()][:1]
        if files:
            files += sorted([*self.places.etc.glob(f"{UNIT}.d/*.conf"), *self.places.run.glob(f"{UNIT}.d/*.conf")], key=lambda path: path.name)
        lines = [line for path in files for line in re.findall(r"^ExecStart=(.+)$", path.read_text(), re.MULTILINE)]
        self.loaded = lines[-1] if lines else ""

    def _restart(self, command):
        self._stop(command)
        if not self.loaded:
            return 5, "", f"Failed to restart {UNIT}: Unit {UNIT} not found."
        unit = self.places.etc / UNIT
        trial = [str(path.relative_to(self.places.run)) for path in sorted(self.places.run.rglob("*")) if path.is_file()]
        dropins = [path.name for path in unit.with_name(f"{UNIT}.d").glob("*.conf")]
        self.starts.append(Start(self.loaded, unit.read_text() if unit.exists() else "", dropins, trial))
        refusals = [text for word, text in self.refuses.items() if word in self.loaded]
        if refusals:
            return 1, "", refusals[0]
        number = len(self.starts)
        self.state = UnitState("active", "running", "success", 900 + number, f"run-{number}", 0, f"/system.slice/{UNIT}", EPOCH + self.now)
        return None

    def _stop(self, command):
        if self.state.alive:
            self.now += 1.0
        self.state = replace(self.state, active="inactive", sub="dead", main_pid=0)

    def _reset_failed(self, command):
        return None

    def _enable(self, command):
        self.enabled = True

    def _disable(self, command):
        self.enabled = False
        if "--now" in command:
            self._stop(command)

    def called(self, *words: str) -> int:
        """How often systemctl was called with these first words."""
        return sum(command[1 : 1 + len(words)] == list(words) for command in self.commands)

    # -- Host of _watch -----------------------------------------------------------------------------------------------------

    def _of(self, scripted: dict):
        running = self.starts[-1].exec_start if self.starts else ""
        return next((value for word, value in scripted.items() if word in running), None)

    def unit_state(self) -> UnitState:
        if self.state.alive and self._of(self.dies) and EPOCH + self.now - self.state.started >= 1:
            self.state = replace(self.state, active="failed", sub="failed", result="exit-code", main_pid=0)
        return self.state

    def journal(self, invocation: str, cursor: str, whole: bool = False) -> tuple[list[Line], str]:
        broken = self._of(self.breaks)
        if broken:
            raise broken
        if cursor:
            return [], cursor
        return [Line(EPOCH + self.now, text) for text in self._of(self.dies) or ["max_total_num_tokens=8192, max_running_requests=4"]], "seen"

    def listeners(self) -> list[Listener]:
        own = [Listener(self.state.main_pid, "sglang::serve")] if self.state.alive and not self._of(self.dies) else []
        return own + self.strangers

    def unit_pids(self, control_group: str) -> set[int]:
        return {self.state.main_pid} if self.state.alive and control_group else set()

    def kernel_log(self, since: float) -> list[str]:
        return []

    def activity(self, pids) -> Activity:
        return Activity()

    def leader(self, path: str) -> Reply:
        return Reply(0, error="rank 0 is not known")

    def request(self, path: str, body=None, timeout: float = 5.0) -> Reply:
        return self.replies.get(path, Reply(404, "", "Not Found"))

    def monotonic(self) -> float:
        return self.now

    def wall_clock(self) -> float:
        return EPOCH + self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
