# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils import _rules_model as rules
from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate

KNOWN = frozenset(("LlamaForCausalLM", "Qwen3ForCausalLM", "TransformersForCausalLM"))


@pytest.fixture
def models(tmp_path):
    files = {
        "llama.py": "import torch\n\n\nclass LlamaForCausalLM:\n    pass\n\n\nEntryClass = [LlamaForCausalLM, PhiForCausalLM]\n",
        "qwen3.py": "\ufeff# with a mark of byte order\nclass Qwen3ForCausalLM: ...\nEntryClass = Qwen3ForCausalLM\n",
        "typed.py": "import x\nEntryClass: list = [\n    Typed,\n]\nOther = Nobody\n",
        "tuple.py": "import x\nEntryClass = (One, Two)\n",
        "utils.py": "EntryClassOf = None\n",
        "near.py": "import x\nEntryClasses = [Wrong]\n",
        "bare.py": "import x\nEntryClass: list\n",
        "attribute.py": "import x\nEntryClass.of = [Wrong]\n",
        "broken.py": "import x\nEntryClass = [Broken\n",
        "text.txt": "import x\nEntryClass = Wrong\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "binary.py").write_bytes(b"\nEntryClass = \xff\n")
    (tmp_path / "folder.py").mkdir()
    return tmp_path


def test_known_architectures(models):
    assert rules.known_architectures(str(models)) == {"LlamaForCausalLM", "PhiForCausalLM", "Qwen3ForCausalLM", "Typed", "One", "Two"}
    assert rules.known_architectures(str(models / "absent")) == frozenset()


@pytest.mark.parametrize(
    "config, asked, environment, words",
    [
        ({"architectures": ["LlamaForCausalLM"]}, {}, {}, None),
        ({"architectures": ["Qwen4ForCausalLM"]}, {}, {}, "no model for the architecture Qwen4ForCausalLM; the nearest that it has: Qwen3ForCausalLM"),
        ({"architectures": ["Zzz"]}, {}, {}, "sglang 0.5.23 has no model for the architecture Zzz;"),
        ({"architectures": ["Zzz"]}, {"model_impl": "sglang"}, {}, "through the transformers library"),
        ({"architectures": ["Zzz"]}, {"model_impl": "transformers"}, {}, None),
        ({"architectures": ["Zzz"]}, {}, {"SGLANG_EXTERNAL_MODEL_PACKAGE": "mine"}, None),
        ({"architectures": ["Zzz", "LlamaForCausalLM"]}, {}, {}, None),
        ({"architectures": None}, {}, {}, None),
        ({}, {}, {}, None),
    ],
)
def test_architecture(config, asked, environment, words):
    found = rules.architecture(Candidate(engine="0.5.23", asked=asked, config=config, environment=environment), KNOWN)
    assert [(finding.code, finding.severity) for finding in found] == ([("architecture_unknown", "warning")] if words else [])
    assert all(words in f"{finding.text}; {finding.hint}" for finding in found)
    assert not rules.architecture(Candidate(config=config), frozenset())


def test_an_engine_without_a_version():
    (found,) = rules.architecture(Candidate(config={"architectures": ["Zzz"]}), KNOWN)
    assert found.text == "sglang has no model for the architecture Zzz"


CASES = (
    ("awq", "gptq", True),
    ("AWQ", "GPTQ", True),
    ("fp8", "awq", True),
    ("fp8", "compressed-tensors", True),
    ("fp8", "fp8", False),
    ("fp8", "", False),
    ("", "fp8", False),
    ("awq_marlin", "awq", False),
    ("gptq", "auto-round", False),
    ("modelopt_fp4", "modelopt_fp8", False),
    ("w8a8_int8", "compressed-tensors", False),
    ("bitsandbytes", "awq", False),
)


@pytest.mark.parametrize("asked, method, refused", CASES)
def test_quantization(asked, method, refused):
    config = {"quantization_config": {"quant_method": method}}
    found = rules.quantization(Candidate(asked={"quantization": asked or None}, config=config))
    assert [(finding.code, finding.severity) for finding in found] == ([("quantization", "error")] if refused else [])
    assert all(f"quantization {asked.lower()} is not what the model is quantized with, {method.lower()}" in finding.text for finding in found)


def test_quantization_of_a_model_that_is_not_quantized():
    assert not rules.quantization(Candidate(asked={"quantization": "fp8"}, config={"quantization_config": None}))
    assert not rules.quantization(Candidate(asked={"quantization": "fp8"}))
    assert list(rules.FALLBACK_RULES) == [rules.quantization]
