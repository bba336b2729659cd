# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.plugin_utils import _check_flags as flags
from ansible_collections.llmops.inference.tests.unit.check_changes import render


def told(before, after):
    return [(row["layer"], row["flag"], row["before"], row["after"]) for row in flags.flag_changes(before, after)]


@pytest.mark.parametrize(
    "change, rows",
    [
        ({}, []),
        ({"tp_size": (4, "hardware")}, [("hardware", "tp_size", 2, 4)]),
        ({"tp_size": None}, [("hardware", "tp_size", 2, None)]),
        ({"x": (True, "host")}, [("host", "x", None, True)]),
        ({"tp_size": (2, "host")}, [("hardware", "tp_size", 2, None), ("host", "tp_size", None, 2)]),
        (
            {"x": (1, "extra"), "b": (1, "host"), "a": (1, "host"), "m": (1, "model")},
            [("model", "m", None, 1), ("host", "a", None, 1), ("host", "b", None, 1), ("extra", "x", None, 1)],
        ),
        ({"x": (1, "of tomorrow")}, [("of tomorrow", "x", None, 1)]),
        ({"admin_api_key": ("hunter22", "extra")}, [("extra", "admin_api_key", None, "********")]),
    ],
    ids=["same", "value", "gone", "new", "moved", "sorted", "unknown-layer", "secret"],
)
def test_flags_by_layer(change, rows):
    assert told(render(), render(change)) == rows


def test_one_side_only():
    assert [row[2:] for row in told(None, render())] == [(None, "NEXTN"), (None, 0.88), (None, 2)]
    assert [row[3] for row in told(render(), None)] == [None] * 3


def test_the_variable_is_that_of_the_layer():
    moved = flags.flag_changes(render(), render({"tp_size": (2, "host")}, sources={"tp_size": "sglang_server_flags.tp"}))
    assert [row["variable"] for row in moved] == ["sglang_server_hardware_flags.tp_size", "sglang_server_flags.tp"]
    assert flags.flag_changes(None, render(sources={}))[0]["variable"] == ""


def test_environment():
    after = render()
    after["release"]["environment"] = {"B": "1", "HF_TOKEN": "hunter22"}
    assert flags.environment_changes(render(), after) == [
        {"name": "B", "before": None, "after": "1"},
        {"name": "HF_TOKEN", "before": None, "after": "********"},
        {"name": "NCCL_P2P_LEVEL", "before": "PHB", "after": None},
    ]
    assert flags.environment_changes(render(), render()) == flags.environment_changes(None, None) == []


def test_another_value_of_a_secret_variable_shows_only_that():
    sides = [render(), render()]
    for side, value in zip(sides, ("hunter22", "hunter33")):
        side["release"]["environment"] = {"HF_TOKEN": value}
    assert flags.environment_changes(*sides) == [{"name": "HF_TOKEN", "before": "********", "after": "********"}]


@pytest.mark.parametrize(
    "before, after, sentence",
    [
        ("vaulted 1a2b3c4d", "vaulted 99999999", ["api_key: its vaulted value changes"]),
        ("vaulted 1a2b3c4d", "vaulted 1a2b3c4d", []),
        ("looked up", "looked up", []),
        ("plain text", "vaulted 1a2b3c4d", ["api_key: was in plain text, is now vaulted"]),
        ("vaulted 1a2b3c4d", "looked up", ["api_key: was vaulted, is now looked up"]),
        (None, "vaulted 1a2b3c4d", ["api_key: is new (vaulted)"]),
        ("looked up", None, ["api_key: is taken away"]),
        (None, "hunter22", ["api_key: is new (of an unknown kind)"]),
    ],
)
def test_secrets(before, after, sentence):
    sides = [render(secrets={"api_key": how} if how else {}) for how in (before, after)]
    assert flags.secret_changes(*sides) == sentence


def test_a_secret_in_plain_text():
    (found,) = flags.plain_secrets(render(secrets={"api_key": "plain text", "b": "looked up"}, sources={"api_key": "sglang_server_api_key"}))
    assert (found["code"], found["severity"], found["variables"]) == ("secret_in_plain_text", "warning", ["sglang_server_api_key"])
    assert flags.plain_secrets(render()) == flags.plain_secrets(None) == []
