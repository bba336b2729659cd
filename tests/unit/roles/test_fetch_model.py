# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "roles" / "sglang_model" / "files" / "fetch_model.py"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
WEIGHTS = b"weights" * 1000


class HfHubHTTPError(OSError):
    """As in huggingface_hub.errors, like those below."""


class RepositoryNotFoundError(HfHubHTTPError):
    pass


class GatedRepoError(RepositoryNotFoundError):
    pass


class RevisionNotFoundError(HfHubHTTPError):
    pass


class ConnectError(Exception):
    """As in httpx: no OSError."""


def sibling(name, content, lfs=True):
    return SimpleNamespace(rfilename=name, size=len(content), lfs=SimpleNamespace(sha256=hashlib.sha256(content).hexdigest()) if lfs else None)


class Hub:
    """huggingface_hub, played: what a commit should hold and what comes."""

    def __init__(self):
        self.files = {"config.json": b"{}", "sub/model.safetensors": WEIGHTS}
        self.delivered = dict(self.files)
        self.raises = []
        self.asked = []

    def model_info(self, repository, revision, files_metadata):
        self.asked.append((repository, revision, files_metadata))
        for error in self.raises:
            raise error
        return SimpleNamespace(sha=revision, siblings=[sibling(name, content, name.endswith("tensors")) for name, content in self.files.items()])

    def snapshot_download(self, repository, revision, local_dir):
        self.asked.append((repository, revision, local_dir))
        for name, content in self.delivered.items():
            path = Path(local_dir) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)


@pytest.fixture(name="hub")
def fixture_hub(monkeypatch):
    hub = Hub()
    library, errors = ModuleType("huggingface_hub"), ModuleType("huggingface_hub.errors")
    library.HfApi, library.snapshot_download = lambda: hub, hub.snapshot_download
    for error in (HfHubHTTPError, RepositoryNotFoundError, GatedRepoError, RevisionNotFoundError):
        setattr(errors, error.__name__, error)
    monkeypatch.setitem(sys.modules, "huggingface_hub", library)
    monkeypatch.setitem(sys.modules, "huggingface_hub.errors", errors)
    return hub


@pytest.fixture(name="fetch")
def fixture_fetch(hub, monkeypatch, tmp_path, capsys):
    """Runs the script and returns (status, what it said on standard error)."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    spec = importlib.util.spec_from_file_location("fetch_model", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script.os, "umask", hub.asked.append)
    monkeypatch.setattr(sys, "argv", ["fetch_model.py", "--repository=org/qwen", f"--revision={COMMIT}", f"--directory={tmp_path}"])

    def run(free=10**9):
        monkeypatch.setattr(script.shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
        status = script.main()
        return status, capsys.readouterr().err

    return run


def marker(path):
    return path / ".llmops-model.json"


def test_a_whole_model_has_a_marker(hub, fetch, tmp_path):
    assert fetch() == (0, "")
    assert json.loads(marker(tmp_path).read_text()) == {
        "repository": "org/qwen",
        "revision": COMMIT,
        "files": {"config.json": 2, "sub/model.safetensors": len(WEIGHTS)},
    }
    assert hub.asked == [0o022, ("org/qwen", COMMIT, True), ("org/qwen", COMMIT, tmp_path)], "readable by servers; the pinned commit and no other"


@pytest.mark.parametrize(
    "name, content, cause",
    [
        pytest.param("sub/model.safetensors", WEIGHTS[:-1], f"was truncated: not {len(WEIGHTS)} bytes", id="truncated"),
        pytest.param("config.json", b"", "was truncated: not 2 bytes", id="empty"),
        pytest.param("sub/model.safetensors", WEIGHTS[:-1] + b"x", "does not have the SHA-256 that the hub names", id="wrong-digest"),
    ],
)
def test_a_file_that_is_not_the_hubs_is_fetched_anew(hub, fetch, tmp_path, name, content, cause):
    hub.delivered[name] = content
    status, error = fetch()
    assert (status, error) == (1, f"{name} {cause}; run again to fetch it anew\n")
    assert not (tmp_path / name).exists() and not marker(tmp_path).exists()
    assert (tmp_path / ({*hub.files} - {name}).pop()).exists(), "what is right stays"
    hub.delivered = hub.files
    assert fetch() == (0, "")


def test_a_file_without_a_digest_is_compared_by_size(hub, fetch):
    hub.delivered["config.json"] = b"[]"
    assert fetch() == (0, "")


def test_a_file_of_which_the_hub_says_no_size(hub, fetch, monkeypatch):
    whole = hub.model_info

    def model_info(*args, **options):
        info = whole(*args, **options)
        info.siblings[0].size = None
        return info

    hub.model_info = model_info
    assert fetch() == (0, "")


def test_a_file_that_did_not_come(hub, fetch, tmp_path):
    del hub.delivered["config.json"]
    status, error = fetch()
    assert status == 1 and error.startswith("FileNotFoundError: ") and error.count("\n") == 1
    assert not marker(tmp_path).exists()


def test_a_disk_that_is_too_small(hub, fetch, tmp_path):
    hub.files["large"] = b"x" * 2_000_000
    status, error = fetch(free=2_000_000)
    assert (status, error) == (1, f"the model needs 0.0 GB more and 0.0 GB are free below {tmp_path}\n")
    assert hub.asked == [0o022, ("org/qwen", COMMIT, True)], "nothing is downloaded"


@pytest.mark.parametrize("free, status", [(1_099_999, 1), (1_100_001, 0)], ids=["less-than-a-tenth", "a-tenth"])
def test_what_is_already_there_needs_no_disk(hub, fetch, tmp_path, free, status):
    """A tenth has to be to spare."""
    hub.files = hub.delivered = {"there": b"x" * 5_000_000, "missing": b"y" * 1_000_000}
    (tmp_path / "there").write_bytes(hub.files["there"])
    assert fetch(free)[0] == status


@pytest.mark.parametrize(
    "error, sentence",
    [
        (GatedRepoError("403"), "org/qwen is gated: accept its licence on the hub and set sglang_model_hub_token"),
        (RevisionNotFoundError("404"), "org/qwen has no such revision: correct sglang_model_revision"),
        (RepositoryNotFoundError("401"), "org/qwen does not exist, or sglang_model_hub_token may not read it"),
        (HfHubHTTPError("503 Service Unavailable"), "HfHubHTTPError: 503 Service Unavailable"),
        (ConnectError("[Errno 111] Connection refused"), "ConnectError: [Errno 111] Connection refused"),
    ],
    ids=["gated", "revision", "repository", "hub", "unreachable"],
)
def test_what_the_hub_refuses_is_one_sentence(hub, fetch, tmp_path, error, sentence):
    hub.raises = [error]
    assert fetch() == (1, f"{sentence}\n")
    assert not marker(tmp_path).exists()
