# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import time

import pytest
import yaml
from ansible_collections.llmops.inference.plugins.plugin_utils import _vaulted
from ansible_collections.llmops.inference.plugins.plugin_utils._vaulted import described, hide, is_placeholder, placeholder, replace_values
from ansible_collections.llmops.inference.tests.unit.git_repository import put
from ansible_collections.llmops.inference.tests.unit.gitops_repository import ciphertext, inline

WORD = placeholder(ciphertext("a"))
LINES = "".join(f"  {line}\n" for line in ciphertext("a").splitlines())


def variables(folder, name):
    """Names in a file that stands for an encrypted one."""
    return sorted(name for name in yaml.safe_load((folder / name).read_text()) if not name.startswith("__"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (WORD, f"vaulted {WORD[-8:]}"),
        (f"Bearer {WORD}", f"vaulted {WORD[-8:]} with other text"),
        (f"{WORD}:{placeholder('b')}@", f"vaulted {WORD[-8:]} {placeholder('b')[-8:]} with other text"),
        ("s3cret", "plain text"),
        ("", "plain text"),
        (None, "plain text"),
        (3, "plain text"),
        ("vaulted-zzzzzzzz", "plain text"),
        (f"{WORD}0", f"vaulted {WORD[-8:]} with other text"),
    ],
)
def test_where_a_secret_comes_from(value, expected):
    assert described(value) == expected
    assert is_placeholder(value) is (value == WORD)


def test_the_word_is_of_the_ciphertext_not_of_its_layout():
    assert placeholder(ciphertext("a")) == placeholder(ciphertext("a").replace("\n", "\n      ")) != placeholder(ciphertext("b"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"key: {inline('a')}", {"key": WORD}),
        (f"key: {inline('a')}other: 1\n", {"key": WORD, "other": 1}),
        (f"key: {inline('a').rstrip()}", {"key": WORD}),
        (f"key: !vault |  # by bob\n{LINES}", {"key": WORD}),
        (f"key: !vault |-\n{LINES}", {"key": WORD}),
        (f"key: !vault |2\n{LINES}", {"key": WORD}),
        (f"key: !vault >\n{LINES}", {"key": WORD}),
        (f"key: !vault |\n\n{LINES}", {"key": WORD}),
        (f"key: !vault-encrypted |\n{LINES}", {"key": WORD}),
        (f"env:\n  A: {inline('a')}  B: {inline('b')}", {"env": {"A": WORD, "B": placeholder(ciphertext("b"))}}),
        (f"list:\n  - {inline('a')}  - x\n", {"list": [WORD, "x"]}),
        ('key: !vault "' + ciphertext("a").replace("\n", "\\n") + '"\n', {"key": WORD}),
        ("key: !vault '" + ciphertext("a").replace("\n", "\n\n  ") + "'\n", {"key": WORD}),
        ("# key: !vault |\n#   $ANSIBLE_VAULT;1.1;AES256\nother: 1\n", {"other": 1}),
        ("key: 'the word !vault'\n", {"key": "the word !vault"}),
    ],
)
def test_single_values(text, expected):
    found = replace_values(text)
    assert yaml.safe_load(found) == expected and "$ANSIBLE_VAULT" not in found.partition("#")[0]


def test_whole_files(tmp_path):
    put(tmp_path, "i/group_vars/all/vault.yml", ciphertext("a"))
    put(tmp_path, "i/group_vars/all/main.yml", 'sglang_server_api_key: "{{ vault_key }}"\nother: "{{ my_secret }}"\n')
    put(tmp_path, "i/templates/x.j2", "{{ vault_of_a_template }}")
    put(tmp_path, "README.md", "vault_of_a_text")
    assert [str(path) for path in hide(tmp_path)] == ["i/group_vars/all/vault.yml"]
    found = yaml.safe_load((tmp_path / "i/group_vars/all/vault.yml").read_text())
    assert found.pop(f"__llmops_vaulted_{WORD[-8:]}") == WORD and sorted(found) == ["vault_key", "vault_of_a_template"]
    assert all(value.startswith("vaulted-{{ query(") for value in found.values())


@pytest.mark.parametrize(
    ("encrypted", "plain", "names"),
    [
        pytest.param("group_vars/all/vault.yml", {"group_vars/all/more.yml": "vault_key: x\n"}, [], id="defined-beside-it"),
        pytest.param("group_vars/all/vault.yml", {"group_vars/all/more.yml": '"vault_key": x\n'}, [], id="defined-beside-it-in-quotes"),
        pytest.param("group_vars/prod/vault.yml", {"group_vars/stage/vars.yml": "vault_key: x\n"}, ["vault_key"], id="defined-for-another-group"),
        pytest.param("host_vars/a/vault.yml", {"group_vars/all/vars.yml": "vault_key: ''\n"}, ["vault_key"], id="a-default-for-all"),
        pytest.param("host_vars/a/vault.yml", {"group_vars/all/vars.yml": f"vault_key: {inline('b')}"}, [], id="a-single-value-elsewhere"),
        pytest.param("group_vars/prod.yml", {"group_vars/stage.yml": "vault_key: x\n"}, ["vault_key"], id="one-file-for-each-group"),
        pytest.param("group_vars/all", {}, ["vault_key"], id="without-a-suffix"),
        pytest.param("group_vars/all/vault.json", {}, ["vault_key"], id="json"),
    ],
)
def test_names_that_a_whole_file_has(tmp_path, encrypted, plain, names):
    put(tmp_path, encrypted, ciphertext("a"))
    put(tmp_path, "group_vars/server/server.yml", "key: '{{ vault_key }}'\n")
    for name, text in plain.items():
        put(tmp_path, name, text)
    hide(tmp_path)
    assert variables(tmp_path, encrypted) == names


def test_other_content_that_is_encrypted(tmp_path):
    """A certificate that a lookup reads is content and no file of variables."""
    put(tmp_path, "files/tls.key", ciphertext("a"))
    put(tmp_path, "group_vars/all.yml", "key: '{{ vault_key }}'\n")
    assert [str(path) for path in hide(tmp_path)] == ["files/tls.key"]
    assert (tmp_path / "files/tls.key").read_text() == WORD, "without an end of line, which some lookups keep"


def test_what_is_not_encrypted_stays_as_it_is(tmp_path):
    texts = {"a.yml": b"a: 1\r\nb: [\n", "b.yml": b"\xff\xfe\x00", "c.json": b"{}", "d": b"", "e.md": f"key: {inline('a')}".encode()}
    for name, content in texts.items():
        (tmp_path / name).write_bytes(content)
    assert hide(tmp_path) == [] and {name: (tmp_path / name).read_bytes() for name in texts} == texts


def test_links_are_not_written_through(tmp_path):
    outside = tmp_path / "outside.yml"
    outside.write_text(ciphertext("a"))
    put(tmp_path, "copy/a.yml", f"key: {inline('a')}")
    (tmp_path / "copy" / "link.yml").symlink_to(outside)
    (tmp_path / "copy" / "inner.yml").symlink_to("a.yml")
    assert hide(tmp_path / "copy") == [] and outside.read_text() == ciphertext("a")
    assert (tmp_path / "copy" / "inner.yml").is_symlink() and "$ANSIBLE_VAULT" not in (tmp_path / "copy" / "inner.yml").read_text()


def test_large_files_are_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(_vaulted, "_LARGEST_BYTES", 500)
    put(tmp_path, "record.json", '{"a": "vault_of_a_record"}' + " " * 500)
    put(tmp_path, "all.yml", "key: '{{ vault_key }}'\n")
    put(tmp_path, "vault.yml", ciphertext("a") * 10)
    hide(tmp_path)
    assert variables(tmp_path, "vault.yml") == ["vault_key"], "one that is encrypted is not, however large it is"


def test_a_repository_with_gigabytes_takes_a_moment(tmp_path):
    for name in ("weights.bin", "weights.yml", "weights"):
        with (tmp_path / name).open("wb") as stream:
            stream.truncate(5_000_000_000)
    begin = time.monotonic()
    assert hide(tmp_path) == [] and time.monotonic() - begin < 5


def test_a_pattern_without_an_end(tmp_path):
    """Text that was made to keep the patterns busy."""
    put(tmp_path, "a.yml", "!vault |\n" + "    \n" * 50_000 + "key: !vault |" + " " * 50_000 + "\n" + "  ab  " * 50_000)
    begin = time.monotonic()
    hide(tmp_path)
    assert time.monotonic() - begin < 5
