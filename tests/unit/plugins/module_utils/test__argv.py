# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._argv import FlagError, FlagTable, Layer, build_argv, flag_sources, merge_layers, render

SHIPPED = Path(__file__).parents[4] / "roles" / "sglang_engine" / "files" / "flags"
VERSIONS = sorted(path.stem for path in SHIPPED.glob("*.json"))


def flag(*options, dest=None, kind="value", **more):
    return {"options": list(options), "dest": dest or options[0][2:].replace("-", "_"), "kind": kind, **more}


SMALL = FlagTable(
    {
        "format": 1,
        "engine": "9.9.9",
        "flags": [
            flag("--tp-size", "--tensor-parallel-size", type="int"),
            flag("--port", type="int"),
            flag("--host", type="str"),
            flag("--api-key", type="str"),
            flag("--ssl-keyfile-password", type="str"),
            flag("--log-level", type="str"),
            flag("--served-model-name", type="str"),
            flag("--reasoning-parser", type="str"),
            flag("--schedule-conservativeness", type="float"),
            flag("--chunked-prefill-size", type="int"),
            flag("--context-length", type="human_readable_int"),
            flag("--kv-cache-dtype", type="str", choices=["auto", "fp8_e5m2", "fp8_e4m3"]),
            flag("--model-checksum", type="str", nargs="?"),
            flag("--cuda-graph-bs", type="int", nargs="+"),
            flag("--lora-paths", type="str", nargs="*"),
            flag("--port-range", type="int", nargs=2),
            flag("--json-model-override-args", type="str", json="object"),
            flag("--model-loader-extra-config", type="str", json="object"),
            flag("--preferred-sampling-params", type="loads", json="any"),
            flag("--forward-hooks", type="json_list_type", json="any"),
            flag("--enable-metrics", kind="switch"),
            flag("--enable-cache-report", kind="switch"),
            flag("--dllm-fdfo", "--no-dllm-fdfo", kind="pair"),
            flag("--graph-backend", type="str", choices=["full", "disabled"]),
            flag("--disable-graph", dest="graph_backend", kind="switch"),
        ],
    }
)


def build(values, extra=(), reserved=None, table=SMALL):
    return build_argv([Layer("flags", values)], extra, table, reserved or {})


def shipped(version):
    return FlagTable(json.loads((SHIPPED / f"{version}.json").read_text()))


@pytest.mark.parametrize(
    "values, argv",
    [
        pytest.param({"json_model_override_args": '{"a": {"b": 1}}'}, ["--json-model-override-args", '{"a": {"b": 1}}'], id="F01-json-text"),
        pytest.param({"json_model_override_args": {"a": {"b": 1}}}, ["--json-model-override-args", '{"a": {"b": 1}}'], id="F01-mapping"),
        pytest.param({"json_model_override_args": '{"a":   1}'}, ["--json-model-override-args", '{"a":   1}'], id="F01-text-is-kept-as-written"),
        pytest.param(
            {"model_loader_extra_config": {"enable_multithread_load": True, "num_threads": 8}},
            ["--model-loader-extra-config", '{"enable_multithread_load": true, "num_threads": 8}'],
            id="F01-inner-types",
        ),
        pytest.param({"model_loader_extra_config": '{"name": "8"}'}, ["--model-loader-extra-config", '{"name": "8"}'], id="F01-quoted-number-in-json-text"),
        pytest.param({"json_model_override_args": {"rope": "yarn"}}, ["--json-model-override-args", '{"rope": "yarn"}'], id="F01-inner-text"),
        pytest.param({"json_model_override_args": {}}, ["--json-model-override-args", "{}"], id="F01-empty-mapping"),
        pytest.param({"preferred_sampling_params": [1, "a"]}, ["--preferred-sampling-params", '[1, "a"]'], id="F01-any-json"),
        pytest.param({"enable_metrics": True}, ["--enable-metrics"], id="F03-true"),
        pytest.param({"enable_metrics": False}, [], id="F03-false"),
        pytest.param({"enable_metrics": None}, [], id="F03-null"),
        pytest.param({"dllm_fdfo": True}, ["--dllm-fdfo"], id="F03-pair-true"),
        pytest.param({"dllm_fdfo": False}, ["--no-dllm-fdfo"], id="F03-pair-false"),
        pytest.param({"dllm_fdfo": None}, [], id="F03-pair-null"),
        pytest.param({"tp_size": False}, [], id="F03-false-on-a-value-flag"),
        pytest.param({"model_checksum": True}, ["--model-checksum"], id="F03-true-on-an-optional-value"),
        pytest.param({"model_checksum": "abc"}, ["--model-checksum", "abc"], id="F03-value-of-an-optional-value"),
        pytest.param({"cuda_graph_bs": [1, 2, 4]}, ["--cuda-graph-bs", "1", "2", "4"], id="F04-list"),
        pytest.param({"cuda_graph_bs": []}, [], id="F04-empty-list"),
        pytest.param({"port_range": [1, 2]}, ["--port-range", "1", "2"], id="F04-fixed-number"),
        pytest.param({"cuda_graph_bs": 8}, ["--cuda-graph-bs", "8"], id="F04-scalar"),
        pytest.param(
            {"lora_paths": ["a=/srv/lora/a", "b=/srv/lora with space/b"]},
            ["--lora-paths", "a=/srv/lora/a", "b=/srv/lora with space/b"],
            id="F04-items-with-spaces",
        ),
        pytest.param({"lora_paths": [{"lora_name": "a"}, "b=c"]}, ["--lora-paths", '{"lora_name": "a"}', "b=c"], id="F04-json-item"),
        pytest.param({"forward_hooks": [{"name": "h"}]}, ["--forward-hooks", '[{"name": "h"}]'], id="F04-json-list-is-one-word"),
        pytest.param({"forward_hooks": []}, ["--forward-hooks", "[]"], id="F04-empty-json-list"),
        pytest.param({"api_key": None}, [], id="U09-null-is-no-secret"),
        pytest.param({"tp": 2}, ["--tp-size", "2"], id="F05-tp"),
        pytest.param({"tensor_parallel_size": 2}, ["--tp-size", "2"], id="F05-alias"),
        pytest.param({"tp-size": 2}, ["--tp-size", "2"], id="F05-dashes"),
        pytest.param({"--tp-size": "2"}, ["--tp-size", "2"], id="F05-option-string"),
        pytest.param({"context_length": "32k"}, ["--context-length", "32k"], id="F10-engine-converts"),
        pytest.param({"kv_cache_dtype": "fp8_e5m2"}, ["--kv-cache-dtype", "fp8_e5m2"], id="choice"),
        pytest.param({"schedule_conservativeness": 0.3}, ["--schedule-conservativeness", "0.3"], id="float"),
        pytest.param({"schedule_conservativeness": -1e-05}, ["--schedule-conservativeness=-1e-05"], id="negative-exponent"),
        pytest.param({"chunked_prefill_size": -1}, ["--chunked-prefill-size", "-1"], id="F07-minus-one"),
        pytest.param({"tp_size": 0}, ["--tp-size", "0"], id="zero-is-a-value"),
        pytest.param({"served_model_name": ""}, ["--served-model-name", ""], id="empty-text-is-a-value"),
        pytest.param({"served_model_name": "-m"}, ["--served-model-name=-m"], id="text-like-an-option"),
        pytest.param({"served_model_name": "--port"}, ["--served-model-name=--port"], id="text-like-a-known-option"),
        pytest.param({"log_level": "a b"}, ["--log-level", "a b"], id="text-with-a-space"),
        pytest.param({"port": 30000, "tp": 2, "enable_metrics": True}, ["--port", "30000", "--tp-size", "2", "--enable-metrics"], id="order-as-named"),
    ],
)
def test_accepts(values, argv):
    assert build(values) == argv


@pytest.mark.parametrize(
    "values, message",
    [
        pytest.param({"json_model_override_args": '{\\"a\\":1}'}, "is not JSON: Expecting property name enclosed in double quotes", id="F01-escaped-quotes"),
        pytest.param({"json_model_override_args": "{'a': 1}"}, "is not JSON: Expecting property name enclosed in double quotes", id="F01-single-quotes"),
        pytest.param({"json_model_override_args": "{a: 1}"}, "is not JSON: Expecting property name enclosed in double quotes", id="F01-no-quotes"),
        pytest.param({"json_model_override_args": "'{\"a\":1}'"}, "is not JSON: Expecting value: line 1 column 1 (char 0)", id="F01-shell-quotes"),
        pytest.param({"json_model_override_args": '{"a": True}'}, "is not JSON: Expecting value: line 1 column 7 (char 6)", id="F01-python-literal"),
        pytest.param({"json_model_override_args": "[1, 2]"}, "must be a JSON object, not a list", id="F01-list-text"),
        pytest.param({"json_model_override_args": [1, 2]}, "must be a JSON object, not a list", id="F01-list"),
        pytest.param({"json_model_override_args": 7}, "must be a JSON object, not a number", id="F01-number"),
        pytest.param(
            {"model_loader_extra_config": {"enable_multithread_load": "False", "num_threads": "6"}},
            "enable_multithread_load: 'False' is a string where JSON has a bare bool or number",
            id="F01-quoted-inner-bool",
        ),
        pytest.param({"model_loader_extra_config": {"a": {"b": "6"}}}, "a.b: '6' is a string where JSON has", id="F01-quoted-inner-number"),
        pytest.param({"enable_metrics": "false"}, "flags.enable_metrics: 'false': is on or off: write true or false without quotes", id="F03-quoted-false"),
        pytest.param({"enable_metrics": "yes"}, "flags.enable_metrics: 'yes': is on or off: write true or false without quotes", id="F03-quoted-yes"),
        pytest.param({"enable_metrics": 1}, "flags.enable_metrics: 1: is on or off", id="F03-one"),
        pytest.param({"enable_metrics": 0}, "flags.enable_metrics: 0: is on or off", id="F03-zero"),
        pytest.param({"dllm_fdfo": "false"}, "flags.dllm_fdfo: 'false': is on or off", id="F03-pair-quoted-false"),
        pytest.param({"tp_size": True}, "flags.tp_size: True: takes a value, not a boolean", id="F03-true-on-a-value-flag"),
        pytest.param(
            {"cuda_graph_bs": "1 2 4"}, "argument --cuda-graph-bs: invalid int value: '1 2 4'; write several values as a list", id="F04-words-in-one-text"
        ),
        pytest.param(
            {"cuda_graph_bs": "1,2,4"}, "argument --cuda-graph-bs: invalid int value: '1,2,4'; write several values as a list", id="F04-commas-in-one-text"
        ),
        pytest.param({"cuda_graph_bs": [1, True]}, "takes a value, not a boolean", id="F04-boolean-item"),
        pytest.param({"lora_paths": ["a", None]}, "takes a value, not a boolean", id="F04-null-item"),
        pytest.param({"port_range": [1]}, "argument --port-range: expected 2 arguments", id="F04-too-few"),
        pytest.param({"tp_size": [1, 2]}, "takes one value, not a list", id="F04-list-for-one-value"),
        pytest.param({"lora_paths": ["a=b", "--enable-metrics"]}, "holds a word that the engine would read as another flag", id="F04-item-is-a-switch"),
        pytest.param({"lora_paths": ["a=b", "--port=1"]}, "holds a word that the engine would read as another flag", id="F04-item-is-a-reserved-flag"),
        pytest.param({"lora_paths": ["a=b", "--x"]}, "unrecognized arguments: --x", id="F04-item-like-an-option"),
        pytest.param({"enable_reasoning": True}, "SGLang 9.9.9 has no flag --enable-reasoning; did you mean reasoning_parser?", id="F05-removed"),
        pytest.param({"max_loaded_loras": 4}, "flags.max_loaded_loras: SGLang 9.9.9 has no flag --max-loaded-loras", id="F05-newer-than-the-engine"),
        pytest.param({"reasoning_praser": "qwen3"}, "SGLang 9.9.9 has no flag --reasoning-praser; did you mean reasoning_parser?", id="F05-misspelt"),
        pytest.param({"tp": 2, "tp_size": 4}, "flags: tp and tp_size are two spellings of one flag; keep one", id="F05-two-spellings"),
        pytest.param({"tp_size": 2, "tp-size": 2}, "flags: tp_size and tp-size are two spellings of one flag", id="F05-two-spellings-of-one-value"),
        pytest.param({"no_dllm_fdfo": True}, "SGLang 9.9.9 has no flag --no-dllm-fdfo; did you mean dllm_fdfo", id="F05-no-form-is-no-name"),
        pytest.param({"kv_cache_dtype": "fp8_e4m4"}, "invalid choice: 'fp8_e4m4' (choose from auto, fp8_e5m2, fp8_e4m3); nearest: fp8_e", id="choice"),
        pytest.param({"tp_size": "two"}, "flags.tp_size: 'two': argument --tp-size/--tensor-parallel-size: invalid int value: 'two'", id="not-an-int"),
        pytest.param({"tp_size": 2.0}, "invalid int value: '2.0'", id="float-for-an-int"),
        pytest.param(
            {"api_key": "k"}, "flags.api_key is a secret and would stand on the command line; put it into sglang_server_secret_flags", id="U09-api-key"
        ),
        pytest.param({"ssl_keyfile_password": "k"}, "flags.ssl_keyfile_password is a secret", id="U09-password"),
    ],
)
def test_refuses(values, message):
    with pytest.raises(FlagError, match=re.escape(message)):
        build(values)


@pytest.mark.parametrize(
    "values, message",
    [
        pytest.param({"tp_size": "two"}, "flags.tp_size: 'two': argument --tp-size/--tensor-parallel-size: invalid int value: 'two'", id="text-for-one-number"),
        pytest.param({"cuda_graph_bs": [1, "x"]}, "flags.cuda_graph_bs: [1, 'x']: argument --cuda-graph-bs: invalid int value: 'x'", id="list-with-text"),
        pytest.param({"lora_paths": ["-x", "b"]}, "flags.lora_paths: ['-x', 'b']: unrecognized arguments: -x b", id="no-hint-for-a-short-option"),
        pytest.param({"zzz_qqq": 1}, "flags.zzz_qqq: SGLang 9.9.9 has no flag --zzz-qqq", id="nothing-near"),
        pytest.param(
            {"other_parser": 1}, "flags.other_parser: SGLang 9.9.9 has no flag --other-parser; did you mean reasoning_parser?", id="near-by-its-last-word"
        ),
    ],
)
def test_whole_messages(values, message):
    with pytest.raises(FlagError) as caught:
        build(values)
    assert str(caught.value) == message


def test_at_most_three_names_are_proposed():
    table = FlagTable({"format": 1, "engine": "1", "flags": [flag(f"--alpha-{letter}") for letter in "abcdef"]})
    for name in ("alpha_x", "alpha", "beta_alpha"):
        with pytest.raises(
            FlagError, match=r"; did you mean alpha_\w or alpha_\w or alpha_\w\?$|has no flag --beta-alpha; did you mean (alpha_\w or ){2}alpha_\w\?$"
        ):
            table.find(name)


def test_render_of_null_is_nothing():
    assert [render(one, None) for one in SMALL.flags] == [[]] * len(SMALL.flags)


def test_a_secret_is_not_repeated_in_the_message():
    with pytest.raises(FlagError) as caught:
        build({"api_key": "s3cret"})
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "layers, argv",
    [
        pytest.param([{"tp": 2}, {"tp_size": 4}], ["--tp-size", "4"], id="two-spellings-in-two-layers"),
        pytest.param([{"tp_size": 4}, {"tensor-parallel-size": 2}, {}], ["--tp-size", "2"], id="alias-overrides"),
        pytest.param([{"tp_size": 4}, {"tp": None}], [], id="null-takes-away"),
        pytest.param([{"tp_size": 4}, {"tp": None}, {"tp_size": 8}], ["--tp-size", "8"], id="null-then-again"),
        pytest.param([{"tp": None}, {"tp_size": 8}], ["--tp-size", "8"], id="null-first"),
        pytest.param([{"enable_metrics": True}, {"enable_metrics": False}], [], id="false-overrides-true"),
        pytest.param([{"enable_metrics": False}, {"enable_metrics": True}], ["--enable-metrics"], id="true-overrides-false"),
        pytest.param([{"dllm_fdfo": True}, {"dllm_fdfo": False}], ["--no-dllm-fdfo"], id="pair-overrides"),
        pytest.param([{"cuda_graph_bs": [1, 2]}, {"cuda_graph_bs": [4]}], ["--cuda-graph-bs", "4"], id="list-replaces-list"),
        pytest.param(
            [{"json_model_override_args": {"a": 1}}, {"json_model_override_args": {"b": 2}}], ["--json-model-override-args", '{"b": 2}'], id="mapping"
        ),
        pytest.param([{"disable_graph": True}, {"graph_backend": "full"}], ["--graph-backend", "full"], id="another-flag-of-the-same-field"),
        pytest.param([{"graph_backend": "full"}, {"disable_graph": True}], ["--disable-graph"], id="switch-of-the-same-field"),
        pytest.param([{"disable_graph": False}, {"graph_backend": False}], [], id="false-over-false"),
        pytest.param([{"disable_graph": False}, {"graph_backend": "full"}], ["--graph-backend", "full"], id="value-over-false"),
        pytest.param([{"port": 1, "tp": 2}, {"port": 3, "host": "h"}], ["--port", "3", "--tp-size", "2", "--host", "h"], id="order"),
    ],
)
def test_later_layers_win(layers, argv):
    assert build_argv([Layer(f"layer{n}", values) for n, values in enumerate(layers)], [], SMALL, {}) == argv


def test_false_on_one_flag_does_not_take_another_away():
    layers = [Layer("hardware", {"graph_backend": "full"}), Layer("host", {"disable_graph": False})]
    with pytest.raises(FlagError, match=r"^host.disable_graph: false would take hardware.graph_backend away; write graph_backend: null if that is meant$"):
        build_argv(layers, [], SMALL, {})


def test_the_setting_knows_where_it_came_from():
    merged = merge_layers([Layer("model", {"tp": 2}), Layer("host", {"tensor_parallel_size": 4})], SMALL, {})
    assert list(merged) == ["tp_size"]
    assert (merged["tp_size"].value, merged["tp_size"].variable, merged["tp_size"].name) == (4, "host", "tensor_parallel_size")


@pytest.mark.parametrize(
    "layers, extra, reserved, sources",
    [
        pytest.param([], [], {}, {}, id="nothing"),
        pytest.param([Layer("model", {"tp": 2})], [], {}, {"tp_size": "model.tp"}, id="by-field-and-as-written"),
        pytest.param([Layer("model", {"tp": 2}), Layer("host", {"tp-size": 4})], [], {}, {"tp_size": "host.tp-size"}, id="the-last-one"),
        pytest.param([Layer("model", {"tp": 2}), Layer("host", {"tp_size": None})], [], {}, {}, id="taken-away"),
        pytest.param([Layer("model", {"disable_graph": True})], [], {}, {"graph_backend": "model.disable_graph"}, id="another-flag-of-the-field"),
        pytest.param([Layer("model", {"enable_metrics": False})], [], {}, {"enable_metrics": "model.enable_metrics"}, id="F03-false"),
        pytest.param([], ["--enable-metrics", "--tp-size=2"], {}, dict.fromkeys(("enable_metrics", "tp_size"), "sglang_server_extra_args"), id="extra"),
        pytest.param([Layer("m", {"tp": 2})], [], {"port": "sglang_server_port"}, {"tp_size": "m.tp", "port": "sglang_server_port"}, id="reserved"),
        pytest.param([], ["--port", "1"], {"port": "sglang_server_port"}, {"port": "sglang_server_port"}, id="reserved-over-extra"),
    ],
)
def test_flag_sources(layers, extra, reserved, sources):
    assert flag_sources(layers, extra, SMALL, reserved) == sources


def test_flag_sources_refuses_what_the_arguments_would():
    with pytest.raises(FlagError, match=r"^flags.port: set sglang_server_port instead$"):
        flag_sources([Layer("flags", {"port": 1})], [], SMALL, {"port": "sglang_server_port"})
    with pytest.raises(FlagError, match="unrecognized arguments: --zzz"):
        flag_sources([], ["--zzz"], SMALL, {})


@pytest.mark.parametrize("name", ["port", "--port"])
def test_reserved_fields_name_the_variable_to_use(name):
    with pytest.raises(FlagError, match=r"^flags.(--)?port: set sglang_server_port instead$"):
        build({name: 1}, reserved={"port": "sglang_server_port"})


@pytest.mark.parametrize(
    "values, extra, argv",
    [
        pytest.param({}, ["--enable-metrics"], ["--enable-metrics"], id="switch"),
        pytest.param({"tp": 2}, ["--log-level", "debug"], ["--tp-size", "2", "--log-level", "debug"], id="appended"),
        pytest.param({}, ["--cuda-graph-bs", "1", "2"], ["--cuda-graph-bs", "1", "2"], id="several-words"),
        pytest.param({}, ["--log-level=debug"], ["--log-level=debug"], id="bound-with-equals"),
    ],
)
def test_accepts_extra_arguments(values, extra, argv):
    assert build(values, extra) == argv


@pytest.mark.parametrize(
    "values, extra, message",
    [
        pytest.param({}, ["--enable-metrics", "true"], "sglang_server_extra_args: unrecognized arguments: true", id="F03-value-for-a-switch"),
        pytest.param({}, ["--enable-metrics=false"], "argument --enable-metrics: ignored explicit argument 'false'", id="F03-equals-for-a-switch"),
        pytest.param({}, ["--reasoning_parser", "qwen3"], "did you mean reasoning_parser?", id="F05-underscore"),
        pytest.param({}, ["--enable-met"], "unrecognized arguments: --enable-met; did you mean enable_metrics", id="F05-abbreviation"),
        pytest.param({"tp": 2}, ["--tp-size", "4"], "tp_size is already set by flags.tp; keep one", id="F05-also-in-a-layer"),
        pytest.param({}, ["--tp-size", "2", "--tensor-parallel-size=4"], "tp_size is given twice; keep one", id="F05-twice"),
        pytest.param({}, ["--port", "1"], "set sglang_server_port instead of port", id="reserved"),
        pytest.param({}, ["--api-key=k"], "api_key is a secret and would stand on the command line", id="U09-secret"),
        pytest.param({}, ["--tp-size", 2], "2 is not a string; write every word in quotes", id="number"),
        pytest.param({}, ["--enable-metrics", "--"], "unrecognized arguments: --", id="end-of-options"),
        pytest.param({}, ["-h"], "unrecognized arguments: -h", id="help"),
        pytest.param({}, ["--help"], "unrecognized arguments: --help", id="long-help"),
        pytest.param({}, ["--tp-size"], "argument --tp-size/--tensor-parallel-size: expected one argument", id="no-value"),
    ],
)
def test_refuses_extra_arguments(values, extra, message):
    with pytest.raises(FlagError, match=re.escape(message)):
        build(values, extra, {"port": "sglang_server_port"})


def test_another_format_is_refused():
    with pytest.raises(FlagError, match=r"^flags.json has format 2, expected 1: install the engine again with this collection$"):
        FlagTable({"format": 2, "engine": "1", "flags": []})


def test_some_tables_are_shipped():
    assert {"0.5.12", "0.5.16", "0.5.23"} <= set(VERSIONS)


@pytest.mark.parametrize("version", VERSIONS)
def test_shipped_table_names_its_engine(version):
    table = shipped(version)
    assert table.engine == version
    assert len(table.flags) > 300


def sample(one):
    """A value for a flag of a real table, and the words it must become."""
    if one.json:
        return {"a": 1, "b": [True, "x"]}, ['{"a": 1, "b": [true, "x"]}']
    value = one.choices[-1] if one.choices else {"int": 7, "float": 0.25}.get(one.type, "a b")
    return ([value, value], [str(value)] * 2) if one.takes_many else (value, [str(value)])


@pytest.mark.parametrize("version", VERSIONS)
def test_no_value_of_a_real_engine_vanishes(version):
    table = shipped(version)
    values = [one for one in table.flags if one.kind == "value" and one.dest not in ("api_key", "admin_api_key", "ssl_keyfile_password")]
    assert len(values) > 150
    for one in values:
        value, words = sample(one)
        argv = build({one.names[0]: value}, table=table)
        assert argv == [one.options[0], *words]
        parsed = table.parse(argv)
        assert list(parsed) == [one.dest]
        assert parsed[one.dest] in (value, words[0]) or json.loads(words[0]) == parsed[one.dest]


@pytest.mark.parametrize("version", VERSIONS)
def test_no_switch_of_a_real_engine_flips(version):
    table = shipped(version)
    switches = [one for one in table.flags if one.kind in ("switch", "pair")]
    assert len(switches) > 100
    for one in switches:
        on, off = build({one.names[0]: True}, table=table), build({one.names[0]: False}, table=table)
        assert on == [one.options[0]]
        assert off == ([one.options[1]] if one.kind == "pair" else [])
        assert table.parse(on)[one.dest] is True
        assert table.parse(off).get(one.dest, False) is False
        assert build({one.names[0]: None}, table=table) == []
        for quoted in ("true", "false", "yes", "", 0, 1, [], {}):
            with pytest.raises(FlagError, match="is on or off"):
                render(one, quoted)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_spelling_of_a_real_engine_is_found(version):
    table = shipped(version)
    for one in table.flags:
        for name in one.names:
            assert table.find(name) is one
            assert table.find(name.replace("_", "-")) is one
            assert table.find("--" + name.replace("_", "-")) is one


@pytest.mark.parametrize("version", VERSIONS)
def test_secrets_of_a_real_engine_stay_off_the_command_line(version):
    for name in ("api_key", "admin_api_key", "ssl_keyfile_password"):
        with pytest.raises(FlagError, match="is a secret"):
            build({name: "x"}, table=shipped(version))


@pytest.mark.parametrize(
    "version, values, message",
    [
        pytest.param("0.5.23", {"enforce_piecewise_cuda_graph": True}, "SGLang 0.5.23 has no flag --enforce-piecewise-cuda-graph", id="F05-removed"),
        pytest.param("0.5.12", {"language_model_only": True}, "has no flag --language-model-only; did you mean", id="F05-newer"),
        pytest.param("0.5.23", {"enable_reasoning": True}, "did you mean reasoning_parser?", id="F05-renamed"),
        pytest.param("0.5.23", {"cuda_graph_max_bs": 8}, "did you mean cuda_graph_max_bs_decode or cuda_graph_max_bs_prefill?", id="F05-split-in-two"),
        pytest.param(
            "0.5.23", {"cuda_graph_backend_prefill": "tc_piecewise"}, "invalid choice: 'tc_piecewise' (choose from full, breakable, disabled)", id="value"
        ),
    ],
)
def test_real_engines_refuse_what_they_lack(version, values, message):
    with pytest.raises(FlagError, match=re.escape(message)):
        build(values, table=shipped(version))


@pytest.mark.parametrize(
    "version, values, argv",
    [
        pytest.param("0.5.12", {"enforce_piecewise_cuda_graph": True, "tp": 2}, ["--enforce-piecewise-cuda-graph", "--tensor-parallel-size", "2"], id="0.5.12"),
        pytest.param("0.5.16", {"enforce_piecewise_cuda_graph": True, "tp": 2}, ["--enforce-piecewise-cuda-graph", "--tp-size", "2"], id="0.5.16"),
        pytest.param("0.5.23", {"cuda_graph_backend_prefill": "full", "tp": 2}, ["--cuda-graph-backend-prefill", "full", "--tp-size", "2"], id="0.5.23"),
    ],
)
def test_real_engines_accept_the_story(version, values, argv):
    assert build(values, table=shipped(version)) == argv


@pytest.mark.parametrize(
    "version, others, name, message",
    [
        pytest.param(
            "0.5.23",
            ["0.5.12", "0.5.16"],
            "enforce_piecewise_cuda_graph",
            "SGLang 0.5.23 has no flag --enforce-piecewise-cuda-graph (SGLang 0.5.16 has it as an old spelling of --cuda-graph-backend-prefill=tc_piecewise)",
            id="F05-successor",
        ),
        pytest.param(
            "0.5.23",
            ["0.5.12"],
            "--enforce-piecewise-cuda-graph",
            "SGLang 0.5.23 has no flag --enforce-piecewise-cuda-graph (SGLang 0.5.12 has it)",
            id="F05-removed",
        ),
        pytest.param(
            "0.5.12", ["0.5.16", "0.5.23"], "language_model_only", "SGLang 0.5.12 has no flag --language-model-only (SGLang 0.5.23 has it)", id="F05-newer"
        ),
        pytest.param("0.5.23", ["0.5.12", "0.5.16"], "zzz_qqq", "SGLang 0.5.23 has no flag --zzz-qqq", id="F05-nobody"),
    ],
)
def test_other_engines_tell_what_became_of_a_flag(version, others, name, message):
    tables = [json.loads((SHIPPED / f"{other}.json").read_text()) for other in others]
    table = FlagTable(json.loads((SHIPPED / f"{version}.json").read_text()), tables)
    with pytest.raises(FlagError) as caught:
        build({name: 1}, table=table)
    assert str(caught.value).partition("; did you mean")[0] == f"flags.{name}: {message}"
