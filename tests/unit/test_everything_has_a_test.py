# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whatever is added to the collection comes with a test and with its documentation."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("action", "filter", "module_utils", "modules", "plugin_utils")
PLUGINS = [path for kind in KINDS for path in sorted((ROOT / "plugins" / kind).rglob("*.py")) if path.name != "__init__.py"]
MODULES = [path for path in PLUGINS if path.parent.name == "modules"]
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())
PLAYBOOKS = sorted(path.stem for path in (ROOT / "playbooks").glob("*.yml"))
# The cases of shared/cases/cases.yml that this version answers.
FLAGS = ("F01", "F03", "F04", "F05", "F07", "F08", "F10", "F12")
UNIT = ("U01", "U02", "U04", "U05", "U06", "U09")
LOGS = ("L01", "L02", "L04", "L05", "L07", "L08", "L10", "L11", "L12", "L14", "L16", "L17", "L19")
ENVIRONMENT = ("T01", "T03", "T05", "I01", "I02", "I04", "I05")
BENCHMARK = ("B01", "B03", "B04", "B05")
CASES = (*FLAGS, *UNIT, *LOGS, *ENVIRONMENT, *BENCHMARK, "N01", "N03", "N04", "N07", "N08")


def molecule(*suffixes):
    """Texts of all files of the scenarios."""
    paths = sorted(path for path in (ROOT / "molecule").rglob("*") if path.suffix in suffixes)
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths}


def runs(text):
    """Names of the playbooks that a file of a scenario runs: imported, through its fixtures, or by a script of the generated repository."""
    found = re.findall(r"playbooks/(\w+)\.yml|\bplaybook\((?:site, )?\s*[\"'](\w+)[\"']|\bplay\(\s*\"llmops\.inference\.(\w+)\"", text)
    scripts = [ROOT / "roles" / "sglang_gitops" / "templates" / "ci" / name for name in re.findall(r"\.ci\(\s*\"(\w+\.sh)\"", text)]
    by_script = {name for path in scripts for name in re.findall(r"ansible-playbook .*?llmops\.inference\.(\w+)", path.read_text())}
    # Each of these starts another one.
    started = {"render"} if by_script & {"check", "rollout"} else set()
    return {name for names in found for name in names if name} | ({"deploy"} if re.search(r"\bdeploy\(", text) else set()) | by_script | started


def test_there_is_something_to_look_at():
    assert len(PLUGINS) > 20 and len(MODULES) >= 5 and len(ROLES) >= 3 and len(PLAYBOOKS) >= 4 and molecule(".yml")


@pytest.mark.parametrize("path", PLUGINS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_plugin_has_a_test(path):
    place = path.relative_to(ROOT / "plugins").parent
    test = ROOT / "tests" / "unit" / "plugins" / place / f"test_{path.name}"
    assert test.is_file(), f"there is no {test.relative_to(ROOT)}"
    assert re.search(r"^def test_", test.read_text(), re.MULTILINE)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_every_module_is_documented(path):
    values = {
        target.id: node.value.value
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
    }
    for name in ("DOCUMENTATION", "EXAMPLES", "RETURN"):
        assert yaml.safe_load(values[name]), name
    assert yaml.safe_load(values["DOCUMENTATION"])["module"] == path.stem
    assert any(f"llmops.inference.{path.stem}" in task for task in yaml.safe_load(values["EXAMPLES"]))


def names_of_filters():
    for path in (ROOT / "plugins" / "filter").glob("*.py"):
        (function,) = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef) and node.name == "filters"]
        yield from (key.value for node in ast.walk(function) if isinstance(node, ast.Dict) for key in node.keys)


@pytest.mark.parametrize("name", sorted(names_of_filters()))
def test_every_filter_is_documented(name):
    document = yaml.safe_load((ROOT / "plugins" / "filter" / f"{name}.yml").read_text())
    assert all(document[part] for part in ("DOCUMENTATION", "EXAMPLES", "RETURN"))
    assert f"llmops.inference.{name}" in document["EXAMPLES"]


@pytest.mark.parametrize("role", ROLES)
def test_every_role_is_used_in_a_scenario(role):
    converges = [text for path, text in molecule(".yml").items() if path.endswith("/converge.yml")]
    texts = converges + [(ROOT / "playbooks" / f"{name}.yml").read_text() for text in molecule(".yml", ".py").values() for name in runs(text)]
    assert any(f"llmops.inference.{role}\n" in text for text in texts)


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_every_playbook_is_run_by_a_scenario(playbook):
    assert any(playbook in runs(text) for text in molecule(".yml", ".py").values())


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_cited(case):
    own = Path(__file__).resolve()
    tests = [path.read_text() for path in (ROOT / "tests").rglob("*.py") if path.resolve() != own]
    assert any(re.search(rf"\b{case}\b", text) for text in (*tests, *molecule(".py").values()))
