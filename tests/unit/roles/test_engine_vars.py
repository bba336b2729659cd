# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role sglang_engine tells the other roles of an engine, by Ansible's own templating of its vars and tasks."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.llmops.inference.plugins.module_utils._engine import Plan, Source, parse_lock

ROLE = Path(__file__).resolve().parents[3] / "roles" / "sglang_engine"
LOCKS = sorted(path.stem.split("-") for path in (ROLE / "files" / "locks").glob("*-py*.txt"))

TABLES = sorted(str(path) for path in (ROLE / "files" / "flags").glob("*.json"))


def load(path):
    return DataLoader().load_from_file(str(ROLE / path), trusted_as_template=True)


def fact(**variables):
    """The fact __sglang_engine."""
    known = {**load("defaults/main.yml"), **load("vars/main.yml"), "role_path": str(ROLE), "ansible_search_path": [str(ROLE)]}
    known.update(ansible_facts={"architecture": "x86_64"}, **variables)
    (task,) = [task for task in load("tasks/locate.yml") if "ansible.builtin.set_fact" in task]
    return Templar(loader=DataLoader(), variables=known).template(task["ansible.builtin.set_fact"]["__sglang_engine"])


def compiles(lock, flavour):
    """Whether the module makes a CUDA_HOME of this lock."""
    return Plan("x", Path("/x"), "", "", "", parse_lock(lock), Source(), "", flavour=flavour).compiles


@pytest.mark.parametrize("version, flavour, python", LOCKS, ids="-".join)
def test_the_fact_of_a_shipped_engine(version, flavour, python):
    told = fact(sglang_engine_version=version, sglang_engine_flavour=flavour, sglang_engine_python_version=f"3.{python[3:]}")
    path = f"/opt/sglang/engines/{told['name']}"
    assert told["name"].startswith(f"{version}-{flavour}-") and told["path"] == path and told["python"] == f"{path}/bin/python"
    assert told["flags_path"].endswith(f"/files/flags/{version}.json")
    assert told["other_flags_paths"] == [table for table in TABLES if table != told["flags_path"]] and len(told["other_flags_paths"]) == len(TABLES) - 1
    lock = (ROLE / "files" / "locks" / f"{version}-{flavour}-{python}.txt").read_text()
    assert told["cuda_home"] == (f"{path}/cuda" if compiles(lock, flavour) else "")


@pytest.mark.parametrize(
    "pins, flavour, there",
    [
        ("nvidia-cuda-nvcc==13.0.88 \\\n    --hash=sha256:aa\n", "cuda", True),
        ("nvidia-cuda-nvcc==13.0.88\n", "cpu", False),
        ("# nvidia-cuda-nvcc==13.0.88\n", "cuda", False),
        ("nvidia-cuda-nvcc-cu12==12.9.86\n", "cuda", False),
        ("", "cuda", False),
    ],
)
def test_a_lock_of_ones_own(tmp_path, pins, flavour, there):
    lock = f"sglang==0.5.99\n{pins}"
    (tmp_path / "lock.txt").write_text(lock)
    variables = {"sglang_engine_version": "0.5.99", "sglang_engine_flavour": flavour, "sglang_engine_python_version": "3.12"}
    told = fact(**variables, sglang_engine_lock_path=str(tmp_path / "lock.txt"))
    assert compiles(lock, flavour) is there
    assert told["cuda_home"] == (f"{told['path']}/cuda" if there else "")
    assert told["flags_path"] == ""
    assert told["other_flags_paths"] == TABLES, "every shipped one is another's"
