# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The short summary of a deployment that a person reads."""

from __future__ import annotations

import shlex
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._http import base_url
from ansible_collections.llmops.inference.plugins.module_utils._vital_changes import attention, by_phase, speculation

_LISTED = 8


def _start(started: t.Mapping[str, t.Any]) -> str:
    phases = [f"{phase.replace('_', ' ')} {took} s" for phase, took in by_phase(started).items() if took >= 0.1]
    return f"{started.get('seconds', 0)} s: " + ", ".join(phases) if phases else ""


def _graphs(vitals: t.Mapping[str, t.Any]) -> list[str]:
    """The kinds of graphs; of a start that was stored before there were kinds its captures."""
    if vitals.get("graphs_enabled") is False:
        return ["no graphs"]
    if "graphs" not in vitals:
        return [f"graphs {name} {seconds} s" for name, seconds in vitals.get("graphs_seconds", {}).items()]
    told = []
    for kind, entry in vitals["graphs"].items():
        count = f" {entry['count']}" if "count" in entry else ""
        took = f" in {entry['seconds']} s" if "seconds" in entry else ""
        told.append(f"{kind} graphs{count}{took}")
    return told


def _vitals(vitals: t.Mapping[str, t.Any]) -> str:
    parts = []
    if "kv_cache_tokens" in vitals:
        parts.append(f"KV cache of {vitals['kv_cache_tokens']:,} tokens {vitals.get('kv_cache_dtype', '')}".strip())
    if "weights_seconds" in vitals:
        size = f"{vitals['weights_gb']} GB " if "weights_gb" in vitals else ""
        ranks = f" on each of {len(vitals['ranks'])} ranks" if len(vitals.get("ranks", {})) > 1 else ""
        parts.append(f"weights {size}in {vitals['weights_seconds']} s{ranks}")
    if "context_length" in vitals:
        parts.append(f"context {vitals['context_length']:,}")
    if "max_running_requests" in vitals:
        parts.append(f"at most {vitals['max_running_requests']} requests")
    if attention(vitals):
        parts.append(f"attention {attention(vitals)}")
    if speculation(vitals) not in ("", "none"):
        parts.append(f"speculation {speculation(vitals)}")
    parts += _graphs(vitals)
    if "available_memory_gb" in vitals:
        parts.append(f"{vitals['available_memory_gb']} GB left")
    return ", ".join(parts)


def _list(texts: t.Sequence[str]) -> str:
    more = len(texts) - _LISTED
    return "; ".join([*texts[:_LISTED], *([f"and {more} more"] if more > 0 else [])])


def _gate(gate: t.Mapping[str, t.Any]) -> str:
    return f"{gate['outcome']}: {gate['text']}" if gate else ""


def _rows(rows: t.Mapping[str, str | t.Sequence[str]]) -> list[str]:
    """Named lines; of several only the first has the name."""
    found = []
    for name, text in rows.items():
        for i, line in enumerate([text] if isinstance(text, str) else text):
            found += [f"  {name if i == 0 else '':<7} {line}"] if line else []
    return found


def curl_line(url: str, model: str, key: bool) -> str:
    """Returns a command that asks the server for a few tokens; the key is taken from the reader's environment."""
    body = f'{{"model": "{model}", "prompt": "Hello", "max_tokens": 16}}'
    header = ' -H "Authorization: Bearer $SGLANG_API_KEY"' if key else ""
    return f"curl -s {url}/v1/completions -H 'Content-Type: application/json'{header} -d {shlex.quote(body)}"


def summarise(facts: t.Mapping[str, t.Any]) -> list[str]:
    """Returns the summary, one line per entry.

    Args:
        facts: host, check_mode, release (result of sglang_release), bind, port, tls, key, engine, model, argv, speed (one line per record), baseline, records,
            notes (one line each).
    """
    release, engine = facts["release"], facts["engine"]
    if facts["check_mode"]:
        reasons = "; ".join(release["reasons"]) or "nothing to do"
        return [f"{facts['host']}: check mode: {reasons}"]
    url = base_url(facts["bind"], int(facts["port"]), bool(facts["tls"]))
    lines = [
        f"{facts['host']}: {facts['model']} on SGLang {engine['version']} ({engine['flavour']}) at {url} [{release['action']}, release {release['release']}]"
    ]
    started = release.get("start", {})
    rows: dict[str, str | t.Sequence[str]] = {
        "why": "; ".join(release["reasons"]),
        "start": _start(started),
        "vitals": _vitals(started.get("vitals", {})),
        "changed": _list(release.get("changes", [])),
        "promise": _list(release.get("differences", [])),
        "flags": shlex.join(facts["argv"]),
        "speed": facts["speed"],
        "gate": _gate(release.get("gate") or {}),
        "base": facts["baseline"],
        "record": facts["records"],
        "note": facts["notes"],
        "try": curl_line(url, facts["model"], bool(facts["key"])),
    }
    return lines + _rows(rows)


def status(server: t.Mapping[str, t.Any], host: str) -> list[str]:
    """Returns what a server is, one line per entry.

    Args:
        server: result of sglang_server_info, with speed (one line per record).
        host: name of the inventory host.
    """
    release = server["release"]
    health = "healthy" if server["healthy"] else server["health"]
    since = f" since {server['since']}" if server["since"] else ""
    lines = [f"{host}: {server['unit']} {server['state']}{since}, {health}"]
    rows: dict[str, str | t.Sequence[str]] = {
        "engine": release.get("engine", {}).get("name", ""),
        "model": " ".join(str(value) for value in release.get("model", {}).values() if value),
        "flags": shlex.join(release.get("argv", [])),
        "ports": ", ".join(str(port) for port in server["ports"]),
        "crashes": str(server["restarts"]) if server["restarts"] else "",
        "release": release.get("id", ""),
        "speed": server["speed"],
    }
    return lines + _rows(rows)
