# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters' documentation: their options are the functions' parameters, and their examples result in what they say."""

from __future__ import annotations

import ast
import inspect
import re
import shutil
from pathlib import Path

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.llmops.inference.plugins.filter import cuda, release, summary, variables

FILTERS = {name: function for module in (cuda, release, summary, variables) for name, function in module.FilterModule().filters().items()}
FOLDER = Path(release.__file__).resolve().parent
FLAGS = Path(__file__).resolve().parents[2] / "fixtures" / "flags-excerpt.json"
RESULT = re.compile(r"# Should result in ([\['{].*)$", re.MULTILINE)


def documentation(name):
    return yaml.safe_load((FOLDER / f"{name}.yml").read_text())


def test_every_filter_is_documented_and_nothing_else():
    assert {path.stem for path in FOLDER.glob("*.yml")} == set(FILTERS)


@pytest.mark.parametrize("name", FILTERS)
def test_options_are_the_parameters(name):
    document = documentation(name)
    assert set(document) == {"DOCUMENTATION", "EXAMPLES", "RETURN"} and set(document["RETURN"]) == {"_value"}
    about = document["DOCUMENTATION"]
    assert about["name"] == name
    _input, *parameters = inspect.signature(FILTERS[name]).parameters.values()
    assert list(about["options"]) == ["_input", *(parameter.name for parameter in parameters)]
    assert about.get("positional", "") == ", ".join(parameter.name for parameter in parameters)
    for parameter in parameters:
        assert about["options"][parameter.name].get("required", False) is (parameter.default is parameter.empty), parameter.name


WITH_RESULT = [name for name in FILTERS if RESULT.search(documentation(name)["EXAMPLES"])]


@pytest.mark.parametrize("name", WITH_RESULT)
def test_examples_result_in_what_they_say(name, tmp_path):
    shutil.copy(FLAGS, tmp_path / "flags.json")
    loader = DataLoader()
    loader.set_basedir(str(tmp_path))
    text = documentation(name)["EXAMPLES"]
    (task,) = yaml.safe_load(text)
    variables_of_task = {"ansible_search_path": [str(tmp_path)], **task.get("vars", {})}
    answer = Templar(loader=loader, variables=variables_of_task).template(trust_as_template(task["ansible.builtin.debug"]["msg"]))
    assert answer == ast.literal_eval(RESULT.search(text)[1])


def test_there_are_examples_with_results():
    assert len(WITH_RESULT) >= 5
