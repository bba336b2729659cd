# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is seen of two tiny engines. The hooks stay in a process, so each engine is asked in one of its own."""

from __future__ import annotations

import json
import sys
import textwrap

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._engine_probe import watch
from ansible_collections.llmops.inference.tests.unit.plugins.module_utils._engine_probe.fake import assigning, declaring


def seen(candidate):
    """The changes without their reasons."""
    return [(row["field"], row["before"], row["after"]) for row in candidate["changes"]]


def changed(candidate, field):
    (row,) = [row for row in candidate["changes"] if row["field"] == field]
    return row


def because(row):
    return [(guard["test"], guard["was"]) for guard in row["because"]]


def test_an_assignment_is_told_with_everything_about_it(tmp_path):
    engine = assigning(
        tmp_path,
        "self._handle_pages()",
        """
        def _handle_pages(self):
            if self.backend == "flashinfer":
                return
            elif self.tp_size > 1:
                # Pages of 64
                # are faster.
                logger.warning("\\x1b[33mpages of %d\\x1b[0m", 64)
                self.page_size = 64  # <1>
            logger.info("done")
        """,
    )
    candidate = engine.resolve("--tp-size", "2")
    line = int(engine.at("elif self.tp_size").split(":")[1])
    assert candidate["changes"] == [
        {
            "field": "page_size",
            "before": None,
            "after": 64,
            "declared_by": None,
            "function": "_handle_pages",
            "at": engine.at("<1>"),
            "statement": "self.page_size = 64",
            "because": [
                {"test": "self.tp_size > 1", "was": True, "line": line, "comment": "Pages of 64 are faster."},
                {"test": 'self.backend == "flashinfer"', "was": False, "line": line - 2, "comment": None},
            ],
            "comment": "Pages of 64 are faster.",
            "logged": ["WARNING: pages of 64"],
            "via": ["__post_init__"],
            "also": [],
        }
    ]
    assert candidate["log"] == [f"WARNING {engine.at('x1b[33m')} pages of 64"], "as far as the operator's level goes: no INFO"
    assert candidate["effective"]["page_size"] == 64


def test_which_writes_are_changes(tmp_path):
    engine = assigning(
        tmp_path,
        """
        self.backend = self.backend
        self.tp_size = 2
        self.tp_size = 2
        self.overlap = 0  # another type
        self.tp_size = 3
        self.tp_size = 2
        self.made_up = 5
        self._private = 7
        object.__setattr__(self, "limit", 5)
        other = ServerArgs.__new__(ServerArgs)
        other.page_size = 128
        if self.model_path == "m":
            second = ServerArgs(model_path="second")
        """,
        check="self.page_size = 4",
    )
    candidate = engine.resolve()
    assert candidate["rejection"] is None
    assert seen(candidate) == [("tp_size", 1, 2), ("overlap", False, 0), ("tp_size", 2, 3), ("tp_size", 3, 2)]
    assert candidate["effective"]["page_size"] == 4, "what is set later is told, and not as a change of resolution"
    assert not {"made_up", "_private"} & set(candidate["effective"])


def test_the_same_value_again_from_elsewhere(tmp_path):
    """Taking the first cause away may not be enough."""
    engine = assigning(
        tmp_path,
        """
        self.page_size = 64  # <0>
        for _time in range(2):
            self.page_size = 64  # <1>
            self.backend = None
        self.page_size = 64  # <2>
        self.tp_size = 5
        self.page_size = 32
        self.page_size = 32  # <3>
        self.overlap = True
        self.overlap = False
        self.overlap = False  # <4>
        """,
    )
    candidate = engine.resolve()
    assert [(row["field"], row["after"], row["also"]) for row in candidate["changes"]] == [
        ("page_size", 64, [engine.at("<1>"), engine.at("<2>")]),
        ("tp_size", 5, []),
        ("page_size", 32, [engine.at("<3>")]),
        ("overlap", True, []),
        ("overlap", False, [engine.at("<4>")]),
    ]


def test_the_deciding_function_and_its_callers(tmp_path):
    engine = assigning(
        tmp_path,
        """
        self.first()
        def materialize_declarations():
            self.limit = 3  # seen when it was declared
        materialize_declarations()
        """,
        """
        def first(self):
            if self.tp_size == 1:
                self.declare_resolution()
            third = [self.second(number) for number in range(1)]

        def declare_resolution(self):
            self.page_size = 64

        def second(self, number):
            setattr(self, "backend", "triton")  # <1>
            a = lambda: self.third(number)
            a()

        def third(self, depth):
            if depth < 9:
                return self.third(depth + 1)
            self.tp_size = 8
        """,
    )
    candidate = engine.resolve()
    assert [row["field"] for row in candidate["changes"]] == ["page_size", "backend", "tp_size"] and candidate["effective"]["limit"] == 3
    plumbing = changed(candidate, "page_size")
    assert (plumbing["function"], plumbing["via"]) == ("first", ["__post_init__"]), "what carries a decision does not make it"
    assert because(plumbing) == [("self.tp_size == 1", True)]
    backend = changed(candidate, "backend")
    assert (backend["function"], backend["at"]) == ("second", engine.at("<1>")) and backend["via"][-2:] == ["first", "__post_init__"]
    assert changed(candidate, "tp_size")["via"] == ["third"] * 5, "six places are enough"


@pytest.mark.parametrize("words, number", [(["--tp-size", "4"], 4), ([], 1)])
def test_a_table_of_rules(tmp_path, words, number):
    engine = assigning(
        tmp_path,
        """
        rules = [
            # One alone.
            ("alone", lambda: self.tp_size == 1),
            ("many", lambda: self.tp_size > 2),  # Many.
        ]
        for name, predicate in rules:
            if predicate():
                self.backend = name  # <1>
        """,
    )
    row = changed(engine.resolve(*words), "backend")
    comment, test = ("Many.", "self.tp_size > 2") if words else ("One alone.", "self.tp_size == 1")
    assert because(row) == [(test, True), ("predicate()", True), ("for name, predicate in rules", True)]
    assert (row["comment"], row["at"]) == (comment, engine.at("<1>"))


def test_objects_that_answer_anything_are_no_rules(tmp_path):
    """The locals of the engine's functions are looked at, and never asked."""
    engine = assigning(
        tmp_path,
        """
        strange = Strange()
        self.page_size = 64
        """,
        top="""
        class Strange:
            def __getattr__(self, name):
                raise RuntimeError(f"asked for {name}")
        """,
    )
    candidate = engine.resolve()
    assert (seen(candidate), candidate["rejection"]) == ([("page_size", None, 64)], None)


def test_records_inside_a_field(tmp_path):
    engine = assigning(
        tmp_path,
        """
        self.graphs = GraphConfig()  # <new>
        self.place()
        self.graphs.decode.max_bs = None
        self.graphs = self.graphs
        loose = PhaseConfig()
        loose.backend = "loose"
        self.own = PhaseConfig()
        self.own.backend = "own"
        """,
        """
        def place(self):
            if self.tp_size == 1:
                self.graphs.prefill.backend = "disabled"  # <1>
            self.graphs.prefill.backend = "disabled"  # <2>
        """,
    )
    candidate = engine.resolve()
    new = [row for row in candidate["changes"] if row["at"] == engine.at("<new>")]
    assert [(row["field"], row["after"]) for row in new] == [
        ("graphs.decode.backend", "full"),
        ("graphs.prefill.backend", "full"),
    ], "what is None stays so"
    (row,) = [row for row in candidate["changes"] if row not in new]
    assert (row["field"], row["before"], row["after"], row["at"]) == ("graphs.prefill.backend", "full", "disabled", engine.at("<1>"))
    assert (because(row), row["also"]) == ([("self.tp_size == 1", True)], [engine.at("<2>")])
    assert candidate["effective"]["graphs"]["prefill"] == {"backend": "disabled", "max_bs": None}


def test_a_record_that_is_filled_before_it_is_put_into_its_field(tmp_path):
    engine = assigning(
        tmp_path,
        """
        config = GraphConfig()
        self.fill(config.prefill)
        self.graphs = config  # <put>
        """,
        """
        def fill(self, phase):
            if self.tp_size == 1:
                phase.max_bs = 8  # <1>
            phase.backend = "full"
        """,
    )
    candidate = engine.resolve()
    assert {row["field"]: row["at"] for row in candidate["changes"]} == {
        "graphs.decode.backend": engine.at("<put>"),
        "graphs.prefill.backend": engine.at("<put>"),
        "graphs.prefill.max_bs": engine.at("<1>"),
    }, "where the value was decided, which is not where it was set anew"
    assert because(changed(candidate, "graphs.prefill.max_bs")) == [("self.tp_size == 1", True)]


def test_a_dead_record_says_nothing_of_another(tmp_path):
    engine = assigning(
        tmp_path,
        """
        for _time in range(3):
            self.forget()
            phase = PhaseConfig(backend="triton")
            self.graphs = GraphConfig(prefill=phase)  # <1>
        """,
        """
        def forget(self):
            dead = PhaseConfig()
            dead.backend = "triton"
        """,
    )
    candidate = engine.resolve()
    assert {row["at"] for row in candidate["changes"]} == {engine.at("<1>")}


def test_a_log_line_that_cannot_be_formatted(tmp_path):
    """What logging forgives must not become a refusal."""
    engine = assigning(
        tmp_path,
        """
        logger.warning("%d pages", "no")
        logger.warning("%(pages)s", {"other": 1})
        logger.warning("%s", Broken())
        logger.warning("page_size")
        self.page_size = 64
        """,
        top="""
        class Broken:
            def __str__(self):
                raise OSError("broken")
        """,
    )
    candidate = engine.resolve()
    assert [line.split(" ", 2)[2] for line in candidate["log"]] == ["%d pages", "%(pages)s", "%s", "page_size"]
    assert candidate["rejection"] is None and changed(candidate, "page_size")["logged"] == ["WARNING: page_size"]


PASSES = '''
def pages(view):
    answer = {}
    if view.tp_size > 1:
        # Pages for many.
        answer["page_size"] = 64  # <pages>
    elif view.tp_size < 0:
        answer["page_size"] = 1
    return answer


def backend(view):
    if view.page_size != 64:
        return {}
    return dict(  # <backend>
        backend="triton",
        overlap=True,
        nonsense=1,
    )


def indirect(view):
    name, value = "tp" + "_size", 4
    return {name: value}


def repeated(view):
    answer = {"page_size": 64}
    if view.tp_size > 100:
        answer = {"page_size": 1}
    return answer  # <repeated>


def odd(view):
    text = """not
indented"""
    return {"backend": text}


def lines(view):
    return (
        {"page_size": 32}  # <lines>
        if view.tp_size == 1
        else {}
    )
'''


def test_decisions_of_passes(tmp_path):
    engine = declaring(
        tmp_path,
        """
        run_post_process_pass(args, pages)
        run_post_process_pass(args, backend)
        """,
        PASSES,
    )
    candidate = engine.resolve("--tp-size", "2")
    assert seen(candidate) == [("page_size", None, 64), ("backend", None, "triton"), ("overlap", False, True)]
    row = changed(candidate, "page_size")
    assert (row["function"], row["at"], row["declared_by"]) == ("pages", engine.at("<pages>"), "pages")
    assert (because(row), row["comment"], row["via"]) == ([("view.tp_size > 1", True)], "Pages for many.", ["run_resolution_pipeline"])
    row = changed(candidate, "overlap")
    assert (row["function"], row["at"], because(row)) == ("backend", engine.at("<backend>"), [("view.page_size != 64", False)])
    assert (candidate["effective"]["backend"], candidate["effective"]["tp_size"]) == ("triton", 2)
    assert not {"nonsense", "_hidden"} & set(candidate["effective"]) or "nonsense" in candidate["effective"]


def test_a_decision_of_a_pass_that_does_not_name_the_field(tmp_path):
    engine = declaring(tmp_path, "run_post_process_pass(args, indirect)  # <run>", PASSES)
    row = changed(engine.resolve(), "tp_size")
    assert (row["function"], row["at"], row["declared_by"]) == ("run_resolution_pipeline", engine.at("<run>"), "indirect"), "what is left is the caller"


def test_a_pass_that_cannot_be_read(tmp_path):
    engine = declaring(tmp_path, "run_post_process_pass(args, odd)", PASSES)
    candidate = engine.resolve()
    assert (candidate["rejection"], seen(candidate)) == (None, [("backend", None, "not\nindented")])
    assert changed(candidate, "backend")["declared_by"] == "odd"


def test_only_lines_that_ran_decide(tmp_path):
    engine = declaring(
        tmp_path,
        """
        run_post_process_pass(args, pages)
        run_post_process_pass(args, repeated)
        run_post_process_pass(args, lines)
        """,
        PASSES,
    )
    candidate = engine.resolve("--tp-size", "2")
    assert changed(candidate, "page_size")["also"] == [engine.at('answer = {"page_size": 64}')]
    (row,) = engine.resolve()["changes"][1:]
    assert (row["before"], row["after"], row["function"]) == (64, 32, "lines")


@pytest.mark.parametrize(
    "compound",
    [
        "if None:\n    answer['page_size'] = 1",
        "for number in ():\n    answer['page_size'] = 1",
        "while None:\n    answer['page_size'] = 1",
        "with view:\n    pass\n    answer['page_size'] = 1",
        "try:\n    pass\nexcept OSError:\n    answer['page_size'] = 1",
        "def inner():\n    return {'page_size': 1}",
    ],
)
def test_a_line_that_only_leads_to_others_decides_nothing(tmp_path, compound):
    path = tmp_path / "passes.py"
    path.write_text("def decide(view):\n    answer = {'page_size': 8}\n" + textwrap.indent(compound, "    ") + "\n    return answer\n")
    scope = {}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    code = scope["decide"].__code__
    found = watch.Watch()
    assert found._line_in_pass(code, "page_size") is None
    found._executed[code] = {2, 3}
    assert found._line_in_pass(code, "page_size") == ("decide", str(path), 2)
    assert found._line_in_pass(code, "tp_size") is None


@pytest.mark.parametrize("name, told", [*((name, False) for name in sorted(watch._PLUMBING)), ("decide", True)])
def test_what_carries_a_decision(name, told):
    scope = {"sys": sys, "origin": watch._origin}
    text = f"def outer():\n    return {name}()\n\n\ndef {name}():\n    return origin(sys._getframe())\n"
    exec(compile(text, "/none/sglang/a.py", "exec"), scope)
    assert [place.function for place in scope["outer"]().stack] == (["decide", "outer"] if told else ["outer"])


def test_there_is_plumbing():
    assert len(watch._PLUMBING) == 11


@pytest.mark.parametrize("entry", watch._ENTRIES)
def test_callers_end_where_resolution_begins(entry):
    scope = {"sys": sys, "origin": watch._origin}
    text = f"def outer():\n    return {entry}()\n\n\ndef {entry}():\n    return inner()\n\n\ndef inner():\n    return origin(sys._getframe())\n"
    exec(compile(text, "/none/sglang/a.py", "exec"), scope)
    assert [place.function for place in scope["outer"]().stack] == ["inner", entry]


def test_hooks_declare_for_themselves(tmp_path):
    engine = declaring(
        tmp_path,
        """
        run_hook(handle_pages, args)
        run_hook(handle_backend, args)
        materialize_declarations(args)
        """,
        """
        from sglang.srt.arg_groups.overrides import declare_resolution


        def handle_pages(args):
            if args.tp_size == 1:
                declare_resolution(args, "own name", page_size=16)  # <pages>
            return None


        def handle_backend(args):
            fields = {}
            if args.page_size is None:
                fields["backend"] = "slow"  # <backend>
            args._resolved_overrides.extend([("many", fields)])
        """,
    )
    candidate = engine.resolve()
    assert seen(candidate) == [("page_size", None, 16), ("backend", None, "slow")], "and what is written in the end was seen"
    row = changed(candidate, "page_size")
    assert (row["function"], row["at"], row["declared_by"], because(row)) == ("handle_pages", engine.at("<pages>"), "own name", [("args.tp_size == 1", True)])
    row = changed(candidate, "backend")
    assert (row["function"], row["at"], because(row)) == ("handle_backend", engine.at("<backend>"), [("args.page_size is None", True)])
    assert row["via"] == ["run_resolution_pipeline"], "and not by itself"
    assert candidate["effective"]["page_size"] == 16


def test_what_the_pipeline_itself_declares(tmp_path):
    engine = declaring(
        tmp_path,
        """
        declare_resolution(args, "here", backend="x", page_size=args.page_size)  # <1>
        args._resolved_overrides = [("again", {"overlap": False})]
        args._resolved_overrides.append(("more", {"overlap": True}))  # <2>
        """,
    )
    candidate = engine.resolve()
    assert seen(candidate) == [("backend", None, "x"), ("overlap", False, True)]
    assert [(row["function"], row["at"], row["via"]) for row in candidate["changes"]] == [
        ("run_resolution_pipeline", engine.at("<1>"), []),
        ("run_resolution_pipeline", engine.at("<2>"), []),
    ]


def test_lambdas_are_not_traced_as_passes(tmp_path):
    engine = declaring(
        tmp_path,
        """
        decide = lambda view: {"page_size": 8}  # <1>
        run_post_process_pass(args, decide)
        """,
    )
    row = changed(engine.resolve(), "page_size")
    assert (row["function"], row["at"], row["declared_by"]) == ("run_resolution_pipeline", engine.at("<1>"), "run_resolution_pipeline.<locals>.<lambda>")


def test_only_what_the_record_holds_after_resolution_is_effective(tmp_path):
    candidate = declaring(tmp_path, "declare_resolution(args, 'x', _hidden=3, made_up=4)").resolve("--backend", "triton")
    effective = candidate["effective"]
    assert (effective["backend"], effective["made_up"], "_hidden" in effective) == ("triton", 4, False)
    json.dumps(effective)
