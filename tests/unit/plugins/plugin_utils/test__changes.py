# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils import _rendered
from ansible_collections.llmops.inference.plugins.plugin_utils._changes import compared, key_of, question, questions, quiet, remarks, upgrade
from ansible_collections.llmops.inference.tests.unit.gitops_repository import GPU, GPUS, document

FOUR = {"argv": ["--tp-size", "4"]}
NEWER = {"engine": {"name": "0.5.23-cuda-x", "version": "0.5.23", "flavour": "cuda", "cuda": "13.0"}}
CPU = {"engine": {"name": "0.5.12-cpu-x", "version": "0.5.12", "flavour": "cpu"}}


def side(*hosts, **more):
    return {host: document(host, **more) for host in hosts}


def test_a_change_shows_every_host_that_it_reaches():
    rows = compared(side("a", "b", "c"), {**side("a", "b", **FOUR), **side("c")})
    assert [row["host"] for row in rows] == ["a", "b"]
    assert rows[0]["before"]["release"]["argv"][-1] == "2" and rows[0]["after"]["release"]["argv"][-1] == "4"


def test_distinct_releases_are_asked_once():
    """The issue's branch: 20 hosts with 3 distinct releases."""
    hosts = [f"ct{number}" for number in range(20)]
    before = side(*hosts)
    after = {host: document(host, argv=["--tp-size", str(2 ** (2 + number % 3))]) for number, host in enumerate(hosts)}
    rows = compared(before, after)
    asked = questions(rows)
    assert len(rows) == 20 and len({row["requests"]["after"] for row in rows}) == 3
    assert len(asked) == 4, "and what runs now"
    assert all(key == one["key"] == key_of(one) for key, one in asked.items())


def test_nothing_to_ask():
    assert compared(side("a"), side("a")) == [] and questions([]) == {} and compared({}, {}) == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(None, document(), (False, True, False), id="new"),
        pytest.param(document(), None, (True, False, False), id="removed"),
        pytest.param(_rendered.unrendered("ct129", "no"), document(), (False, True, False), id="base-with-problems"),
        pytest.param(document(), _rendered.unrendered("ct129", "no"), (True, False, False), id="head-with-problems"),
        pytest.param(document(), _rendered.unrendered("ct129", "no", True, {"version": "0.5.99"}), (True, False, True), id="head-that-another-engine-refuses"),
        pytest.param(document(), document(**NEWER), (True, True, True), id="another-engine"),
        pytest.param(_rendered.unrendered("ct129", "no"), document(**NEWER), (False, True, False), id="another-engine-of-an-unknown-base"),
    ],
)
def test_what_is_asked(before, after, expected):
    (row,) = compared({"ct129": before} if before else {}, {"ct129": after} if after else {})
    assert tuple(row["requests"][name] is not None for name in ("before", "after", "upgrade")) == expected
    assert (row["before"], row["after"]) == (before, after)
    assert questions([row]).keys() == {key for key in row["requests"].values() if key}


def test_the_question():
    found = question(document())
    assert found["gpu_facts"] == {
        "gpus": [
            {
                "name": "NVIDIA RTX A6000",
                "memory_total_mib": 49140,
                "memory_free_mib": 48640,
                "compute_capability": "8.6",
                "mig": False,
                "mig_devices": [],
                "index": 0,
                "processes": [],
            }
        ],
        "driver": {"version": "580.95.05", "cuda": "13.0"},
    }
    assert {name: found[name] for name in ("version", "cuda", "secret_flags", "not_honoured", "silently_disabled", "unanswerable")} == {
        "version": "0.5.12",
        "cuda": "12.9",
        "secret_flags": ["api_key"],
        "not_honoured": "fail",
        "silently_disabled": "warn",
        "unanswerable": "",
    }


def gpus(**more):
    return {"gpu_facts": {**GPUS, "gpus": [{**GPU, **more}]}}


@pytest.mark.parametrize(
    ("more", "same"),
    [
        pytest.param(gpus(uuid="GPU-2", memory_free_mib=48700), True, id="another-card-of-the-kind"),
        pytest.param(gpus(memory_free_mib=40000), False, id="less-memory"),
        pytest.param(gpus(name="NVIDIA H200"), False, id="another-kind"),
        pytest.param({"environment": {"CUDA_VISIBLE_DEVICES": "GPU-1"}}, False, id="a-card-by-its-id"),
        pytest.param({"unit": "[Service]\nExecStart=/other\n"}, True, id="the-unit"),
        pytest.param({"gate": {}}, True, id="the-gate"),
        pytest.param({"instance": "other"}, True, id="the-name-of-the-server-alone"),
        pytest.param({"base_environment": {"HOME": "/var/lib/sglang-other"}}, False, id="its-directories"),
        pytest.param({"argv": ["--tp-size", "2", "--port", "30001"]}, False, id="a-port"),
        pytest.param({"not_honoured": "warn"}, False, id="the-policy"),
        pytest.param(
            {"snapshot": {"model": {"path": "/srv/models/tiny", "revision": ""}, "model_dir": "/other", "model_digest": "0a1b2c3d4e5f"}}, True, id="place"
        ),
        pytest.param({"snapshot": {"model": {"path": "/srv/models/tiny", "revision": ""}, "model_dir": "/s/model", "model_digest": "x"}}, False, id="model"),
        pytest.param({"secret_flags": {"api_key": "vaulted-ffffffff"}}, True, id="a-value-of-a-secret"),
    ],
)
def test_what_makes_two_hosts_one_question(more, same):
    assert (key_of(question(document("ct129"))) == key_of(question(document("ct130", **more)))) is same


def test_two_cards_that_are_named_are_two_questions():
    keys = {key_of(question(document(environment={"CUDA_VISIBLE_DEVICES": uuid}, **gpus(uuid=uuid)))) for uuid in ("GPU-1", "GPU-2")}
    assert len(keys) == 2


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"gpu_facts": None}, "the snapshot of ct129 knows no GPUs; record it again: "),
        ({"gpu_facts": {**GPUS, "gpus": []}}, ""),
        ({"snapshot": {}}, "the snapshot of ct129 knows no model; record it again: "),
        ({"model": {"path": "/other", "revision": ""}}, "and the inventory asks for /other"),
        ({"snapshot": {"model": {"path": "/srv/models/tiny", "revision": ""}}}, "the snapshot of ct129 has no configuration files of its model"),
        ({**CPU, "gpu_facts": None}, ""),
    ],
)
def test_what_cannot_be_asked(more, reason):
    found = question(document(**more))["unanswerable"]
    assert (reason in found) if reason else found == ""


def test_a_server_without_cuda_is_asked_without_its_gpus():
    assert question(document(**CPU))["gpu_facts"] is None


def test_an_upgrade_asks_the_new_engine_for_the_old_flags():
    found = upgrade(document(), document(argv=["--tp-size", "4"], **NEWER))
    assert (found["version"], found["cuda"], found["argv"][-1]) == ("0.5.23", "13.0", "2")


def test_the_same_flags_on_a_newer_engine_are_one_question():
    (row,) = compared(side("a"), side("a", **NEWER))
    assert row["requests"]["upgrade"] == row["requests"]["after"] and len(questions([row])) == 2


UNDEFINED = {"a": _rendered.unrendered("a", "'my_secret' is undefined")}


@pytest.mark.parametrize(
    ("documents", "left_out", "encrypted", "expected"),
    [
        ({}, [], [], []),
        (side("a"), [], ["group_vars/all/vault.yml"], []),
        (UNDEFINED, [], [], []),
        ({"a": _rendered.unrendered("a", "object of type 'str' has no attribute 'api'")}, [], ["x"], ["x cannot be read here: "]),
        (UNDEFINED, [], ["group_vars/all/vault.yml"], ["group_vars/all/vault.yml cannot be read here: "]),
        (side("a"), ["x", "y"], [], ["links that lead out of the repository or to nothing were left out: x, y"]),
        (side("a"), list("abcdefg"), [], ["were left out: a, b, c, d, e and 2 more"]),
    ],
)
def test_what_a_copy_does_not_have(documents, left_out, encrypted, expected):
    found = remarks(documents, left_out, encrypted)
    assert len(found) == len(expected) and all(text in one for text, one in zip(expected, found))


def test_what_restarts_nothing_and_is_worth_a_look():
    before = {host: document() for host in ("a", "b")}
    assert quiet(before, before) == []
    looser = {**before, "b": {**document(), "gate": {"settings": {"tolerance_pct": 90}, "records_dir": "/x"}}}
    (told,) = quiet(before, looser)
    assert told.startswith("what a release is judged by changes") and told.endswith(": b")
    moved = {**before, "a": {**document(), "gate": {**document()["gate"], "records_dir": "/elsewhere"}} if document()["gate"] else document()}
    assert quiet(before, moved) == []
    other = {host: {**document(), "hardware": {"gpus": []}} for host in before}
    assert quiet(before, other) == ["the snapshot changes, so that hosts are judged as other machines than before: a, b"]
