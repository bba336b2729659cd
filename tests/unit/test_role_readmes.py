# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""tools/role_readmes.py: markup, tables, the part between the markers, and a small tree written, checked and made stale."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("role_readmes", ROOT / "tools" / "role_readmes.py")
role_readmes = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = role_readmes  # dataclasses look their module up
_SPEC.loader.exec_module(role_readmes)


@pytest.mark.parametrize(
    "text, shown",
    [
        pytest.param("C(true) is V(on); see O(release)", "`true` is `on`; see `release`", id="spans"),
        pytest.param("for O(flavour=cpu) and E(HOME)", "for `flavour=cpu` and `HOME`", id="values"),
        pytest.param("as RV(a.b.c#module:diagnosis)", "as `diagnosis` of `a.b.c`", id="value-of-another-module"),
        pytest.param("RV(action=pending) and M(a.b.c)", "`action=pending` and `a.b.c`", id="own-value"),
        pytest.param("C(sglang-INSTANCE.service\\)x)", "`sglang-INSTANCE.service)x`", id="escaped-bracket"),
        pytest.param("C(a`b)", "`` a`b ``", id="backtick"),
        pytest.param("I(soft) B(hard) U(https://x) L(here, https://y)", "*soft* **hard** <https://x> [here](https://y)", id="prose"),
        pytest.param("TODO(this) and NVIDIA(R) stay", "TODO(this) and NVIDIA(R) stay", id="no-markup"),
        pytest.param("a < b, C(<c>)", "a &lt; b, `<c>`", id="angle-brackets"),
    ],
)
def test_markup(text, shown):
    assert role_readmes.markdown(text) == shown


@pytest.mark.parametrize(
    "option, type_name, default",
    [
        pytest.param({"type": "str", "default": "main"}, "str", "`main`", id="string"),
        pytest.param({"default": ""}, "str", '`""`', id="empty-string"),
        pytest.param({"type": "bool", "default": False}, "bool", "`false`", id="false-is-shown"),
        pytest.param({"type": "int", "default": 0}, "int", "`0`", id="zero-is-shown"),
        pytest.param({"type": "list", "elements": "str", "default": []}, "list of str", "`[]`", id="list"),
        pytest.param({"type": "dict", "default": {}}, "dict", "`{}`", id="mapping"),
        pytest.param({"type": "str", "choices": ["a", "b"], "default": "a"}, "str: `a`, `b`", "`a`", id="choices"),
        pytest.param({"type": "path", "required": True}, "path", "required", id="required"),
        pytest.param({"type": "path"}, "path", "", id="no-default"),
    ],
)
def test_an_option(option, type_name, default):
    assert role_readmes.type_of(option) == type_name
    assert role_readmes.default_of(option) == default


def test_a_table_keeps_a_pipe_inside_its_cell():
    assert role_readmes.table(("A", "B"), [("x|y", "z")]) == "| A | B |\n| --- | --- |\n| x\\|y | z |\n"


def test_only_the_part_between_the_markers_is_replaced():
    text = f"# Role\n\nBy hand.\n\n{role_readmes.BEGIN}\nold\n{role_readmes.END}\n\nMore by hand.\n"
    once = role_readmes.replace_variables(text, "new\n", "README.md")
    assert once == f"# Role\n\nBy hand.\n\n{role_readmes.BEGIN}\n\nnew\n\n{role_readmes.END}\n\nMore by hand.\n"
    assert role_readmes.replace_variables(once, "new\n", "README.md") == once


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("no markers", id="none"),
        pytest.param(f"{role_readmes.BEGIN}\n", id="no-end"),
        pytest.param(f"{role_readmes.END}\n{role_readmes.BEGIN}\n", id="wrong-order"),
        pytest.param(f"{role_readmes.BEGIN}\n{role_readmes.END}\n{role_readmes.BEGIN}\n", id="twice"),
    ],
)
def test_unclear_markers_are_refused(text):
    with pytest.raises(role_readmes.GenerationError, match="README.md needs the lines"):
        role_readmes.replace_variables(text, "new\n", "README.md")


SPEC = """
argument_specs:
  main:
    short_description: Do it
    options:
      sglang_thing_name:
        description: [The name., "Shown as C(thing)."]
        type: str
        default: main
"""
MODULE = '''
raise RuntimeError("documentation is read, not imported")
DOCUMENTATION = r"""
module: sglang_thing
short_description: Do one thing
extends_documentation_fragment: [llmops.inference.attributes, llmops.inference.attributes.probe]
options:
  name: {description: The name., required: true}
"""
RETURN = r"""
thing:
  description: The thing.
  returned: always
  type: dict
  contains:
    size: {description: Its size., returned: success, type: int}
"""
'''
FRAGMENT = '''
class ModuleDocFragment:
    DOCUMENTATION = r"""
options: {}
"""
    PROBE = r"""
options:
  port: {description: The port., type: int, default: 1}
"""
'''
FILTER = """
DOCUMENTATION:
  name: sglang_words
  short_description: Turn flags into words
  options:
    _input: {description: The flags., type: dict, required: true}
RETURN:
  _value: {description: The words., type: list, elements: str}
"""
PLAYBOOK = """
- name: Do it everywhere
  hosts: "{{ sglang_rollout_hosts | default('sglang') }}"
  tasks:
    - name: Look
      llmops.inference.sglang_thing:
        name: "{{ sglang_thing_name }}"
      register: __sglang_thing
    - name: Take it away
      ansible.builtin.import_role: {name: llmops.inference.sglang_thing, tasks_from: remove.yml}
"""
REMOVE = """
- name: Remove
  when: sglang_remove_models_enabled | default(false) and sglang_thing_name
"""


@pytest.fixture
def tree(tmp_path):
    files = {
        "roles/sglang_thing/meta/argument_specs.yml": SPEC,
        "roles/sglang_thing/README.md": f"By hand.\n\n{role_readmes.BEGIN}\n{role_readmes.END}\n",
        "roles/sglang_thing/tasks/remove.yml": REMOVE,
        "plugins/modules/__init__.py": "",
        "plugins/modules/sglang_thing.py": MODULE,
        "plugins/doc_fragments/attributes.py": FRAGMENT,
        "plugins/filter/sglang_words.yml": FILTER,
        "playbooks/act.yml": PLAYBOOK,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_it_writes_once_and_checks_without_writing(tree, capsys):
    assert role_readmes.main(["--check"], tree) == 1
    assert not (tree / "docs").exists()
    assert capsys.readouterr().err.splitlines() == [
        "roles/sglang_thing/README.md is stale: run make docs",
        "docs/reference.md is stale: run make docs",
    ]
    assert role_readmes.main([], tree) == 0
    assert capsys.readouterr().out.splitlines() == ["roles/sglang_thing/README.md written", "docs/reference.md written"]
    assert role_readmes.main(["--check"], tree) == 0
    assert role_readmes.main([], tree) == 0
    assert capsys.readouterr() == ("", "")


def test_what_is_written(tree):
    role_readmes.main([], tree)
    readme = (tree / "roles/sglang_thing/README.md").read_text()
    assert readme.startswith("By hand.\n")
    assert "| `sglang_thing_name` | str | `main` | The name. Shown as `thing`. |" in readme
    lines = (tree / "docs/reference.md").read_text().splitlines()
    for line in (
        "### `llmops.inference.act`",
        "| `sglang_rollout_hosts` | `sglang` | Pattern of the inventory hosts that the play runs on. |",
        "| `sglang_thing_name` | `main` | The name. Shown as `thing`. |",
        "Also the variables of [sglang_thing](../roles/sglang_thing/README.md).",
        "| [`llmops.inference.sglang_thing`](../roles/sglang_thing/README.md) | Do it |",
        "### `llmops.inference.sglang_thing`",
        "Do one thing.",
        "| `name` | str | required | The name. |",
        "| `port` | int | `1` | The port. |",
        "| `thing.size` | int | success | Its size. |",
        "### `llmops.inference.sglang_words`",
        "| `_value` | list of str |  | The words. |",
    ):
        assert lines.count(line) == 1, line
    assert sum("sglang_remove_models_enabled" in line for line in lines) == 1


def test_a_change_of_the_source_makes_it_stale(tree, capsys):
    role_readmes.main([], tree)
    (tree / "roles/sglang_thing/meta/argument_specs.yml").write_text(SPEC.replace("default: main", "default: other"))
    capsys.readouterr()
    assert role_readmes.main(["--check"], tree) == 1
    assert "roles/sglang_thing/README.md is stale" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name, text, message",
    [
        pytest.param("playbooks/act.yml", PLAYBOOK.replace("sglang_thing_name", "sglang_thing_nome"), "act.yml reads sglang_thing_nome", id="unknown-input"),
        pytest.param("roles/sglang_thing/README.md", "By hand.\n", "README.md needs the lines", id="no-markers"),
        pytest.param("roles/sglang_thing/README.md", None, "README.md is missing", id="no-readme"),
    ],
)
def test_what_cannot_be_generated_is_one_sentence(tree, capsys, name, text, message):
    if text is None:
        (tree / name).unlink()
    else:
        (tree / name).write_text(text)
    assert role_readmes.main([], tree) == 2
    assert message in capsys.readouterr().err
    assert not (tree / "docs").exists()


def test_the_playbooks_inputs_are_those_that_the_filter_of_unknown_variables_lets_pass():
    text = (ROOT / "plugins" / "filter" / "variables.py").read_text()
    allowed = re.search(r"_PLAYBOOK_INPUTS = \((.*?)\)", text, re.DOTALL)[1]
    assert sorted(role_readmes.PLAYBOOK_INPUTS) == sorted(re.findall(r'"(\w+)"', allowed))
