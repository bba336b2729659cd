# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
import yaml
from ansible.errors import AnsibleActionFail
from ansible_collections.llmops.inference.plugins.action.sglang_pending import ARGUMENTS, ActionModule
from ansible_collections.llmops.inference.plugins.modules import sglang_pending as module
from ansible_collections.llmops.inference.plugins.plugin_utils import _deployed, _rendering
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import as_text
from ansible_collections.llmops.inference.plugins.plugin_utils._rendered import unrendered
from ansible_collections.llmops.inference.plugins.plugin_utils._rendering import RenderError
from ansible_collections.llmops.inference.tests.unit.git_repository import alone, commit, needs_git, put
from ansible_collections.llmops.inference.tests.unit.gitops_repository import ciphertext, document, options_of, run_action

pytestmark = needs_git


@pytest.fixture(name="site")
def fixture_site(tmp_path, monkeypatch):
    """A repository; the argv of each host is the content of its file in host_vars."""
    alone(monkeypatch, tmp_path)
    root = tmp_path / "r"
    commit(root, "first", host_vars__ct129="2", host_vars__ct130="2")
    seen = []

    def render(playbook, tree, inventory, collections):
        seen.append((tree, inventory, collections, [path.read_text() for path in sorted(tree.rglob("vault.yml"))]))
        hosts = {path.name: path.read_text() for path in (tree / "inventory/host_vars").glob("ct*")}
        return {host: unrendered(host, text) if text.startswith("no") else document(host, argv=[text]) for host, text in sorted(hosts.items())}

    monkeypatch.setattr(_rendering, "render", render)
    return root, seen


def run(root, inventory="inventory"):
    return run_action(ActionModule, {"inventory": str(root / inventory), "deployed_dir": str(root / "inventory" / "deployed")}, "localhost")


def deploy(root, host, argv, **more):
    found = document(host, argv=[argv])
    written = _deployed.document(host, found["release"]["id"], "deployed", **{"secrets": found["secrets"], "boot": True, **more})
    put(root, f"inventory/deployed/{host}.json", as_text(written))


def test_each_host_against_its_own_last_deployment(site):
    root, _seen = site
    deploy(root, "ct130", "2")
    result = run(root)
    (row,) = result["pending"]
    assert (row["host"], row["boot"], row["secrets"]["api_key"]) == ("ct129", True, "vaulted 1a2b3c4d")
    assert row["reason"].startswith("nothing was deployed to it yet: ")
    assert (result["changed"], result["current"], result["summary"]) == (False, 1, [f"ct129: {row['reason']}"])


def test_three_merges_during_one_deployment(site):
    """Of queued runs CI may drop two: the third deploys all hosts that any of them changed."""
    root, _seen = site
    for host in ("ct129", "ct130"):
        deploy(root, host, "2")
    assert run(root)["pending"] == [] and run(root)["summary"] == ["2 of 2 servers have what the inventory asks for"]
    for day, (host, argv) in enumerate((("ct129", "4"), ("ct130", "4"), ("ct130", "8"))):
        commit(root, f"merge {day}", **{f"host_vars__{host}": argv})
    assert [row["host"] for row in run(root)["pending"]] == ["ct129", "ct130"]
    deploy(root, "ct129", "4")
    deploy(root, "ct130", "8")
    assert run(root)["pending"] == [] and run(root)["current"] == 2


def test_an_unknown_release_is_left_to_the_host(site):
    root, _seen = site
    deploy(root, "ct130", "2")
    put(root, "inventory/host_vars/ct129", "no snapshot")
    (row,) = run(root)["pending"]
    assert row == {"host": "ct129", "reason": "its release could not be rendered here: no snapshot", "secrets": None, "boot": None}


def test_what_is_rendered_is_a_copy_without_secrets(site):
    root, seen = site
    put(root, "inventory/group_vars/all/vault.yml", ciphertext("a"))
    run(root)
    ((tree, inventory, collections, (text,)),) = seen
    assert inventory == "inventory" and root not in tree.parents and not tree.exists() and collections
    assert "$ANSIBLE_VAULT" not in text and (root / "inventory/group_vars/all/vault.yml").read_text() == ciphertext("a")


def test_an_inventory_of_one_file_behind_a_link(site, tmp_path):
    root, seen = site
    put(root, "inventory/hosts.yml")
    (tmp_path / "link").symlink_to(root)
    run(tmp_path / "link", "inventory/hosts.yml")
    assert seen[0][1] == "inventory/hosts.yml"


def test_no_servers(site):
    root, _seen = site
    for host in ("ct129", "ct130"):
        (root / "inventory" / "host_vars" / host).unlink()
    assert run(root)["summary"] == ["no host of the inventory is in the group sglang: there is nothing to deploy"]


def failing(error):
    def render(*words):
        raise error

    return render


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RenderError("Ansible cannot read it: no"), r"^Ansible cannot read it: no\. Nothing was deployed\.$"),
        (FileNotFoundError(2, "No such file", "ansible-playbook"), r"^the releases cannot be rendered: .*ansible-playbook.*\. Nothing was deployed\.$"),
    ],
)
def test_what_cannot_be_rendered(site, monkeypatch, error, message):
    monkeypatch.setattr(_rendering, "render", failing(error))
    with pytest.raises(AnsibleActionFail, match=message):
        run(site[0])


def test_a_damaged_file(site):
    put(site[0], "inventory/deployed/ct129.json", "{")
    with pytest.raises(AnsibleActionFail, match=r"ct129\.json is damaged: .*never deployed\. Nothing was deployed\."):
        run(site[0])


def test_no_repository(site, tmp_path):
    (tmp_path / "inventory").mkdir()
    with pytest.raises(AnsibleActionFail, match=r"is in no git repository: .*Nothing was deployed\."):
        run(tmp_path)
    with pytest.raises(AnsibleActionFail, match=r"is in no git repository: .*Nothing was deployed\."):
        run(tmp_path / "nowhere")


def test_options_are_those_of_the_action():
    assert options_of(yaml.safe_load(module.DOCUMENTATION)) == ARGUMENTS
