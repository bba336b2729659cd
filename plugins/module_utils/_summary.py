# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The short summary of a deployment that a person reads."""

from __future__ import annotations

import shlex
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._http import base_url


def _start(started: t.Mapping[str, t.Any]) -> str:
    phases = [f"{entry['phase'].replace('_', ' ')} {entry['seconds']} s" for entry in started.get("phases", []) if entry["seconds"] >= 0.1]
    return f"{started.get('seconds', 0)} s: " + ", ".join(phases) if phases else ""


def _vitals(vitals: t.Mapping[str, t.Any]) -> str:
    parts = []
    if "kv_cache_tokens" in vitals:
        parts.append(f"KV cache of {vitals['kv_cache_tokens']:,} tokens {vitals.get('kv_cache_dtype', '')}".strip())
    if "weights_seconds" in vitals:
        size = f"{vitals['weights_gb']} GB " if "weights_gb" in vitals else ""
        parts.append(f"weights {size}in {vitals['weights_seconds']} s")
    if "context_length" in vitals:
        parts.append(f"context {vitals['context_length']:,}")
    if "max_running_requests" in vitals:
        parts.append(f"at most {vitals['max_running_requests']} requests")
    parts += [f"graphs {name} {seconds} s" for name, seconds in vitals.get("graphs_seconds", {}).items()]
    return ", ".join(parts)


def _speed(benchmark: t.Mapping[str, t.Any]) -> str:
    if not benchmark:
        return ""
    profile = benchmark["profile"]
    shape = f"{profile['concurrency']} stream(s), {profile['input_tokens']} in / {profile['output_tokens']} out, {benchmark['completed']} requests"
    return (
        f"{benchmark['output_tok_per_s']} tok/s, TTFT {benchmark['ttft_ms']['median']} ms, ITL {benchmark['itl_ms']['median']} ms (medians; {shape}; "
        f"{benchmark.get('measured_at', '')})"
    )


def curl_line(url: str, model: str, key: bool) -> str:
    """Returns a command that asks the server for a few tokens; the key is taken from the reader's environment."""
    body = f'{{"model": "{model}", "prompt": "Hello", "max_tokens": 16}}'
    header = ' -H "Authorization: Bearer $SGLANG_API_KEY"' if key else ""
    return f"curl -s {url}/v1/completions -H 'Content-Type: application/json'{header} -d {shlex.quote(body)}"


def summarise(facts: t.Mapping[str, t.Any]) -> list[str]:
    """Returns the summary, one line per entry.

    Args:
        facts: host, check_mode, release (result of sglang_release), bind, port, tls, key, engine, model, argv, benchmark, record.
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
    rows = {
        "why": "; ".join(release["reasons"]),
        "start": _start(started),
        "vitals": _vitals(started.get("vitals", {})),
        "flags": shlex.join(facts["argv"]),
        "speed": _speed(facts["benchmark"]),
        "record": facts["record"],
        "try": curl_line(url, facts["model"], bool(facts["key"])),
    }
    return lines + [f"  {name:<7} {text}" for name, text in rows.items() if text]


def status(server: t.Mapping[str, t.Any], host: str) -> list[str]:
    """Returns what a server is, one line per entry.

    Args:
        server: result of sglang_server_info.
        host: name of the inventory host.
    """
    release = server["release"]
    health = "healthy" if server["healthy"] else server["health"]
    since = f" since {server['since']}" if server["since"] else ""
    lines = [f"{host}: {server['unit']} {server['state']}{since}, {health}"]
    rows = {
        "engine": release.get("engine", {}).get("name", ""),
        "model": " ".join(str(value) for value in release.get("model", {}).values() if value),
        "flags": shlex.join(release.get("argv", [])),
        "ports": ", ".join(str(port) for port in server["ports"]),
        "crashes": str(server["restarts"]) if server["restarts"] else "",
        "release": release.get("id", ""),
        "speed": _speed(server["benchmark"]),
    }
    return lines + [f"  {name:<7} {text}" for name, text in rows.items() if text]
