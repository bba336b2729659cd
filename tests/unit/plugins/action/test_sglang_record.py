# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from ansible.errors import AnsibleActionFail
from ansible_collections.llmops.inference.plugins.action import sglang_record
from ansible_collections.llmops.inference.plugins.action.sglang_record import ARGUMENTS, ActionModule
from ansible_collections.llmops.inference.plugins.module_utils._version import VERSION
from ansible_collections.llmops.inference.plugins.modules import sglang_record as module
from ansible_collections.llmops.inference.plugins.plugin_utils import _controller
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_markdown import run_report
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_plots import PlotError
from ansible_collections.llmops.inference.plugins.plugin_utils._inventory_commit import Inventory
from ansible_collections.llmops.inference.tests.unit.benchmark_records import measured, point, record, start
from ansible_collections.llmops.inference.tests.unit.controller import Task
from ansible_collections.llmops.inference.tests.unit.json_schema import problems

SCHEMA = json.loads((Path(__file__).resolve().parents[4] / "docs" / "benchmark.schema.json").read_text())
CONTROLLERS = ("host", "collection", "inventory", "flags", "verdict")
COMMIT = "1c34fe0f2c0a4d1e8b7a6f5e4d3c2b1a09f8e7d6"
FLAGS = [{"name": "tp_size", "value": 2, "layer": "hardware"}]
NAME = "20261130T101500Z-decode-3494591af2ee"
NOW = "2026-11-30T10:20:00Z"
KEYS = {"changed", "records", "baseline", "remarks"}
NO_BASELINE = "decode has no baseline: accept one with -e sglang_benchmark_accept=true"


@pytest.fixture(autouse=True)
def fixture_controller(monkeypatch):
    """Its git, clock and matplotlib."""
    monkeypatch.setattr(sglang_record, "inventory_of", lambda records_dir: Inventory(COMMIT, False))
    monkeypatch.setattr(sglang_record, "run_plot", lambda record, form: f"{form} of {record['workload']['name']}".encode())
    monkeypatch.setattr(_controller.time, "strftime", lambda form, now: NOW)


@pytest.fixture(name="records_dir")
def fixture_records_dir(tmp_path):
    return tmp_path / "benchmarks"


def of_the_host(one):
    return {name: value for name, value in one.items() if name not in CONTROLLERS}


def run(records_dir, *records, host="ct129", check_mode=False, diff=False, **args):
    task = Task(args={"records": [of_the_host(one) for one in records], "records_dir": str(records_dir), **args}, check_mode=check_mode, diff=diff)
    task.async_val, task.action = 0, "llmops.inference.sglang_record"
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/tmp"))
    result = ActionModule(task, connection, None, None, None, None).run(task_vars={"inventory_hostname": host})
    assert result.keys() >= KEYS
    return result


def files(records_dir):
    return {path.relative_to(records_dir).as_posix(): path.read_bytes() for path in sorted(records_dir.rglob("*")) if path.is_file()}


def baseline(records_dir):
    return json.loads((records_dir / "ct129" / "baseline.json").read_text())["baselines"]


def test_a_record_is_kept(records_dir):
    result = run(records_dir, record(), flags=FLAGS)
    text = "decode: 100.0 tok/s (99.4 to 100.6) at concurrency 1, no baseline"
    entry = {"path": f"ct129/{NAME}.json", "workload": "decode", "verdict": {}, "text": text}
    assert result == {"changed": True, "records": [entry], "baseline": NO_BASELINE, "remarks": []}
    there = files(records_dir)
    assert sorted(there) == [f"ct129/{NAME}.{ending}" for ending in ("json", "md", "png", "svg")]
    kept = json.loads(there[f"ct129/{NAME}.json"])
    expected = {**record(), "collection": VERSION, "inventory": {"commit": COMMIT, "dirty": False}, "flags": FLAGS, "verdict": {}}
    assert kept == expected and problems(kept, SCHEMA) == []
    assert there[f"ct129/{NAME}.json"].decode() == json.dumps(kept, sort_keys=True, indent=1) + "\n"
    assert there[f"ct129/{NAME}.md"].decode() == run_report(kept)
    assert (there[f"ct129/{NAME}.png"], there[f"ct129/{NAME}.svg"]) == (b"png of decode", b"svg of decode")


LINKS = {"format": 1, "kind": "links", "messages": [], "backend": "nccl", "ranks": 2, "transports": [], "measured_at": "2026-11-29T22:32:45Z"}


@pytest.mark.parametrize("place", ["benchmarks", "elsewhere"])
def test_links_that_were_measured(records_dir, place):
    folder = records_dir.parent / place
    (folder / "ct129").mkdir(parents=True)
    (folder / "ct129" / "links.json").write_text(json.dumps(LINKS))
    result = run(records_dir, record(), **({} if place == "benchmarks" else {"links_dir": str(folder)}))
    kept = json.loads((records_dir / "ct129" / f"{NAME}.json").read_text())
    assert kept["hardware"]["links_measured"]["text"] == "2 ranks (nccl), measured 2026-11-29T22:32:45Z"
    assert (problems(kept, SCHEMA), result["remarks"]) == ([], [])
    assert "2 ranks (nccl), measured 2026-11-29T22:32:45Z" in (records_dir / "ct129" / f"{NAME}.md").read_text()


def test_links_that_cannot_be_read_are_no_reason_to_lose_the_record(records_dir):
    (records_dir / "ct129").mkdir(parents=True)
    (records_dir / "ct129" / "links.json").write_text("{")
    result = run(records_dir, record())
    (remark,) = result["remarks"]
    assert remark.startswith("the record does not say what was measured of the links: ") and "links.json is damaged" in remark
    assert "failed" not in result and "links_measured" not in json.loads((records_dir / "ct129" / f"{NAME}.json").read_text())["hardware"]


PART = record(starts=[start(point(), point(concurrency=4, status="failed", remarks=["HTTP 500 (warming up)"], repetitions=[], summary={}))])


def test_a_failed_benchmark_is_kept_and_never_the_baseline(records_dir):
    result = run(records_dir, PART, accept=True)
    assert result["failed"] and result["msg"].endswith("cannot be the baseline of decode: failed: HTTP 500 (warming up)")
    assert sorted(files(records_dir)) == [f"ct129/{NAME}.{ending}" for ending in ("json", "md", "png", "svg")]
    assert "failed, so the numbers count for nothing" in result["records"][0]["text"]
    assert run(records_dir, record(), accept=True)["baseline"].startswith("baseline of decode: 1 record, 1 start")


def test_several_workloads(records_dir):
    result = run(records_dir, record(), record(workload={"name": "chat"}))
    assert [one["workload"] for one in result["records"]] == ["decode", "chat"]
    assert result["baseline"].startswith("decode has no baseline: accept one with") and "; chat has no baseline" in result["baseline"]
    assert len(files(records_dir)) == 8


def test_two_runs_in_one_second(records_dir):
    paths = [run(records_dir, record())["records"][0]["path"] for number in range(2)]
    assert paths == [f"ct129/{NAME}.json", f"ct129/{NAME}-2.json"]
    assert len(files(records_dir)) == 8


def test_nothing_was_measured(records_dir):
    assert run(records_dir, accept=True) == {"changed": False, "records": [], "baseline": "", "remarks": []}
    assert not records_dir.exists()


def test_the_verdict(records_dir):
    for one in measured():
        run(records_dir, one, accept=True)
    before = (records_dir / "ct129" / "baseline.json").read_bytes()
    (now,) = measured(90.0, boots=(1.0,), name="now", measured_at="2026-12-01T08:00:00Z", release={"id": "0f3a9c1be27d", "subject": "subject-b"})
    result = run(records_dir, now)
    (entry,) = result["records"]
    assert entry["path"] == "ct129/20261201T080000Z-decode-0f3a9c1be27d.json"
    assert entry["verdict"]["verdict"] == "slower" and "slower than the baseline: -10.0 %" in entry["text"]
    assert result["baseline"] == "" and (records_dir / "ct129" / "baseline.json").read_bytes() == before
    kept = json.loads((records_dir / entry["path"]).read_text())
    assert kept["verdict"] == entry["verdict"] and problems(kept, SCHEMA) == []
    assert "slower than the baseline" in (records_dir / entry["path"]).with_suffix(".md").read_text()
    assert run(records_dir, now, metric="tpot_ms")["records"][0]["verdict"]["metric"] == "tpot_ms"


@pytest.mark.parametrize(("ignored", "verdict"), [([], "not comparable"), (["kernel"], "no measurable difference")], ids=["all-conditions", "all-but-one"])
def test_conditions_that_may_differ(records_dir, ignored, verdict):
    """What the gate ignores, the verdict beside it ignores as well."""
    for one in measured():
        run(records_dir, one, accept=True)
    (now,) = measured(100.0, boots=(1.0,), name="now", hardware={"kernel": "6.1.0-99-amd64"})
    assert run(records_dir, now, ignore_conditions=ignored)["records"][0]["verdict"]["verdict"] == verdict


def test_a_baseline_is_accepted(records_dir):
    texts = [run(records_dir, one, accept=True)["baseline"] for one in measured()]
    assert texts[0].startswith("baseline of decode: 1 record, 1 start; measure it on 2 more") and texts[2] == "baseline of decode: 3 records, 3 starts"
    names = sorted(f"{NAME}{number}.json" for number in ("", "-2", "-3"))
    assert baseline(records_dir) == {"decode": {"records": names, "accepted_at": NOW, "commit": COMMIT}}
    run(records_dir, record(workload={"name": "chat"}), accept=True)
    assert sorted(baseline(records_dir)) == ["chat", "decode"] and baseline(records_dir)["decode"]["records"] == names


CONTENDED = record(workload={"name": "chat"}, starts=[start(point(status="contended", remarks=["2 requests that are not ours were running"]))])


def test_what_cannot_be_accepted_is_kept(records_dir):
    run(records_dir, record(), accept=True)
    before = (records_dir / "ct129" / "baseline.json").read_bytes()
    result = run(records_dir, record(), CONTENDED, accept=True)
    assert result["failed"] and result["changed"] and len(result["records"]) == 2 and result["baseline"] == ""
    assert result["msg"].endswith("cannot be the baseline of chat: contended: 2 requests that are not ours were running")
    assert (records_dir / "ct129" / "baseline.json").read_bytes() == before, "all or none"


@pytest.mark.parametrize("accept", [False, True])
def test_check_mode_writes_nothing(records_dir, accept):
    run(records_dir, record(), accept=True)
    before = files(records_dir)
    result = run(records_dir, record(), check_mode=True, accept=accept)
    assert result["changed"] and result["records"][0]["path"] == f"ct129/{NAME}-2.json"
    assert result["records"][0]["verdict"]["verdict"] == "no measurable difference"
    assert result["baseline"].startswith("baseline of decode: 2 records, 1 start" if accept else "")
    assert files(records_dir) == before and not run(records_dir.parent / "x", record(), check_mode=True).get("failed")
    assert not (records_dir.parent / "x").exists()


@pytest.mark.parametrize("check_mode", [False, True])
def test_diff_mode(records_dir, check_mode):
    assert "diff" not in run(records_dir, record(), diff=True)
    (diff,) = run(records_dir, record(), diff=True, check_mode=check_mode, accept=True)["diff"]
    assert diff["before_header"] == diff["after_header"] == str(records_dir / "ct129" / "baseline.json") and diff["before"] == ""
    assert list(json.loads(diff["after"])["baselines"]) == ["decode"]
    assert (records_dir / "ct129" / "baseline.json").exists() is not check_mode


@pytest.mark.parametrize("error", [PlotError("pictures need matplotlib on the controller"), ValueError("no font"), RuntimeError("no canvas")])
def test_pictures_are_no_must(records_dir, monkeypatch, error):
    def no_picture(one, form):
        raise error

    monkeypatch.setattr(sglang_record, "run_plot", no_picture)
    result = run(records_dir, record())
    assert result["remarks"] == [f"decode has no picture: {error}"] and "failed" not in result
    assert sorted(files(records_dir)) == [f"ct129/{NAME}.json", f"ct129/{NAME}.md"]
    assert run(records_dir, record(), plots=False)["remarks"] == []


@pytest.mark.parametrize(
    "inventory, remarks",
    [
        (Inventory(COMMIT, True), ["the inventory has changes that are not committed"]),
        (Inventory(None, None, "the record names no commit"), ["the record names no commit"]),
    ],
)
def test_the_inventory(records_dir, monkeypatch, inventory, remarks):
    asked = []
    monkeypatch.setattr(sglang_record, "inventory_of", lambda folder: (asked.append(folder), inventory)[1])
    assert run(records_dir, record())["remarks"] == remarks
    kept = json.loads((records_dir / "ct129" / f"{NAME}.json").read_text())
    assert kept["inventory"] == inventory.data() and problems(kept, SCHEMA) == [] and asked == [records_dir]


def test_a_relative_directory(records_dir, monkeypatch):
    monkeypatch.chdir(records_dir.parent)
    assert run("./x/../benchmarks", record())["records"][0]["path"] == f"ct129/{NAME}.json"
    assert (records_dir / "ct129" / f"{NAME}.json").exists()


@pytest.mark.parametrize(
    "name, text, message",
    [
        pytest.param("baseline.json", "{", "/ct129/baseline.json is damaged: ", id="baseline"),
        pytest.param(f"{NAME}.json", "{", f"/ct129/{NAME}.json is damaged: ", id="record"),
        pytest.param(
            "baseline.json", '{"format": 1, "baselines": {"decode": {"records": ["x.json"]}}}', "names x.json, and there is no such record", id="missing"
        ),
    ],
)
def test_damaged_files_are_an_error_before_anything_is_written(records_dir, name, text, message):
    (records_dir / "ct129").mkdir(parents=True)
    (records_dir / "ct129" / name).write_text(text)
    before = files(records_dir)
    result = run(records_dir, record(), accept=True)
    assert result["failed"] and message in result["msg"] and "git" in result["msg"]
    assert result["changed"] is False and files(records_dir) == before


def test_foreign_files_are_passed_over(records_dir):
    (records_dir / "ct129").mkdir(parents=True)
    (records_dir / "ct129" / "package.json").write_text("{")
    assert run(records_dir, record())["changed"]


@pytest.mark.parametrize("host", ["../ct129", "a/b", ""])
def test_names_of_hosts_that_are_none_of_files(records_dir, host):
    result = run(records_dir, record(), host=host)
    assert result["failed"] and result["msg"].startswith(f"the records of {host!r} cannot be kept") and not records_dir.exists()


def test_names_that_lead_elsewhere(records_dir):
    result = run(records_dir, record(workload={"name": "../../x"}, release={"id": "/etc/y"}, measured_at="../z"))
    (path,) = [one["path"] for one in result["records"]]
    assert Path(path).parent == Path("ct129") and (records_dir / path).is_file()
    assert {name.partition("/")[0] for name in files(records_dir.parent)} == {"benchmarks"}


def test_what_is_no_record(records_dir):
    result = run(records_dir, record(), {"kind": "preflight"})
    assert result["failed"] and "it is no record of a benchmark" in result["msg"] and not records_dir.exists()


def test_a_directory_that_cannot_be_written(tmp_path):
    result = run(tmp_path / "none" / "benchmarks", record())
    assert result["failed"] and result["msg"].startswith("the records of ct129 cannot be read or written: ") and "none" in result["msg"]
    (tmp_path / "file").touch()
    assert "Not a directory" in run(tmp_path / "file" / "benchmarks", record())["msg"]


@pytest.mark.parametrize(
    "args",
    [{"metric": "tok_per_s"}, {"flags": [{"name": "x"}]}, {"flags": [{"name": "x", "value": 1, "layer": "y"}]}, {"records": "x"}, {"unknown": 1}],
)
def test_options_that_are_wrong(records_dir, args):
    with pytest.raises(AnsibleActionFail):
        run(records_dir, record(), **args)


def test_secrets_stay_away(records_dir):
    leaky = record(environment={"HF_TOKEN": "hf_abcdefghijkl"}, release={"argv": ["--model-path", "/home/alice/m"]})
    run(records_dir, leaky, flags=[{"name": "api_key", "value": "s3cret", "layer": "extra"}])
    there = b"".join(files(records_dir).values())
    assert not [word for word in (b"hf_abcdefghijkl", b"alice", b"s3cret") if word in there]


def test_modes(records_dir):
    before = os.umask(0o077)
    try:
        run(records_dir, record(), accept=True)
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in records_dir.rglob("*") if path.is_file()} == {0o644}
    assert {path.stat().st_mode & 0o777 for path in (records_dir, records_dir / "ct129")} == {0o755}


def spec(options):
    """What the documentation says of options, as a specification of arguments."""
    found = {}
    for name, option in options.items():
        found[name] = {key: value for key, value in option.items() if key not in ("description", "suboptions")}
        if "suboptions" in option:
            found[name]["options"] = spec(option["suboptions"])
    return found


def test_options_are_those_of_the_action():
    assert spec(yaml.safe_load(module.DOCUMENTATION)["options"]) == ARGUMENTS
