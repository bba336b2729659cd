# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Which hosts a change reaches, and which questions to the engine tell what it does to them: one for each distinct release, however many hosts run it."""

from __future__ import annotations

import hashlib
import json
import typing as t

from ansible_collections.llmops.inference.plugins.plugin_utils._rendered import differ

_Document = t.Mapping[str, t.Any]
# Of a GPU what the preflight judges by; the rest tells two hosts of the same hardware apart.
_JUDGED = ("name", "memory_total_mib", "memory_free_mib", "compute_capability", "mig", "mig_devices", "index")
_NAMED = 5
# What restarts nothing and is worth a reviewer's look.
_QUIET = (
    (("gate", "policy"), "what a release is judged by changes (sglang_server_gate, sglang_server_not_honoured, sglang_server_silently_disabled)"),
    (("hardware", "model_digest"), "the snapshot changes, so that hosts are judged as other machines than before"),
)
# memory_free_mib of the snapshot of an idle GPU differs by a few MiB between two of the same kind.
_FREE_STEP_MIB = 512
_SHOWN = 5
# What Ansible says of a variable that is not there, or that is only a word.
_UNKNOWN = ("undefined", "has no attribute")


def compared(before: t.Mapping[str, _Document], after: t.Mapping[str, _Document]) -> list[dict[str, t.Any]]:
    """Returns the hosts that a change reaches or about which nothing can be said, each with both documents and the questions about it.

    Args:
        before: documents of the base, by host.
        after: documents of the branch, by host.
    """
    rows = []
    for host in sorted({*before, *after}):
        old, new = before.get(host), after.get(host)
        if differ(old, new):
            rows.append({"host": host, "before": old, "after": new, "requests": _requests(old, new)})
    return rows


def quiet(before: t.Mapping[str, _Document], after: t.Mapping[str, _Document]) -> list[str]:
    """Returns sentences about changes that restart nothing: what a release is judged by, and what is known of its host.

    Args:
        before: documents of the base, by host.
        after: documents of the branch, by host.
    """
    both = [host for host in sorted({*before} & {*after}) if not before[host]["problems"] and not after[host]["problems"]]
    told = []
    for names, text in _QUIET:
        hosts = [host for host in both if any(_part(before[host], name) != _part(after[host], name) for name in names)]
        if hosts:
            more = f" and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else ""
            told.append(f"{text}: {', '.join(hosts[:_NAMED])}{more}")
    return told


def _part(document: _Document, name: str) -> t.Any:
    """A part of a document, but for the place of the records, which is that of the copy."""
    found = document.get(name)
    return found.get("settings") if name == "gate" and found else found


def remarks(documents: t.Mapping[str, _Document], left_out: t.Sequence[str], encrypted: t.Sequence[str]) -> list[str]:
    """Returns sentences about what a copy does not have of its repository.

    Args:
        documents: of the branch, by host.
        left_out: links that lead elsewhere.
        encrypted: files that are encrypted as a whole.
    """
    found = []
    if left_out:
        found.append(f"links that lead out of the repository or to nothing were left out: {_listed(left_out)}")
    if encrypted and any(words in problem for document in documents.values() for problem in document["problems"] for words in _UNKNOWN):
        found.append(
            f"{_listed(encrypted)} cannot be read here: of the variables in a file that is encrypted as a whole only those count that another file refers to, "
            "whose names begin with vault_ and that are text. Name them so, or encrypt single values with ansible-vault encrypt_string"
        )
    return found


def _listed(names: t.Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _requests(before: _Document | None, after: _Document | None) -> dict[str, str | None]:
    told = {"before": _judgeable(before), "after": _judgeable(after)}
    # Also where the new engine's table refuses a flag: it is asked for all that it would refuse.
    asked = (after or {}).get("engine", {}).get("version")
    moves = told["before"] and asked and told["before"]["engine"]["version"] != asked
    found: dict[str, str | None] = {name: key_of(question(document)) if document else None for name, document in told.items()}
    found["upgrade"] = key_of(upgrade(before, after)) if moves and before and after else None
    return found


def _judgeable(document: _Document | None) -> t.Any:
    """The document, where a release could be rendered."""
    return document if document and not document["problems"] else None


def questions(hosts: t.Iterable[_Document]) -> dict[str, dict[str, t.Any]]:
    """Returns the distinct questions about the rows of :func:`compared`, by key."""
    found: dict[str, dict[str, t.Any]] = {}
    for row in hosts:
        asked = {name: question(row[name]) for name in ("before", "after") if row["requests"][name]}
        if row["requests"]["upgrade"]:
            asked["upgrade"] = upgrade(row["before"], row["after"])
        found.update((row["requests"][name], {**one, "key": row["requests"][name]}) for name, one in asked.items())
    return found


def question(document: _Document) -> dict[str, t.Any]:
    """Returns what the engine is asked about a release: options of sglang_preflight, and ``unanswerable`` (why it cannot be asked; empty when it can)."""
    engine, release = document["engine"], document["release"]
    hardware = document["hardware"] if engine["flavour"] == "cuda" else None
    return {
        "version": engine["version"],
        "cuda": engine["cuda"],
        "argv": release["argv"],
        "secret_flags": document["secret_flags"],
        "environment": document["probe_environment"],
        "sources": document["sources"],
        "gpu_facts": _judged(hardware, document["probe_environment"]) if hardware else None,
        "model_digest": document["model_digest"],
        "model_dir": document["model_dir"],
        "not_honoured": document["policy"]["not_honoured"],
        "silently_disabled": document["policy"]["silently_disabled"],
        "unanswerable": _unanswerable(document, hardware),
    }


def upgrade(before: _Document, after: _Document) -> dict[str, t.Any]:
    """Returns the question what the new engine makes of the flags that run now."""
    return {**question(before), "version": after["engine"]["version"], "cuda": after["engine"]["cuda"]}


def _unanswerable(document: _Document, hardware: t.Any) -> str:
    if document["engine"]["flavour"] == "cuda" and not hardware:
        host = document["host"]
        return f"the snapshot of {host} knows no GPUs; record it again: ansible-playbook llmops.inference.snapshot -l {host}"
    if not document["model_digest"]:
        return next(iter(document["remarks"]), f"the snapshot of {document['host']} has no configuration files of its model")
    return ""


def _judged(facts: _Document, environment: t.Mapping[str, str]) -> dict[str, t.Any]:
    named = any(str(gpu.get("uuid")) in value for gpu in facts.get("gpus") or () for value in environment.values())
    kept = (*_JUDGED, "uuid") if named else _JUDGED
    gpus = [{name: gpu[name] for name in kept if name in gpu} for gpu in facts.get("gpus") or ()]
    for gpu in gpus:
        gpu["processes"] = []
        if gpu.get("memory_free_mib") is not None:
            gpu["memory_free_mib"] = gpu["memory_free_mib"] // _FREE_STEP_MIB * _FREE_STEP_MIB
    return {"gpus": gpus, "driver": {name: (facts.get("driver") or {}).get(name) or "" for name in ("version", "cuda")}}


def key_of(asked: _Document) -> str:
    """Returns the key of a question: the files of a model count by content, wherever they lie."""
    counted = {name: value for name, value in asked.items() if name not in ("model_dir", "key")}
    return hashlib.sha256(json.dumps(counted, sort_keys=True).encode()).hexdigest()[:12]
