# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Which baseline a change will be judged by when it is deployed, and whether it will say anything: told before, from the committed records."""

from __future__ import annotations

import statistics
import typing as t
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._baseline import ENOUGH_STARTS
from ansible_collections.llmops.inference.plugins.module_utils._gate import ACCEPT
from ansible_collections.llmops.inference.plugins.module_utils._record import subject
from ansible_collections.llmops.inference.plugins.module_utils._record_conditions import differing, subject_changes
from ansible_collections.llmops.inference.plugins.module_utils._record_points import start_keys, values_of
from ansible_collections.llmops.inference.plugins.plugin_utils import _benchmark_view as view
from ansible_collections.llmops.inference.plugins.plugin_utils._gate_inputs import GateInputError, gate_inputs

Record = t.Mapping[str, t.Any]
Render = t.Optional[t.Mapping[str, t.Any]]
READY, STALE, NONE, OFF, UNUSABLE = "ready", "stale", "none", "off", "unusable"


def baseline(host: str, before: Render, after: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Returns what a change of a host will be judged by.

    Args:
        host: name in the inventory.
        before: render of the base; None for a new host.
        after: render of the change.

    Returns:
        ``state`` (``ready``, ``stale``: says nothing of this change, ``none``, ``off``: no gate, ``unusable``), ``text`` (one sentence), and of the gate and
        its records ``metric``, ``workload``, ``tolerance_pct``, ``concurrency``, ``starts``, ``median``, ``low``, ``high``, ``measured_at``, ``release``; null
        where there is none.
    """
    found: dict[str, t.Any] = dict.fromkeys(
        ("metric", "workload", "tolerance_pct", "concurrency", "starts", "median", "low", "high", "measured_at", "release"),
    )
    gate = after.get("gate") or {}
    if not gate.get("settings"):
        return {**found, "state": OFF, "text": "none, for sglang_server_gate is empty: no benchmark judges this change"}
    try:
        inputs = gate_inputs(Path(gate["records_dir"]), host, gate["settings"])
    except (GateInputError, OSError) as error:
        return {**found, "state": UNUSABLE, "text": str(error)}
    settings, records = inputs["settings"], inputs["baseline"]
    found.update({name: settings[name] for name in ("metric", "workload", "tolerance_pct", "concurrency")})
    if not records:
        text = f"there is no baseline of {settings['workload']} for this host, so nothing will be judged: accept one with {ACCEPT}"
        return {**found, "state": NONE, "text": text}
    found.update(_numbers(records, settings))
    stale, earlier = _stale(records, after, settings), _earlier(records, before, after)
    if stale and settings["stale"] != "gate":
        return {**found, "state": STALE, "text": f"the baseline of {settings['workload']} will be stale and judge nothing: {stale}"}
    return {**found, "state": STALE if stale else READY, "text": _sentence(found, stale) + earlier}


def _sentence(found: t.Mapping[str, t.Any], stale: str) -> str:
    at = f" at concurrency {found['concurrency']}" if found["concurrency"] else ""
    text = f"{found['metric']} of {found['workload']}{at} against {_span(found)}; {found['tolerance_pct']:g} % worse is tolerated"
    if found["starts"] < ENOUGH_STARTS:
        text += "; of so few starts it judges only where this host's records tell how far its starts differ"
    return f"{text}; judged though the baseline is stale: {stale}" if stale else text


def _span(found: t.Mapping[str, t.Any]) -> str:
    if found["median"] is None:
        return "a baseline without a number"
    interval = "" if found["low"] is None else f" ({view.number(found['low'])} to {view.number(found['high'])})"
    starts = f"{found['starts']} start{'' if found['starts'] == 1 else 's'}"
    return f"{view.number(found['median'])}{interval}, {starts}, measured {str(found['measured_at'])[:10]}"


def _numbers(records: t.Sequence[Record], settings: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Median and interval of the point that is judged first, over all starts of the baseline."""
    newest = max(records, key=lambda record: str(record["measured_at"]))
    merged = {**newest, "starts": [start for record in records for start in record["starts"]]}
    wanted = settings["concurrency"]
    row = next((row for row in view.rows(merged) if wanted in (None, row.concurrency)), None)
    points = [point for start in merged["starts"] for point in start["points"] if row and (point.get("concurrency"), point.get("request_rate")) == _load(row)]
    values = [value for value in values_of(points, settings["metric"]) if value is not None]
    span = row.ranges.get(settings["metric"]) if row else None
    told = (span.median, span.low, span.high) if span else (statistics.median(values) if values else None, None, None)
    numbers = dict(zip(("median", "low", "high"), (None if value is None else round(value, 3) for value in told)))
    return {**numbers, "starts": len(start_keys(records)), "measured_at": str(newest["measured_at"]), "release": str(newest["release"].get("id", ""))}


def _load(row: view.Row) -> tuple[int | None, float | None]:
    return row.concurrency, row.request_rate


def _stale(records: t.Sequence[Record], after: t.Mapping[str, t.Any], settings: t.Mapping[str, t.Any]) -> str:
    """Why the baseline will say nothing of this change, as far as that is known before it is measured; empty where it will. See ``_gate``."""
    ignored = settings["ignore_conditions"]
    differs = (one.text for record in records for one in differing(record, _expected(record, after), metric=settings["metric"], ignore=ignored))
    return "; ".join(dict.fromkeys(differs))


def _earlier(records: t.Sequence[Record], before: Render, after: t.Mapping[str, t.Any]) -> str:
    """Says that the baseline is of an earlier release than the one that the change replaces, and what will have changed since."""
    releases = [render["release"] for render in (before, after) if render and render.get("release") and not render.get("problems")]
    subjects = {record["release"]["subject"] for record in records}
    unknown = bool(before) and len(releases) < len((before, after))
    if unknown or len(subjects) > 1 or subjects <= {subject(release) for release in releases}:
        return ""
    changes = ", ".join(subject_changes(records[0], _expected(records[0], after)))
    return f"; the baseline is of an earlier release{f' (from it to this one: {changes})' if changes else ''}"


def _expected(record: Record, after: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """A record as it will be measured: whatever the render cannot tell is as it was."""
    release = after.get("release") or {}
    model = {**record["model"], **_known({"name": _served(release.get("argv") or ()), "revision": (release.get("model") or {}).get("revision")})}
    machine, facts = record["hardware"], after.get("hardware") or {}
    if facts.get("gpus"):
        driver = (facts.get("driver") or {}).get("version")
        machine = {**machine, "gpus": _gpus(machine.get("gpus") or [], facts["gpus"]), **_known({"driver": driver})}
    whole = {**record, "model": model, "hardware": machine}
    asked = {"engine": {**record["engine"], **_known(_engine(after))}, "environment": release.get("environment") or {}, "flags": after.get("flags") or []}
    return {**whole, **asked, "release": {**record["release"], "argv": list(release.get("argv") or ())}}


def _engine(after: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    engine = after.get("engine") or {}
    return {"name": engine.get("name"), "version": engine.get("version")}


def _known(values: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    return {name: value for name, value in values.items() if value not in (None, "")}


def _served(argv: t.Sequence[str]) -> str:
    """The name under which the model is served, which a record calls the model's."""
    return next((argv[place + 1] for place, word in enumerate(argv[:-1]) if word == "--served-model-name"), "")


def _gpus(measured: t.Sequence[t.Mapping[str, t.Any]], there: t.Sequence[t.Mapping[str, t.Any]]) -> list[dict[str, t.Any]]:
    """As many GPUs as the record has, of its kinds where the host has them: a host may have more than its server uses."""
    left = list(there)
    found = []
    for gpu in measured:
        same = next((one for one in left if one.get("name") == gpu.get("name")), left[0] if left else None)
        if same is None:
            break
        left.remove(same)
        known = {"name": same.get("name"), "memory_mib": same.get("memory_total_mib"), "power_limit_w": same.get("power_limit_w")}
        found.append({**gpu, **_known(known)})
    return found
