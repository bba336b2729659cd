# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import hmac
import json
import os
import stat
from dataclasses import replace

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._release import Candidate, Store, StoreBusy, StoreError, write_atomically

UNIT = """\
# {{ ansible_managed }}
[Unit]
Description=SGLang server main

[Service]
Environment=A=1
Environment=B=2
EnvironmentFile=@RELEASE@/environment
ExecStart=/opt/e/bin/python -m sglang.launch_server --tp-size 2
User=sglang
"""
CANDIDATE = Candidate(
    unit=UNIT,
    argv=("--tp-size", "2"),
    environment={"A": "1", "B": "2"},
    engine={"version": "0.5.23", "lock": "0a1b2c3d"},
    model={"name": "qwen", "revision": "abc"},
    secret_names=("api_key", "HF_TOKEN"),
)


@pytest.fixture(name="store")
def fixture_store(tmp_path):
    store = Store(tmp_path / "main")
    store.prepare()
    return store


def mode(path):
    return oct(stat.S_IMODE(path.stat().st_mode))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replace(CANDIDATE, unit=UNIT.replace("# {{ ansible_managed }}\n", "; other words\n\n")), id="comment"),
        pytest.param(replace(CANDIDATE, unit=UNIT.replace("User=sglang", "User = sglang ").replace("\n\n", "\n")), id="spaces"),
        pytest.param(replace(CANDIDATE, unit=UNIT.replace(" --tp-size", " \\\n  --tp-size")), id="continuation"),
        pytest.param(replace(CANDIDATE, unit=UNIT.replace("User=sglang\n", "").replace("[Service]\n", "[Service]\nUser=sglang\n")), id="order-of-directives"),
        pytest.param(replace(CANDIDATE, environment={"B": "2", "A": "1"}), id="order-of-variables"),
        pytest.param(replace(CANDIDATE, engine={"lock": "0a1b2c3d", "version": "0.5.23"}), id="order-of-the-engine"),
        pytest.param(replace(CANDIDATE, secret_names=("HF_TOKEN", "api_key")), id="order-of-secrets"),
        pytest.param(replace(CANDIDATE, preflight={"verdict": "warned"}), id="preflight"),
    ],
)
def test_the_id_ignores_bytes(other):
    assert other.id == CANDIDATE.id
    assert len(CANDIDATE.id) == 12 and int(CANDIDATE.id, 16)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replace(CANDIDATE, unit=UNIT.replace("User=sglang", "User=other")), id="directive"),
        pytest.param(replace(CANDIDATE, unit=UNIT.replace("Environment=A=1\nEnvironment=B=2", "Environment=B=2\nEnvironment=A=1")), id="order-in-a-list"),
        pytest.param(replace(CANDIDATE, unit=UNIT.replace("[Unit]\n", "[Unit]\nAfter=x.service\n")), id="new-directive"),
        pytest.param(replace(CANDIDATE, unit=UNIT.replace("User=sglang\n", "")), id="directive-gone"),
        pytest.param(replace(CANDIDATE, argv=("--tp-size", "4")), id="argument"),
        pytest.param(replace(CANDIDATE, argv=("--tp-size", "2", "")), id="empty-argument"),
        pytest.param(replace(CANDIDATE, argv=("--tp-size 2",)), id="words"),
        pytest.param(replace(CANDIDATE, environment={"A": "1"}), id="variable"),
        pytest.param(replace(CANDIDATE, engine={"version": "0.5.23", "lock": "ffffffff"}), id="engine"),
        pytest.param(replace(CANDIDATE, model={"name": "qwen", "revision": "def"}), id="model-revision"),
        pytest.param(replace(CANDIDATE, secret_names=("api_key",)), id="names-of-secrets"),
    ],
)
def test_the_id_follows_meaning(other):
    assert other.id != CANDIDATE.id


def test_the_id_is_the_same_on_every_machine():
    """Releases on hosts are known by it: a change here is a change of format."""
    text = b'{"argv": ["a"], "engine": {}, "environment": {}, "format": 1, "model": {}, "secrets": [], "unit": {"Service": [["Type", "exec"]]}}'
    assert Candidate(unit="[Service]\nType=exec\n", argv=("a",)).id == hashlib.sha256(text).hexdigest()[:12]


def test_stage_writes_what_was_proven(store):
    folder = store.stage(CANDIDATE)
    assert folder == store.path / "releases" / CANDIDATE.id
    assert mode(folder) == "0o700"
    assert {path.name: mode(path) for path in folder.iterdir()} == {"unit.service": "0o600", "environment": "0o600", "release.json": "0o600"}
    assert store.unit_text(CANDIDATE.id) == UNIT.replace("@RELEASE@", str(folder))
    assert (folder / "environment").read_text() == 'A="1"\nB="2"\n'
    assert store.read(CANDIDATE.id, "release") == CANDIDATE.document()
    assert CANDIDATE.document() == {
        "format": 1,
        "id": CANDIDATE.id,
        "argv": ["--tp-size", "2"],
        "environment": {"A": "1", "B": "2"},
        "engine": {"version": "0.5.23", "lock": "0a1b2c3d"},
        "model": {"name": "qwen", "revision": "abc"},
        "secrets": ["HF_TOKEN", "api_key"],
        "probe": {},
    }
    assert store.stage(CANDIDATE) == folder, "staging again is no error"


def test_the_preflight_is_kept_beside_the_release(store):
    folder = store.stage(replace(CANDIDATE, preflight={"verdict": "warned"}))
    assert folder.name == CANDIDATE.id and store.read(CANDIDATE.id, "preflight") == {"verdict": "warned"}
    assert mode(folder / "preflight.json") == "0o600"
    assert "preflight" not in store.read(CANDIDATE.id, "release")
    store.stage(CANDIDATE)
    assert store.read(CANDIDATE.id, "preflight") == {"verdict": "warned"}, "what is not told takes nothing away"
    store.stage(replace(CANDIDATE, preflight={"verdict": "passed"}))
    assert store.read(CANDIDATE.id, "preflight") == {"verdict": "passed"}


def test_documents_of_a_release(store):
    store.stage(CANDIDATE)
    store.write(CANDIDATE.id, "state", {"state": "staged", "é": 1})
    assert store.read(CANDIDATE.id, "state") == {"state": "staged", "é": 1}
    assert (store.directory(CANDIDATE.id) / "state.json").read_text().endswith("}\n")


@pytest.mark.parametrize("release", ["", "000000000000"])
def test_unknown_releases_are_empty(store, release):
    (store.releases / "state.json").write_text('{"not": "of a release"}')
    (store.releases / "unit.service").write_text("not of a release")
    assert store.read(release, "state") == {}
    assert store.unit_text(release) == ""


def test_directories_are_closed_to_others(tmp_path):
    store = Store(tmp_path / "a" / "main")
    store.path.mkdir(parents=True, mode=0o755)
    store.prepare()
    assert [mode(path) for path in (store.path, store.releases, store.path / "secrets")] == ["0o700"] * 3


def test_the_lock_says_whose_it_is(store):
    other = Store(store.path)
    with store.locked("deploying abc", "abc", "alice@laptop"):
        for attempt in (lambda: other.locked("deploying def").__enter__(), other.free):
            with pytest.raises(StoreBusy) as caught:
                attempt()
            holder = caught.value.holder
            assert (holder["purpose"], holder["release"], holder["by"], holder["pid"]) == ("deploying abc", "abc", "alice@laptop", os.getpid())
            assert str(caught.value) == (
                f"another run holds the lock of this server: deploying abc, since {holder['since']}, by alice@laptop; wait for it to end"
            )
    other.free()
    with other.locked("x"):
        assert json.loads((store.path / "lock").read_text())["purpose"] == "x"


@pytest.mark.parametrize("text", ["", "deploying abc, since yesterday", '{"purpose": "half'], ids=["just-taken", "of-an-older-version", "half-written"])
def test_a_holder_that_cannot_be_read(store, text):
    with store.locked("a"):
        (store.path / "lock").write_text(text)
        with pytest.raises(StoreBusy, match="another run holds the lock of this server: unknown, since unknown; wait for it to end"):
            Store(store.path).free()


def test_the_lock_ends_with_an_exception(store):
    with pytest.raises(KeyError), store.locked("a"):
        raise KeyError
    with store.locked("b"):
        assert json.loads((store.path / "lock").read_text())["purpose"] == "b"


def test_nobody_holds_what_is_not_there(tmp_path):
    Store(tmp_path / "none").free()
    assert not (tmp_path / "none").exists()


def test_the_lock_makes_the_store(tmp_path):
    with Store(tmp_path / "new").locked("a"):
        assert (tmp_path / "new" / "releases").is_dir()


def test_good_is_a_link_that_is_replaced_whole(store):
    assert store.good == ""
    for release in ("aaa", "bbb", "bbb"):
        (store.path / ".good").symlink_to("left/behind")
        store.mark_good(release)
        assert store.good == release
        assert os.readlink(store.path / "good") == f"releases/{release}"
    assert not (store.path / ".good").is_symlink()


def remember(store, release, state, since, **more):
    (store.releases / release).mkdir(exist_ok=True)
    store.write(release, "state", {"state": state, "since": since, **more})


@pytest.fixture(name="four")
def fixture_four(store):
    """Good is c; before it a was good; b failed, d was never tried."""
    remember(store, "a", "good", 1000.0)
    remember(store, "b", "failed", 1001.0, diagnosis={"cause": "no room"})
    remember(store, "c", "good", 1002.0)
    remember(store, "d", "staged", 1003.0)
    store.mark_good("c")
    return store


def test_history(four):
    history = four.history()
    assert [one["release"] for one in history] == ["c", "a", "d", "b"], "good, good before, then from new to old"
    assert history[0] == {"release": "c", "state": "good", "good": True, "since": 1002.0, "cause": ""}
    assert history[3] == {"release": "b", "state": "failed", "good": False, "since": 1001.0, "cause": "no room"}


def test_history_of_nothing(store, tmp_path):
    assert (store.history(), Store(tmp_path / "none").history()) == ([], [])
    (store.releases / "x").mkdir()
    assert store.history() == [{"release": "x", "state": "unknown", "good": False, "since": 0.0, "cause": ""}]


def test_history_names_what_is_damaged(four):
    (four.releases / "d" / "state.json").write_text("{")
    assert [(one["release"], one["state"]) for one in four.history()] == [("c", "good"), ("a", "good"), ("b", "failed"), ("d", "damaged")]


@pytest.mark.parametrize("name, release", [("good", "c"), ("previous", "a"), ("a", "a"), ("d", "d")])
def test_find(four, name, release):
    assert four.find(name) == release


@pytest.mark.parametrize(
    "name, message",
    [("x", "there is no release 'x' of this server here: c, a, d, b"), ("", "there is no release ''"), ("ab", "there are several releases 'ab'")],
)
def test_find_nothing(four, name, message):
    for release in ("ab1", "ab2"):
        (four.releases / release).mkdir()
    with pytest.raises(StoreError, match=message.replace("c, a, d, b", "c, a, d, b")):
        four.find(name)


@pytest.mark.parametrize("name", ["good", "previous", "a"])
def test_find_in_an_empty_store(store, name):
    with pytest.raises(StoreError, match=f"there is no release '{name}' of this server here: none at all"):
        store.find(name)


@pytest.mark.parametrize(
    "keep, spare, removed",
    [
        pytest.param(4, "", [], id="all"),
        pytest.param(10, "", [], id="more-than-there-are"),
        pytest.param(3, "", ["b"], id="oldest-first"),
        pytest.param(2, "", ["d", "b"], id="the-one-before-stays-longest"),
        pytest.param(1, "", ["a", "d", "b"], id="only-good"),
        pytest.param(0, "", ["a", "d", "b"], id="never-good"),
        pytest.param(-5, "", ["a", "d", "b"], id="nonsense"),
        pytest.param(2, "b", ["d"], id="spared"),
    ],
)
def test_prune(four, keep, spare, removed):
    assert four.prune(keep, spare) == removed
    assert sorted(path.name for path in four.releases.iterdir()) == sorted(set("abcd") - set(removed))
    assert four.good == "c"


def test_a_stored_release_is_the_same_candidate(store):
    given = replace(CANDIDATE, probe={"port": 30000}, preflight={"verdict": "passed"}, secret_names=("HF_TOKEN", "api_key"))
    store.stage(given)
    found = store.candidate(given.id)
    assert found == given and found.id == given.id


def test_a_stored_release_that_somebody_edited(store):
    path = store.stage(CANDIDATE) / "unit.service"
    path.write_text(path.read_text().replace("--tp-size 2", "--tp-size 4"))
    with pytest.raises(StoreError, match=f"release {CANDIDATE.id} is not what it was: its files in .* now make [0-9a-f]{{12}}"):
        store.candidate(CANDIDATE.id)


@pytest.mark.parametrize("missing", ["release.json", "unit.service"])
def test_a_release_that_is_not_whole(store, missing):
    (store.stage(CANDIDATE) / missing).unlink()
    with pytest.raises(StoreError, match=f"release {CANDIDATE.id} is not whole in "):
        store.candidate(CANDIDATE.id)


@pytest.mark.parametrize("text, why", [("", "Expecting value"), ('{"a": ', "Expecting value"), ("[1]", "no JSON object")])
def test_a_damaged_document_is_named(store, text, why):
    (store.stage(CANDIDATE) / "state.json").write_text(text)
    with pytest.raises(StoreError, match=rf"state\.json is damaged \({why}.*; remove .*{CANDIDATE.id} if that release is not needed"):
        store.read(CANDIDATE.id, "state")


def test_prune_nothing(store):
    assert store.prune(5) == []


SECRETS = ({"api_key": "k"}, {"HF_TOKEN": "t"})


@pytest.mark.parametrize(
    "flags, environment",
    [
        ({"api_key": "K"}, {"HF_TOKEN": "t"}),
        ({"api_key": "k"}, {"HF_TOKEN": "T"}),
        ({"admin_api_key": "k"}, {"HF_TOKEN": "t"}),
        ({}, {}),
        ({"HF_TOKEN": "t"}, {"api_key": "k"}),
    ],
)
def test_a_changed_secret_has_another_mac(store, flags, environment):
    assert store.secrets_mac(flags, environment) != store.secrets_mac(*SECRETS)


def test_the_mac_is_keyed_on_this_host(store, tmp_path):
    mac = store.secrets_mac(*SECRETS)
    key = store.path / "secrets" / "key"
    assert mode(key) == "0o600" and len(key.read_text()) == 64
    assert mac == hmac.new(key.read_text().encode(), b'[{"api_key": "k"}, {"HF_TOKEN": "t"}]', hashlib.sha256).hexdigest()
    assert store.secrets_mac(*SECRETS) == mac, "the key stays"
    other = Store(tmp_path / "other")
    other.prepare()
    assert other.secrets_mac(*SECRETS) != mac


def test_the_order_of_secrets_does_not_count(store):
    assert store.secrets_mac({"a": "1", "b": "2"}, {"C": "3", "D": "4"}) == store.secrets_mac({"b": "2", "a": "1"}, {"D": "4", "C": "3"})


def test_secrets_are_current_only_after_they_were_confirmed(store):
    mac = store.secrets_mac(*SECRETS)
    assert not store.secrets_current(mac)
    store.write_secrets(*SECRETS)
    assert not store.secrets_current(mac), "written is not yet running"
    store.confirm_secrets(mac)
    assert store.secrets_current(mac)
    assert not store.secrets_current(store.secrets_mac({}, {}))


def test_secrets_are_written_for_root_only(store):
    store.write_secrets({"api_key": 'k"\n: {%', "ssl_keyfile_password": "p"}, {"HF_TOKEN": "t$"})
    folder = store.path / "secrets"
    assert json.loads((folder / "secrets.yaml").read_text()) == {"api-key": 'k"\n: {%', "ssl-keyfile-password": "p"}
    assert (folder / "environment").read_text() == 'HF_TOKEN="t\\$"\n'
    assert [mode(folder / name) for name in ("secrets.yaml", "environment")] == ["0o600"] * 2
    store.write_secrets({}, {})
    assert ((folder / "secrets.yaml").read_text(), (folder / "environment").read_text()) == ("{}\n", "")


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_modes_do_not_depend_on_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / "open", "a", 0o644)
        write_atomically(tmp_path / "closed", "a")
    finally:
        os.umask(before)
    assert (mode(tmp_path / "open"), mode(tmp_path / "closed")) == ("0o644", "0o600")


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, "old")

    def interrupted(*args):
        raise OSError("power cut")

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(OSError, match="power cut"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    monkeypatch.undo()
    write_atomically(path, "newer")
    assert path.read_text() == "newer"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["", "releases", "secrets"], ids=["the-store", "releases", "secrets"])
def test_a_file_where_a_directory_should_be(tmp_path, name):
    """Its own sentence: "File exists" tells nobody what to do."""
    path = tmp_path / "main" / name if name else tmp_path / "main"
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    with pytest.raises(StoreError, match=f"{path} is no directory.*move away what has its name"):
        Store(tmp_path / "main").prepare()


def test_the_environment_that_a_unit_reads(store):
    assert store.environment_text(CANDIDATE.id) is None
    folder = store.stage(CANDIDATE)
    assert store.environment_text(CANDIDATE.id) == 'A="1"\nB="2"\n'
    (folder / "environment").write_text("C=3\n")
    assert store.environment_text(CANDIDATE.id) == "C=3\n"
