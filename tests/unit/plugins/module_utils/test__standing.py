# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What it says in words is tested through the switch; here is what is only asked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._readiness import Expectation
from ansible_collections.llmops.inference.plugins.module_utils._release import Candidate, Store
from ansible_collections.llmops.inference.plugins.module_utils._standing import Settings, Standing
from ansible_collections.llmops.inference.plugins.module_utils._unit_files import UnitFiles
from ansible_collections.llmops.inference.tests.unit.machine import EPOCH, UNIT, Machine

ONE = Candidate("[Service]\nExecStart=/opt/e/bin/python --one\n", ("--one",))
EXPECT = Expectation(30000, "qwen", timeout=60.0)


@pytest.fixture(name="bench")
def fixture_bench(tmp_path):
    """(machine, store, standing) of a host that runs release ONE, proven."""
    machine, store = Machine.below(tmp_path), Store(tmp_path / "store" / "main")
    store.prepare()
    store.stage(ONE)
    store.mark_good(ONE.id)
    (machine.places.etc / UNIT).write_text(store.unit_text(ONE.id))
    for command in ("daemon-reload", "restart", "enable"):
        machine.run(["systemctl", command, *([UNIT] if command != "daemon-reload" else [])])
    store.write(ONE.id, "state", {"state": "good", "since": EPOCH, "invocation": "run-1"})
    files = UnitFiles(UNIT, machine.run, store.path / "set-aside", machine.places)
    return machine, store, Standing(store, machine, machine.run, files, Settings(UNIT))


@pytest.mark.parametrize(
    "stored, states, proven",
    [
        ({"state": "good", "invocation": "run-1"}, ("good",), True),
        ({"state": "good", "invocation": "run-1"}, ("ready",), False),
        ({"state": "ready", "invocation": "run-1"}, ("ready", "good"), True),
        ({"state": "good", "invocation": "run-0"}, ("good",), False),
        ({"state": "good"}, ("good",), False),
        ({}, ("good",), False),
    ],
)
def test_proven(bench, stored, states, proven):
    _machine, store, standing = bench
    store.write(ONE.id, "state", stored)
    assert standing.proven(ONE, *states) is proven


def test_what_does_not_run_is_not_proven(bench):
    machine, _store, standing = bench
    machine.run(["systemctl", "stop", UNIT])
    assert not standing.proven(ONE, "good") and standing.down


@pytest.mark.parametrize("run, up, settled", [("run-1", 5, True), ("run-0", 5, False), ("run-0", 61, True)], ids=["proven", "starting", "long-up"])
def test_settled(bench, run, up, settled):
    machine, store, standing = bench
    store.write(ONE.id, "state", {"state": "good", "invocation": run})
    machine.now = up
    expect = standing.settled(ONE, EXPECT)
    assert (expect.settled, expect.timeout) == ((True, 30.0) if settled else (False, 60.0))


def test_nothing_to_say(bench):
    _machine, _store, standing = bench
    assert (standing.reasons(ONE), standing.edited, standing.enabled, standing.secrets_current, standing.down) == ([], False, True, True, False)


def test_secrets_of_the_settings():
    settings = Settings(UNIT, secret_flags={"api_key": "a", "pin": 1234}, secret_environment={"HF_TOKEN": "b"})
    assert settings.secrets == ["a", "1234", "b"]
    assert replace(settings, secret_flags={}).secrets == ["b"]
