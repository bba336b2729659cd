# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that answers by a timeline, for tests of what waits."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from ansible_collections.llmops.inference.plugins.module_utils._http import Reply
from ansible_collections.llmops.inference.plugins.module_utils._journal import Line
from ansible_collections.llmops.inference.plugins.module_utils._patience import Activity
from ansible_collections.llmops.inference.plugins.module_utils._proc import Listener
from ansible_collections.llmops.inference.plugins.module_utils._watch import UnitState

RUNNING = UnitState("active", "running", "success", 900, "run-1", 0, "/system.slice/sglang-main.service", 5000.0)
REFUSED = Reply(0, error="[Errno 111] Connection refused")
MODELS = Reply(200, json.dumps({"data": [{"id": "qwen"}]}))
TOKENS = Reply(200, json.dumps({"text": " four", "meta_info": {"completion_tokens": 4}}))
UNREADY = Reply(503, "", "Service Unavailable")


@dataclass
class FakeHost:
    """Implements Host of _watch. Every answer is a timeline: (seconds since the watch began, value); the clock moves by sleeping and by slow requests."""

    states: list = field(default_factory=lambda: [(0, RUNNING)])
    lines: list = field(default_factory=list)
    listening: list = field(default_factory=lambda: [(0, [Listener(901, "sglang::serve")])])
    replies: dict = field(default_factory=dict)
    seconds: dict = field(default_factory=dict)
    pids: frozenset = frozenset({900, 901})
    now: float = 0.0
    asked: list = field(default_factory=list)
    bodies: list = field(default_factory=list)
    invocations: list = field(default_factory=list)
    whole: bool = False
    kernel: list = field(default_factory=list)
    kernel_since: list = field(default_factory=list)
    does: list = field(default_factory=lambda: [(0, Activity())])
    leads: list = field(default_factory=lambda: [(0, REFUSED)])

    def at(self, timeline):
        return [value for since, value in timeline if since <= self.now][-1]

    def unit_state(self):
        return self.at(self.states)

    def journal(self, invocation, cursor, whole=False):
        self.invocations.append(invocation)
        self.whole = whole
        seen = int(cursor or 0)
        due = [(seconds, text) for seconds, text in self.lines if seconds <= self.now]
        return [Line(5000.0 + seconds, text) for seconds, text in due[seen:]], str(len(due))

    def listeners(self):
        return self.at(self.listening)

    def unit_pids(self, control_group):
        assert control_group in ("", RUNNING.control_group)
        return set(self.pids) if control_group else set()

    def request(self, path, body=None, timeout=5.0):
        self.now += self.seconds.get(path, 0)
        self.asked.append((round(self.now, 2), path))
        self.bodies.append(body)
        defaults = {"/ready": Reply(200), "/v1/models": MODELS, "/generate": TOKENS}
        return self.at(self.replies.get(path, [(0, defaults.get(path, REFUSED))]))

    def kernel_log(self, since):
        self.kernel_since.append(since)
        return [text for seconds, text in self.kernel if seconds <= self.now]

    def activity(self, pids):
        assert set(pids) == set(self.pids)
        return self.at(self.does)

    def leader(self, path):
        self.asked.append((round(self.now, 2), f"leader{path}"))
        return self.at(self.leads)

    def monotonic(self):
        return 100.0 + self.now

    def wall_clock(self):
        return 5000.0 + self.now

    def sleep(self, seconds):
        self.now += seconds
