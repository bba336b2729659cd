# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What a release needs of its host, kept beside the inventory so that it can be rendered and judged where the host is out of reach::

<snapshots_dir>/<host>/host.json        facts of Ansible that decide how a release looks
                       gpu.json         facts of the GPUs; missing on a host that needs none
                       model.json       path, repository, revision and weights of the model
                       model/           its configuration files, and an index of the weights that holds their total only
"""

from __future__ import annotations

import hashlib
import json
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import host_folder, write_beside

FORMAT = 1
# Of ansible_facts: what the roles decide by.
FACTS = ("architecture", "distribution", "distribution_version", "os_family", "python", "service_mgr", "system", "systemd")
_PARTS: t.Mapping[str, t.Tuple[str, ...]] = {"python": ("version",), "systemd": ("version",)}
# What changes by the minute and is no property of the machine.
_FLEETING = ("memory_used_mib", "processes")
_OF_A_BOOT = ("problems", "remarks", "state", "verdict", "xids")
# What an idle GPU has free differs by some MiB from look to look, more where a server of this collection holds the rest.
_FREE_STEP_MIB = 256
_INDEX = "model.safetensors.index.json"


class SnapshotError(ValueError):
    """A snapshot is missing, stale or damaged; the message is for the operator."""


@dataclass(frozen=True)
class Snapshot:
    """What is known of a host.

    Attributes:
        folder: where it lies.
        recorded_at: UTC.
        facts: of Ansible.
        gpus: of ``gpu_facts``; None where none were recorded.
        model: path, repository, revision and weights; empty where none was recorded.
        model_dir: the configuration files; None where there are none.
    """

    folder: Path
    recorded_at: str
    facts: t.Mapping[str, t.Any]
    gpus: t.Mapping[str, t.Any] | None = None
    model: t.Mapping[str, t.Any] = field(default_factory=dict)
    model_dir: Path | None = None

    @property
    def model_digest(self) -> str:
        """Twelve hexadecimal digits of the SHA-256 over the model's files; empty where there are none."""
        if self.model_dir is None:
            return ""
        digest = hashlib.sha256()
        for path in sorted(self.model_dir.iterdir()):
            digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()[:12]


def read(snapshots_dir: Path, host: str) -> Snapshot:
    """Reads the snapshot of a host.

    Raises:
        SnapshotError: there is none, or it is damaged.
        OSError: a file cannot be read.
    """
    folder = host_folder(snapshots_dir, host)
    if not (folder / "host.json").is_file():
        raise SnapshotError(
            f"{host} has no snapshot in {snapshots_dir}: what a release needs of its host is not known, and is not guessed. "
            f"Record it where the host can be reached: ansible-playbook llmops.inference.snapshot -l {host}"
        )
    host_document, gpus, model = (_read(folder / f"{name}.json") for name in ("host", "gpu", "model"))
    facts = host_document.get("facts")
    if (host_document.get("format"), host_document.get("kind")) != (FORMAT, "host") or not isinstance(facts, dict):
        raise SnapshotError(f"{folder / 'host.json'} is no snapshot of format {FORMAT}; {_again(host)}")
    if gpus and not isinstance(gpus.get("gpus"), list):
        raise SnapshotError(f"{folder / 'gpu.json'} holds no facts of gpu_facts; {_again(host)}")
    model_dir = folder / "model"
    return Snapshot(
        folder,
        str(host_document.get("recorded_at") or ""),
        facts,
        gpus or None,
        model,
        model_dir if model and model_dir.is_dir() else None,
    )


def stale(host: str, recorded: t.Mapping[str, t.Any], model: t.Mapping[str, t.Any]) -> str:
    """Returns in a sentence why the model of a snapshot is not the one that the inventory asks for; empty when it is.

    Args:
        host: name of the host.
        recorded: the snapshot's model.
        model: ``path`` and ``revision`` as the inventory names them; a revision only of a model from a hub.
    """
    if not recorded:
        return f"the snapshot of {host} knows no model; {_again(host)}"
    for name, what in (("revision", "revision"), ("path", "the model in")):
        if model[name] and recorded.get(name) != model[name]:
            return f"the snapshot of {host} is of {what} {recorded.get(name) or 'nothing'}, and the inventory asks for {model[name]}; {_again(host)}"
    return ""


def _again(host: str) -> str:
    return f"record it again: ansible-playbook llmops.inference.snapshot -l {host}"


def documents(facts: t.Mapping[str, t.Any], gpus: t.Mapping[str, t.Any] | None, model: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Returns the files of a snapshot, name -> JSON document, without the time.

    Args:
        facts: ``ansible_facts`` of the host.
        gpus: facts of ``gpu_facts``; None on a host that needs none.
        model: of ``sglang_model_facts``.
    """
    kept = {name: _part(name, facts[name]) for name in FACTS if name in facts}
    found: dict[str, t.Any] = {"host.json": {"format": FORMAT, "kind": "host", "facts": kept}}
    if gpus is not None:
        lasting = {name: value for name, value in gpus.items() if name not in _OF_A_BOOT}
        found["gpu.json"] = {**lasting, "gpus": [_lasting(gpu) for gpu in gpus.get("gpus") or []]}
    if model:
        found["model.json"] = {name: value for name, value in model.items() if name != "files"}
        found.update({f"model/{name}": content for name, content in model["files"].items()})
        # A model without safetensors files has weights all the same, unless it is a dummy: nothing is said of them.
        if model["weights"]["bytes"]:
            found[f"model/{_INDEX}"] = {"metadata": {"total_size": model["weights"]["bytes"]}}
    return found


def _part(name: str, value: t.Any) -> t.Any:
    return {inner: value[inner] for inner in _PARTS[name] if inner in value} if name in _PARTS else value


def _lasting(gpu: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """A GPU as it is when no server of this collection runs on it."""
    held = sum(process.get("memory_mib") or 0 for process in gpu.get("processes") or () if str(process.get("unit") or "").startswith("sglang-"))
    kept = {name: value for name, value in gpu.items() if name not in _FLEETING}
    if gpu.get("memory_free_mib") is not None and gpu.get("memory_total_mib") is not None:
        kept["memory_free_mib"] = min(gpu["memory_free_mib"] + held, gpu["memory_total_mib"]) // _FREE_STEP_MIB * _FREE_STEP_MIB
    if "pcie" in gpu:
        # At rest a GPU lowers its link's generation.
        kept["pcie"] = {**gpu["pcie"], "generation": gpu["pcie"].get("generation_max")}
    return {**kept, "processes": []}


def write(snapshots_dir: Path, host: str, found: t.Mapping[str, t.Any], now: str, dry: bool = False) -> list[str]:
    """Writes what differs from the snapshot that is there; returns the names of the files.

    The time of recording changes only with something else, so that a host that is as it was gives no commit.

    Args:
        snapshots_dir: of the inventory; made where it is not there.
        host: name of the host.
        found: of :func:`documents`.
        now: the time, UTC.
        dry: only say what would be written.

    Raises:
        OSError: a file cannot be written.
    """
    folder = host_folder(snapshots_dir, host)
    before = {path: path.read_text(encoding="utf-8", errors="replace") for path in _files(folder)}
    if before == _texts(folder, found, _recorded_at(folder) or now):
        return []
    after = _texts(folder, found, now)
    changed = [path for path, text in after.items() if before.get(path) != text]
    gone = [path for path in before if path not in after]
    for path in [] if dry else changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_beside(path, after[path].encode())
    for path in [] if dry else gone:
        path.unlink()
    return sorted(str(path.relative_to(folder)) for path in (*changed, *gone))


def _texts(folder: Path, found: t.Mapping[str, t.Any], recorded_at: str) -> dict[Path, str]:
    dated = {**found, "host.json": {**found["host.json"], "recorded_at": recorded_at}}
    return {folder / name: json.dumps(content, sort_keys=True, indent=1, ensure_ascii=False) + "\n" for name, content in dated.items()}


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in (*folder.glob("*.json"), *folder.glob("model/*.json")) if not path.name.startswith("."))


def _recorded_at(folder: Path) -> str:
    """When the snapshot that is there was recorded; empty where it is damaged, and is written anew."""
    try:
        return str(_read(folder / "host.json").get("recorded_at") or "")
    except SnapshotError:
        return ""


def _read(path: Path) -> dict[str, t.Any]:
    """The document of a file; empty where there is none."""
    if not path.is_file():
        return {}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"{path} is damaged: {error}") from None
    if not isinstance(document, dict):
        raise SnapshotError(f"{path} is damaged: a JSON object is expected")
    return document
