# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Public fault reports about flags on real engines, and who catches each: the engine itself, or a rule of this collection.

The words go straight to the engine here, past the checks of the inventory, which refuse most of F01 to F05 before.
"""

from __future__ import annotations

import re

import pytest

from .conftest import MODELS, hardware

VERSIONS = ("0.5.10", "0.5.12", "0.5.16", "0.5.17", "0.5.19", "0.5.23")
MODEL = ["--model-path", str(MODELS / "qwen3-8b")]
PARSER, ENGINE, RULE, NOBODY = "engine's parser", "engine", "rule", "accepted"

# A MIG device that the facts do not know is one device that is not there.
MIG = {"CUDA_VISIBLE_DEVICES": "MIG-aaaaaaaa-0000-5000-8000-000000000001"}

# Case -> words, environment, who catches it (a version's own answer where versions differ), a part of what is said.
CASES = {
    "F01 escaped quotes": (["--json-model-override-args", '{\\"a\\":1}'], {}, ENGINE, "Expecting property name"),
    "F01 Python literal": (["--json-model-override-args", '{"a": True}'], {}, ENGINE, "Expecting value"),
    "F03 switch with a word": (["--enable-metrics", "true"], {}, PARSER, "does not take 'true'"),
    "F03 switch with =": (["--enable-metrics=false"], {}, PARSER, "ignored explicit argument 'false'"),
    "F04 list in one word": (["--cuda-graph-bs", "1 2 4"], {}, PARSER, ""),
    "F05 unknown": (["--enable-reasoning"], {}, PARSER, "is not a flag of this engine"),
    "F05 misspelt": (["--reasoning-praser", "qwen3"], {}, PARSER, "--reasoning-parser"),
    "F05 underscores": (["--reasoning_parser", "qwen3"], {}, PARSER, "--reasoning-parser"),
    "F05 abbreviation": (["--tp", "1"], {}, RULE, "--tp-size"),
    "F07 colon": (["--served-model-name", "qwen3:8b"], {}, ENGINE, "colon"),
    "F07 port": (["--port", "70000"], {}, {version: ENGINE if version == "0.5.12" else RULE for version in VERSIONS}, "70000|75|80000"),
    "F07 chunk": (["--chunked-prefill-size", "1000", "--page-size", "64"], {}, ENGINE, "page_size"),
    "F07 padding": (
        ["--disable-cuda-graph-padding", "--enable-torch-compile"],
        {},
        {**dict.fromkeys(VERSIONS, ENGINE), "0.5.10": RULE},
        "padding|switched off",
    ),
    "F07 nodes": (["--tp-size", "3", "--nnodes", "2"], {}, ENGINE, "nnodes|divisible"),
    "F08 heads": (["--tp-size", "5"], {}, RULE, "32 .*5"),
    "F10 context": (["--context-length", "131072"], {}, ENGINE, "greater than the derived context_length"),
    "F10 override": (["--context-length", "131072"], {"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"}, RULE, "131072"),
    # The report expects a refusal; all six engines read SI and IEC suffixes: 32k is 32,000, 32Ki is 32,768.
    "F10 32k": (["--context-length", "32k"], {}, NOBODY, ""),
    "F10 32K": (["--context-length", "32K"], {}, PARSER, "32K"),
    "F12 one MIG device": (["--tp-size", "2"], MIG, ENGINE, "No accelerator.*leaves the server no GPU"),
    # Told that there is no GPU, the engine says so itself.
    "F12 none": ([], {"CUDA_VISIBLE_DEVICES": "-1"}, ENGINE, "No accelerator.*leaves the server no GPU"),
    "F12 empty": ([], {"CUDA_VISIBLE_DEVICES": ""}, ENGINE, "No accelerator.*leaves the server no GPU"),
    "F12 three of two": (["--tp-size", "4"], {}, RULE, "needs 4 GPUs"),
}
CODES = {
    "engine_rejects": ENGINE,
    "flag_unknown": PARSER,
    "flag_ambiguous": PARSER,
    "value_invalid": PARSER,
    "word_unexpected": PARSER,
}


def candidate(words):
    return MODEL + words


def catcher(result):
    """Who caught it: the first finding that stops, else the first that warns."""
    for severity in ("error", "warning"):
        rows = [row for row in result["findings"] if row["severity"] == severity]
        if rows:
            return CODES.get(rows[0]["code"], RULE), rows
    return NOBODY, []


def judged(engines, version, name):
    words, environment, _who, _text = CASES[name]
    others = [candidate(row[0]) for row in CASES.values() if row[1] == environment]
    return engines.preflight(version, hardware("a6000-x2"), candidate(words), others, environment=environment)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_caught(engines, version, name):
    _words, _environment, who, text = CASES[name]
    caught, rows = catcher(judged(engines, version, name))
    assert caught == (who[version] if isinstance(who, dict) else who), rows
    assert re.search(text, " ".join(f"{row['text']} {row['hint']}" for row in rows)), rows
