# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""U01, U02: every awkward word makes the round trip through systemd itself."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests" / "unit"), str(ROOT / "collections")]

from ansible_collections.llmops.inference.plugins.module_utils._systemd import (  # noqa: E402
    environment_assignment,
    environment_file,
    exec_line,
    parse_unit,
    render_dropin,
)
from words import WORDS  # noqa: E402

DUMP = "; ".join(["import json, os, sys", "seen = {k: v for k, v in os.environ.items() if k.startswith('W_')}"])
DUMP += "; json.dump([sys.argv[1:], seen], open('/run/roundtrip.json', 'w'))"


def run_unit(host, name, text, dropin=""):
    """Runs a oneshot unit and returns what the service saw."""
    host.check_output(f"printf %s %s > /run/systemd/system/{name}.service", "%s", text)
    if dropin:
        host.check_output(f"mkdir -p /run/systemd/system/{name}.service.d")
        host.check_output(f"printf %s %s > /run/systemd/system/{name}.service.d/x.conf", "%s", dropin)
    host.check_output(f"systemctl daemon-reload && systemctl start {name}.service")
    return json.loads(host.file("/run/roundtrip.json").content_string)


def unit(words, environment=(), environment_path=""):
    command = exec_line(["/usr/bin/python3", "-c", DUMP, *words])
    lines = ["[Service]", "Type=oneshot", "RemainAfterExit=no", f"ExecStart={command}"]
    lines += [f"Environment={assignment}" for assignment in environment]
    lines += [f"EnvironmentFile={environment_path}"] if environment_path else []
    return "\n".join(lines) + "\n"


def test_arguments(host):
    words, _environment = run_unit(host, "roundtrip-argv", unit(WORDS))
    assert words == WORDS


def test_environment_lines(host):
    variables = {f"W_{i}": word for i, word in enumerate(WORDS)}
    _words, seen = run_unit(host, "roundtrip-env", unit([], [environment_assignment(name, value) for name, value in variables.items()]))
    assert seen == variables


def test_environment_file(host):
    variables = {f"W_{i}": word for i, word in enumerate(WORDS)}
    host.check_output("printf %s %s > /run/roundtrip.env", "%s", environment_file(variables))
    _words, seen = run_unit(host, "roundtrip-file", unit([], environment_path="/run/roundtrip.env"))
    assert seen == variables


def test_a_dropin_turns_one_unit_into_another(host):
    """The trial's drop-in: lists emptied, scalars that the candidate does not have put back to systemd's defaults."""
    good = unit(["old"], [environment_assignment("W_OLD", "1")]) + "LimitNOFILE=4096\nUMask=0077\nCapabilityBoundingSet=CAP_CHOWN\nNice=5\n"
    candidate = unit(["new"], [environment_assignment("W_NEW", "2")])
    words, seen = run_unit(host, "roundtrip-dropin", good, render_dropin(parse_unit(good), parse_unit(candidate)))
    assert (words, seen) == (["new"], {"W_NEW": "2"})
    for name, value in {"UMask": "0022", "Nice": "0", "LimitNOFILESoft": "1024"}.items():
        assert host.check_output(f"systemctl show roundtrip-dropin --property={name} --value") == value
    assert "cap_sys_admin" in host.check_output("systemctl show roundtrip-dropin --property=CapabilityBoundingSet --value")
    assert "ignoring" not in host.run("systemd-analyze verify --man=no roundtrip-dropin.service").stderr


@pytest.fixture(scope="module", autouse=True)
def clean_up(host):
    yield
    host.run("rm -rf /run/systemd/system/roundtrip-* /run/roundtrip.*; systemctl daemon-reload")
