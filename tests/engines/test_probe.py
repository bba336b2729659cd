# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the probe does to a machine, and that the places where it pretends hardware are still the ones that engines ask."""

from __future__ import annotations

import pytest

from .conftest import MODELS, hardware

VERSIONS = ("0.5.10", "0.5.12", "0.5.16", "0.5.17", "0.5.19", "0.5.23")
ARGV = ["--model-path", str(MODELS / "qwen3-8b")]
FP8 = [*ARGV, "--kv-cache-dtype", "fp8_e5m2"]


@pytest.fixture(params=VERSIONS)
def result(request, engines):
    return engines.preflight(request.param, hardware("h200-x2"), ARGV, [FP8])


def test_no_device_no_connection(result):
    touched = [event for event in result["probe"]["touched"] if not event.startswith("process ['/sbin/ldconfig', '-p']")]
    assert touched == []


def test_every_place_is_still_there(result):
    assert result["probe"]["missing"] == []


def test_the_engine_asks_the_described_hardware(result):
    asked = result["probe"]["asked"]
    assert asked["is_available"] > 0
    assert asked["get_device_capability"] > 0
    assert asked["get_nvgpu_memory_capacity"] > 0
    assert not {"get_device_properties", "mem_get_info", "_lazy_init"} & set(asked)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_the_engine_logs_is_told(engines, version):
    result = engines.preflight(version, hardware("h200-x2"), FP8, [ARGV])
    (change,) = [change for change in result["changes"] if change["field"] == "attention_backend" and change["after"] == "triton"]
    assert change["logged"], change


@pytest.mark.parametrize("version", VERSIONS)
def test_without_described_hardware_the_engine_is_asked_as_it_is(engines, version):
    result = engines.preflight(version, None, [*ARGV, "--device", "cpu"])
    assert result["explained"]
    assert result["effective"]["device"] == "cpu"


@pytest.mark.parametrize("version", VERSIONS)
def test_other_hardware_gives_other_answers(engines, version):
    hopper = engines.preflight(version, hardware("h200-x2"), ARGV, [FP8])["effective"]
    ampere = engines.preflight(version, hardware("a6000-x2"), ARGV)["effective"]
    assert (hopper["attention_backend"], ampere["attention_backend"]) == ("fa3", "flashinfer")
    assert hopper["chunked_prefill_size"] > ampere["chunked_prefill_size"]
