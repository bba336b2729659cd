# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""A benchmark's record, as far as the host knows it: what was measured, on what release of what engine, by which hardware, and what the server says it runs."""

from __future__ import annotations

import hashlib
import json
import re
import typing as t
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._outcome import flatten
from ansible_collections.llmops.inference.plugins.module_utils._record_privacy import clean

FORMAT, KIND = 2, "benchmark"
# What the engine chose by itself, and what people ask about first; requested flags and what the engine changed are kept anyway.
_ASKED_ABOUT = re.compile(
    r"^(attention_backend|chunked_prefill_size|dtype|kv_cache_dtype|max_running_requests|max_total_num_tokens|mem_fraction_static|page_size|quantization"
    r"|sampling_backend|schedule_policy|speculative_algorithm|disable_radix_cache|disable_overlap_schedule|disable_cuda_graph|cuda_graph_max_bs"
    r"|cuda_graph_config\.\w+\.(backend|max_bs))$"
)
_ENGINE = re.compile(r"(?P<version>[^-]+)-[^-]+-(?P<lock>[^-]+)-")


def stored(records: t.Sequence[t.Mapping[str, t.Any]]) -> dict[str, t.Any]:
    """Returns the document that stays on the host beside the release."""
    return {"format": FORMAT, "records": list(records)}


def subject(release: t.Mapping[str, t.Any]) -> str:
    """Returns 12 hex digits over what a change changes: arguments, environment, engine and model. The unit's own settings do not count.

    Args:
        release: a release's document.
    """
    meaning = [release.get(name) for name in ("argv", "environment", "engine", "model")]
    return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()[:12]


def describe_engine(name: str) -> dict[str, str]:
    """Returns the record's ``engine`` from the engine's name (``0.5.23-cuda-1a2b3c4d-py312-x86_64``)."""
    found = _ENGINE.match(name)
    return {"name": name, "version": found["version"] if found else "", "lock": found["lock"] if found else ""}


def describe_model(name: str, revision: str, folder: Path) -> dict[str, t.Any]:
    """Returns the record's ``model``, architecture and quantization by its configuration; None where that does not say.

    Args:
        name: under which it is served.
        revision: of the weights.
        folder: that holds ``config.json``.
    """
    path = folder / "config.json"
    config = json.loads(path.read_text()) if path.exists() else {}
    quantization = config.get("quantization_config") or {}
    return {"name": name, "revision": revision, "architecture": (config.get("architectures") or [None])[0], "quantization": quantization.get("quant_method")}


def effective(preflight: t.Mapping[str, t.Any], server_info: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Returns what the server says it runs with: requested flags, what the engine changed, and what people ask about first.

    Args:
        preflight: of the release; empty where there was none.
        server_info: the server's answer.
    """
    told = {name.replace("-", "_"): value for name, value in flatten(server_info).items()}
    wanted = {row["field"] for row in (*preflight.get("flags", ()), *preflight.get("changes", ())) if row.get("field")}
    return {name: value for name, value in sorted(told.items()) if name in wanted or _ASKED_ABOUT.match(name)}


def silent_changes(preflight: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """Returns the fields that the engine changed without a word in its log: the first value, the last one, and the tests of the last silent change."""
    first: dict[str, t.Any] = {}
    last: dict[str, t.Any] = {}
    why: dict[str, str] = {}
    for change in preflight.get("changes", ()):
        name = change["field"]
        first.setdefault(name, change["before"])
        last[name] = change["after"]
        if not change["logged"] and change["before"] != change["after"]:
            why[name] = " and ".join(test["test"] for test in change["because"]) or change["function"] or ""
    changed = [name for name in sorted(why) if first[name] is not None and first[name] != last[name]]
    return [{"field": name, "asked": first[name], "runs": last[name], "why": why[name]} for name in changed]


class Subject(t.NamedTuple):
    """What is measured.

    Attributes:
        instance: of the server.
        release: document of its release.
        preflight: of that release; may be empty.
        vitals: of the start that proved it; may be empty.
        server_info: what the server says now.
        model: see :func:`describe_model`.
        hardware: see :func:`_hardware.hardware`.
    """

    instance: str
    release: t.Mapping[str, t.Any]
    preflight: t.Mapping[str, t.Any]
    vitals: t.Mapping[str, t.Any]
    server_info: t.Mapping[str, t.Any]
    model: t.Mapping[str, t.Any]
    hardware: t.Mapping[str, t.Any]


def make_record(
    measured: Subject,
    workload: t.Mapping[str, t.Any],
    starts: t.Sequence[t.Mapping[str, t.Any]],
    *,
    client: t.Mapping[str, str],
    measured_at: str,
    secrets: t.Sequence[str] = (),
) -> dict[str, t.Any]:
    """Returns the record but for what only the controller knows: host, inventory, collection, flags by layer, verdict.

    Args:
        measured: see :class:`Subject`.
        workload: see :func:`_benchmark_run.describe_workload`.
        starts: starts of the server with their points.
        client: the load generator.
        measured_at: end of the measurement, UTC.
        secrets: values that must not show.
    """
    release = measured.release
    record = {
        "format": FORMAT,
        "kind": KIND,
        "instance": measured.instance,
        "measured_at": measured_at,
        "client": {"version": str(measured.server_info.get("version", "")), **client},
        "release": {"id": release.get("id", ""), "subject": subject(release), "argv": list(release.get("argv", ()))},
        "engine": describe_engine(str(release.get("engine", {}).get("name", ""))),
        "model": dict(measured.model),
        "environment": dict(release.get("environment", {})),
        "effective": effective(measured.preflight, measured.server_info),
        "silent_changes": silent_changes(measured.preflight),
        "vitals": dict(measured.vitals),
        "hardware": dict(measured.hardware),
        "workload": dict(workload),
        "starts": [dict(start) for start in starts],
    }
    return clean(record, [secret for secret in secrets if secret])
