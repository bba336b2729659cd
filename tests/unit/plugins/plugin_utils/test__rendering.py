# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""With an Ansible that is played, and with the one beside this Python."""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._release import Candidate
from ansible_collections.llmops.inference.plugins.plugin_utils import _rendering
from ansible_collections.llmops.inference.plugins.plugin_utils._rendering import PLAYBOOK, RenderError, environment_of, render
from ansible_collections.llmops.inference.plugins.plugin_utils._vaulted import hide, placeholder
from ansible_collections.llmops.inference.tests.unit.git_repository import put
from ansible_collections.llmops.inference.tests.unit.gitops_repository import ciphertext, document, inline, site, snapshot

SECRETS = {
    "VAULT_PASSWORD": "s3cret-1",
    "ANSIBLE_VAULT_PASSWORD_FILE": "/s3cret-2",
    "ANSIBLE_VAULT_IDENTITY_LIST": "prod@/s3cret-3",
    "AWS_SECRET_ACCESS_KEY": "s3cret-4",
    "HF_TOKEN": "s3cret-5",
    "SSH_AUTH_SOCK": "/s3cret-6",
    "ANSIBLE_PASSWORD": "s3cret-7",
    "HTTPS_PROXY": "http://a:s3cret-8@proxy",
    "GITHUB_TOKEN": "s3cret-9",
}
ROOT = Path(__file__).resolve().parents[4]
ANSIBLE = Path(sys.executable).with_name("ansible-playbook")
needs_ansible = pytest.mark.skipif(not ANSIBLE.is_file(), reason=f"there is no {ANSIBLE}")


@pytest.fixture(name="play")
def fixture_play(tmp_path, monkeypatch):
    """Has a shell script for ansible-playbook; $DEST is where the documents go."""

    def play(script):
        put(tmp_path, "bin/ansible-playbook", f"#!/bin/sh\nDEST=$(dirname $(pwd))/head.rendered\n{script}\n")
        (tmp_path / "bin/ansible-playbook").chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/python"))
        put(tmp_path, "t/head/ansible.cfg", "[defaults]\n")
        return tmp_path / "t" / "head"

    return play


def test_the_environment(tmp_path, monkeypatch):
    for name, value in {**SECRETS, "LANG": "C.UTF-8", "GIT_DIR": "/x", "ANSIBLE_CONFIG": "/x"}.items():
        monkeypatch.setenv(name, value)
    put(tmp_path, "ansible.cfg")
    found = environment_of(tmp_path, tmp_path, "/c1:/c2")
    assert not [value for value in found.values() if "s3cret" in value]
    assert found.keys() & (SECRETS.keys() | {"GIT_DIR"}) == {"ANSIBLE_VAULT_PASSWORD_FILE", "ANSIBLE_VAULT_IDENTITY_LIST"}
    assert Path(found["ANSIBLE_VAULT_PASSWORD_FILE"]).read_text() == "none\n" and found["ANSIBLE_VAULT_IDENTITY_LIST"] == f"none@{tmp_path}/no-password"
    assert (found["PATH"], found["LANG"], found["HOME"]) == (os.environ["PATH"], "C.UTF-8", str(tmp_path))
    assert (found["ANSIBLE_CONFIG"], found["ANSIBLE_COLLECTIONS_PATH"]) == (str(tmp_path / "ansible.cfg"), "/c1:/c2")


def test_a_repository_without_a_configuration_gets_nobody_elses(tmp_path):
    (tmp_path / "home").mkdir()
    config = Path(environment_of(tmp_path, tmp_path / "home", "")["ANSIBLE_CONFIG"])
    assert config == tmp_path / "home" / "ansible.cfg" and config.read_text() == "[defaults]\n"


def test_how_ansible_is_asked(play, monkeypatch):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    tree = play(f"""printf '%s\\n' "$@" > ../words; env > ../env; pwd > ../place; cat > ../stdin
cat > $DEST/ct129.json <<'E'
{json.dumps(document())}
E""")
    assert render(Path("/p/render.yml"), tree, "inventory/hosts.yml", "/c") == {"ct129": document()}
    words = (tree.parent / "words").read_text().splitlines()
    assert words == ["-i", "inventory/hosts.yml", "/p/render.yml", "-e", json.dumps({"sglang_render_dest": str(tree.parent / "head.rendered")})]
    assert (tree.parent / "place").read_text().strip() == str(tree) and (tree.parent / "stdin").read_text() == ""
    assert "s3cret" not in (tree.parent / "env").read_text(), "nothing of the caller reaches an inventory, which is code"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "echo before; echo '[ERROR]: Unable to parse' $(pwd)/inventory/hosts.yml; exit 1",
            "^Ansible cannot read it: .ERROR.: Unable to parse inventory/hosts.yml$",
        ),
        ("echo 'ERROR! no'; exit 4", "^Ansible cannot read it: ERROR! no$"),
        ("echo 'fatal: [a]: FAILED! => no'; echo '[ERROR]: later'; exit 2", "fatal: .a.: FAILED! => no .ERROR.: later$"),
        ("echo only this; exit 2", "^Ansible cannot read it: only this$"),
        ("exit 2", "^Ansible cannot read it: $"),
        ("printf 'ERROR! \\377\\376'; exit 2", "ERROR!"),
        ("head -c 3000000 /dev/zero | tr '\\0' x; exit 1", "^Ansible cannot read it: x{1500}$"),
        ("kill -9 $$", "^Ansible cannot read it: $"),
        ("echo '{' > $DEST/a.json", "^the release of a was not written as JSON: "),
        ("echo '{}' > $DEST/a.json", "^what was written of a is no rendered release of format 1$"),
        ("echo '[]' > $DEST/a.json", "no rendered release"),
        ('echo \'{"format": 1, "kind": "render", "host": "b"}\' > $DEST/a.json', "what was written of a is no"),
        ("printf '\\377' > $DEST/a.json", "was not written as JSON"),
    ],
)
def test_what_goes_wrong(play, script, message):
    with pytest.raises(RenderError, match=message):
        render(PLAYBOOK, play(script), "inventory", "")


def test_no_documents(play):
    assert render(PLAYBOOK, play("exit 0"), "inventory", "") == {}


def test_no_ansible(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    (tmp_path / "head").mkdir()
    with pytest.raises(FileNotFoundError, match="ansible-playbook"):
        render(PLAYBOOK, tmp_path / "head", "inventory", "")


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize("script", ["sleep 60 & echo $! > ../pid", "sleep 60 & echo $! > ../pid; sleep 60"], ids=["left-running", "does-not-end"])
def test_it_ends(play, monkeypatch, script):
    """What an inventory starts does not hold the check up, and does not outlive it."""
    monkeypatch.setattr(_rendering, "_SECONDS", 1.0)
    tree, begin = play(script), time.monotonic()
    if script.endswith("60"):
        with pytest.raises(RenderError, match="not rendered within 1 s"):
            render(PLAYBOOK, tree, "inventory", "")
    else:
        assert render(PLAYBOOK, tree, "inventory", "") == {}
    assert time.monotonic() - begin < 20
    pid = (tree.parent / "pid").read_text().strip()
    while alive(pid) and time.monotonic() - begin < 20:
        time.sleep(0.05)
    assert not alive(pid)


# From here on with the real Ansible.


def rendered(tmp_path, name, make, inventory="inventory"):
    """What Ansible renders of a site."""
    put(tmp_path, f"{name}/README.md")
    tree = tmp_path / name
    site(tree)
    make(tree)
    hide(tree)
    link = tmp_path / "c" / "ansible_collections" / "llmops"
    link.mkdir(parents=True, exist_ok=True)
    if not (link / "inference").is_symlink():
        (link / "inference").symlink_to(ROOT)
    return render(PLAYBOOK, tree, inventory, str(tmp_path / "c"))


def ids(documents):
    return {host: found["release"]["id"] for host, found in documents.items() if not found["problems"]}


def encrypted(tree):
    """Values that are encrypted in both ways."""
    put(tree, "inventory/group_vars/all/vault.yml", ciphertext("whole"))
    put(tree, "inventory/group_vars/all/key.yml", "sglang_server_api_key: '{{ vault_api_key }}'\n")
    put(tree, "inventory/group_vars/all/proxy.yml", f"sglang_server_secret_env:\n  PROXY_PASSWORD: {inline('single')}")


def changed(tree):
    encrypted(tree)
    put(tree, "inventory/group_vars/model_tiny/server.yml", "# A comment.\nsglang_server_model_flags:\n  context_length: 2048 # and one more\n")
    put(tree, "inventory/group_vars/changed/server.yml", "sglang_server_hardware_flags:\n  max_total_tokens: 8192\n")
    hosts = "sglang:\n  children:\n    model_tiny:\n      hosts: {ct129: , ct130: , ct131: , ct132: , ct133: }\n    changed:\n      hosts: {ct130: }\n"
    put(tree, "inventory/hosts.yml", hosts)
    put(tree, "inventory/snapshots/ct132/host.json", "no JSON")
    put(tree, "inventory/host_vars/ct133/server.yml", "sglang_server_flags: {language_onyl: true}\n")
    snapshot(tree, "ct133")
    put(tree, "inventory/host_vars/ct129/vault.yml", ciphertext("of the host"))
    put(tree, "ansible.cfg", "[defaults]\nvault_password_file = /nowhere\nany_errors_fatal = true\nstdout_callback = not.installed.here\n")


@needs_ansible
def test_a_site(tmp_path, monkeypatch):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    before, after = rendered(tmp_path, "base", encrypted), rendered(tmp_path, "head", changed)
    assert before.keys() == {"ct129", "ct130"} and after.keys() == {"ct129", "ct130", "ct131", "ct132", "ct133"}
    assert ids(before)["ct129"] == ids(before)["ct130"] == ids(after)["ct129"], "a comment makes no other release"
    assert ids(after)["ct130"] != ids(before)["ct130"], "a variable of a group reaches its host"

    (no_snapshot,), (no_json,), (misspelt,) = (after[host]["problems"] for host in ("ct131", "ct132", "ct133"))
    assert "language_onyl: SGLang 0.5.12 has no flag" in misspelt
    assert [after[host]["refused"] for host in ("ct130", "ct131", "ct132", "ct133")] == [False, False, False, True]
    assert no_snapshot.startswith("ct131 has no snapshot in inventory/snapshots: ") and "host.json is damaged: " in no_json

    found = before["ct129"]
    release = found["release"]
    whole = Candidate(release["unit"], tuple(release["argv"]), release["environment"], release["engine"], release["model"], tuple(release["secrets"]))
    assert release["id"] == whole.id and release["secrets"] == ["PROXY_PASSWORD", "api_key"]
    assert found["secrets"]["PROXY_PASSWORD"] == f"vaulted {placeholder(ciphertext('single'))[-8:]}"
    assert found["secrets"]["api_key"].startswith("vaulted ") and len(found["secrets"]["api_key"]) == 16
    keys = [side[host]["secrets"]["api_key"] for side, host in ((before, "ct129"), (before, "ct130"), (after, "ct129"), (after, "ct130"))]
    assert keys[0] == keys[1] == keys[3] != keys[2], "which of two encrypted files has it cannot be seen: a change of either counts"
    assert "s3cret" not in json.dumps([before, after]) and found["model_digest"] == after["ct130"]["model_digest"] != ""
    assert found["flags"] == [{"name": "context_length", "value": 2048, "layer": "model"}]


@needs_ansible
def test_an_inventory_of_one_file(tmp_path):
    documents = rendered(
        tmp_path, "head", lambda tree: put(tree, "inventory/group_vars/all/gate.yml", "sglang_server_gate: {tolerance_pct: 5}\n"), "inventory/hosts.yml"
    )
    assert ids(documents).keys() == {"ct129", "ct130"}
    assert documents["ct129"]["gate"]["records_dir"] == str(tmp_path / "head" / "inventory" / "benchmarks")


@needs_ansible
def test_an_inventory_that_cannot_be_read(tmp_path):
    with pytest.raises(RenderError) as raised:
        rendered(tmp_path, "head", lambda tree: put(tree, "inventory/hosts.yml", "sglang:\n  hosts: [\n"))
    told = str(raised.value)
    assert told.startswith("Ansible cannot read it: inventory/hosts.yml, line 3: expected the node content") and str(tmp_path) not in told


@needs_ansible
def test_a_file_of_variables_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(RenderError, match="Ansible cannot read it: inventory/host_vars/ct129/x.yml, line 2: "):
        rendered(tmp_path, "head", lambda tree: put(tree, "inventory/host_vars/ct129/x.yml", "a: {\n"))


@needs_ansible
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sglang_server_gate: {metric: nonsense}\n", "sglang_server_gate.metric must be one of output_tok_per_s"),
        ("sglang_engine_flavour: cudda\n", "value of sglang_engine_flavour must be one of: cuda, cpu"),
        ("sglang_server_credentials: fiel\n", "value of sglang_server_credentials must be one of: systemd, file"),
        ("sglang_server_keep_releases: many\n", "sglang_server_keep_releases"),
    ],
    ids=["gate", "choice-of-the-engine", "choice", "number"],
)
def test_what_a_deployment_would_refuse_is_refused(tmp_path, text, told):
    document = rendered(tmp_path, "head", lambda tree: put(tree, "inventory/host_vars/ct129/x.yml", text))["ct129"]
    assert document["refused"] and told in document["problems"][0]


@needs_ansible
def test_an_inventory_without_servers(tmp_path):
    assert rendered(tmp_path, "head", lambda tree: put(tree, "inventory/hosts.yml", "other:\n  hosts:\n    a:\n")) == {}


def hostile(tree):
    put(
        tree,
        "inventory/group_vars/all/evil.yml",
        "sglang_server_env:\n  STOLEN: \"{{ lookup('pipe', 'cat /proc/self/environ | tr -d \\\"\\\\0\\\" | base64 -w0') }}\"\n",
    )


@needs_ansible
def test_an_inventory_that_looks_for_secrets(tmp_path, monkeypatch):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    documents = rendered(tmp_path, "head", hostile)
    stolen = base64.b64decode(documents["ct129"]["release"]["environment"]["STOLEN"]).decode()
    assert "ANSIBLE_COLLECTIONS_PATH" in stolen and "s3cret" not in stolen


@needs_ansible
def test_a_host_whose_name_is_a_path(tmp_path):
    with pytest.raises(RenderError, match="'../x' cannot be kept: the name of a host is that of a directory"):
        rendered(tmp_path, "head", lambda tree: put(tree, "inventory/hosts.yml", "sglang:\n  hosts:\n    ../x:\n"))
    assert not list(tmp_path.glob("*.json")) and not (tmp_path / "x.json").exists()
