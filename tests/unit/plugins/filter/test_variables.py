# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ansible_collections.llmops.inference.plugins.filter import variables
from ansible_collections.llmops.inference.plugins.filter.variables import FilterModule

ROOT = Path(variables.__file__).resolve().parents[2]
unknown = FilterModule().filters()["sglang_unknown_variables"]


@pytest.mark.parametrize("role", ["sglang_engine", "sglang_model", "sglang_server"])
def test_options_of_the_roles_are_known(role):
    names = list(yaml.safe_load((ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text())["argument_specs"]["main"]["options"])
    assert names and unknown(names) == []


def test_inputs_of_the_playbooks_are_known():
    texts = [path.read_text() for path in (ROOT / "playbooks").glob("*.yml")]
    names = {name for text in texts for name in re.findall(r"\bsglang_(?:rollout|remove)_\w+", text)}
    assert len(names) >= 3 and unknown(names) == []


def test_names_of_the_inventories_are_known():
    paths = [*(ROOT / "inventories").glob("*/*_vars/**/*.yml"), *(ROOT / "inventories").glob("*/hosts.yml")]
    names = {name for path in paths for name in re.findall(r"^ *(sglang_\w+):", path.read_text(), re.MULTILINE)}
    assert unknown(names) == []


def test_a_misspelt_one():
    assert unknown(["sglang_server_prot"]) == ["sglang_server_prot is no variable of this collection; did you mean sglang_server_port?"]
