# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._preflight_cache import Cache, digests, key_of

PARTS = {"probe": {"run": "x = 1"}, "engine": ["/e", {"version": "1", "cuda": "13"}], "request": {"argvs": [["--a", "b"]]}, "environment": {"A": "1"}}


def test_the_key_is_short_and_steady():
    assert len(key_of(PARTS)) == 32 and int(key_of(PARTS), 16)
    assert key_of(PARTS) == key_of(json.loads(json.dumps(PARTS))) == key_of(dict(reversed(PARTS.items())))


@pytest.mark.parametrize(
    "other",
    [
        {**PARTS, "probe": {"run": "x = 2"}},
        {**PARTS, "engine": ["/f", PARTS["engine"][1]]},
        {**PARTS, "engine": ["/e", {"version": "1", "cuda": "12"}]},
        {**PARTS, "request": {"argvs": [["--a", "c"]]}},
        {**PARTS, "request": {"argvs": [["b", "--a"]]}},
        {**PARTS, "environment": {"A": "2"}},
        {**PARTS, "environment": {}},
        {**PARTS, "more": None},
        {},
    ],
)
def test_the_key_follows_each_part(other):
    assert key_of(other) != key_of(PARTS)


def test_parts_need_not_be_json():
    assert key_of({"a": Path("/x")}) == key_of({"a": Path("/x")}) != key_of({"a": Path("/y")})


@pytest.fixture(name="model")
def fixture_model(tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    for name in ("config.json", "chat_template.jinja", "modeling.py", "model.safetensors", "README.md"):
        (model / name).write_text(name)
    return model


@pytest.mark.parametrize("word", ["{}", "--model-path={}"], ids=["word", "bound"])
def test_digests_of_a_model(model, word):
    found = digests(["--model-path", word.format(model), "--port", "1"])
    assert sorted(found) == [str(model / name) for name in ("chat_template.jinja", "config.json", "modeling.py")]
    assert len(set(found.values())) == 3
    (model / "model.safetensors").write_text("other weights")
    assert digests([word.format(model)]) == found
    (model / "config.json").write_text("other")
    after = digests([word.format(model)])
    assert [name for name in found if found[name] != after[name]] == [str(model / "config.json")]


def test_digests_of_a_file(model):
    path = model / "README.md"
    first = digests([str(path)])
    os.utime(path, (1, 1))
    assert digests([str(path)]) == first, "small files count by content"
    path.write_text("READYOU.md"[:9])
    assert list(digests([str(path)])) == [str(path)] and digests([str(path)]) != first


def test_big_files_count_by_size_and_time(model):
    path = model / "config.json"
    path.write_bytes(b"x" * (4 * 1024 * 1024 + 1))
    first = digests([str(path)])
    assert first[str(path)].split()[0] == str(4 * 1024 * 1024 + 1)
    os.utime(path, (1, 1))
    assert digests([str(path)]) != first
    path.write_bytes(b"x" * (4 * 1024 * 1024))
    os.utime(path, (1, 1))
    assert len(digests([str(path)])[str(path)]) == 64


def test_what_is_no_file_has_no_digest(model, monkeypatch):
    monkeypatch.chdir(model)
    assert digests(["config.json", "--x=config.json", "--model-path", "org/model", str(model / "gone"), "", "--", "--flag"]) == {}


def test_what_cannot_be_read_has_one_as_well(model):
    (model / "broken.json").symlink_to(model / "nowhere")
    assert digests([str(model)])[str(model / "broken.json")] == "FileNotFoundError"


@pytest.fixture(name="cache")
def fixture_cache(tmp_path):
    return Cache(tmp_path / "a" / "cache")


def mode(path):
    return oct(stat.S_IMODE(path.stat().st_mode))


def test_what_was_put_is_got(cache, tmp_path):
    assert cache.get("k1") is None
    cache.put("k1", {"a": [1, "é"]})
    cache.put("k2", {"b": 1})
    assert (cache.get("k1"), cache.get("k2"), cache.get("k3")) == ({"a": [1, "é"]}, {"b": 1}, None)
    cache.put("k1", {"a": 2})
    assert cache.get("k1") == {"a": 2}
    assert sorted(path.name for path in (tmp_path / "a" / "cache").iterdir()) == ["k1.json", "k2.json"], "nothing is left beside"


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_only_the_owner_reads(cache, tmp_path, mask):
    before = os.umask(mask)
    try:
        cache.put("k", {})
    finally:
        os.umask(before)
    folder = tmp_path / "a" / "cache"
    assert (mode(folder), mode(folder / "k.json")) == ("0o700", "0o600")


def test_no_folder_keeps_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cache = Cache(None)
    cache.put("k", {"a": 1})
    assert cache.get("k") is None and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text", ["", "{", '{"a": 1', "[1]", "[]", "null", '"x"', "\udcff"], ids=["empty", "open", "cut", "list", "nothing", "null", "text", "bytes"]
)
def test_what_is_broken_is_not_there(cache, tmp_path, text):
    cache.put("k", {"a": 1})
    (tmp_path / "a" / "cache" / "k.json").write_text(text, errors="surrogateescape")
    assert cache.get("k") is None
    cache.put("k", {"a": 2})
    assert cache.get("k") == {"a": 2}


def test_the_oldest_go(cache, tmp_path):
    folder = tmp_path / "a" / "cache"
    for number in range(32):
        cache.put(f"k{number}", {})
        os.utime(folder / f"k{number}.json", (1000 + number, 1000 + number))
    assert len(list(folder.iterdir())) == 32
    assert cache.get("k0") == {}, "what is used becomes young"
    cache.put("new", {})
    names = {path.stem for path in folder.iterdir()}
    assert len(names) == 32 and {"k0", "new", "k2"} <= names and "k1" not in names
