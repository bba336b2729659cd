# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import RecordFileError
from ansible_collections.llmops.inference.plugins.plugin_utils._snapshots import Snapshot, SnapshotError, documents, read, stale, write
from ansible_collections.llmops.inference.tests.unit.gitops_repository import FACTS, GPU, GPUS, MODEL, MODEL_PATH, NOW

LATER = "2026-12-24T10:00:00Z"
ALL = ["gpu.json", "host.json", "model.json", "model/config.json", "model/model.safetensors.index.json"]
KEPT = {
    "architecture": "x86_64",
    "distribution": "Debian",
    "distribution_version": "12.8",
    "os_family": "Debian",
    "python": {"version": {"major": 3, "minor": 11}},
    "service_mgr": "systemd",
    "system": "Linux",
    "systemd": {"version": 252},
}
AGAIN = "record it again: ansible-playbook llmops.inference.snapshot -l ct129"


def kept(tmp_path, now=NOW, dry=False, **parts):
    """Writes a snapshot of which some parts are others: facts, gpus (None: none), model."""
    found = {"facts": FACTS, "gpus": GPUS, "model": MODEL, **parts}
    return write(tmp_path, "ct129", documents(found["facts"], found["gpus"], found["model"]), now, dry=dry)


def files(tmp_path):
    return sorted(str(path.relative_to(tmp_path / "ct129")) for path in tmp_path.rglob("*") if path.is_file())


def test_what_is_kept_is_read(tmp_path):
    assert kept(tmp_path) == ALL and files(tmp_path) == ALL
    found = read(tmp_path, "ct129")
    assert (found.folder, found.recorded_at, found.facts) == (tmp_path / "ct129", NOW, KEPT)
    assert found.model == {name: value for name, value in MODEL.items() if name != "files"}
    assert found.model_dir == tmp_path / "ct129" / "model"
    assert json.loads((found.model_dir / "config.json").read_text()) == MODEL["files"]["config.json"]
    assert json.loads((found.model_dir / "model.safetensors.index.json").read_text()) == {"metadata": {"total_size": 4096}}
    with pytest.raises(FrozenInstanceError):
        found.recorded_at = LATER


def test_what_changes_by_the_minute_is_not_kept(tmp_path):
    kept(tmp_path)
    gpus = json.loads((tmp_path / "ct129" / "gpu.json").read_text())
    assert gpus.keys() == {"gpus", "links", "driver"}
    (gpu,) = gpus["gpus"]
    assert "memory_used_mib" not in gpu and gpu["processes"] == [] and gpu["pcie"]["generation"] == 4
    held = [{"pid": 7, "memory_mib": 40_000, "unit": "sglang-main.service"}]
    busy = {**GPU, "memory_free_mib": 8660, "memory_used_mib": 40480, "processes": held, "pcie": {**GPU["pcie"], "generation": 4}}
    assert kept(tmp_path, facts={**FACTS, "uptime_seconds": 5000}, gpus={**GPUS, "gpus": [busy], "xids": [{"xid": 79}]}, now=LATER) == []
    assert read(tmp_path, "ct129").recorded_at == NOW, "a host that is as it was gives no commit"


@pytest.mark.parametrize(
    ("free", "processes", "expected"),
    [
        (8660, [{"memory_mib": 40_000, "unit": "sglang-main.service"}], 48640),
        (8660, [{"memory_mib": 40_000, "unit": "other.service"}], 8448),
        (8660, [{"memory_mib": 40_000}, {"memory_mib": None, "unit": "sglang-main.service"}], 8448),
        (48660, [{"memory_mib": 40_000, "unit": "sglang-main.service"}], 48896),
        (None, [], None),
    ],
    ids=["own", "foreign", "unknown", "never-more-than-there-is", "not-told"],
)
def test_memory_of_own_servers_counts_as_free(free, processes, expected):
    gpu = {**GPU, "memory_free_mib": free, "processes": processes}
    (found,) = documents(FACTS, {**GPUS, "gpus": [gpu]}, {})["gpu.json"]["gpus"]
    assert found.get("memory_free_mib") == expected


def test_a_host_without_gpus_and_model(tmp_path):
    assert kept(tmp_path, gpus=None, model={}) == ["host.json"]
    found = read(tmp_path, "ct129")
    assert (found.gpus, found.model, found.model_dir, found.model_digest) == (None, {}, None, "")


def test_a_host_with_other_facts():
    assert documents({"system": "Linux"}, None, {})["host.json"]["facts"] == {"system": "Linux"}


def test_weights_that_are_not_known_are_not_said_to_be_none():
    model = {**MODEL, "weights": {"files": 0, "bytes": 0, "by_dtype": {}}}
    assert "model/model.safetensors.index.json" not in documents(FACTS, None, model)


def test_only_what_differs_is_written(tmp_path):
    kept(tmp_path)
    before = (tmp_path / "ct129" / "gpu.json").stat().st_mtime_ns
    assert kept(tmp_path, facts={**FACTS, "distribution_version": "13.0"}, now=LATER) == ["host.json"]
    assert read(tmp_path, "ct129").recorded_at == LATER and (tmp_path / "ct129" / "gpu.json").stat().st_mtime_ns == before


def test_what_is_gone_is_removed(tmp_path):
    kept(tmp_path)
    assert kept(tmp_path, gpus=None, model={}, now=LATER) == ALL
    assert files(tmp_path) == ["host.json"] and read(tmp_path, "ct129").model_dir is None


def test_a_dry_run(tmp_path):
    assert kept(tmp_path, dry=True) == ALL and not list(tmp_path.iterdir())
    kept(tmp_path)
    assert kept(tmp_path, gpus=None, now=LATER, dry=True) == ["gpu.json", "host.json"] and files(tmp_path) == ALL


@pytest.mark.parametrize("name", ["host.json", "gpu.json", "model/config.json"])
@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[]"])
def test_a_damaged_snapshot_can_be_recorded_again(tmp_path, name, content):
    kept(tmp_path)
    (tmp_path / "ct129" / name).write_bytes(content)
    assert name in kept(tmp_path, now=LATER) and read(tmp_path, "ct129").facts == KEPT


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("host.json", "{", "host.json is damaged: "),
        ("host.json", "[]", "host.json is damaged: a JSON object is expected"),
        ("host.json", "[" * 100_000, "host.json is damaged: "),
        ("host.json", "{}", f"host.json is no snapshot of format 1; {AGAIN}"),
        ("host.json", '{"format": 2, "kind": "host", "facts": {}}', "is no snapshot of format 1"),
        ("host.json", '{"format": 1, "kind": "host", "facts": [1]}', "is no snapshot of format 1"),
        ("gpu.json", "not JSON", "gpu.json is damaged: "),
        ("gpu.json", '{"gpus": 3}', "gpu.json holds no facts of gpu_facts"),
        ("model.json", "\udcff", "model.json is damaged: "),
    ],
)
def test_a_damaged_snapshot_is_not_guessed(tmp_path, name, text, message):
    kept(tmp_path)
    (tmp_path / "ct129" / name).write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(SnapshotError) as raised:
        read(tmp_path, "ct129")
    assert message in str(raised.value)


def test_no_snapshot(tmp_path):
    with pytest.raises(
        SnapshotError, match=r"ct129 has no snapshot in .*is not guessed\. Record it .*: ansible-playbook llmops\.inference\.snapshot -l ct129$"
    ):
        read(tmp_path, "ct129")


@pytest.mark.parametrize("host", ["../ct129", "a/b", "", ".git", "a\nb"])
def test_names_that_lead_elsewhere(tmp_path, host):
    with pytest.raises(RecordFileError):
        read(tmp_path / "snapshots", host)
    with pytest.raises(RecordFileError):
        write(tmp_path / "snapshots", host, documents(FACTS, None, {}), NOW)
    assert not list(tmp_path.iterdir())


def test_the_digest_tells_files_from_one_another(tmp_path):
    """Whoever shares the cache of answers must not be able to pass one model off as another."""

    def digest(name, **texts):
        folder = tmp_path / name
        folder.mkdir()
        for file, text in texts.items():
            (folder / file).write_text(text)
        return Snapshot(tmp_path, NOW, {}, model_dir=folder).model_digest

    digests = [digest("one", a="x"), digest("two", a="y"), digest("three", b="x"), digest("four", a="x\0b\0y\0"), digest("five", a="x", b="y")]
    assert len(set(digests)) == 5 and all(len(one) == 12 for one in digests)
    assert digest("six", a="x") == digests[0]


@pytest.mark.parametrize(
    ("recorded", "asked", "message"),
    [
        ({}, {"path": "/m", "revision": ""}, "the snapshot of ct129 knows no model; "),
        ({"path": "/m"}, {"path": "/m", "revision": ""}, ""),
        ({"path": "/m", "revision": "9d2f"}, {"path": "/m", "revision": "9d2f"}, ""),
        ({"path": "/m", "revision": "9d2f"}, {"path": "/n", "revision": "9d2f"}, "is of the model in /m, and the inventory asks for /n; "),
        ({"path": "/m", "revision": "9d2f"}, {"path": "/m", "revision": "0123"}, "is of revision 9d2f, and the inventory asks for 0123; "),
        ({"path": "/m"}, {"path": "/m", "revision": "0123"}, "is of revision nothing, and the inventory asks for 0123; "),
    ],
)
def test_a_snapshot_of_another_model(recorded, asked, message):
    found = stale("ct129", recorded, asked)
    assert (message in found and found.endswith(AGAIN)) if message else found == ""


def test_files_of_others_stay(tmp_path):
    kept(tmp_path)
    Path(tmp_path / "ct129" / "README.md").write_text("ours")
    kept(tmp_path, gpus=None, now=LATER)
    assert (tmp_path / "ct129" / "README.md").read_text() == "ours"


def test_the_path_of_the_model_is_that_of_the_host():
    assert documents(FACTS, None, MODEL)["model.json"]["path"] == MODEL_PATH
