# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Options of the modules that talk to a server, and what they become."""

from __future__ import annotations

import typing as t
from dataclasses import asdict

from ansible_collections.llmops.inference.plugins.module_utils._host import LocalHost, Run
from ansible_collections.llmops.inference.plugins.module_utils._http import Client, base_url
from ansible_collections.llmops.inference.plugins.module_utils._redact import redact, redact_data
from ansible_collections.llmops.inference.plugins.module_utils._watch import Expectation, Outcome

ARGUMENTS: dict[str, t.Any] = {
    "host": {"type": "str", "default": "127.0.0.1"},
    "port": {"type": "int", "required": True},
    "api_key": {"type": "str", "default": "", "no_log": True},
    "model_name": {"type": "str", "required": True},
    "tls": {"type": "bool", "default": False},
    "ca_path": {"type": "path"},
    "timeout": {"type": "float", "default": 1800},
    "stall_timeout": {"type": "float", "default": 600},
}


def unit_name(instance: str) -> str:
    """Returns the unit of an instance."""
    return f"sglang-{instance}.service"


def make_client(params: t.Mapping[str, t.Any]) -> Client:
    """Returns the HTTP client for a module's parameters."""
    return Client(base_url(params["host"], params["port"], params["tls"]), params["api_key"], params["ca_path"])


def make_host(run: Run, params: t.Mapping[str, t.Any]) -> LocalHost:
    """Returns this machine, as the watch sees it, for a module's parameters."""
    return LocalHost(run, unit_name(params["instance"]), params["port"], make_client(params))


def make_expectation(params: t.Mapping[str, t.Any]) -> Expectation:
    """Returns what ready means for a module's parameters."""
    return Expectation(params["port"], params["model_name"], params["timeout"], params["stall_timeout"])


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
        "journal": [] if outcome.ready else [redact(line, secrets) for line in outcome.journal_tail],
    }


def sentence(outcome: Outcome | None, secrets: t.Sequence[str]) -> str:
    """Returns one line for a person: the cause and what to do."""
    if outcome is None or outcome.diagnosis is None:
        return "ready"
    hint = f" ({outcome.diagnosis.hint})" if outcome.diagnosis.hint else ""
    return redact(outcome.diagnosis.cause + hint, secrets)
