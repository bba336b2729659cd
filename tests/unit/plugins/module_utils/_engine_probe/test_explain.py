# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import textwrap

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._engine_probe.explain import explain, short
from ansible_collections.llmops.inference.plugins.module_utils._engine_probe.watch import Change, Origin, Place, Record


class Written:
    """A file of the engine. Marks such as ``<1>`` in it name lines."""

    def __init__(self, folder, text):
        self.path = folder / "site-packages" / "sglang" / "args.py"
        self.path.parent.mkdir(parents=True)
        self.path.write_text(textwrap.dedent(text).lstrip("\n"))

    def line(self, mark):
        (found,) = [number for number, row in enumerate(self.path.read_text().splitlines(), start=1) if mark in row]
        return found

    def place(self, mark, function="f"):
        return Place(function, str(self.path), self.line(mark))

    def explain(self, *marks, logs=(), rules=None, field="page_size", also=()):
        stack = [self.place(mark) for mark in marks]
        change = Change(field, None, 64, Origin(stack, rules or {}, "the rule"), [self.place(mark) for mark in also])
        return explain(change, logs)


@pytest.fixture(name="written")
def fixture_written(tmp_path):
    return lambda text: Written(tmp_path, text)


def because(row):
    return [(guard["test"], guard["was"]) for guard in row["because"]]


def test_paths_are_short():
    assert short("/opt/x/lib/site-packages/sglang/srt/a.py") == "sglang/srt/a.py"
    assert short("/a/site-packages/b/site-packages/c.py") == "c.py"
    assert short("/work/sglang/a.py") == "/work/sglang/a.py"


def test_everything_that_is_known(written):
    engine = written(
        """
        def f(self):
            if a:
                # Why.
                self.page_size = 64  # <1>

        def g(self):
            self.page_size = 64  # <2>
        """
    )
    stack = [engine.place("<1>"), Place("resolve", "x", 1), Place("start", "x", 2)]
    assert explain(Change("page_size", 1, 64, Origin(stack, {}, "the rule"), [engine.place("<2>")]), []) == {
        "field": "page_size",
        "before": 1,
        "after": 64,
        "declared_by": "the rule",
        "function": "f",
        "at": "sglang/args.py:4",
        "statement": "self.page_size = 64",
        "because": [{"test": "a", "was": True, "line": 2, "comment": "Why."}],
        "comment": "Why.",
        "logged": [],
        "via": ["resolve", "start"],
        "also": ["sglang/args.py:7"],
    }


def test_where_nothing_is_known():
    row = explain(Change("x", 1, 2, Origin([], {})), [])
    assert (row["field"], row["before"], row["after"]) == ("x", 1, 2)
    assert [row[key] for key in ("function", "at", "statement", "comment")] == [None] * 4
    assert [row[key] for key in ("because", "logged", "via", "also")] == [[]] * 4


@pytest.mark.parametrize("text", ["def f():\n    x = '''\n'''\n    y = 1  # <1>\n", ""])
def test_a_source_that_cannot_be_read_leaves_the_reason_empty(tmp_path, text):
    path = tmp_path / "args.py"
    path.write_text(text)
    place = Place("f", str(path), 4)
    row = explain(Change("x", 1, 2, Origin([place, Place("g", "x", 1)], {})), [Record("INFO", "x", place)])
    assert (row["function"], row["at"], row["via"]) == ("f", f"{path}:4", ["g"])
    assert (row["statement"], row["because"], row["comment"], row["logged"]) == (None, [], None, [])


@pytest.mark.parametrize(
    "text, expected",
    [
        ("if a:\n    if b:\n        pass  # <1>", [("b", True), ("a", True)]),
        ("if z:\n    return\nif a:\n    pass  # <1>", [("a", True)]),
        ("if z:\n    return\npass  # <1>", [("z", False)]),
        ("pass  # <1>", [("outer", True)]),
    ],
)
def test_own_tests_then_leavers_then_those_of_callers(written, text, expected):
    caller = "\n\ndef g():\n    if outer:\n        f()  # <2>\n"
    engine = written("def f():\n" + textwrap.indent(text, "    ") + caller)
    assert because(engine.explain("<1>", "<2>")) == expected
    if expected == [("outer", True)]:
        assert because(engine.explain("<1>")) == []


CALLERS = """
def f():
    pass  # <1>

def g():
    f()  # <2>

def h():
    if third:
        g()  # <3>

def i():
    if fourth:
        h()  # <4>
"""


@pytest.mark.parametrize("marks, expected", [(("<1>", "<2>", "<3>", "<4>"), "third"), (("<1>", "<2>", "<2>", "<3>"), None), (("<1>", "<3>", "<4>"), "third")])
def test_the_nearest_of_two_callers(written, marks, expected):
    assert because(written(CALLERS).explain(*marks)) == ([(expected, True)] if expected else [])


def test_a_caller_that_cannot_be_read(written):
    engine = written(CALLERS)
    change = Change("x", 1, 2, Origin([engine.place("<1>"), Place("g", "none", 1), engine.place("<3>")], {}))
    row = explain(change, [])
    assert (row["because"], row["statement"]) == ([], "pass"), "and one further out is not the reason"


@pytest.mark.parametrize(
    "text, comment",
    [
        ("if a:  # test\n    # line\n    pass  # <1>", "test"),
        ("if a:\n    x = 1\n    # line\n    y = 2 + len('<1>')", "line"),
        ("# test\nif a:\n    y = 2 + len('<1>')", "test"),
        ("# outer\nif a:\n    if b:\n        y = len('<1>')", None),
        ("if a:\n    y = len('<1>')", None),
        ("y = len('<1>')  # beside", "beside"),
        ("# call\ncall(\n    a='<1>',\n)", "call"),
    ],
)
def test_the_comment(written, text, comment):
    assert written("def f():\n" + textwrap.indent(text, "    ")).explain("<1>")["comment"] == comment


def test_a_long_statement_is_cut(written):
    assert len(written(f"def f():\n    x = '<1>{'x' * 350}'\n").explain("<1>")["statement"]) == 300


LOGGING = """
def f(self):
    log("before")  # <before>
    if a:
        log("inside")  # <inside>
        if log("asked"):  # <asked>
            log("deeper")  # <deeper>
            self.page_size = 64  # <1>
            log("after")  # <after>
        log("outside")  # <outside>
    if c:
        log("other")  # <other>
        self.graphs.prefill.max_bs = 1  # <2>
    self.page_size = 1  # <3>
"""


@pytest.mark.parametrize(
    "log, change, message, belongs",
    [
        ("<deeper>", "<1>", "x", True),
        ("<after>", "<1>", "x", True),
        ("<asked>", "<1>", "x", True),
        ("<inside>", "<1>", "x", False),
        ("<outside>", "<1>", "x", False),
        ("<before>", "<1>", "x", False),
        ("<other>", "<1>", "x", False),
        ("<other>", "<1>", "page_size is now", True),
        ("<other>", "<1>", "set --page-size", True),
        ("<other>", "<1>", "set page-size", False),
        ("<other>", "<3>", "x", False),
        ("<before>", "<3>", "page_size", True),
    ],
)
def test_which_log_lines_belong(written, log, change, message, belongs):
    engine = written(LOGGING)
    row = engine.explain(change, logs=[Record("WARNING", message, engine.place(log))])
    assert row["logged"] == ([f"WARNING: {message}"] if belongs else [])


@pytest.mark.parametrize("message, belongs", [("max_bs", True), ("--graphs", True), ("prefill", False), ("graphs", False)])
def test_log_lines_of_a_part_of_a_record(written, message, belongs):
    engine = written(LOGGING)
    row = engine.explain("<2>", field="graphs.prefill.max_bs", logs=[Record("INFO", message, engine.place("<before>"))])
    assert bool(row["logged"]) == belongs


def test_log_lines_of_other_functions(written):
    engine = written(LOGGING)
    near = engine.place("<deeper>")
    logs = [Record("INFO", "page_size", near._replace(function="g")), Record("INFO", "page_size", near._replace(path="other"))]
    assert engine.explain("<1>", logs=logs)["logged"] == []
    assert engine.explain("<1>", logs=[Record("INFO", "x" * 400, near)])["logged"] == ["INFO: " + "x" * 300]


def test_a_line_before_the_test_of_a_rule_does_not_count(written):
    """The lines of the first test that is around the change, not those of the rule's own source."""
    engine, rules = rules_of(written, TABLE)
    logs = [Record("INFO", "one", engine.place("<log>")), Record("INFO", "two", engine.place("<first>"))]
    assert engine.explain("<1>", rules=rules, logs=logs)["logged"] == ["INFO: one"]


TABLE = """
def f(self):
    rules = [
        # Too few.
        ("few", lambda: self.tp_size < 2),  # <first>
        (
            # Many of them.
            "many",
            lambda: (
                self.tp_size
                > 2
            ),
        ),
        ("three", lambda: self.tp_size == 3),  # Three.
    ]
    for name, predicate in rules:
        if predicate():
            log(name)  # <log>
            self.page_size = 64  # <1>
"""


def rules_of(written, text, number=0, name="predicate"):
    engine = written(text)
    code = compile(engine.path.read_text(), str(engine.path), "exec")
    codes = []

    def collect(outer):
        for inner in outer.co_consts:
            if hasattr(inner, "co_code"):
                if inner.co_name == "<lambda>":
                    codes.append(inner)
                collect(inner)

    collect(code)
    return engine, {name: codes[number]}


@pytest.mark.parametrize(
    "number, test, comment", [(0, "self.tp_size < 2", "Too few."), (1, "self.tp_size > 2", "Many of them."), (2, "self.tp_size == 3", "Three.")]
)
def test_the_rule_of_a_table_comes_first(written, number, test, comment):
    engine, rules = rules_of(written, TABLE, number)
    row = engine.explain("<1>", rules=rules)
    line = engine.line(("<first>", "> 2", "Three.")[number]) - (2 if number == 1 else 0)
    assert because(row) == [(test, True), ("predicate()", True), ("for name, predicate in rules", True)]
    assert (row["comment"], row["because"][0]["line"]) == (comment, line)


def test_a_test_that_is_no_rule(written):
    engine, rules = rules_of(written, TABLE, name="other")
    assert because(engine.explain("<1>", rules=rules))[0] == ("predicate()", True)
    assert because(engine.explain("<1>"))[0] == ("predicate()", True)


def test_a_rule_without_a_call_in_the_test(written, tmp_path):
    engine, rules = rules_of(written, TABLE.replace("predicate():", "predicate:"))
    assert because(engine.explain("<1>", rules=rules))[0] == ("self.tp_size < 2", True)


@pytest.mark.parametrize("head", ['"""A file\nthat begins so.\n"""\n', "import os\n", ""])
def test_a_table_outside_of_functions(written, head):
    """Its source is not read, and nothing breaks."""
    text = f"{head}RULES = [lambda: a]\n\n\ndef f(self):\n    for predicate in RULES:\n        if predicate():\n            self.page_size = 64  # <1>\n"
    engine, rules = rules_of(written, text)
    assert because(engine.explain("<1>", rules=rules))[-2:] == [("predicate()", True), ("for predicate in RULES", True)]


def test_a_change_inside_the_test_itself(written):
    engine = written("def f(self):\n    if self.take(64) is None:  # <1>\n        log('page')\n    log('later')  # <later>\n")
    assert because(engine.explain("<1>")) == [] and engine.explain("<1>")["statement"].startswith("if self.take(64) is None:")


def test_a_rule_whose_file_is_gone(written):
    engine, rules = rules_of(written, TABLE)
    gone = {"predicate": rules["predicate"].replace(co_filename="/none/rules.py")}
    assert because(engine.explain("<1>", rules=gone))[0] == ("predicate()", True)


def test_a_caller_whose_source_is_odd(written, tmp_path):
    odd = tmp_path / "odd.py"
    odd.write_text("def g():\n    text = '''\n'''\n    f()\n")
    engine = written(CALLERS)
    stack = [engine.place("<1>"), Place("g", str(odd), 4), engine.place("<3>")]
    assert explain(Change("x", 1, 2, Origin(stack, {})), [])["because"] == []
