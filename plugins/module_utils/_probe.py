# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Options of the modules that talk to a server, and what they become."""

from __future__ import annotations

import difflib
import typing as t
from dataclasses import asdict

from ansible_collections.llmops.inference.plugins.module_utils._host import LocalHost, Run
from ansible_collections.llmops.inference.plugins.module_utils._http import Client, base_url
from ansible_collections.llmops.inference.plugins.module_utils._patience import STALL_SECONDS
from ansible_collections.llmops.inference.plugins.module_utils._readiness import Expectation
from ansible_collections.llmops.inference.plugins.module_utils._redact import redact, redact_data
from ansible_collections.llmops.inference.plugins.module_utils._watch import Outcome

ARGUMENTS: dict[str, t.Any] = {
    "host": {"type": "str", "default": "127.0.0.1"},
    "port": {"type": "int", "required": True},
    "api_key": {"type": "str", "default": "", "no_log": True},
    "model_name": {"type": "str", "required": True},
    "tls": {"type": "bool", "default": False},
    "ca_path": {"type": "path"},
    "timeout": {"type": "float", "default": 1800},
    "stall_timeouts": {"type": "dict", "default": {}},
    "leader": {"type": "str", "default": ""},
}
# What of them is kept with a release, so that it can be proven again.
PROBE = ("host", "port", "tls", "ca_path", "model_name", "leader")


class ProbeError(ValueError):
    """A parameter of the probe is wrong; the message names it."""


def unit_name(instance: str) -> str:
    """Returns the unit of an instance."""
    return f"sglang-{instance}.service"


def make_client(params: t.Mapping[str, t.Any]) -> Client:
    """Returns the HTTP client for a module's parameters."""
    return Client(base_url(params["host"], params["port"], params["tls"]), params["api_key"], params["ca_path"])


def make_host(run: Run, params: t.Mapping[str, t.Any]) -> LocalHost:
    """Returns this machine, as the watch sees it, for a module's parameters.

    Raises:
        ProbeError: the leader is no URL.
    """
    if params["leader"] and not params["leader"].startswith(("http://", "https://")):
        raise ProbeError(f"leader: {params['leader']!r} is no URL, write http://HOST:PORT")
    leader = Client(params["leader"].rstrip("/"), ca_path=params["ca_path"]) if params["leader"] else None
    return LocalHost(run, unit_name(params["instance"]), params["port"], make_client(params), leader)


def make_expectation(params: t.Mapping[str, t.Any]) -> Expectation:
    """Returns what ready means for a module's parameters.

    Raises:
        ProbeError: a stall limit is no number of seconds, or is for a phase that there is not.
    """
    return Expectation(params["port"], params["model_name"], params["timeout"], _limits(params["stall_timeouts"]), leader=bool(params["leader"]))


def _limits(given: t.Mapping[str, t.Any]) -> dict[str, float]:
    limits = {}
    for phase, seconds in given.items():
        if phase not in STALL_SECONDS:
            near = difflib.get_close_matches(str(phase), STALL_SECONDS, 1)
            guess = f"did you mean {near[0]}?" if near else f"there are {', '.join(STALL_SECONDS)}"
            raise ProbeError(f"stall_timeouts.{phase}: a start has no such phase; {guess}")
        try:
            limits[phase] = float(seconds)
        except (TypeError, ValueError):
            raise ProbeError(f"stall_timeouts.{phase}: {seconds!r} is no number of seconds") from None
        if isinstance(seconds, bool) or not limits[phase] > 0:
            raise ProbeError(f"stall_timeouts.{phase}: {seconds!r} must be more than 0 seconds")
    return limits


def present(outcome: Outcome | None, secrets: t.Sequence[str]) -> dict[str, t.Any]:
    """Returns the keys that a watch adds to a module's result, the same ones whether or not one ran."""
    if outcome is None:
        outcome = Outcome(False)
    diagnosis = asdict(outcome.diagnosis) if outcome.diagnosis else {}
    return {
        "ready": outcome.ready,
        "phases": outcome.phases,
        "vitals": outcome.vitals,
        "elapsed": outcome.elapsed,
        "diagnosis": redact_data(diagnosis, secrets),
        "remarks": [redact(remark, secrets) for remark in outcome.remarks],
        "journal": [] if outcome.ready else [redact(line, secrets) for line in outcome.journal_tail],
    }


def sentence(outcome: Outcome | None, secrets: t.Sequence[str]) -> str:
    """Returns one line for a person: the cause and what to do."""
    if outcome is None or outcome.diagnosis is None:
        return "ready"
    hint = f" ({outcome.diagnosis.hint})" if outcome.diagnosis.hint else ""
    return redact(outcome.diagnosis.cause + hint, secrets)
