# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Where one host differs from the inventory: what was seen there against what is asked for and what is recorded beside the inventory.

What was seen is ``__sglang_server_look`` of the role sglang_server. A host that could not be looked at has a status of its own: it never counts as one that
does not differ.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._gate import ACCEPT, GateError, read_settings
from ansible_collections.llmops.inference.plugins.module_utils._suspects import changes_between
from ansible_collections.llmops.inference.plugins.plugin_utils import _deployed, _snapshots
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import RecordFileError, host_folder, read_host

SAME, DRIFT, REPAIRED, UNJUDGED, UNREACHABLE = "same", "drift", "repaired", "not judged", "unreachable"
SERVER, ENGINE, EFFECTIVE, RECORDS, DEPLOYED, SNAPSHOT, HOST = "server", "engine", "effective", "records", "deployed", "snapshot", "host"
# What a deployment may do with a server that runs.
_RESTARTING = ("started", "restarted", "deployed")
_SHOWN = 6

Look = t.Mapping[str, t.Any]


@dataclass(frozen=True)
class Finding:
    """One thing in which a host differs.

    Attributes:
        kind: ``server``, ``engine``, ``effective``, ``records``, ``deployed``, ``snapshot`` or ``host``.
        text: one sentence.
        hint: what to do about it; empty where that is plain.
        repairable: whether a deployment puts it right.
    """

    kind: str
    text: str
    hint: str = ""
    repairable: bool = False


@dataclass(frozen=True)
class Places:
    """Where the inventory keeps what it knows of its hosts. A directory that is not there is not in use.

    Attributes:
        snapshots: see ``_snapshots``.
        deployed: see ``_deployed``.
    """

    snapshots: Path
    deployed: Path


def describe(host: str, look: Look, places: Places, before: Look | None = None, repair: Look | None = None) -> dict[str, t.Any]:
    """Returns the entry of a host.

    Args:
        host: its name in the inventory.
        look: what was seen; ``{"unreachable": why}`` or ``{"failed": why}`` where that was not possible, empty where the host got lost on the way.
        places: of the inventory.
        before: the entry of the host before a repair.
        repair: what the repair did - ``action`` of sglang_release and ``msg``; empty where there was none.

    Returns:
        ``host``, ``status``, ``asked`` and ``there`` (ids of releases), ``findings`` (see :class:`Finding`), ``remarks``, ``repairable`` (whether a deployment
        helps), ``repaired`` (sentences), ``repair`` (``action``, ``restarted``, ``msg``; empty without one;
        ``restarted`` is None for a failure, which says itself what serves now).

    Raises:
        OSError: a file beside the inventory cannot be read.
    """
    status, found, remarks = _judge(host, look, places)
    told = {one.text for one in found}
    repaired = [one["text"] for one in (before or {}).get("findings", []) if one["text"] not in told] if repair else []
    return {
        "host": host,
        "status": REPAIRED if status == SAME and repaired else status,
        "asked": str(look.get("release", {}).get("asked", "")),
        "there": str(look.get("server", {}).get("release", {}).get("id", "")),
        "findings": [vars(one) for one in found],
        "remarks": remarks,
        "repairable": any(one.repairable for one in found),
        "repaired": repaired,
        "repair": _repair(repair) if repair else {},
    }


def _repair(repair: Look) -> dict[str, t.Any]:
    action = str(repair["action"])
    return {"action": action, "restarted": None if action == "failed" else action in _RESTARTING, "msg": str(repair["msg"])}


def _judge(host: str, look: Look, places: Places) -> tuple[str, list[Finding], list[str]]:
    if not look or "unreachable" in look:
        why = look.get("unreachable") or "it stopped answering before it was looked at"
        return UNREACHABLE, [Finding(HOST, f"the host cannot be reached: {why}")], []
    if "failed" in look:
        return UNJUDGED, [Finding(HOST, f"it could not be looked at: {look['failed']}")], []
    if look["release"]["action"] == "busy":
        holder = look["release"]["holder"]
        text = f"another run is at it: {holder.get('purpose') or 'unknown'}, since {holder.get('since') or 'unknown'}, by {holder.get('by') or 'unknown'}"
        return UNJUDGED, [Finding(HOST, text, "look again when it has ended")], []
    remarks: list[str] = []
    good = str(look["server"]["release"].get("id", ""))
    found = [
        *_server(look),
        *_engine(look),
        *_effective(look),
        *_records(host, good, look["benchmark"]),
        *_recorded(host, good, places.deployed, remarks),
        *_snapshot(host, look, places.snapshots, remarks),
    ]
    return (DRIFT if found else SAME), found, remarks


def _server(look: Look) -> list[Finding]:
    """What sglang_release would do, and why."""
    release, server = look["release"], look["server"]
    found = [Finding(SERVER, f"{reason}{_details(look) if reason.startswith('the release changes') else ''}", "", True) for reason in release["reasons"]]
    # Another release has another file, or none yet.
    if look["credentials_differ"] and release["asked"] == server["release"].get("id"):
        found.append(Finding(SERVER, "the file with the secret flags is other than the inventory's", "", True))
    if release["action"] == "would_change" and not release["reasons"]:
        found.append(Finding(SERVER, f"the server does not answer as it should: {server['health']}", "", True))
    if release["action"] in ("refused", "failed"):
        found.append(Finding(SERVER, str(release["msg"])))
    return found


def _details(look: Look) -> str:
    """What is other in the release that is asked for."""
    changes = [one.text for one in changes_between(look["server"]["release"], look["asked"])]
    if not changes:
        return ": its unit differs"
    return f": {'; '.join(changes[:_SHOWN])}{f'; and {len(changes) - _SHOWN} more' if len(changes) > _SHOWN else ''}"


def _engine(look: Look) -> list[Finding]:
    asked, running = look["engine"], str(look["server"]["effective"].get("version") or "")
    found = []
    if not asked["installed"]:
        told = "" if look["release"]["action"] else "; without it the release could not be compared"
        found.append(Finding(ENGINE, f"engine {asked['name']}, which the inventory asks for, is not on the host{told}", "", True))
    same = look["server"]["release"].get("engine", {}).get("name") == asked["name"]
    if same and running and running != asked["version"]:
        found.append(Finding(ENGINE, f"the server that runs says that it is SGLang {running}, its release is of {asked['version']}", _restart(look)))
    return found


def _effective(look: Look) -> list[Finding]:
    told = look["server"]["effective"]
    found = [Finding(EFFECTIVE, text, _restart(look)) for text in told.get("differences", [])]
    return [*found, Finding(EFFECTIVE, f"the effective flags are not known: {told['problem']}")] if told.get("problem") else found


def _restart(look: Look) -> str:
    return f"systemctl restart {look['server']['unit']} if it was started by hand; what stays after that the preflight did not foresee"


def _records(host: str, good: str, benchmark: Look) -> list[Finding]:
    """Whether there is a record of what serves, and one to judge the next change by."""
    if not benchmark["expected"] or not good:
        return []
    measure = f"ansible-playbook llmops.inference.benchmark -l {host}"
    try:
        stored = read_host(host_folder(Path(benchmark["records_dir"]), host))
        found = []
        if not any(record["release"].get("id") == good for record in stored.records.values()):
            found.append(Finding(RECORDS, f"there is no benchmark record of the release that serves ({good})", measure))
        if benchmark["gate"]:
            workload = read_settings(benchmark["gate"]).workload
            if not stored.baseline_of(workload):
                found.append(Finding(RECORDS, f"the gate is on, and there is no baseline of {workload} to judge a change by", f"{measure} {ACCEPT}"))
    except (GateError, RecordFileError) as error:
        return [Finding(RECORDS, str(error))]
    return found


def _recorded(host: str, good: str, folder: Path, remarks: list[str]) -> list[Finding]:
    """Whether the host has what was recorded as deployed."""
    if not folder.is_dir():
        remarks.append("there are no records of deployments to compare with")
        return []
    try:
        last = str(_deployed.read(folder, host).get("release", ""))
    except (RecordFileError, _deployed.DeployedError) as error:
        return [Finding(DEPLOYED, str(error), "restore it from git")]
    if last == good:
        return []
    told = f"{last} is recorded as deployed last" if last else "no deployment is recorded"
    return [Finding(DEPLOYED, f"{told}, and the host has {good or 'none'}", "deploy it once more, and commit the record", True)]


def _snapshot(host: str, look: Look, folder: Path, remarks: list[str]) -> list[Finding]:
    """Whether what the inventory knows of the host still holds."""
    if not folder.is_dir():
        remarks.append("there are no snapshots to compare with")
        return []
    again = f"ansible-playbook llmops.inference.snapshot -l {host}"
    try:
        snapshot = _snapshots.read(folder, host)
    except (RecordFileError, _snapshots.SnapshotError) as error:
        return [Finding(SNAPSHOT, str(error))]
    pairs = [*_fact_pairs(snapshot.facts, look["facts"]), *_gpu_pairs(snapshot.gpus, look["gpus"]), *_model_pairs(snapshot.model, look["model"])]
    return [Finding(SNAPSHOT, f"the snapshot says {before}, the host has {after}", again) for before, after in pairs if before != after]


def _fact_pairs(snapshot: Look, facts: Look) -> t.Iterator[tuple[str, str]]:
    def words(of: Look) -> list[str]:
        version = of.get("python", {}).get("version", {})
        python = ".".join(str(version[part]) for part in ("major", "minor") if part in version)
        distribution = f"{of.get('distribution', '')} {of.get('distribution_version', '')}".strip()
        return [f"Python {python}", distribution or "no distribution", f"systemd {of.get('systemd', {}).get('version', '')}"]

    return zip(words(snapshot), words(facts))


def _gpu_pairs(snapshot: Look | None, gpus: Look | None) -> t.Iterator[tuple[str, str]]:
    """Where GPUs were looked at: names, number and memory, then the driver."""
    if gpus is None:
        return

    def cards(of: Look) -> str:
        names = [f"{gpu.get('name')} ({gpu.get('memory_total_mib')} MiB)" for gpu in of.get("gpus") or []]
        return ", ".join(f"{names.count(name)}x {name}" for name in dict.fromkeys(names)) or "no GPU"

    def driver(of: Look) -> str:
        return f"driver {(of.get('driver') or {}).get('version') or 'none'}"

    yield cards(snapshot or {}), cards(gpus)
    yield driver(snapshot or {}), driver(gpus)


def _model_pairs(snapshot: Look, model: Look) -> t.Iterator[tuple[str, str]]:
    if not snapshot or not model:
        if bool(snapshot) != bool(model):
            yield (f"a model in {snapshot['path']}" if snapshot else "no model"), (f"a model in {model['path']}" if model else "none there")
        return
    yield f"a model in {snapshot.get('path')}", f"a model in {model['path']}"
    yield f"model revision {snapshot.get('revision') or 'none'}", f"model revision {model['revision'] or 'none'}"
    yield f"{_weights(snapshot)} bytes of weights", f"{_weights(model)} bytes of weights"


def _weights(model: Look) -> str:
    return f"{(model.get('weights') or {}).get('bytes', 0):,}"
