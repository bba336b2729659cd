# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""A release as the inventory renders it where no host is reached: the same id as on the host, and what it takes to judge it."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._gate import read_settings
from ansible_collections.llmops.inference.plugins.module_utils._release import Candidate
from ansible_collections.llmops.inference.plugins.module_utils._workload import SHIPPED
from ansible_collections.llmops.inference.plugins.plugin_utils._snapshots import stale
from ansible_collections.llmops.inference.plugins.plugin_utils._vaulted import described

FORMAT = 1
KIND = "render"
# What a deployment says of its host has no meaning where there is none.
_CONSOLATION = re.compile(r"\s*(?:Nothing was changed|The server was not touched)\.\s*$")


def rendered(host: str, asked: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Returns the document of a release.

    Args:
        host: name in the inventory.
        asked: options of the action sglang_render.

    Raises:
        GateError: a setting of the gate has no meaning.
        SystemdError: the unit is none.
    """
    if asked["gate"]:
        read_settings(asked["gate"].get("settings"), workloads=SHIPPED)
    secrets = {**asked["secret_flags"], **asked["secret_environment"]}
    environment = {name: str(value) for name, value in asked["environment"].items()}
    snapshot = asked["snapshot"]
    old = stale(host, snapshot.get("model") or {}, asked["model"])
    model = {} if old else snapshot
    candidate = Candidate(asked["unit"], tuple(asked["argv"]), environment, {"name": asked["engine"]["name"]}, asked["model"], tuple(secrets))
    return {
        "format": FORMAT,
        "kind": KIND,
        "host": host,
        "instance": asked["instance"],
        "problems": [],
        "refused": False,
        "remarks": [old] if old else [],
        "release": {
            "id": candidate.id,
            "unit": candidate.unit,
            "argv": list(candidate.argv),
            "environment": environment,
            "engine": dict(candidate.engine),
            "model": dict(candidate.model),
            "secrets": sorted(candidate.secret_names),
        },
        "engine": _engine(asked["engine"]),
        "flags": list(asked["flags"]),
        "sources": dict(asked["sources"]),
        "secret_flags": sorted(asked["secret_flags"]),
        "secrets": {name: described(value) for name, value in sorted(secrets.items())},
        "policy": {"not_honoured": asked["not_honoured"], "silently_disabled": asked["silently_disabled"]},
        "probe_environment": {**{name: str(value) for name, value in asked["base_environment"].items()}, **environment},
        "hardware": asked["gpu_facts"],
        "model_digest": model.get("model_digest") or "",
        "model_dir": model.get("model_dir") or "",
        "gate": dict(asked["gate"]),
        "boot": asked["enabled"],
        "snapshot": {"recorded_at": snapshot.get("recorded_at") or ""},
    }


def unrendered(host: str, problem: str, refused: bool = False, engine: t.Mapping[str, t.Any] | None = None) -> dict[str, t.Any]:
    """Returns the document of a host whose release could not be rendered.

    Args:
        host: name in the inventory.
        problem: why, in the words of the task that failed.
        refused: a check of the inventory refuses it, as it would when the host is deployed.
        engine: that the inventory asks for, where that much is known.
    """
    said = _CONSOLATION.sub("", problem)
    return {"format": FORMAT, "kind": KIND, "host": host, "problems": [said], "remarks": [], "refused": refused, "engine": _engine(engine or {})}


def _engine(found: t.Mapping[str, t.Any]) -> dict[str, str]:
    return {name: str(found.get(name) or "") for name in ("name", "version", "flavour", "cuda")}


def differ(before: t.Mapping[str, t.Any] | None, after: t.Mapping[str, t.Any] | None) -> bool:
    """Returns whether a host would be touched, or cannot be told about: another release, another secret, or another way to boot."""
    if not before or not after or before["problems"] or after["problems"]:
        return bool(before or after)
    return any(_touching(before)[name] != _touching(after)[name] for name in _touching(before))


def _touching(document: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    return {"release": document["release"]["id"], "instance": document["instance"], "secrets": document["secrets"], "boot": document["boot"]}
