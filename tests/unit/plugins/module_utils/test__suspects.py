# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import Diagnosis
from ansible_collections.llmops.inference.plugins.module_utils._suspects import Change, changes_between, suspects

GOOD = {
    "argv": ["--model-path", "/m", "--tp-size", "2", "--enable-metrics", "--cuda-graph-bs", "1", "2"],
    "environment": {"NCCL_DEBUG": "WARN"},
    "engine": {"name": "0.5.17"},
    "model": {"path": "/m", "revision": "a"},
    "secrets": ["api_key"],
}


@pytest.mark.parametrize(
    "other, changes",
    [
        pytest.param({}, [], id="none"),
        pytest.param({"argv": [*GOOD["argv"], "--lora"]}, [Change("lora", "--lora: not set -> on")], id="switch"),
        pytest.param({"argv": GOOD["argv"][:-1]}, [Change("cuda_graph_bs", "--cuda-graph-bs: 1 2 -> 1")], id="several-words"),
        pytest.param(
            {"argv": ["--model-path", "/m", "--tp-size", "4", "--cuda-graph-bs", "1", "2"]},
            [Change("tp_size", "--tp-size: 2 -> 4"), Change("enable_metrics", "--enable-metrics: on -> not set")],
            id="value-and-switch",
        ),
        pytest.param(
            {"argv": [*GOOD["argv"], "--schedule-conservativeness", "-1", "--seed=7"]},
            [Change("schedule_conservativeness", "--schedule-conservativeness: not set -> -1"), Change("seed", "--seed: not set -> 7")],
            id="negative-number-and-one-word",
        ),
        pytest.param({"argv": [*GOOD["argv"], "--x", "y" * 70]}, [Change("x", f"--x: not set -> {'y' * 60}...")], id="long"),
        pytest.param({"environment": {"NCCL_DEBUG": "INFO"}}, [Change("NCCL_DEBUG", "NCCL_DEBUG: WARN -> INFO")], id="environment"),
        pytest.param({"engine": {"name": "0.5.23"}}, [Change("engine", "engine: 0.5.17 -> 0.5.23")], id="engine"),
        pytest.param({"model": {"path": "/m", "revision": "b"}}, [Change("model", "model: /m a -> /m b")], id="model"),
        pytest.param({"secrets": []}, [Change("secrets", "secrets: api_key -> none")], id="secrets"),
    ],
)
def test_changes(other, changes):
    assert changes_between(GOOD, {**GOOD, **other}) == changes


TP, METRICS, DEBUG = (
    Change("tp_size", "--tp-size: 2 -> 4"),
    Change("enable_metrics", "--enable-metrics: not set -> on"),
    Change("NCCL_DEBUG", "NCCL_DEBUG: a -> b"),
)
ENGINE = Change("engine", "engine: 0.5.17 -> 0.5.23")


@pytest.mark.parametrize(
    "implicated, changes, sentence",
    [
        ([], [], "no flag, variable, engine or model changed since the good release: only the unit can differ"),
        (["mem_fraction_static"], [TP], "the only change since the good release is --tp-size: 2 -> 4"),
        (
            ["tp_size", "quantization"],
            [TP, METRICS, DEBUG],
            "of the 3 changes since the good release the evidence points to --tp-size: 2 -> 4; not to enable_metrics, NCCL_DEBUG",
        ),
        (["--tp-size", "NCCL_DEBUG"], [TP, DEBUG], "of the 2 changes since the good release the evidence points to --tp-size: 2 -> 4; NCCL_DEBUG: a -> b"),
        (["sglang_server_engine"], [TP, ENGINE], "of the 2 changes since the good release the evidence points to engine: 0.5.17 -> 0.5.23; not to tp_size"),
        ([], [TP, METRICS], "the evidence points to none of the 2 changes since the good release: tp_size, enable_metrics"),
    ],
)
def test_suspects(implicated, changes, sentence):
    assert suspects(Diagnosis("x", "y", implicated=implicated), changes) == sentence


UNIT = (
    "[Unit]\nDescription=SGLang server main\n"
    "[Service]\nExecStart=/opt/a/python -m sglang.launch_server --tp-size 2\nEnvironmentFile=/s/releases/%s/environment\nUMask=0077\n%s"
)


@pytest.mark.parametrize(
    "before, after, changes",
    [
        pytest.param(UNIT % ("aaa", ""), UNIT % ("bbb", ""), [], id="another-directory-of-the-release"),
        pytest.param(UNIT % ("aaa", ""), UNIT.replace("SGLang", "x").replace("--tp-size 2", "") % ("bbb", ""), [], id="what-the-release-tells"),
        pytest.param(UNIT % ("aaa", ""), UNIT % ("bbb", "MemoryMax=1G\n"), [Change("unit.MemoryMax", "MemoryMax: not set -> 1G")], id="more"),
        pytest.param(
            UNIT % ("aaa", "DeviceAllow=a\nDeviceAllow=b\n"),
            UNIT % ("bbb", "DeviceAllow=a\n"),
            [Change("unit.DeviceAllow", "DeviceAllow: a b -> a")],
            id="a-list",
        ),
        pytest.param("", UNIT % ("bbb", "MemoryMax=1G\n"), [], id="one-is-not-known"),
    ],
)
def test_changes_of_the_unit(before, after, changes):
    assert changes_between({**GOOD, "id": "aaa"}, {**GOOD, "id": "bbb"}, (before, after)) == changes


LIMIT, SEED, API_KEY = Change("unit.MemoryMax", "MemoryMax: not set -> 1G"), Change("seed", "--seed: 1 -> 2"), Change("secrets", "secrets: none -> api_key")


@pytest.mark.parametrize(
    "implicated, evidence, hits",
    [
        pytest.param(["sglang_server_unit_options"], [], [LIMIT], id="unit"),
        pytest.param(["sglang_server_api_key"], [], [API_KEY], id="secrets"),
        pytest.param(["sglang_server_env"], [], [], id="a-place-for-a-remedy-is-no-suspect"),
        pytest.param([], ["error: argument --tp-size: invalid int value: 'x'"], [TP], id="words-of-the-parser"),
        pytest.param([], ["error: argument --enable_metrics: x"], [METRICS], id="the-other-spelling"),
        pytest.param([], ["AssertionError: tp_size must be even"], [TP], id="a-field"),
        pytest.param([], ["ValueError: The arguments tp-size and disable-x exclude each other"], [TP], id="without-dashes"),
        pytest.param([], ["assert self.tp_size % 2 == 0"], [TP], id="an-attribute"),
        pytest.param([], ["tp_size_per_node", "--tp-size-x", "my-tp_size"], [], id="a-longer-name"),
        pytest.param([], ["AssertionError: the seed is odd", "the engine has secrets"], [], id="a-common-word"),
        pytest.param([], ["error: argument --seed: x"], [SEED], id="a-common-word-behind-dashes"),
        pytest.param([], ["RuntimeError: NCCL_DEBUG is unknown"], [DEBUG], id="a-variable"),
        pytest.param([], ["x.service: Failed to parse MemoryMax=1X"], [LIMIT], id="a-directive"),
        pytest.param([], ['File "/x/tp_size/a.py", line 1, in tp'], [], id="part-of-a-path"),
    ],
)
def test_what_the_evidence_names(implicated, evidence, hits):
    changes = [TP, METRICS, DEBUG, ENGINE, LIMIT, SEED, API_KEY]
    told = suspects(Diagnosis("x", "y", evidence, implicated=implicated), changes)
    assert [one for one in changes if one.text in told] == hits
    assert told.startswith("of the 7 changes" if hits else "the evidence points to none of the 7 changes")


@pytest.mark.parametrize(
    "where, certainty, implicated, more",
    [
        ("host", "certain", [], "; the evidence points to the host, not to it"),
        ("host", "certain", ["tp_size"], ""),
        ("host", "suspected", [], ""),
        ("release", "certain", [], ""),
    ],
)
def test_the_only_change(where, certainty, implicated, more):
    found = Diagnosis("x", "y", where=where, certainty=certainty, implicated=implicated)
    assert suspects(found, [TP]) == f"the only change since the good release is --tp-size: 2 -> 4{more}"
