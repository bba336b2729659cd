# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._candidate import Candidate, flatten_config, whole


@pytest.mark.parametrize(
    "asked, effective, value",
    [
        ({"port": 1}, {"port": 2}, 2),
        ({"port": 1}, {}, 1),
        ({"port": 1}, {"other": 2}, 1),
        ({}, {"port": 2}, 2),
        ({}, {}, "default"),
        ({"port": None}, {}, "default"),
        ({"port": 1}, {"port": None}, "default"),
        ({"port": 1}, {"port": 0}, 0),
        ({"port": True}, {"port": False}, False),
        ({"port": ""}, {}, ""),
    ],
    ids=["effective-wins", "asked", "asked-another", "effective", "neither", "asked-null", "switched-off", "zero", "false", "empty"],
)
def test_value(asked, effective, value):
    assert Candidate(asked=asked, effective=effective).value("port", "default") == value


def test_value_without_a_default():
    assert Candidate().value("port") is None


@pytest.mark.parametrize(
    "value, number",
    [(3, 3), ("3", 3), (" 12 ", 12), ("-1", -1), ("+2", 2), (0, 0), ("0", 0), (True, 7), (False, 7), (None, 7), ("", 7), ("1.5", 7), (1.5, 7), ("1\n2", 7)],
)
def test_whole(value, number):
    """F12: never int() of what is no number."""
    assert whole(value, 7) == number
    assert Candidate(asked={"tp_size": value}).whole("tp_size", 7) == number


@pytest.mark.parametrize(
    "config, flat",
    [
        pytest.param({"a": 1}, {"a": 1}, id="plain"),
        pytest.param({"a": 1, "b": 2, "text_config": {"a": 3}}, {"a": 3, "b": 2, "text_config": {"a": 3}}, id="inner-over-outer"),
        pytest.param({"thinker_config": {"a": 1, "text_config": {"a": 2}}}, {"thinker_config": {"a": 1, "text_config": {"a": 2}}, "a": 2}, id="twice"),
        pytest.param({"text_config": None, "llm_config": "x"}, {"text_config": None, "llm_config": "x"}, id="no-mapping"),
        pytest.param({"vision_config": {"a": 1}}, {"vision_config": {"a": 1}}, id="another-part"),
    ],
)
def test_flatten_config(config, flat):
    before = repr(config)
    result = flatten_config(config)
    assert {name: result[name] for name in flat} == flat and ("a" in result) == ("a" in flat)
    assert Candidate(config=config).text_config == result
    assert repr(config) == before


@pytest.mark.parametrize("name", ["text_config", "llm_config", "language_config", "thinker_config"])
def test_where_the_language_model_is_kept(name):
    assert flatten_config({"num_attention_heads": 1, name: {"num_attention_heads": 40}})["num_attention_heads"] == 40


def test_an_unknown_server():
    candidate = Candidate()
    assert (candidate.engine, candidate.weights_bytes, candidate.gpus, candidate.text_config) == ("", None, None, {})
