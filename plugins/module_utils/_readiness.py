# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Whether a server can serve: whose the port is, what its health says, which model it has, whether a generation returns tokens."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import Diagnosis
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis_types import HOST, RELEASE
from ansible_collections.llmops.inference.plugins.module_utils._http import Reply
from ansible_collections.llmops.inference.plugins.module_utils._proc import Listener

_REFUSED = (401, 403)
# The engine's /health waits 20 s for a token before it answers 503.
_HEALTH_SECONDS = 25.0


@dataclass(frozen=True)
class Expectation:
    """What a ready server must be.

    Attributes:
        port: its HTTP port.
        model_name: the name that ``/v1/models`` must list.
        timeout: seconds for the whole start, however much it progresses.
        stalls: seconds that a phase may go without progress, by phase, over the defaults of ``_patience``.
        leader: whether this is a further node of a server: rank 0 on another host proves it.
        new_engine: whether this engine has not served on this host before: its kernels may have to be compiled.
        settled: whether this very run has served before: being busy is then no failure.
        generation_timeout: seconds for the proving generation.
        interval: seconds between two looks once something listens.
        early_interval: seconds between two looks before that.
    """

    port: int
    model_name: str
    timeout: float = 1800.0
    stalls: t.Mapping[str, float] = field(default_factory=dict)
    leader: bool = False
    new_engine: bool = False
    settled: bool = False
    generation_timeout: float = 120.0
    interval: float = 0.25
    early_interval: float = 0.75


class Server(t.Protocol):
    """What is asked of the machine."""

    def listeners(self) -> list[Listener]: ...

    def request(self, path: str, body: t.Any = None, timeout: float = 5.0) -> Reply: ...

    def leader(self, path: str) -> Reply: ...


class Readiness:
    """Asks one server until it has proven itself.

    Args:
        host: see :class:`Server`.
        expect: what ready means.

    Attributes:
        ready: whether the last look proved it.
        listening: whether something listened on the port at the last look.
        unhealthy: what its health check said at the last look, when it was not 200.
    """

    def __init__(self, host: Server, expect: Expectation) -> None:
        self._host = host
        self._expect = expect
        self._has_ready_endpoint = True
        self.ready = False
        self.listening = False
        self.unhealthy = ""

    def look(self, own: t.Collection[int]) -> Diagnosis | None:
        """Asks once; sets ``ready``, or returns a diagnosis when waiting longer is pointless.

        Args:
            own: the processes of the unit.
        """
        self.ready, self.unhealthy = False, ""
        listeners = self._host.listeners()
        self.listening = bool(listeners)
        if not listeners:
            return None
        strangers = [one for one in listeners if one.pid not in own]
        if strangers:
            return Diagnosis(
                "foreign_listener",
                f"port {self._expect.port} is answered by another process ({strangers[0].named()}), not by this unit",
                hint="stop that process or set another sglang_server_port",
                where=HOST,
                implicated=["port"],
            )
        health = self._health()
        if health.status in _REFUSED:
            return _unauthorized("the health check", health)
        if health.status != 200:
            self.unhealthy = f"HTTP {health.status}" if health.status else health.error
            return None
        if not self._expect.leader:
            return self._prove()
        # Of a server on several nodes only rank 0 knows the model; the health of the others is a dummy.
        self.ready = self._host.leader("/health").status == 200
        return None

    def _health(self) -> Reply:
        """``/ready`` where the engine has it (0.5.20 on: answers at once), otherwise ``/health``, which generates a token and takes a second."""
        if self._has_ready_endpoint:
            reply = self._host.request("/ready")
            if reply.status != 404:
                return reply
            self._has_ready_endpoint = False
        return self._host.request("/health", timeout=_HEALTH_SECONDS)

    def _prove(self) -> Diagnosis | None:
        models = self._host.request("/v1/models", timeout=10.0)
        if models.status in _REFUSED:
            return _unauthorized("/v1/models", models)
        if models.status != 200:
            return None
        listing = models.json()
        names = [entry["id"] for entry in listing.get("data") or [] if "id" in entry] if isinstance(listing, dict) else []
        if self._expect.model_name not in names:
            return Diagnosis(
                "wrong_model",
                f"the server on port {self._expect.port} serves {', '.join(map(str, names)) or 'no model'}, expected {self._expect.model_name}",
                hint="set served_model_name, or correct the model path",
                where=RELEASE,
                implicated=["served_model_name", "model_path"],
            )
        return self._generate()

    def _generate(self) -> Diagnosis | None:
        body = {"text": "Count: one two three", "sampling_params": {"max_new_tokens": 4, "temperature": 0, "ignore_eos": True}}
        reply = self._host.request("/generate", body, timeout=self._expect.generation_timeout)
        if reply.status in _REFUSED:
            return _unauthorized("/generate", reply)
        if self._expect.settled and reply.status in (0, 503):
            self.unhealthy = f"a generation: HTTP {reply.status}" if reply.status else f"a generation: {reply.error}"
            return None
        answer = reply.json()
        tokens = (answer.get("meta_info") or {}).get("completion_tokens", 0) if reply.status == 200 and isinstance(answer, dict) else 0
        if tokens < 1:
            return Diagnosis(
                "generation_failed",
                f"the server is healthy but a generation returned no token (HTTP {reply.status} {reply.error})",
                [reply.body[:300]] if reply.body else [],
                "read the journal of the unit",
            )
        self.ready = True
        return None


def _unauthorized(where: str, reply: Reply) -> Diagnosis:
    return Diagnosis(
        "probe_unauthorized",
        f"the server refused the probe of {where} with HTTP {reply.status}: the API key sent is not the server's",
        hint="set sglang_server_api_key to the key the server runs with",
        where=RELEASE,
        implicated=["api_key"],
    )
