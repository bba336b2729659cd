# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._systemd import (
    SystemdError,
    environment_assignment,
    environment_file,
    exec_line,
    meaning,
    parse_unit,
    quote_word,
    render_dropin,
)
from ansible_collections.llmops.inference.tests.unit.words import REFUSED_WORDS, WORDS

ESCAPES = {"t": "\t", "\\": "\\", '"': '"', "'": "'", "s": " ", "n": "\n"}


def split_words(line):
    """What systemd.syntax(7) makes of a line: words, quotes and C escapes resolved; what it warns about or refuses is an error here."""
    words, word, quote, i = [], None, "", 0
    while i < len(line):
        char = line[i]
        if char == "\\":
            word, i = (word or "") + ESCAPES[line[i + 1]], i + 2
            continue
        if quote:
            word, quote = (word, "") if char == quote else (word + char, quote)
        elif char in "\"'":
            assert word is None, "a quote in the middle of a word"
            word, quote = "", char
        elif char in " \t":
            words, word = (words if word is None else [*words, word]), None
        else:
            assert char != ";" or word, "a bare separator of commands"
            word = (word or "") + char
        i += 1
    assert not quote, "unbalanced quotes"
    return words if word is None else [*words, word]


def undouble(word, sign):
    assert not re.sub(re.escape(sign) * 2, "", word).count(sign), f"a single {sign}"
    return word.replace(sign * 2, sign)


@pytest.mark.parametrize(
    "word, quoted",
    [
        pytest.param("ab%12cd", '"ab%%12cd"', id="U01-secret"),
        pytest.param("{% if x %}y{% endif %}", '"{%% if x %%}y{%% endif %%}"', id="U01-template"),
        pytest.param("m-%i", '"m-%%i"', id="U01-specifier"),
        pytest.param("pa$$w", '"pa$$$$w"', id="U02-dollars"),
        pytest.param("${HOME}/x", '"$${HOME}/x"', id="U02-variable"),
        pytest.param(";", '";"', id="U02-semicolon"),
        pytest.param("C:\\data", '"C:\\\\data"', id="U02-backslash"),
        pytest.param("it's", '"it\'s"', id="U02-apostrophe"),
        pytest.param("two words", '"two words"', id="U02-space"),
        pytest.param("", '""', id="U02-empty"),
        pytest.param('{"a": {"b": "c d"}}', '"{\\"a\\": {\\"b\\": \\"c d\\"}}"', id="U02-json"),
        pytest.param("#x", '"#x"', id="U02-comment"),
        pytest.param("a\tb", '"a\\tb"', id="U02-tab"),
        pytest.param("--tp-size=2", "--tp-size=2", id="plain-option"),
        pytest.param("/opt/a_b/c.d:e@f,g+h^i~j", "/opt/a_b/c.d:e@f,g+h^i~j", id="plain-path"),
    ],
)
def test_quote_word(word, quoted):
    assert quote_word(word) == quoted


@pytest.mark.parametrize("word", WORDS, ids=lambda word: repr(word)[:24])
def test_the_service_gets_the_word(word):
    line = exec_line(["/bin/x", word, "end"])
    assert [undouble(undouble(part, "%"), "$") for part in split_words(line)] == ["/bin/x", word, "end"]


def test_all_words_in_one_line_survive_the_unit():
    text = f"[Service]\nExecStart={exec_line(['/bin/x', *WORDS])}\nType=exec\n"
    unit = parse_unit(text)
    assert [key for key, value in unit["Service"]] == ["ExecStart", "Type"]
    assert [undouble(undouble(part, "%"), "$") for part in split_words(unit["Service"][0][1])] == ["/bin/x", *WORDS]


@pytest.mark.parametrize("word", WORDS, ids=lambda word: repr(word)[:24])
def test_environment_assignment_gives_the_value(word):
    assert [undouble(part, "%") for part in split_words(environment_assignment("X", word))] == [f"X={word}"]


@pytest.mark.parametrize("word", WORDS, ids=lambda word: repr(word)[:24])
def test_environment_file_gives_the_value(word):
    line = environment_file({"X": word})
    assert line.count("\n") == 1
    inner = re.fullmatch(r'X="((?:[^"\\$`]|\\[\\"$`])*)"\n', line).group(1)
    assert re.sub(r'\\([\\"$`])', r"\1", inner) == word


@pytest.mark.parametrize("word", REFUSED_WORDS, ids=repr)
def test_control_characters_are_refused(word):
    for write in (quote_word, lambda value: environment_assignment("X", value), lambda value: environment_file({"X": value})):
        with pytest.raises(SystemdError, match="holds the control character .*; a unit takes one line of text"):
            write(word)


def test_the_value_of_a_variable_is_not_in_the_message():
    with pytest.raises(SystemdError) as caught:
        environment_file({"HF_TOKEN": "hf_secret\n"})
    assert str(caught.value) == "the environment variable HF_TOKEN holds the control character '\\n'; a unit takes one line of text"


@pytest.mark.parametrize("argv, message", [([], "got 'nothing'"), (["python", "x"], "got 'python'"), (["@/bin/x"], "got '@/bin/x'"), ([""], "got ''")])
def test_exec_line_needs_an_absolute_executable(argv, message):
    with pytest.raises(SystemdError, match=f"ExecStart needs an absolute executable, {message}"):
        exec_line(argv)


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B", "A=B", "É", "A\n"])
def test_names_of_variables_are_checked(name):
    for write in (lambda: environment_assignment(name, "x"), lambda: environment_file({name: "x"})):
        with pytest.raises(SystemdError, match="is no name of an environment variable"):
            write()


def test_environment_assignment_keeps_dollars_and_doubles_percents():
    assert environment_assignment("LABEL", "100% of $HOME") == '"LABEL=100%% of $HOME"'


def test_environment_file_is_sorted():
    assert environment_file({"B": "2", "A": "$1 `x` \\ \" '%"}) == 'A="\\$1 \\`x\\` \\\\ \\" \'%"\nB="2"\n'
    assert environment_file({}) == ""


@pytest.mark.parametrize(
    "text, unit",
    [
        pytest.param("", {}, id="empty"),
        pytest.param("[Unit]\n", {"Unit": []}, id="empty-section"),
        pytest.param("# c\n; c\n\n[Service]\n  # c\nType = exec \n", {"Service": [("Type", "exec")]}, id="comments-and-spaces"),
        pytest.param("[Service]\nExecStart=/x a \\\n    b \\\n  c\nUser=u\n", {"Service": [("ExecStart", "/x a b c"), ("User", "u")]}, id="continuation"),
        pytest.param("[Service]\nExecStart=/x \\", {"Service": [("ExecStart", "/x")]}, id="continuation-at-the-end"),
        pytest.param(
            "[Service]\nEnvironment=A=1\nEnvironment=\nEnvironment=B=2=3\n",
            {"Service": [("Environment", "A=1"), ("Environment", ""), ("Environment", "B=2=3")]},
            id="lists",
        ),
        pytest.param("[Unit]\nA=1\n[Service]\nB=2\n[Unit]\nC=3\n", {"Unit": [("A", "1"), ("C", "3")], "Service": [("B", "2")]}, id="section-again"),
        pytest.param("[Service]\r\nType=exec\r\n", {"Service": [("Type", "exec")]}, id="carriage-returns"),
    ],
)
def test_parse_unit(text, unit):
    assert parse_unit(text) == unit


@pytest.mark.parametrize("text", ["Type=exec\n", "[Service]\nType\n", "[Service\n"])
def test_parse_unit_refuses_other_text(text):
    with pytest.raises(SystemdError, match="^not a unit file: the line "):
        parse_unit(text)


GOOD = """
[Unit]
Description=Good
After=network-online.target
[Service]
ExecStart=/opt/a/bin/python -m sglang
Environment=A=1
Environment=B=2
Restart=on-failure
LimitMEMLOCK=infinity
CapabilityBoundingSet=CAP_SYS_NICE
User=sglang
[Install]
WantedBy=multi-user.target
"""
CANDIDATE = """
[Unit]
Description=Candidate
[Service]
ExecStart=/opt/b/bin/python -m sglang
Environment=A=3
Restart=always
TimeoutStopSec=30s
[Install]
WantedBy=other.target
"""


def test_render_dropin():
    assert render_dropin(parse_unit(GOOD), parse_unit(CANDIDATE)).splitlines()[1:] == [
        "[Unit]",
        "Description=",
        "After=",
        "Description=Candidate",
        "[Service]",
        "ExecStart=",
        "Environment=",
        "LimitMEMLOCK=8M",
        "CapabilityBoundingSet=~",
        "User=",
        "ExecStart=/opt/b/bin/python -m sglang",
        "Environment=A=3",
        "Restart=always",
        "TimeoutStopSec=30s",
    ]


def effective(*units):
    """What systemd would hold after these files: an empty assignment empties a list, a later scalar wins."""
    lists = ("Environment", "ExecStart")
    held = {}
    for unit in units:
        for key, value in unit.get("Service", []):
            if not value:
                held.pop(key, None)
            else:
                held[key] = [*held.get(key, []), value] if key in lists else [value]
    return held


@pytest.mark.parametrize("good, candidate", [(GOOD, CANDIDATE), (CANDIDATE, GOOD), (GOOD, GOOD)], ids=["forth", "back", "same"])
def test_dropin_makes_the_good_unit_the_candidate(good, candidate):
    good, candidate = parse_unit(good), parse_unit(candidate)
    held = effective(good, parse_unit(render_dropin(good, candidate)))
    defaults = {"LimitMEMLOCK": ["8M"], "CapabilityBoundingSet": ["~"], "TimeoutStopSec": ["90s"]}
    wanted = effective(candidate)
    assert {key: value for key, value in held.items() if key in wanted or value != defaults.get(key)} == wanted


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[Service]\nUser=u\nExecStart=/x a b\nEnvironment=A=1\nEnvironment=B=2\n[Unit]\nDescription=d\n", id="order-of-keys-and-sections"),
        pytest.param("# c\n[Unit]\nDescription = d\n\n[Service]\nEnvironment=A=1\nEnvironment=B=2\nExecStart=/x a \\\n  b\nUser=u\n[Install]\n", id="layout"),
    ],
)
def test_meaning_ignores_layout(text):
    unit = parse_unit("[Unit]\nDescription=d\n[Service]\nEnvironment=A=1\nEnvironment=B=2\nExecStart=/x a b\nUser=u\n")
    assert meaning(parse_unit(text)) == meaning(unit)
    assert meaning(unit) == {
        "Service": [["Environment", "A=1"], ["Environment", "B=2"], ["ExecStart", "/x a b"], ["User", "u"]],
        "Unit": [["Description", "d"]],
    }


def test_meaning_keeps_the_order_of_a_list():
    assert meaning(parse_unit("[Service]\nEnvironment=A=1\nEnvironment=A=2\n")) != meaning(parse_unit("[Service]\nEnvironment=A=2\nEnvironment=A=1\n"))
