# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import stat
import threading

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils import _record_files
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import (
    RecordFileError,
    as_text,
    free_name,
    host_folder,
    read_host,
    write_beside,
    write_changed,
    write_record,
)
from ansible_collections.llmops.inference.tests.unit.benchmark_records import record

NAME = "20261130T101500Z-decode-3494591af2ee"
BASELINE = {"format": 1, "baselines": {"decode": {"records": [f"{NAME}.json"], "accepted_at": "2026-11-30T10:20:00Z", "commit": None}}}


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    return tmp_path / "benchmarks" / "ct129"


def put(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        data = content if isinstance(content, bytes) else (content if isinstance(content, str) else json.dumps(content)).encode()
        (folder / f"{name}.json").write_bytes(data)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_there_is_nothing_yet(folder):
    found = read_host(folder)
    assert (found.records, found.baseline, found.baseline_text) == ({}, {"format": 1, "baselines": {}}, "")
    assert found.baseline_of("decode") == [] and not folder.exists()


def test_what_is_there(folder):
    put(folder, **{NAME: record(), f"{NAME}-2": record(instance="two"), "baseline": BASELINE})
    found = read_host(folder)
    assert found.records == {f"{NAME}-2.json": record(instance="two"), f"{NAME}.json": record()}
    assert found.baseline_of("decode") == [record()] and found.baseline_of("chat") == []
    assert json.loads(found.baseline_text) == BASELINE


@pytest.mark.parametrize(
    "name, content",
    [
        pytest.param("other", {"format": 1, "host": "ct129"}, id="of-another-kind"),
        pytest.param(NAME, {"kind": "preflight"}, id="of-another-kind-with-the-name-of-a-record"),
        pytest.param("other", [1], id="a-list"),
        pytest.param("other", "{", id="no-json"),
        pytest.param("other", b"\xff", id="no-text"),
        pytest.param("other", "[" * 100000, id="nested"),
        pytest.param(f".{NAME}", "{", id="hidden"),
    ],
)
def test_foreign_files_are_passed_over(folder, name, content):
    put(folder, **{name: content})
    (folder / "sub.json").mkdir()
    (folder / f"{NAME}.md").write_text("x")
    assert read_host(folder).records == {}


def test_a_record_may_be_renamed(folder):
    put(folder, before_the_upgrade=record())
    assert list(read_host(folder).records) == ["before_the_upgrade.json"]


@pytest.mark.parametrize(
    "name, content, message",
    [
        pytest.param(NAME, "{", "is damaged: Expecting property name", id="cut-off"),
        pytest.param(NAME, "", "is damaged: Expecting value", id="empty"),
        pytest.param(NAME, b"\xff", "is damaged: 'utf-8' codec can't decode", id="no-text"),
        pytest.param(NAME, "[]", "is damaged: it holds a list; restore it from git", id="a-list"),
        pytest.param(NAME, '{"a": ' * 100000, "is damaged: it is nested too deep for a record; restore it from git", id="nested"),
        pytest.param(NAME, record(format=3), "has format 3, this collection reads records of format 2", id="newer"),
        pytest.param("renamed", record(format=3), "has format 3", id="newer-and-renamed"),
        pytest.param(NAME, record(host=""), "is damaged: it has no host; restore it from git", id="no-host"),
        pytest.param(NAME, record(flags=[1]), "is damaged: flags has an entry without name and value; restore it from git", id="a-flag"),
        pytest.param(NAME, record(starts=[{"points": [{}]}]), "is damaged: starts has a point without", id="a-point"),
        pytest.param("baseline", "<<<<<<< HEAD\n", "is damaged: Expecting value: line 1 column 1 (char 0); restore it from git", id="baseline-with-a-conflict"),
        pytest.param("baseline", b"\xff", "is damaged: 'utf-8' codec", id="baseline-no-text"),
        pytest.param("baseline", {**BASELINE, "format": 2}, "has format 2, this collection reads format 1", id="baseline-newer"),
        pytest.param("baseline", {"format": 1, "baselines": {"decode": {}}}, "is damaged: the entry of decode names no records", id="baseline-names-none"),
    ],
)
def test_damaged_files(folder, name, content, message):
    put(folder, **{name: content})
    with pytest.raises(RecordFileError) as caught:
        read_host(folder)
    assert str(caught.value).startswith(f"{folder / name}.json {message}")


def test_a_baseline_without_its_record(folder):
    put(folder, baseline=BASELINE)
    with pytest.raises(RecordFileError, match=rf"^{folder}/baseline.json: the baseline of decode names {NAME}.json, and there is no such record"):
        read_host(folder).baseline_of("decode")


@pytest.mark.parametrize("host", ["ct129", "gpu-1.example.com", "::1", "host with space"])
def test_names_of_hosts(tmp_path, host):
    assert host_folder(tmp_path, host) == tmp_path / host


@pytest.mark.parametrize("host", ["", ".", "..", ".hidden", "a/b", "../x", "/etc", "a\nb", "a\0b"])
def test_names_of_hosts_that_are_none_of_files(tmp_path, host):
    with pytest.raises(RecordFileError, match="the name of a host is that of a directory"):
        host_folder(tmp_path, host)


def test_a_record_is_written(folder):
    folder.parent.parent.joinpath("x").touch()
    before = os.umask(0o077)
    try:
        assert write_record(folder, NAME, record()) == NAME
        write_beside(folder / f"{NAME}.md", b"report")
    finally:
        os.umask(before)
    assert names(folder) == [f"{NAME}.json", f"{NAME}.md"]
    text = (folder / f"{NAME}.json").read_text()
    assert text == json.dumps(record(), sort_keys=True, indent=1) + "\n" == as_text(record())
    assert [mode(path) for path in (folder.parent, folder, *folder.iterdir())] == [0o755, 0o755, 0o644, 0o644]
    assert list(read_host(folder).records.values()) == [record()]


def test_directories_that_are_there_stay_as_they_are(folder):
    folder.mkdir(parents=True)
    folder.parent.chmod(0o700)
    write_record(folder, NAME, record())
    assert mode(folder.parent) == 0o700


def test_the_inventory_is_not_made(tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        write_record(tmp_path / "none" / "benchmarks" / "ct129", NAME, record())


def test_none_is_overwritten(folder):
    assert free_name(folder, NAME) == NAME
    assert [write_record(folder, NAME, record(instance=str(number))) for number in range(3)] == [NAME, f"{NAME}-2", f"{NAME}-3"]
    assert free_name(folder, NAME) == f"{NAME}-4"
    assert sorted(one["instance"] for one in read_host(folder).records.values()) == ["0", "1", "2"]


def test_a_name_that_somebody_is_writing_is_taken(folder):
    folder.mkdir(parents=True)
    (folder / f".{NAME}.json.new").touch()
    assert write_record(folder, NAME, record()) == f"{NAME}-2"
    assert read_host(folder).records.keys() == {f"{NAME}-2.json"}


def test_many_at_once(folder):
    folder.mkdir(parents=True)
    barrier, written = threading.Barrier(8), []

    def write(number):
        barrier.wait()
        written.append((write_record(folder, NAME, record(instance=str(number))), str(number)))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(dict(written)) == 8
    assert {name: one["instance"] for name, one in read_host(folder).records.items()} == {f"{name}.json": number for name, number in written}
    assert not [name for name in names(folder) if name.startswith(".")]


def test_a_report_is_replaced(folder):
    folder.mkdir(parents=True)
    for text in (b"long text", b"text"):
        write_beside(folder / "x.md", text)
    assert (folder / "x.md").read_bytes() == b"text" and names(folder) == ["x.md"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_half_a_file_is_none(folder, monkeypatch, error):
    folder.mkdir(parents=True)
    (folder / "baseline.json").write_text("old")

    def full(*paths):
        raise error

    monkeypatch.setattr(_record_files.os, "replace", full)
    for write in (lambda: write_record(folder, NAME, record()), lambda: write_beside(folder / "baseline.json", b"new")):
        with pytest.raises(type(error)):
            write()
    assert names(folder) == ["baseline.json"] and (folder / "baseline.json").read_text() == "old"


def test_only_what_differs_is_written(tmp_path):
    (tmp_path / "same").write_bytes(b"1")
    stamp = (tmp_path / "same").stat().st_mtime_ns
    contents = {tmp_path / "same": b"1", tmp_path / "new" / "file": b"2"}
    assert write_changed(contents, True) == [tmp_path / "new" / "file"] and not (tmp_path / "new").exists()
    assert write_changed(contents, False) == [tmp_path / "new" / "file"] and (tmp_path / "new" / "file").read_bytes() == b"2"
    assert write_changed(contents, False) == [] and (tmp_path / "same").stat().st_mtime_ns == stamp
