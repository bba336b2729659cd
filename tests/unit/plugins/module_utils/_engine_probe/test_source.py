# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import itertools
import textwrap

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._engine_probe.source import Guard, function_at


@pytest.fixture(name="written")
def fixture_written(tmp_path):
    """Writes a function and returns it as read at the line that holds HERE, with that line's number."""

    numbers = itertools.count()

    def write(text):
        path = tmp_path / f"engine{next(numbers)}.py"
        path.write_text(textwrap.dedent(text).lstrip("\n"))
        (line,) = [number for number, row in enumerate(path.read_text().splitlines(), start=1) if "HERE" in row]
        return function_at(str(path), line), line

    return write


def pairs(guards):
    return [(guard.test, guard.was) for guard in guards]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("x = HERE", []),
        ("if a:\n    x = HERE", [("a", True)]),
        ("if a:\n    pass\nelse:\n    x = HERE", [("a", False)]),
        ("if a:\n    pass\nelif b:\n    x = HERE\nelse:\n    pass", [("b", True), ("a", False)]),
        ("if a:\n    pass\nelif b:\n    pass\nelse:\n    x = HERE", [("b", False), ("a", False)]),
        ("if a:\n    if b:\n        x = HERE\n    y = 1", [("b", True), ("a", True)]),
        ("if a:\n    if b:\n        pass\n    x = HERE", [("a", True)]),
        ("if a:\n    pass\nx = HERE", []),
        ("if a and HERE(b):\n    pass", []),
        ("if a:\n    if HERE():\n        pass", [("a", True)]),
        ("if (\n    a\n    and b  # why\n):\n    x = HERE", [("a and b", True)]),
        ("try:\n    x = HERE\nexcept ValueError:\n    pass", []),
        ("try:\n    pass\nexcept (ValueError, OSError) as error:\n    x = HERE", [("except (ValueError, OSError)", True)]),
        ("try:\n    pass\nexcept:\n    x = HERE", [("except", True)]),
        ("for name in names:\n    x = HERE", [("for name in names", True)]),
        ("for key, value in rows[1:].items():\n    x = HERE", [("for key, value in rows[1:].items()", True)]),
        ("while (found := ask()):\n    x = HERE", [("while found := ask()", True)]),
        ("with a:\n    if b:\n        with c:\n            x = HERE", [("b", True)]),
        ("for one in many:\n    if one:\n        x = HERE", [("one", True), ("for one in many", True)]),
        ("x = call(\n    a,\n    HERE,\n)", []),
    ],
)
def test_guards(written, text, expected):
    function, line = written("def f(self):\n" + textwrap.indent(text, "    "))
    assert pairs(function.guards(line)) == expected


def test_a_guard_knows_its_lines(written):
    function, line = written(
        """
        class A:
            def f(self):
                # Above.
                if a:
                    pass
                else:
                    x = HERE
                y = 1
        """
    )
    (guard,) = function.guards(line)
    assert guard == Guard("a", False, 4, "Above.", 4, 7)
    assert guard.to_json() == {"test": "a", "was": False, "line": 4, "comment": "Above."}


@pytest.mark.parametrize("text", ["def inner():\n        x = HERE", "async def inner():\n        x = HERE"])
def test_guards_end_at_the_function(written, text):
    function, line = written(f"def outer():\n    if a:\n        {text.replace(chr(10), chr(10) + '    ')}")
    assert function.guards(line) == [], "what is around its definition says nothing of its call"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("if a:\n    return\nx = HERE", [("a", False)]),
        ("if a:\n    log()\n    return 1\nif b:\n    return 2\nx = HERE", [("a", False), ("b", False)]),
        ("if a:\n    return\n    log()\nx = HERE", []),
        ("if a:\n    log()\nx = HERE", []),
        ("if a:\n    return\nelse:\n    log()\nx = HERE", []),
        ("x = HERE\nif a:\n    return", []),
        ("if a:\n    x = HERE\n    return\n", []),
        ("if a:\n    return\nif b:\n    x = HERE\n", [("a", False)]),
        ("if z:\n    pass\nelse:\n    if a:\n        return\n    x = HERE\n", [("a", False)]),
        ("try:\n    if a:\n        return\n    x = HERE\nexcept OSError:\n    pass\n", [("a", False)]),
        ("".join(f"if a{number}:\n    return\n" for number in range(5)) + "x = HERE", [("a2", False), ("a3", False), ("a4", False)]),
    ],
)
def test_leavers(written, text, expected):
    function, line = written("def f(self):\n" + textwrap.indent(text, "    "))
    assert pairs(function.leavers(line)) == expected


def test_a_leaver_comes_with_its_comment(written):
    function, line = written("def f():\n    if a:  # not here\n        return\n    x = HERE")
    assert function.leavers(line) == [Guard("a", False, 2, "not here", 2, 2)]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("if HERE:\n    pass", None),
        ("# Above.\nif HERE:\n    pass", "Above."),
        ("# Two\n#  lines.\nif HERE:\n    pass", "Two lines."),
        ("# Far.\n\nif HERE:\n    pass", None),
        ("# Far.\nx = 1\nif HERE:\n    pass", None),
        ("if HERE:  # beside\n    pass", "beside"),
        ("# Above.\nif HERE:  # beside\n    # Inside.\n    pass", "Above."),
        ("if HERE:  # beside\n    # Inside.\n    pass", "beside"),
        ("if HERE:\n    # First\n    # in the body.\n    pass", "First in the body."),
        ("if HERE:\n    pass\n    # Later.\n    pass", None),
        ("if HERE == 'a # b':\n    pass", None),
        ('if HERE == "it\'s # b":  # really\n    pass', "really"),
        ("if HERE == 'a \\' # b':\n    pass", None),
        ("if HERE.startswith('#'):\n    pass", None),
        ("# " + "x" * 500 + "\nif HERE:\n    pass", "x" * 400),
        ("if HERE:  # " + "x" * 500 + "\n    pass", "x" * 400),
    ],
)
def test_comments(written, text, expected):
    function, line = written("def f(self):\n" + textwrap.indent(text, "    "))
    assert function.comment(line, function.statement(line)) == expected


def test_what_is_inside_is_said_of_a_test_only(written):
    function, line = written("def f():\n    if HERE:\n        # Inside.\n        pass")
    assert (function.comment(line), function.comment(line, function.statement(line))) == (None, "Inside.")
    function, line = written("def f():\n    with HERE:\n        # Inside.\n        pass")
    assert function.comment(line, function.statement(line)) is None


def test_a_comment_that_opens_the_file(written):
    function, _line = written("# Top.\ndef HERE():\n    pass\n")
    assert function.comment(2) == "Top."


@pytest.mark.parametrize(
    "text, code",
    [
        ("x = HERE", "x = HERE"),
        ("x = call(\n    a,\n\n    b=HERE,\n)", "x = call( a, b=HERE, )"),
        ("if a: x = HERE", "x = HERE"),
        ("if HERE:\n    x = 1", "if HERE: x = 1"),
        ("x = 'HERE" + "y" * 500 + "'", "x = 'HERE" + "y" * 391),
    ],
)
def test_statement(written, text, code):
    function, line = written("def f(self):\n" + textwrap.indent(text, "    "))
    assert function.code(function.statement(line)) == code


def test_no_statement(written):
    function, line = written("def f():\n    pass\n\n\nHERE = 1\n")
    assert function.statement(line) is None and function.code(None) == "" and function.guards(line) == [] and function.leavers(line) == []


@pytest.mark.parametrize(
    "text, name",
    [
        ("def one():\n    pass\n\ndef two():\n    x = HERE", "two"),
        ("def one():\n    pass\n\nasync def two():\n    x = HERE", "two"),
        ("class A:\n    def one(self):\n        pass\n\n    def two(self):\n        x = HERE\n\n    def three(self):\n        pass", "two"),
        ("def one():\n    def inner():\n        pass\n    x = HERE", "one"),
        ("def one():\n    def inner():\n        x = HERE\n    y = 1", "inner"),
        ("def one(\n    a,\n    b,\n):\n    x = HERE", "one"),
        ("def one(\n    a,\n) -> None:\n    x = 1\n# At the margin.\n    y = HERE", "one"),
        ("def one():\n    x = 1\n\n    # HERE", "one"),
        ("def one(): HERE", "one"),
    ],
)
def test_the_function_around_a_line(written, text, name):
    function, line = written(text)
    (node,) = function.tree.body
    assert node.name == name and node.lineno <= line


def test_blank_lines_belong_to_what_is_before_them(written, tmp_path):
    function, line = written("def one():\n    x = HERE\n\n\ndef two():\n    pass")
    assert function_at(str(tmp_path / "engine0.py"), line + 1) is function, "and a function is parsed once"
    assert function_at(str(tmp_path / "engine0.py"), line + 3) is not function


@pytest.mark.parametrize("line", [0, -1, 3])
def test_lines_that_are_not_there(written, tmp_path, line):
    written("def f():\n    HERE")
    with pytest.raises(OSError, match=f"^no source for .*engine0.py:{line}$"):
        function_at(str(tmp_path / "engine0.py"), line)


def test_no_file():
    with pytest.raises(OSError, match="^no source for /none/engine.py:1$"):
        function_at("/none/engine.py", 1)


def test_what_cannot_be_parsed_alone(written):
    with pytest.raises(SyntaxError):
        written('def f():\n    text = """first\nsecond"""\n    x = HERE')
