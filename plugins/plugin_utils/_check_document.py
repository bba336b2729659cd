# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What a proposed change does to each host, as one document (``docs/check.schema.json``); the reports are made of it.

Made of the changes (releases rendered of both commits) and of what the engines said of them. Values of secrets are in neither; what looks like one is masked.
"""

from __future__ import annotations

import json
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._preflight_difference import compare
from ansible_collections.llmops.inference.plugins.module_utils._redact import redact_data
from ansible_collections.llmops.inference.plugins.plugin_utils import _check_flags as asked
from ansible_collections.llmops.inference.plugins.plugin_utils import _check_preflight as engine
from ansible_collections.llmops.inference.plugins.plugin_utils import _check_verdict as verdict
from ansible_collections.llmops.inference.plugins.plugin_utils._check_baseline import baseline
from ansible_collections.llmops.inference.plugins.plugin_utils._check_unit import unit_difference

FORMAT, KIND = 1, "check"
_SETTINGS = {"instance": "sglang_server_instance", "boot": "sglang_server_boot_enabled"}
_INSTANCE = {
    "code": "another_instance",
    "severity": "warning",
    "text": "this starts another server beside the one that runs, which keeps its port, its GPUs and its unit",
    "hint": "remove that one first: ansible-playbook llmops.inference.remove with the old name",
    "source": "",
    "fields": [],
    "variables": ["sglang_server_instance"],
}

_Data = t.Mapping[str, t.Any]
_Render = t.Optional[t.Mapping[str, t.Any]]


class CheckInputError(ValueError):
    """What was handed over is no result of the steps before; the message is for the operator."""


def check_document(changes: _Data, preflights: _Data) -> dict[str, t.Any]:
    """Returns the document.

    Args:
        changes: base, head, hosts (those that differ or could not be rendered), unchanged, remarks.
        preflights: by key, ``preflight`` and ``cached``, or ``error``.

    Raises:
        CheckInputError: something is missing in either, or is no plain data.
    """
    changes, preflights = _plain("changes", changes), _plain("preflights", preflights)
    _expect("changes", changes, {"base": dict, "head": dict, "hosts": list, "unchanged": int})
    for place, entry in enumerate(changes["hosts"]):
        _expect(f"changes.hosts[{place}]", entry, {"host": str, "requests": dict})
    for key, entry in preflights.items():
        if not isinstance(entry, dict) or not ("error" in entry or isinstance(entry.get("preflight"), dict)):
            raise CheckInputError(f"preflights.{key} must have preflight, a document of sglang_preflight, or error, a sentence: {_some(entry)}")
    hosts = [_host(entry, preflights) for entry in sorted(changes["hosts"], key=lambda entry: str(entry["host"]))]
    base, head = changes["base"], changes["head"]
    return {
        "format": FORMAT,
        "kind": KIND,
        "base": {"ref": str(base.get("ref", "")), "commit": base.get("commit")},
        "head": {"commit": head.get("commit"), "dirty": bool(head.get("dirty"))},
        "verdict": verdict.of_all(hosts),
        "sentence": verdict.sentence(hosts),
        "remarks": [str(text) for text in changes.get("remarks") or ()],
        "unchanged": changes["unchanged"],
        "preflights": {"distinct": len(preflights), "cached": sum(1 for entry in preflights.values() if entry.get("cached"))},
        "hosts": hosts,
    }


def _host(entry: _Data, preflights: _Data) -> dict[str, t.Any]:
    host, before, after = entry["host"], entry.get("before"), entry.get("after")
    problems = [str(text) for text in (after or {}).get("problems") or ()]
    problems += [] if before or after else ["neither commit has a release of it."]
    change = verdict.NOT_RENDERED if problems else verdict.REMOVED if not after else verdict.CHANGED if before else verdict.NEW
    sides = (_rendered(before), None if problems else _rendered(after))
    # Of what goes, or cannot be told, a difference would say that everything is taken away.
    differing = sides if sides[1] else (None, None)
    looked = {name: _look(entry["requests"].get(name), preflights) for name in ("before", "after", "upgrade")}
    old, new, upgraded = (looked[name][0] for name in ("before", "after", "upgrade"))
    if not sides[1]:
        new = None
    flags = asked.flag_changes(*differing)
    findings = engine.split_findings(old, new)
    for row in asked.plain_secrets(sides[1]):
        findings["before" if row in asked.plain_secrets(sides[0]) else "new"].append(row)
    unjudged, refused = _unjudged(change, problems, sides, looked["after"]), bool((after or {}).get("refused"))
    settings = _settings(*sides) if change == verdict.CHANGED else []
    findings["new"] += [_INSTANCE for row in settings if row["name"] == "sglang_server_instance"]
    # A warning that was there before is no reason to look at this change.
    counting = [*findings["new"], *(row for row in findings["before"] if row["severity"] == "error")]
    judged, why = verdict.of_host(counting, engine.by_policy(new), unjudged, refused)
    release = [_id(side) for side in sides]
    units = [str(_release(side).get("unit", "")) for side in differing]
    return t.cast(
        t.Dict[str, t.Any],
        redact_data(
            {
                "host": host,
                "change": change,
                "verdict": judged,
                "sentence": why,
                "release": {"before": release[0], "after": release[1]},
                "restarts": change == verdict.CHANGED and (release[0] != release[1] or bool(asked.secret_changes(*sides)) or _INSTANCE in findings["new"]),
                "settings": settings,
                "flags": flags,
                "environment": asked.environment_changes(*differing),
                "unit": unit_difference(units[0], units[1], host),
                "engine": _pair(sides, lambda side: side.get("engine"), ("name", "version", "flavour", "cuda")),
                "model": _pair(sides, lambda side: _release(side).get("model"), ("path", "revision")),
                "secrets": asked.secret_changes(*sides) if change == verdict.CHANGED else [],
                "effective": engine.effective_changes(old, new),
                "findings": findings,
                "outcomes": engine.outcomes(new, [name for row in flags for name in (row["flag"], *row["fields"])]),
                "memory": engine.memory_changes(old, new),
                "upgrade": compare(old, upgraded) if old and upgraded else None,
                "baseline": baseline(host, before, sides[1]) if sides[1] else None,
                "problems": problems,
                "remarks": [text for text in _remarks(before, after, looked) if text not in (unjudged, *problems)],
            }
        ),
    )


def _settings(before: _Render, after: _Render) -> list[dict[str, t.Any]]:
    """What is asked of the server's unit beside its release, before and after."""
    pairs = [(variable, (before or {}).get(name), (after or {}).get(name)) for name, variable in _SETTINGS.items()]
    return [{"name": variable, "before": old, "after": new} for variable, old, new in pairs if before and after and old != new]


def _rendered(render: _Render) -> _Render:
    """A render that is whole."""
    return render if render and render.get("release") and not render.get("problems") else None


def _release(render: _Render) -> _Data:
    return (render or {}).get("release") or {}


def _id(render: _Render) -> str | None:
    return _release(render).get("id")


def _pair(sides: t.Iterable[_Render], part: t.Callable[[_Data], t.Any], names: t.Sequence[str]) -> dict[str, t.Any]:
    """A part of both sides as text; null for a side that is not there."""
    told = [(part(side) or {}) if side else None for side in sides]
    before, after = (None if one is None else {name: str(one[name]) for name in names if one.get(name) is not None} for one in told)
    return {"before": before, "after": after}


def _look(key: str | None, preflights: _Data) -> tuple[t.Any, str]:
    """The document of a preflight, or None and why there is none; neither where none was asked for."""
    if not key:
        return None, ""
    if key not in preflights:
        return None, "no preflight of it was made"
    found = preflights[key]
    return (None, str(found["error"])) if "error" in found else (found["preflight"], "")


def _unjudged(change: str, problems: t.Sequence[str], sides: t.Sequence[_Render], looked: tuple[t.Any, str]) -> str:
    """Why a candidate could not be judged; empty where it was, or where nothing of it is left to judge."""
    if problems:
        return " ".join(problems)
    if change == verdict.REMOVED or looked[0]:
        return ""
    if looked[1]:
        return looked[1]
    # Only a secret differs: the engine is asked for the same as before.
    same = sides[0] and sides[1] and _id(sides[0]) == _id(sides[1])
    return "" if same else "the engine was not asked about it"


def _remarks(before: _Render, after: _Render, looked: t.Mapping[str, tuple[t.Any, str]]) -> list[str]:
    found = [str(text) for text in (after or {}).get("remarks") or ()]
    problems = [str(text) for text in (before or {}).get("problems") or ()]
    if problems:
        found.append(f"its release of the base cannot be rendered, so all of it counts as new: {' '.join(problems)}")
    for name, text in (("before", "what the engine makes of the base is not known"), ("upgrade", "what the other engine makes of the base is not known")):
        if looked[name][1]:
            found.append(f"{text}: {looked[name][1]}")
    if not after:
        found.append("it leaves the inventory: this stops nothing, remove its server with the playbook remove before")
    return found


def _plain(name: str, value: t.Any) -> dict[str, t.Any]:
    """Plain data, for values of a task carry marks of Ansible.

    Raises:
        CheckInputError: it is none.
    """
    try:
        found = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise CheckInputError(f"{name} is no plain data: {error}") from None
    if not isinstance(found, dict):
        raise CheckInputError(f"{name} must be a mapping: {_some(found)}")
    return found


def _expect(name: str, value: t.Any, kinds: t.Mapping[str, type]) -> None:
    """Looks at the parts of an input.

    Raises:
        CheckInputError: one is missing, or something else.
    """
    if not isinstance(value, dict):
        raise CheckInputError(f"{name} must be a mapping: {_some(value)}")
    for key, kind in kinds.items():
        if not isinstance(value.get(key), kind):
            raise CheckInputError(f"{name}.{key} must be a {kind.__name__}: {_some(value.get(key))}")


def _some(value: t.Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
