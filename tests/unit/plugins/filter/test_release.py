# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.llmops.inference.plugins.filter.release import FilterModule

FILTERS = FilterModule().filters()
TABLE = {
    "format": 1,
    "engine": "0.5.23",
    "flags": [
        {"options": ["--tp-size"], "dest": "tp_size", "kind": "value", "type": "int"},
        {"options": ["--enable-metrics"], "dest": "enable_metrics", "kind": "switch"},
        {"options": ["--dllm-fdfo", "--no-dllm-fdfo"], "dest": "dllm_fdfo", "kind": "pair"},
        {"options": ["--cuda-graph-bs"], "dest": "cuda_graph_bs", "kind": "value", "nargs": "+", "type": "int"},
        {"options": ["--json-model-override-args"], "dest": "json_model_override_args", "kind": "value", "json": "object"},
        {"options": ["--port"], "dest": "port", "kind": "value", "type": "int"},
        {"options": ["--api-key"], "dest": "api_key", "kind": "value"},
    ],
}
OTHER = {"format": 1, "engine": "0.5.16", "flags": [{"options": ["--old-size"], "dest": "x", "kind": "value", "successor": "--tp-size"}]}
RESERVED = {"port": "sglang_server_port"}


def argv(*args, **options):
    return FILTERS["sglang_argv"](*args, **options)


@pytest.mark.parametrize(
    "layers, extra, words",
    [
        pytest.param({"a": {"tp_size": 2}, "b": {"tp": 4}, "c": None}, [], ["--tp-size", "4"], id="layers"),
        pytest.param({"a": {"json_model_override_args": {"a": {"b": 1}}}}, [], ["--json-model-override-args", '{"a": {"b": 1}}'], id="F01-mapping"),
        pytest.param({"a": {"enable_metrics": True, "dllm_fdfo": False}}, [], ["--enable-metrics", "--no-dllm-fdfo"], id="F03-booleans"),
        pytest.param({"a": {"cuda_graph_bs": [1, 2]}}, [], ["--cuda-graph-bs", "1", "2"], id="F04-list"),
        pytest.param({}, ["--enable-metrics"], ["--enable-metrics"], id="extra"),
    ],
)
def test_sglang_argv(layers, extra, words):
    assert argv(layers, TABLE, extra, RESERVED) == words


@pytest.mark.parametrize(
    "layers, extra, message",
    [
        pytest.param({"a": {"json_model_override_args": "{'a': 1}"}}, [], "a.json_model_override_args: .*is not JSON", id="F01-quotes"),
        pytest.param({"a": {"enable_metrics": "false"}}, [], "a.enable_metrics: 'false': is on or off", id="F03-text"),
        pytest.param({"a": {"cuda_graph_bs": "1 2"}}, [], "a.cuda_graph_bs: .*write several values as a list", id="F04-text"),
        pytest.param({"a": {"port": 1}}, [], "a.port: set sglang_server_port instead", id="reserved"),
        pytest.param({"a": {"api_key": "k"}}, [], "a.api_key is a secret", id="U09-secret"),
        pytest.param({"a": ["tp_size"]}, [], r"a must be a mapping of flags to values, not a list: \['tp_size'\]", id="no-mapping"),
        pytest.param({"a": "tp_size"}, [], "a must be a mapping of flags to values, not text: 'tp_size'", id="text"),
        pytest.param({}, ["--enable-metric"], "sglang_server_extra_args: unrecognized arguments", id="extra"),
    ],
)
def test_sglang_argv_refuses(layers, extra, message):
    with pytest.raises(AnsibleFilterError, match=message):
        argv(layers, TABLE, extra, RESERVED)


def test_sglang_argv_asks_other_engines():
    """F05"""
    with pytest.raises(AnsibleFilterError, match=r"no flag --old-size \(SGLang 0.5.16 has it as an old spelling of --tp-size\)"):
        argv({"a": {"old_size": 1}}, TABLE, [], RESERVED, [OTHER])
    with pytest.raises(AnsibleFilterError, match=r"no flag --old-size(; did you mean|$)"):
        argv({"a": {"old_size": 1}}, TABLE, [], RESERVED)


def sources(layers, *args):
    return FILTERS["sglang_flag_sources"](layers, TABLE, *args)


def test_sglang_flag_sources():
    layers = {"a": {"tp": 2, "dllm-fdfo": True}, "b": {"tp_size": 4}, "c": None}
    assert sources(layers) == {"tp_size": "b.tp_size", "dllm_fdfo": "a.dllm-fdfo"}
    assert sources(layers, ["--enable-metrics"], RESERVED) == {
        "tp_size": "b.tp_size",
        "dllm_fdfo": "a.dllm-fdfo",
        "enable_metrics": "sglang_server_extra_args",
        "port": "sglang_server_port",
    }


@pytest.mark.parametrize(
    "layers, extra, message",
    [
        pytest.param({"a": {"tp_siez": 2}}, [], "a.tp_siez: SGLang 0.5.23 has no flag --tp-siez", id="F05-unknown"),
        pytest.param({"a": ["tp"]}, [], "a must be a mapping of flags", id="no-mapping"),
        pytest.param({}, ["--enable-metric"], "unrecognized arguments", id="extra"),
    ],
)
def test_sglang_flag_sources_refuses(layers, extra, message):
    with pytest.raises(AnsibleFilterError, match=message):
        sources(layers, extra)


def test_sglang_requested_flags():
    layers = {"sglang_server_model_flags": None, "sglang_server_hardware_flags": {"tp_size": 2}, "sglang_server_flags": {"tp": 4}}
    found = [{"name": "tp_size", "value": 4, "layer": "host"}, {"name": "enable_metrics", "value": True, "layer": "extra"}]
    assert FILTERS["sglang_requested_flags"](layers, TABLE, ["--enable-metrics"], RESERVED) == found


@pytest.mark.parametrize(
    "layers, message",
    [
        pytest.param({"sglang_server_flags": {"port": 1}}, "sglang_server_flags.port: set sglang_server_port instead", id="reserved"),
        pytest.param({"sglang_server_flags": [1]}, "sglang_server_flags must be a mapping", id="no-mapping"),
        pytest.param({"flags": {}}, "flags is no layer of flags: there is sglang_server_model_flags,", id="no-layer"),
    ],
)
def test_sglang_requested_flags_refuses(layers, message):
    with pytest.raises(AnsibleFilterError, match=message):
        FILTERS["sglang_requested_flags"](layers, TABLE, [], RESERVED)


@pytest.mark.parametrize(
    "words, url",
    [
        pytest.param(["--port", 30001, "--nnodes", 2, "--node-rank", 1, "--dist-init-addr", "10.0.0.1:5000"], "http://10.0.0.1:30001", id="numbers"),
        pytest.param(["--nnodes", "2", "--node-rank", "0", "--dist-init-addr", "10.0.0.1:5000"], "", id="rank-0"),
        pytest.param([], "", id="one-node"),
    ],
)
def test_sglang_leader(words, url):
    assert FILTERS["sglang_leader"](words) == url


def test_sglang_argv_needs_a_table_of_this_format():
    with pytest.raises(AnsibleFilterError, match="flags.json has format 2"):
        argv({}, {"format": 2})


def environment(layers, *args):
    return FILTERS["sglang_environment"](layers, *args)


def test_sglang_environment():
    layers = {"a": {"NCCL_DEBUG": "INFO", "HF_TOKEN": "t"}, "b": None, "c": {"NCCL_DEBUG": None, "XDG_CACHE_HOME": "/x"}}
    assert environment(layers, {"OTHER": "s", "N": 1}) == {
        "plain": {"XDG_CACHE_HOME": "/x"},
        "secret": {"HF_TOKEN": "t", "OTHER": "s", "N": "1"},
        "warnings": ["XDG_CACHE_HOME does not move FlashInfer's workspace: set FLASHINFER_WORKSPACE_BASE as well"],
    }
    assert environment({}) == {"plain": {}, "secret": {}, "warnings": []}


@pytest.mark.parametrize(
    "layers, secret",
    [
        pytest.param({"a": {"http_proxy": "http://192.0.2.10:3128", "no_proxy": "example.org"}}, {}, id="N03-plain"),
        pytest.param({"a": {"no_proxy": "example.org"}}, {"http_proxy": "http://user:pass@192.0.2.10:3128"}, id="N03-U09-proxy-with-a-password"),
    ],
)
def test_sglang_environment_keeps_loopback_off_proxies(layers, secret):
    result = environment(layers, secret, ["10.0.0.5"])
    assert result["plain"]["no_proxy"] == result["plain"]["NO_PROXY"] == "example.org,localhost,127.0.0.1,0.0.0.0,::1,10.0.0.5"
    assert result["secret"] == secret and not set(secret) & set(result["plain"])


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("http://user:pass@192.0.2.10:3128", id="with-the-vault"),
        pytest.param("http://user:vaulted-1a2b3c4d@192.0.2.10:3128", id="without-it"),
        pytest.param("vaulted-1a2b3c4d", id="without-it-the-whole-value"),
    ],
)
def test_a_proxy_with_a_password_is_the_same_secret_wherever_it_is_rendered(value):
    """U09"""
    result = environment({"a": {"https_proxy": value, "X": "1"}})
    assert (result["secret"], result["plain"]["X"], "https_proxy" in result["plain"]) == ({"https_proxy": value}, "1", False)


@pytest.mark.parametrize(
    "layers, secret, message",
    [
        pytest.param({"a": {"X": True}}, {}, "a.X: True is a bool", id="boolean"),
        pytest.param({}, {"X": ["s"]}, r"sglang_server_secret_env.X: \*+ is a list", id="secret"),
        pytest.param({}, "X=1", "sglang_server_secret_env must be a mapping of environment variables to values, not text$", id="secret-no-mapping"),
        pytest.param({"a": "X=1"}, {}, "a must be a mapping of environment variables to values, not text$", id="no-mapping"),
    ],
)
def test_sglang_environment_refuses(layers, secret, message):
    with pytest.raises(AnsibleFilterError, match=message):
        environment(layers, secret)


CHECKS = {"flags": {}, "extra_args": [], "environment": {}, "secret_environment": {}, "unit_options": {}}


@pytest.mark.parametrize(
    "wrong, problems",
    [
        pytest.param({}, [], id="nothing"),
        pytest.param(
            {"flags": {"a": {"tp_siez": 2}}, "environment": {"b": {"X": True}}, "unit_options": {"PrivateDevices": True}},
            [
                "a.tp_siez: SGLang 0.5.23 has no flag --tp-siez; did you mean tp_size?",
                "b.X: True is a boolean; an environment variable is text: write it in quotes.",
                "sglang_server_unit_options.PrivateDevices: True breaks the server: it hides /dev/nvidia*.",
            ],
            id="U06-all-at-once",
        ),
        pytest.param({"extra_args": ["--port", "1"]}, ["sglang_server_extra_args: set sglang_server_port instead of port."], id="extra"),
        pytest.param(
            {"secret_environment": {"X": []}},
            ["sglang_server_secret_env.X: ******** is a list; an environment variable is text: write it in quotes."],
            id="secret",
        ),
    ],
)
def test_sglang_problems(wrong, problems):
    assert FILTERS["sglang_problems"]({**CHECKS, **wrong}, TABLE, RESERVED, True) == problems


def test_sglang_problems_asks_other_engines():
    """F05"""
    (problem,) = FILTERS["sglang_problems"]({**CHECKS, "flags": {"a": {"old_size": 2}}}, TABLE, RESERVED, True, [OTHER])
    assert problem.startswith("a.old_size: SGLang 0.5.23 has no flag --old-size (SGLang 0.5.16 has it as an old spelling of --tp-size)")


def test_sglang_problems_of_a_server_without_a_gpu():
    assert FILTERS["sglang_problems"]({**CHECKS, "unit_options": {"PrivateDevices": True}}, TABLE, RESERVED, False) == []


def test_systemd_exec():
    """U01, U02"""
    assert FILTERS["systemd_exec"](["/bin/x", 30000, "m-%i", "pa$$w"]) == '/bin/x 30000 "m-%%i" "pa$$$$w"'


def test_systemd_environment():
    """U01"""
    assert FILTERS["systemd_environment"]({"LABEL": "100%", "N": 1}) == ['"LABEL=100%%"', '"N=1"']


def test_systemd_options():
    """U06"""
    assert FILTERS["systemd_options"]({"PrivateTmp": True}) == ["PrivateTmp=yes"]
    assert FILTERS["systemd_options"]({"PrivateDevices": True}, False) == ["PrivateDevices=yes"]


def test_sglang_engine_name():
    name = FILTERS["sglang_engine_name"]("# comment\nsglang==0.5.23\n", "0.5.23", "cpu", "3.11", "x86_64")
    assert name == "0.5.23-cpu-c1f4c226-py311-x86_64"


@pytest.mark.parametrize(
    "name, args, message",
    [
        pytest.param("systemd_exec", (["/bin/x", "a\nb"],), "holds the control character", id="U02-newline"),
        pytest.param("systemd_exec", (["x"],), "needs an absolute executable", id="no-path"),
        pytest.param("systemd_environment", ({"A-B": "x"},), "is no name of an environment variable", id="name"),
        pytest.param("systemd_options", ({"PrivateDevices": True},), "hides /dev/nvidia", id="U06-gpu-is-assumed"),
        pytest.param("sglang_engine_name", ("torch==2\n", "0.5.23", "cpu", "3.11", "x86_64"), "the lock pins no sglang", id="lock"),
    ],
)
def test_errors_are_for_the_operator(name, args, message):
    with pytest.raises(AnsibleFilterError, match=message):
        FILTERS[name](*args)
