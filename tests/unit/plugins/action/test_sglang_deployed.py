# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
import yaml
from ansible.errors import AnsibleActionFail
from ansible_collections.llmops.inference.plugins.action import sglang_deployed
from ansible_collections.llmops.inference.plugins.action.sglang_deployed import ARGUMENTS, ActionModule
from ansible_collections.llmops.inference.plugins.modules import sglang_deployed as module
from ansible_collections.llmops.inference.plugins.plugin_utils import _controller
from ansible_collections.llmops.inference.plugins.plugin_utils._inventory_commit import Inventory
from ansible_collections.llmops.inference.tests.unit.gitops_repository import options_of, run_action

COMMIT = "1c34fe0f2c0a4d1e8b7a6f5e4d3c2b1a09f8e7d6"
SECRETS = {"api_key": "vaulted 1a2b3c4d"}
PENDING = [{"host": "other", "secrets": {}, "boot": False}, {"host": "ct129", "reason": "x", "secrets": SECRETS, "boot": True}]


@pytest.fixture(autouse=True)
def fixture_controller(monkeypatch):
    monkeypatch.setattr(sglang_deployed, "inventory_of", lambda folder: Inventory(COMMIT, False))
    monkeypatch.setattr(sglang_deployed, "asker", lambda: "alice@laptop")
    at(monkeypatch, "2026-11-30T10:20:00Z")


def at(monkeypatch, now):
    monkeypatch.setattr(_controller.time, "strftime", lambda form, when: now)


def run(tmp_path, host="ct129", check_mode=False, **args):
    args = {"deployed_dir": str(tmp_path / "deployed"), "release": "3494591af2ee", "action": "deployed", "pending": PENDING, **args}
    return run_action(ActionModule, args, host, check_mode)


def kept(tmp_path, host="ct129"):
    return json.loads((tmp_path / "deployed" / f"{host}.json").read_text())


def test_it_is_written_down(tmp_path):
    result = run(tmp_path)
    assert result["changed"] is True and result["deployed"] == kept(tmp_path)
    assert kept(tmp_path) == {
        "format": 1,
        "kind": "deployed",
        "host": "ct129",
        "release": "3494591af2ee",
        "action": "deployed",
        "secrets": SECRETS,
        "boot": True,
        "commit": COMMIT,
        "dirty": False,
        "at": "2026-11-30T10:20:00Z",
        "by": "alice@laptop",
    }


def test_the_same_again_gives_no_difference(tmp_path, monkeypatch):
    first = run(tmp_path)["deployed"]
    at(monkeypatch, "2026-12-24T10:00:00Z")
    again = run(tmp_path, action="unchanged")
    assert (again["changed"], again["deployed"]) == (False, first) and kept(tmp_path) == first


@pytest.mark.parametrize(
    "args",
    [
        {"release": "b70fee4a3c06"},
        {"pending": [{"host": "ct129", "secrets": {"api_key": "vaulted ffffffff"}, "boot": True}]},
        {"pending": [{"host": "ct129", "secrets": SECRETS, "boot": False}]},
        {"pending": []},
    ],
)
def test_what_differs_is_written(tmp_path, args):
    run(tmp_path)
    before = kept(tmp_path)
    assert run(tmp_path, **args)["changed"] and kept(tmp_path) != before


def test_by_hand_nothing_is_known_of_secrets(tmp_path):
    run(tmp_path, pending=[])
    assert (kept(tmp_path)["secrets"], kept(tmp_path)["boot"]) == (None, None)


def test_check_mode_writes_nothing(tmp_path):
    result = run(tmp_path, check_mode=True)
    assert result["changed"] and result["deployed"]["release"] == "3494591af2ee" and not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", ["{", "[]", "{}"])
def test_a_damaged_file_is_written_anew(tmp_path, content):
    (tmp_path / "deployed").mkdir()
    (tmp_path / "deployed" / "ct129.json").write_text(content)
    assert run(tmp_path)["changed"] and kept(tmp_path)["release"] == "3494591af2ee"


@pytest.mark.parametrize("host", ["a/b", "../a", "", ".a"])
def test_names_that_are_none_of_files(tmp_path, host):
    result = run(tmp_path, host)
    assert result["failed"] and repr(host) in result["msg"] and result["deployed"] == {} and not list(tmp_path.iterdir())


@pytest.mark.parametrize("release", ["", None])
def test_no_release_is_no_deployment(tmp_path, release):
    with pytest.raises(AnsibleActionFail, match="^nothing serves on ct129, so that nothing is written down of a deployment: release is empty$"):
        run(tmp_path, release=release)
    assert not list(tmp_path.iterdir())


def test_an_inventory_without_git(tmp_path, monkeypatch):
    monkeypatch.setattr(sglang_deployed, "inventory_of", lambda folder: Inventory(None, None, "no repository"))
    run(tmp_path)
    assert (kept(tmp_path)["commit"], kept(tmp_path)["dirty"]) == (None, None)


def test_a_directory_that_cannot_be_written(tmp_path):
    (tmp_path / "deployed").write_text("a file")
    assert run(tmp_path)["msg"].startswith("what was deployed to ct129 cannot be written down: ")


@pytest.mark.parametrize("args", [{"pending": ["x"]}, {"other": 1}])
def test_wrong_options(tmp_path, args):
    with pytest.raises(AnsibleActionFail):
        run(tmp_path, **args)


def test_options_are_those_of_the_action():
    assert options_of(yaml.safe_load(module.DOCUMENTATION)) == ARGUMENTS
