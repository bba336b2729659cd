# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _model_facts
from ansible_collections.llmops.inference.plugins.module_utils._model_facts import MARKER, ModelFactsError, header_bytes, model_facts

INDEX = "model.safetensors.index.json"


def safetensors(path, **tensors):
    """Writes a file with a header and no data; tensors are (dtype, bytes) by name."""
    begin, header = 0, {"__metadata__": {"format": "pt"}}
    for name, (dtype, count) in tensors.items():
        header[name] = {"dtype": dtype, "shape": [count], "data_offsets": [begin, begin + count]}
        begin += count
    raw(path, json.dumps(header))


def raw(path, header, length=None):
    text = header if isinstance(header, bytes) else header.encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text)


@pytest.fixture(name="model")
def fixture_model(tmp_path):
    (tmp_path / "config.json").write_text('{"architectures": ["Qwen3ForCausalLM"]}')
    return tmp_path


def test_a_model_from_a_hub(model):
    (model / MARKER).write_text(json.dumps({"repository": "Qwen/Qwen3-8B", "revision": "9d2f"}))
    (model / "generation_config.json").write_text('{"top_k": 20}')
    (model / "tokenizer.json").write_text("{}")
    safetensors(model / "a.safetensors", x=("BF16", 10), y=("F32", 4))
    safetensors(model / "b.safetensors", z=("BF16", 6))
    assert model_facts(model) == {
        "format": 1,
        "path": str(model),
        "repository": "Qwen/Qwen3-8B",
        "revision": "9d2f",
        "files": {"config.json": {"architectures": ["Qwen3ForCausalLM"]}, "generation_config.json": {"top_k": 20}},
        "weights": {"files": 2, "bytes": 20, "by_dtype": {"BF16": 16, "F32": 4}},
    }


def test_a_model_that_no_hub_sent(model):
    facts = model_facts(model)
    assert (facts["repository"], facts["revision"], facts["weights"]) == ("", "", {"files": 0, "bytes": 0, "by_dtype": {}})


def test_weights_that_come_twice_count_once(model):
    """As Mistral's do: the engine loads what the index names."""
    safetensors(model / "consolidated.safetensors", x=("BF16", 10))
    safetensors(model / "model-00001-of-00001.safetensors", x=("BF16", 10))
    (model / INDEX).write_text(json.dumps({"weight_map": {"x": "model-00001-of-00001.safetensors"}}))
    assert model_facts(model)["weights"] == {"files": 1, "bytes": 10, "by_dtype": {"BF16": 10}}


@pytest.mark.parametrize("index", [{}, {"weight_map": []}, {"metadata": {"total_size": 3}}])
def test_an_index_that_names_nothing(model, index):
    safetensors(model / "a.safetensors", x=("BF16", 10))
    (model / INDEX).write_text(json.dumps(index))
    assert model_facts(model)["weights"]["bytes"] == 10


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("config.json", "{", "config.json is no JSON: "),
        ("config.json", "[]", "config.json is no JSON object"),
        ("config.json", "[" * 100_000, "config.json is no JSON: "),
        ("config.json", "\udcff", "config.json is no JSON: "),
        ("config.json", " " * 1_000_001, "larger than such a file can be"),
        (MARKER, "[1]", "no JSON object"),
        (INDEX, "{", "no JSON: "),
    ],
)
def test_damaged_files(model, name, text, message):
    (model / name).write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ModelFactsError, match=message):
        model_facts(model)


@pytest.mark.parametrize("made", ["none", "directory"])
def test_a_directory_without_a_model(tmp_path, made):
    if made == "directory":
        (tmp_path / "config.json").mkdir()
    with pytest.raises(ModelFactsError, match=r"holds no config\.json"):
        model_facts(tmp_path)


def entry(begin, end, dtype="BF16"):
    return json.dumps({"x": {"dtype": dtype, "data_offsets": [begin, end]}})


@pytest.mark.parametrize(
    ("header", "length", "message"),
    [
        (b"", 0, "header would be 0 bytes long"),
        ("{}", 2**40, "header would be 1099511627776 bytes long"),
        ("{}", 50, "ends within its header"),
        ("{" * 2, None, "cannot be read"),
        ("[]", None, "cannot be read"),
        ('{"x": 1}', None, "cannot be read"),
        ('{"x": {"dtype": "BF16"}}', None, "cannot be read"),
        (entry(10, 4), None, "cannot be read"),
        (entry(-1, 4), None, "cannot be read"),
        (entry(0, 1.5), None, "cannot be read"),
        ('{"x": {"dtype": "BF16", "data_offsets": [0, Infinity]}}', None, "cannot be read"),
        ('{"x": {"dtype": "BF16", "data_offsets": [0]}}', None, "cannot be read"),
        ("[" * 100_000, None, "cannot be read"),
        (b"\xff\xfe{}", None, "cannot be read"),
    ],
)
def test_files_that_are_no_safetensors(tmp_path, header, length, message):
    path = tmp_path / "a.safetensors"
    raw(path, header, length)
    with pytest.raises(ModelFactsError, match=message):
        header_bytes(path)


def test_only_the_header_is_read(tmp_path, monkeypatch):
    """The weights of a model are hundreds of GB."""
    path = tmp_path / "a.safetensors"
    safetensors(path, x=("BF16", 2**40))
    monkeypatch.setattr(_model_facts, "_LARGEST_HEADER", path.stat().st_size - 8)
    with path.open("ab") as stream:
        stream.truncate(10**12)
    assert header_bytes(path) == {"BF16": 2**40}


def test_a_link_to_nothing(model):
    (model / "a.safetensors").symlink_to(model / "gone")
    with pytest.raises(OSError, match="gone|a.safetensors"):
        model_facts(model)
