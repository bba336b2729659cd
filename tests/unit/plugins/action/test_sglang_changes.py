# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import shutil
import sys
import threading
from pathlib import Path

import pytest
import yaml
from ansible.errors import AnsibleActionFail
from ansible_collections.llmops.inference.plugins.action import sglang_changes
from ansible_collections.llmops.inference.plugins.action.sglang_changes import ARGUMENTS, ActionModule
from ansible_collections.llmops.inference.plugins.module_utils._version import VERSION
from ansible_collections.llmops.inference.plugins.modules import sglang_changes as module
from ansible_collections.llmops.inference.plugins.plugin_utils import _rendering
from ansible_collections.llmops.inference.plugins.plugin_utils._rendered import unrendered
from ansible_collections.llmops.inference.plugins.plugin_utils._rendering import RenderError
from ansible_collections.llmops.inference.tests.unit.git_repository import alone, commit, git, needs_git, put
from ansible_collections.llmops.inference.tests.unit.gitops_repository import ciphertext, document, options_of, run_action, site

pytestmark = needs_git
ROOT = Path(__file__).resolve().parents[4]
ANSIBLE = Path(sys.executable).with_name("ansible-playbook")
NO_REQUESTS = {"before": None, "after": None, "upgrade": None}


def play(playbook, tree, inventory, collections):
    """Renders the files of host_vars: the content is the argv, or a problem."""
    documents = {}
    for path in sorted((tree / "inventory/host_vars").glob("ct*")):
        text, host = path.read_text().strip(), path.name
        if text == "broken":
            raise RenderError("Ansible cannot read it: no")
        folder = tree / "inventory/snapshots" / host / "model"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
        snapshot = {"model": {"path": "/srv/models/tiny", "revision": ""}, "model_dir": str(folder), "model_digest": "0a1b2c3d4e5f"}
        gate = {"settings": {}, "records_dir": str(tree / "inventory/benchmarks")}
        known = document(host, argv=text.split(), snapshot=snapshot, gate=gate)
        documents[host] = unrendered(host, text) if text.startswith("no ") or "undefined" in text else known
    return documents


@pytest.fixture(name="root")
def fixture_root(tmp_path, monkeypatch):
    """A repository with a branch that has no commit yet."""
    alone(monkeypatch, tmp_path)
    monkeypatch.setattr(_rendering, "render", play)
    root = tmp_path / "r"
    commit(root, "first", host_vars__ct129="a", host_vars__ct130="a", host_vars__ct131="a", hosts="x")
    git(root, "switch", "-q", "-c", "work")
    return root


def run(root, base="main", inventory="inventory", work_dir=None):
    args = {"inventory": str(root / inventory), "base": base, "work_dir": str(work_dir or root.parent / "work")}
    result = run_action(ActionModule, args, "localhost")
    assert result["changed"] is False and json.dumps(result)
    return result


def hosts(result):
    return [row["host"] for row in result["changes"]["hosts"]]


def test_a_branch(root):
    base = git(root, "rev-parse", "HEAD")
    head = commit(root, "second", host_vars__ct130="b", host_vars__ct132="b")
    (root / "inventory/host_vars/ct131").unlink()
    result = run(root)
    changes = result["changes"]
    rows = {row["host"]: row for row in changes.pop("hosts")}
    assert changes == {
        "base": {"ref": "main", "commit": base},
        "head": {"commit": head, "dirty": True},
        "inventory": "inventory",
        "remarks": [],
        "unchanged": 1,
    }
    assert rows.keys() == {"ct130", "ct131", "ct132"}
    assert rows["ct131"]["after"] is None and rows["ct132"]["before"] is None, "one is removed, one is new"
    assert rows["ct130"]["before"]["release"]["argv"] == ["a"] and rows["ct130"]["after"]["release"]["argv"] == ["b"]
    assert rows["ct130"]["requests"]["after"] == rows["ct132"]["requests"]["after"] and len(result["questions"]) == 2


def test_nothing_changes(root):
    put(root, "inventory/README", "a comment")
    result = run(root)
    assert (hosts(result), result["questions"], result["changes"]["unchanged"], result["changes"]["head"]["dirty"]) == ([], [], 3, True)


def test_main_that_moved_on_counts_from_where_the_branch_began(root):
    git(root, "switch", "-q", "main")
    commit(root, "third", host_vars__ct129="c")
    git(root, "switch", "-q", "work")
    commit(root, "second", host_vars__ct130="b")
    assert hosts(run(root)) == ["ct130"]


def test_nothing_is_left_but_models(root):
    put(root, "inventory/host_vars/ct130", "b")
    result = run(root)
    work = root.parent / "work"
    assert [path.name for path in work.iterdir()] == ["models"]
    assert {asked["model_dir"] for asked in result["questions"]} == {str(work / "models" / "0a1b2c3d4e5f")}
    assert (work / "models/0a1b2c3d4e5f/config.json").read_text() == "{}"
    before = (work / "models/0a1b2c3d4e5f").stat().st_mtime_ns
    run(root)
    assert (work / "models/0a1b2c3d4e5f").stat().st_mtime_ns == before


def test_another_check_that_keeps_the_same_model(root, monkeypatch):
    put(root, "inventory/host_vars/ct130", "b")
    copytree = shutil.copytree

    def slow(source, target, **more):
        kept = root.parent / "work/models/0a1b2c3d4e5f"
        kept.mkdir(parents=True)
        (kept / "config.json").write_text("{}")
        return copytree(source, target, **more)

    monkeypatch.setattr(sglang_changes.shutil, "copytree", slow)
    assert run(root)["questions"][0]["model_dir"].endswith("work/models/0a1b2c3d4e5f")
    assert [path.name for path in (root.parent / "work").iterdir()] == ["models"]


def test_records_are_named_in_the_work_tree(root, tmp_path):
    """Also where the directory of the copies is reached by a link."""
    put(root, "inventory/host_vars/ct130", "b")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (row,) = run(root, work_dir=tmp_path / "link")["changes"]["hosts"]
    assert row["after"]["gate"]["records_dir"] == str(root / "inventory/benchmarks")


@pytest.mark.parametrize("inventory", ["inventory/hosts", "inventory/../inventory"])
def test_other_ways_to_name_it(root, tmp_path, inventory):
    (tmp_path / "link").symlink_to(root)
    assert run(tmp_path / "link", inventory=inventory)["changes"]["inventory"] in ("inventory", "inventory/hosts")


@pytest.mark.parametrize(
    ("before", "after", "requests"),
    [("no snapshot", "a", (False, True)), ("a", "no snapshot", (True, False)), ("no snapshot", "no snapshot", (False, False))],
)
def test_a_host_that_one_side_does_not_know(root, before, after, requests):
    git(root, "switch", "-q", "main")
    commit(root, "second", host_vars__ct130=before)
    git(root, "switch", "-q", "-C", "work")
    put(root, "inventory/host_vars/ct130", after)
    result = run(root)
    (row,) = result["changes"]["hosts"]
    assert row["host"] == "ct130" and tuple(bool(row["requests"][name]) for name in ("before", "after")) == requests
    assert len(result["questions"]) == sum(requests) and result["changes"]["unchanged"] == 2


def test_a_branch_whose_inventory_cannot_be_read(root):
    put(root, "inventory/host_vars/ct130", "broken")
    changes = run(root)["changes"]
    told = unrendered("the inventory", "Ansible cannot read it: no", refused=True)
    assert changes["hosts"] == [{"host": "the inventory", "before": None, "after": told, "requests": NO_REQUESTS}]
    assert changes["unchanged"] == 0 and changes["remarks"] == []


def test_a_base_whose_inventory_cannot_be_read(root):
    git(root, "switch", "-q", "main")
    commit(root, "second", host_vars__ct130="broken")
    git(root, "switch", "-q", "-C", "work")
    put(root, "inventory/host_vars/ct130", "a")
    changes = run(root)["changes"]
    assert [(row["host"], row["before"]) for row in changes["hosts"]] == [("ct129", None), ("ct130", None), ("ct131", None)]
    assert changes["remarks"] == ["the inventory of the base could not be rendered, so that every host counts as new: Ansible cannot read it: no"]


def test_a_base_without_the_inventory(root):
    git(root, "switch", "-q", "--orphan", "old")
    commit(root, "nothing", other="x")
    git(root, "switch", "-q", "-c", "new")
    put(root, "servers/hosts", "x")
    (remark, _none) = run(root, "old", "servers")["changes"]["remarks"]
    assert remark == "the inventory of the base could not be rendered, so that every host counts as new: git knows no servers there"


def test_an_inventory_that_git_ignores(root):
    put(root, ".gitignore", "/private\n")
    put(root, "private/hosts", "x")
    (row,) = run(root, inventory="private")["changes"]["hosts"]
    assert row["after"]["problems"] == ["git knows no private there"]


def test_no_servers(root):
    git(root, "rm", "-q", "-r", "inventory/host_vars")
    commit(root, "none")
    result = run(root, "work")
    assert result["changes"]["remarks"] == ["no host of inventory is in the group sglang: there is nothing to judge"] and hosts(result) == []


REQUIREMENTS = "both sides were rendered with the collection that is installed, " + VERSION


@pytest.mark.parametrize("name", ["requirements.yml", "collections/requirements.yml"])
def test_requirements_that_change(root, name):
    put(root, name, "collections: [a]\n")
    assert run(root)["changes"]["remarks"] == [f"{name} changes: {REQUIREMENTS}"]
    commit(root, "with requirements")
    assert run(root, "work")["changes"]["remarks"] == []
    (root / name).unlink()
    assert run(root, "work")["changes"]["remarks"] == [f"{name} changes: {REQUIREMENTS}"]


def test_what_the_copy_does_not_have(root):
    put(root, "inventory/group_vars/all/secrets.yml", ciphertext("a"))
    put(root, "inventory/host_vars/ct130", "'my_secret' is undefined")
    (root / "inventory/passwd").symlink_to("/etc/passwd")
    links, names = run(root)["changes"]["remarks"]
    assert links.endswith("were left out: inventory/passwd") and names.startswith("inventory/group_vars/all/secrets.yml cannot be read here: ")


def test_both_sides_are_rendered_at_once(root, monkeypatch):
    barrier = threading.Barrier(2, timeout=10)
    monkeypatch.setattr(_rendering, "render", lambda *words: (barrier.wait(), play(*words))[1])
    assert hosts(run(root)) == []


@pytest.mark.parametrize(
    ("base", "inventory", "message"),
    [
        ("origin/main", "inventory", "^sglang_check_base origin/main cannot be compared with: there is no such commit in "),
        ("main", "nothing", "^there is no inventory .*/nothing: name it with sglang_check_inventory$"),
        ("main", "..", "is in no git repository: "),
    ],
)
def test_what_cannot_be_compared(root, base, inventory, message):
    with pytest.raises(AnsibleActionFail, match=message):
        run(root, base, inventory)


def test_a_link_out_of_the_repository(root, tmp_path):
    put(tmp_path, "elsewhere/hosts", "x")
    (root / "inventory/out").symlink_to(tmp_path / "elsewhere" / "hosts")
    with pytest.raises(AnsibleActionFail, match="leads to .*/elsewhere/hosts, which is not in the repository"):
        run(root, inventory="inventory/out")


def test_ansible_that_is_not_there(root, monkeypatch):
    def missing(*words):
        raise FileNotFoundError(2, "No such file", "/x/ansible-playbook")

    monkeypatch.setattr(_rendering, "render", missing)
    with pytest.raises(AnsibleActionFail, match=r"^the releases cannot be rendered: .Errno 2. No such file: '/x/ansible-playbook'$"):
        run(root)
    assert list((root.parent / "work").iterdir()) == []


def test_options_are_those_of_the_action():
    assert options_of(yaml.safe_load(module.DOCUMENTATION)) == ARGUMENTS


@pytest.mark.skipif(not ANSIBLE.is_file(), reason=f"there is no {ANSIBLE}")
def test_with_the_real_ansible(tmp_path, monkeypatch):
    alone(monkeypatch, tmp_path)
    link = tmp_path / "c" / "ansible_collections" / "llmops"
    link.mkdir(parents=True)
    (link / "inference").symlink_to(ROOT)
    monkeypatch.setattr(sglang_changes.C.config, "get_config_value", lambda name: [str(tmp_path / "c")])
    root = tmp_path / "r"
    site(root)
    put(root, "inventory/group_vars/shared", "sglang_server_hardware_flags:\n  max_total_tokens: 8192\n")
    (root / "inventory/group_vars/model_tiny/hardware.yml").symlink_to("../shared")
    commit(root, "first")
    put(root, "inventory/group_vars/shared", "# Less.\nsglang_server_hardware_flags:\n  max_total_tokens: 4096\n")
    put(root, "inventory/host_vars/ct130.yml", "sglang_server_hardware_flags: {max_total_tokens: 8192}\n")
    result = run(root)
    (row,) = result["changes"]["hosts"]
    assert (row["host"], result["changes"]["unchanged"], result["changes"]["remarks"]) == ("ct129", 1, [])
    assert [row[side]["flags"][-1]["value"] for side in ("before", "after")] == [8192, 4096]
    before, after = (next(asked for asked in result["questions"] if asked["key"] == row["requests"][side]) for side in ("before", "after"))
    assert before["unanswerable"] == after["unanswerable"] == "" and before["model_dir"] == after["model_dir"]
    assert sorted(path.name for path in Path(after["model_dir"]).iterdir()) == ["config.json", "model.safetensors.index.json"]
