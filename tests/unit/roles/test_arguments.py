# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role sglang_server says of wrong flags, by Ansible's own templating of its defaults, vars and tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

ROLE = Path(__file__).resolve().parents[3] / "roles" / "sglang_server"
FLAGS = Path(__file__).resolve().parents[1] / "fixtures" / "flags-excerpt.json"
OTHERS = {
    "0.5.12": {"options": ["--old-size"]},
    "0.5.16": {"options": ["--old-size"], "successor": "--tp-size"},
}


def load(path):
    return DataLoader().load_from_file(str(ROLE / path), trusted_as_template=True)


def problems(engine=None, **variables):
    """What the assertion of the role finds wrong."""
    known = {**load("defaults/main.yml"), **load("vars/main.yml"), "ansible_search_path": [str(ROLE)], "inventory_hostname": "ct129"}
    known["sglang_server_engine"] = {"flavour": "cpu", "version": "0.5.23", "flags_path": str(FLAGS), **(engine or {})}
    (task,) = [task for task in load("tasks/arguments.yml") if "ansible.builtin.assert" in task]
    known.update(task["vars"], **variables)
    return Templar(loader=DataLoader(), variables=known).template(task["vars"]["__sglang_server_problems"])


@pytest.fixture(name="others")
def fixture_others(tmp_path):
    paths = []
    for version, entry in OTHERS.items():
        paths.append(str(tmp_path / f"{version}.json"))
        Path(paths[-1]).write_text(json.dumps({"format": 1, "engine": version, "flags": [{"dest": "old_size", "kind": "value", **entry}]}))
    return paths


def test_flags_that_are_right():
    assert problems(sglang_server_flags={"tp_size": 2}) == []


@pytest.mark.parametrize(
    "count, told",
    [
        (None, "."),
        (0, "."),
        (1, " (SGLang 0.5.12 has it)"),
        (2, " (SGLang 0.5.16 has it as an old spelling of --tp-size)"),
    ],
    ids=["engine-of-an-older-fact", "no-others", "one", "two"],
)
def test_other_engines_tell_what_became_of_a_flag(others, count, told):
    """F05"""
    engine = {} if count is None else {"other_flags_paths": others[:count]}
    (problem,) = problems(engine, sglang_server_flags={"old_size": 2})
    start = "sglang_server_flags.old_size: SGLang 0.5.23 has no flag --old-size"
    assert problem.startswith(f"{start}{told}" if count else start) and ("(" in problem) is bool(count)
