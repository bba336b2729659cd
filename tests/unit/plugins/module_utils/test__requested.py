# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._argv import FlagError, FlagTable, Layer
from ansible_collections.llmops.inference.plugins.module_utils._requested import requested_flags

TABLE = FlagTable(
    {
        "format": 1,
        "engine": "0.5.23",
        "flags": [
            {"options": ["--tp-size", "--tensor-parallel-size"], "dest": "tp_size", "kind": "value", "type": "int"},
            {"options": ["--mem-fraction-static"], "dest": "mem_fraction_static", "kind": "value", "type": "float"},
            {"options": ["--enable-metrics"], "dest": "enable_metrics", "kind": "switch"},
            {"options": ["--dllm-fdfo", "--no-dllm-fdfo"], "dest": "dllm_fdfo", "kind": "pair"},
            {"options": ["--cuda-graph-bs"], "dest": "cuda_graph_bs", "kind": "value", "nargs": "+", "type": "int"},
            {"options": ["--model-checksum"], "dest": "model_checksum", "kind": "value", "nargs": "?"},
            {"options": ["--json-model-override-args"], "dest": "json_model_override_args", "kind": "value", "json": "object"},
            {"options": ["--port"], "dest": "port", "kind": "value", "type": "int"},
            {"options": ["--api-key"], "dest": "api_key", "kind": "value"},
        ],
    }
)
RESERVED = {"port": "sglang_server_port"}
MODEL, HARDWARE, HOST = "sglang_server_model_flags", "sglang_server_hardware_flags", "sglang_server_flags"


def requested(layers, extra=()):
    return requested_flags([Layer(variable, values) for variable, values in layers.items()], list(extra), TABLE, RESERVED)


def flags(*found):
    return [dict(zip(("name", "value", "layer"), one)) for one in found]


@pytest.mark.parametrize(
    "layers, extra, found",
    [
        pytest.param({}, [], flags(), id="none"),
        pytest.param({MODEL: {"tp": 2}}, [], flags(("tp_size", 2, "model")), id="the-engines-name"),
        pytest.param({HARDWARE: {"tp": 2}, HOST: {"tensor-parallel-size": 4}}, [], flags(("tp_size", 4, "host")), id="a-later-layer-wins"),
        pytest.param(
            {MODEL: {"enable_metrics": True, "tp": 1}, HARDWARE: {"tp": 2}},
            [],
            flags(("enable_metrics", True, "model"), ("tp_size", 2, "hardware")),
            id="sorted-as-first-named",
        ),
        pytest.param({HARDWARE: {"tp": 2}, HOST: {"tp": None}}, [], flags(), id="taken-away"),
        pytest.param(
            {HOST: {"enable_metrics": False, "dllm_fdfo": False}}, [], flags(("enable_metrics", False, "host"), ("dllm_fdfo", False, "host")), id="off"
        ),
        pytest.param(
            {HOST: {"cuda_graph_bs": [1, 2], "json_model_override_args": {"a": {"b": 1}}}},
            [],
            flags(("cuda_graph_bs", [1, 2], "host"), ("json_model_override_args", {"a": {"b": 1}}, "host")),
            id="lists-and-mappings-stay",
        ),
        pytest.param(
            {HOST: {"tp": 2}},
            ["--mem-fraction-static=0.85", "--enable-metrics", "--no-dllm-fdfo", "--cuda-graph-bs", "1", "2", "--model-checksum"],
            flags(
                ("tp_size", 2, "host"),
                ("mem_fraction_static", 0.85, "extra"),
                ("enable_metrics", True, "extra"),
                ("dllm_fdfo", False, "extra"),
                ("cuda_graph_bs", [1, 2], "extra"),
                ("model_checksum", True, "extra"),
            ),
            id="words-of-extra-arguments",
        ),
    ],
)
def test_requested_flags(layers, extra, found):
    assert requested(layers, extra) == found
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize(
    "layers, extra, message",
    [
        pytest.param({"sglang_server_flag": {}}, [], "sglang_server_flag is no layer of flags: there is sglang_server_model_flags", id="no-layer"),
        pytest.param({HOST: {"tp_sise": 2}}, [], "sglang_server_flags.tp_sise: SGLang 0.5.23 has no flag --tp-sise", id="unknown"),
        pytest.param({HOST: {"tp": "two"}}, [], "sglang_server_flags.tp: 'two': .*invalid int value", id="value"),
        pytest.param({HOST: {"port": 1}}, [], "sglang_server_flags.port: set sglang_server_port instead", id="reserved"),
        pytest.param({HOST: {"tp": 2}}, ["--tp-size", "4"], "sglang_server_extra_args: tp_size is already set by sglang_server_flags.tp", id="twice"),
        pytest.param({}, ["--api-key", "s3cret"], "sglang_server_extra_args: api_key is a secret", id="U09-secret"),
    ],
)
def test_refuses(layers, extra, message):
    with pytest.raises(FlagError, match=message) as caught:
        requested(layers, extra)
    assert "s3cret" not in str(caught.value)
