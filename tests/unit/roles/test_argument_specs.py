# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROLES = Path(__file__).resolve().parents[3] / "roles"
NAMES = sorted(path.name for path in ROLES.iterdir() if path.is_dir())
TYPES = {"str": str, "path": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict}
# Variables of the playbooks, not of a role.
PLAYBOOK_INPUTS = {"sglang_remove_models_enabled", "sglang_remove_engines_enabled"}
# A key of the fact __sglang_engine, not a variable of the role cuda.
FACT_KEYS = {"cuda_home"}


def load(role, path):
    return yaml.safe_load((ROLES / role / path).read_text()) or {}


def options(role):
    """Of all entry points: they share the role's defaults."""
    entries = load(role, "meta/argument_specs.yml")["argument_specs"].values()
    return {name: option for entry in entries for name, option in entry.get("options", {}).items()}


def test_there_are_roles():
    assert {"cuda", "sglang_benchmark", "sglang_engine", "sglang_model", "sglang_server"} <= set(NAMES)


@pytest.mark.parametrize("role", NAMES)
def test_defaults_are_the_documented_ones(role):
    documented = {name: option["default"] for name, option in options(role).items() if "default" in option}
    assert load(role, "defaults/main.yml") == documented


@pytest.mark.parametrize("role", NAMES)
def test_options_are_named_after_their_role_and_described(role):
    for name, option in options(role).items():
        assert name.startswith(f"{role}_"), name
        assert option["description"] and option["type"] in TYPES, name
        assert option.get("required") or "default" in option, f"{name}: neither required nor with a default"


@pytest.mark.parametrize("role", NAMES)
def test_defaults_are_of_their_type(role):
    for name, option in options(role).items():
        default = option.get("default")
        if default is None or (isinstance(default, str) and "{{" in default):
            continue
        assert isinstance(default, TYPES[option["type"]]) and isinstance(default, bool) is (option["type"] == "bool"), name
        found = default if isinstance(default, list) else [default]
        assert set(map(str, found)) <= set(map(str, option.get("choices", found))), name


@pytest.mark.parametrize("role", NAMES)
def test_every_input_that_is_used_is_documented(role):
    known = {name for other in NAMES for name in options(other)} | PLAYBOOK_INPUTS | FACT_KEYS
    for path in sorted((ROLES / role).rglob("*")):
        if path.suffix not in (".yml", ".j2") or path.parent.name == "meta":
            continue
        code = re.sub(r"llmops\.inference\.\w+|^ *(?:#|tags:).*$", "", path.read_text(), flags=re.MULTILINE)
        used = set(re.findall(rf"(?<![\w.])(?:{'|'.join(NAMES)})_\w+", code))
        assert used <= known, f"{path.relative_to(ROLES)}: {sorted(used - known)}"


@pytest.mark.parametrize("role", NAMES)
def test_inner_names_begin_with_two_underscores(role):
    if (ROLES / role / "vars/main.yml").exists():
        assert [name for name in load(role, "vars/main.yml") if not name.startswith(f"__{role}_")] == []
