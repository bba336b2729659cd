# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import json

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._release import Candidate
from ansible_collections.llmops.inference.plugins.modules.sglang_release import PROBE, make_candidate
from ansible_collections.llmops.inference.plugins.plugin_utils._rendered import differ, rendered, unrendered
from ansible_collections.llmops.inference.tests.unit.gitops_repository import GPUS, MODEL_PATH, NOW, asked, document


def test_the_document():
    found = rendered("ct129", asked())
    release = found.pop("release")
    assert release.pop("unit").startswith("[Service]") and len(release.pop("id")) == 12
    assert release == {
        "argv": ["--model-path", MODEL_PATH, "--tp-size", "2"],
        "environment": {"NCCL_P2P_LEVEL": "PHB", "COUNT": "1"},
        "engine": {"name": "0.5.12-cuda-a1b2c3d4-py311-x86_64"},
        "model": {"path": MODEL_PATH, "revision": ""},
        "secrets": ["PROXY_PASSWORD", "api_key"],
    }
    assert found == {
        "format": 1,
        "kind": "render",
        "host": "ct129",
        "instance": "main",
        "problems": [],
        "remarks": [],
        "refused": False,
        "engine": {"name": "0.5.12-cuda-a1b2c3d4-py311-x86_64", "version": "0.5.12", "flavour": "cuda", "cuda": "12.9"},
        "flags": [{"name": "tp_size", "value": 2, "layer": "hardware"}],
        "sources": {"tp_size": "sglang_server_hardware_flags.tp_size"},
        "secret_flags": ["api_key"],
        "secrets": {"PROXY_PASSWORD": "plain text", "api_key": "vaulted 1a2b3c4d"},
        "policy": {"not_honoured": "fail", "silently_disabled": "warn"},
        "probe_environment": {"HOME": "/var/lib/sglang-main", "COUNT": "1", "NCCL_P2P_LEVEL": "PHB"},
        "hardware": GPUS,
        "model_digest": "0a1b2c3d4e5f",
        "model_dir": "/s/model",
        "gate": {"settings": {"tolerance_pct": 5}, "records_dir": "/i/benchmarks"},
        "boot": True,
        "snapshot": {"recorded_at": NOW},
    }


def test_no_secret_is_in_it():
    assert "s3cret" not in json.dumps(document())


def test_the_id_is_that_of_the_host():
    """By the very code that makes a candidate on the host, of the options that the role gives it."""
    options = asked()
    params = {
        **{name: options[name] for name in ("unit", "argv", "environment", "secret_flags", "secret_environment", "model")},
        **dict.fromkeys(PROBE, ""),
        "engine": {"name": options["engine"]["name"]},
        "preflight": {},
    }
    release = rendered("ct129", options)["release"]
    assert release["id"] == make_candidate(params).id
    whole = Candidate(release["unit"], tuple(release["argv"]), release["environment"], release["engine"], release["model"], tuple(release["secrets"]))
    assert whole.id == release["id"]


def test_a_comment_in_the_unit_makes_no_other_release():
    assert document(unit=f"# why\n{asked()['unit']}")["release"]["id"] == document()["release"]["id"]


@pytest.mark.parametrize(
    ("model", "remark"),
    [
        ({"path": "/srv/models/other", "revision": ""}, "is of the model in /srv/models/tiny, and the inventory asks for /srv/models/other"),
        ({"path": MODEL_PATH, "revision": "9d2f"}, "is of revision nothing, and the inventory asks for 9d2f"),
    ],
)
def test_a_stale_snapshot_judges_nothing(model, remark):
    found = document(model=model)
    assert remark in found["remarks"][0] and (found["model_digest"], found["model_dir"], found["problems"]) == ("", "", [])
    assert found["release"]["model"] == model, "its release is known all the same"


def test_a_host_without_gpus():
    found = document(gpu_facts=None, engine={"name": "x", "version": "0.5.12", "flavour": "cpu"}, snapshot={})
    assert (found["hardware"], found["engine"]["cuda"], found["snapshot"]) == (None, "", {"recorded_at": ""})
    assert "knows no model" in found["remarks"][0]


NO = unrendered("ct129", "it has no snapshot")


def test_no_release():
    told = {"format": 1, "kind": "render", "host": "ct129", "problems": ["it has no snapshot"], "remarks": [], "refused": False}
    assert {**told, "engine": {"name": "", "version": "", "flavour": "", "cuda": ""}} == NO
    assert unrendered("ct129", "no such flag", True, {"version": "0.5.23", "path": "/opt"})["engine"]["version"] == "0.5.23"
    assert unrendered("ct129", "no such flag", refused=True)["refused"] is True


def test_that_nothing_was_changed_goes_without_saying():
    assert unrendered("ct129", "sglang_server_flgs is no variable. Nothing was changed.")["problems"] == ["sglang_server_flgs is no variable."]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({}, {}, False, id="the-same"),
        pytest.param({}, {"argv": ["--tp-size", "4"]}, True, id="a-flag"),
        pytest.param({}, {"unit": "[Service]\nExecStart=/other\n"}, True, id="the-unit"),
        pytest.param({}, {"environment": {}}, True, id="an-environment-variable"),
        pytest.param({}, {"secret_flags": {"api_key": "vaulted-ffffffff"}}, True, id="another-ciphertext"),
        pytest.param({}, {"secret_flags": {}}, True, id="a-secret-less"),
        pytest.param({}, {"enabled": False}, True, id="boot"),
        pytest.param({}, {"instance": "other"}, True, id="instance"),
        pytest.param({}, {"gate": {}}, False, id="the-gate"),
        pytest.param({}, {"not_honoured": "warn"}, False, id="the-policy"),
        pytest.param({}, {"gpu_facts": None}, False, id="the-hardware"),
    ],
)
def test_what_touches_a_host(before, after, expected):
    assert differ(document(**before), document(**after)) is expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(None, None, False, id="never-there"),
        pytest.param(None, document(), True, id="new"),
        pytest.param(document(), None, True, id="gone"),
        pytest.param(NO, document(), True, id="its-base-is-not-known"),
        pytest.param(document(), NO, True, id="it-is-not-known"),
        pytest.param(NO, copy.deepcopy(NO), True, id="nothing-is-known"),
        pytest.param(NO, None, True, id="a-problem-goes"),
    ],
)
def test_what_cannot_be_told_is_told(before, after, expected):
    assert differ(before, after) is expected
