# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.llmops.inference.plugins.filter import variables
from ansible_collections.llmops.inference.plugins.filter.variables import FilterModule

ROOT = Path(variables.__file__).resolve().parents[2]
unknown = FilterModule().filters()["sglang_unknown_variables"]


@pytest.mark.parametrize("role", sorted(path.name for path in (ROOT / "roles").iterdir()))
def test_options_of_the_roles_are_known(role):
    entries = yaml.safe_load((ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text())["argument_specs"].values()
    names = [name for entry in entries for name in entry.get("options", {})]
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


@pytest.mark.parametrize(
    "names, sentences",
    [
        pytest.param(["cuda_version", "cuda_home", "cuda_visible_devices", "cuda_driver_version", "cuda_toolkit_version"], [], id="of-others"),
        pytest.param(["cuda_drivr"], ["cuda_drivr is no variable of this collection; did you mean cuda_driver?"], id="misspelt"),
        pytest.param(["cuda_driver", "cuda_links_port"], [], id="known"),
        pytest.param(
            ["cuda_reboot_enable", "cuda_home"], ["cuda_reboot_enable is no variable of this collection; did you mean cuda_reboot_enabled?"], id="one-of-two"
        ),
    ],
)
def test_a_namespace_of_others(names, sentences):
    """Through templating, as the role cuda asks."""
    expression = trust_as_template("{{ names | llmops.inference.sglang_unknown_variables(only_near=true) }}")
    assert Templar(loader=DataLoader(), variables={"names": names}).template(expression) == sentences
