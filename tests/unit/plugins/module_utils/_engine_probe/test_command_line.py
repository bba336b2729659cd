# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import argparse

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._engine_probe.command_line import CommandLine


class DeprecatedAction(argparse.Action):
    def __init__(self, option_strings, dest, new_flag=None, **kwargs):
        self.new_flag = new_flag
        super().__init__(option_strings, dest, nargs=0, **kwargs)

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, "old")


class Retired(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        parser.error(f"{option_string} is gone, use --tp-size")


def megabytes(text):
    if not text.endswith("M"):
        raise argparse.ArgumentTypeError("give M")
    return int(text[:-1])


def add_arguments(parser):
    parser.add_argument("--model-path", "--model", required=True)
    parser.add_argument("-t", "--tp-size", "--tensor-parallel-size", type=int, default=1)
    parser.add_argument("--backend", choices=["flashinfer", "triton", 7], help="Since 1.0 in place of --fast-backend and --kernel.")
    parser.add_argument("--limit", type=megabytes, help="A limit. Deprecated, please use\n  --ceiling instead. More.")
    parser.add_argument("--ceiling", type=float, default=0.5)
    parser.add_argument("--bs", nargs="+", type=int)
    parser.add_argument("--maybe", nargs="?", const="yes")
    parser.add_argument("--two", nargs=2)
    parser.add_argument("--overlap", action="store_true", help="deprecated")
    parser.add_argument("--disable-radix-cache", action="store_true", help=f"deprecated: use {'x' * 300}")
    parser.add_argument("--no-old", action=DeprecatedAction, dest="backend", new_flag="--backend=triton")
    parser.add_argument("--bare-old", action=DeprecatedAction, dest="limit")
    parser.add_argument("--retired", action=Retired, nargs=0)
    parser.add_argument("--enable-piecewise-cuda-graph", action="store_true")
    parser.add_argument("--page-size", type=int)
    parser.add_argument("--page-limit", type=int)
    parser.add_argument("--page", type=int)


def read(*argv):
    return CommandLine(add_arguments, argv)


def error(*argv):
    line = read(*argv)
    (found,) = line.errors
    assert line.flags == [] and line.asked == {}
    return found


@pytest.mark.parametrize(
    "argv, asked",
    [
        ([], {}),
        (["--tp-size", "2"], {"tp_size": 2}),
        (["--tp-size=2"], {"tp_size": 2}),
        (["--tensor-parallel-size", "4"], {"tp_size": 4}),
        (["--backend", "triton"], {"backend": "triton"}),
        (["--limit", "7M"], {"limit": 7}),
        (["--bs", "1", "2", "4", "--page", "3"], {"bs": [1, 2, 4], "page": 3}),
        (["--bs=1"], {"bs": [1]}),
        (["--maybe", "--overlap"], {"maybe": "yes", "overlap": True}),
        (["--maybe", "no"], {"maybe": "no"}),
        (["--two", "a", "b"], {"two": ["a", "b"]}),
        (["--model-path", ""], {"model_path": ""}),
        (["--model-path=a=b"], {"model_path": "a=b"}),
        (["--page-size", "-1"], {"page_size": -1}),
        (["--no-old"], {"backend": "old"}),
        (["--page-size", "1", "--page-size", "2"], {"page_size": 2}),
    ],
)
def test_what_was_asked(argv, asked):
    line = read(*argv)
    assert (line.asked, line.errors) == (asked, []), "and nothing by default, or because it is required"


def test_one_entry_for_each_flag():
    line = read("--tensor-parallel-size=2", "--overlap", "--tp-size", "4")
    assert [flag["flag"] for flag in line.flags] == ["--tensor-parallel-size", "--overlap", "--tp-size"]
    assert line.flags[0] == {
        "flag": "--tensor-parallel-size",
        "canonical": "--tp-size",
        "fields": ["tp_size", "tp_size", "tensor_parallel_size"],
        "asked": {"tp_size": 2},
        "deprecated": None,
        "successor": None,
    }


@pytest.mark.parametrize(
    "words, fields, deprecated, successor",
    [
        (["--ceiling", "1"], ["ceiling", "ceiling"], None, None),
        (["--limit", "7M"], ["limit", "limit"], "Deprecated, please use --ceiling instead", None),
        (["--overlap"], ["overlap", "overlap"], None, None),
        (["--disable-radix-cache"], ["disable_radix_cache", "disable_radix_cache"], ("deprecated: use " + "x" * 300)[:200], None),
        (["--no-old"], ["backend", "no_old"], "deprecated", "--backend=triton"),
        (["--bare-old"], ["limit", "bare_old"], "deprecated", None),
    ],
)
def test_what_the_parser_says_of_a_flag(words, fields, deprecated, successor):
    (flag,) = read(*words).flags
    assert (flag["fields"], flag["deprecated"], flag["successor"]) == (fields, deprecated, successor)


@pytest.mark.parametrize(
    "argv, flag, words, nearest",
    [
        (["--tp-size", "two"], "--tp-size", "invalid int value: 'two'", []),
        (["--limit", "7"], "--limit", "give M", []),
        (["--tp-size"], "--tp-size", "expected one argument", []),
        (["--two", "a"], "--two", "expected 2 arguments", []),
        (["--overlap=yes"], "--overlap", "ignored explicit argument 'yes'", []),
        (["--backend", "trito"], "--backend", "invalid choice: 'trito'", ["triton"]),
        (["--backend=flash"], "--backend", "invalid choice: 'flash'", ["flashinfer"]),
        (["--backend", "x"], "--backend", "invalid choice: 'x'", []),
        (["--backend"], "--backend", "expected one argument", []),
        (["--retired"], "--retired", "--retired is gone, use --tp-size", []),
    ],
)
def test_invalid(argv, flag, words, nearest):
    found = error(*argv)
    assert (found["code"], found["flag"], found["nearest"]) == ("invalid", flag, nearest)
    assert found["message"].startswith(words), "without the name, which stands beside it"


@pytest.mark.parametrize(
    "argv, flag, message, fields",
    [
        (["serve"], "serve", "stands where the engine expects a flag", []),
        (["-t", "2"], "-t", "stands where the engine expects a flag", ["tp_size", "tp_size", "tensor_parallel_size"]),
        (["--overlap", "yes", "no"], "--overlap", "does not take 'yes no'", ["overlap", "overlap"]),
        (["--tp-size", "2", "3"], "--tp-size", "does not take '3'", ["tp_size", "tp_size", "tensor_parallel_size"]),
        (["--tp-size=2", "3"], "--tp-size", "does not take '3'", ["tp_size", "tp_size", "tensor_parallel_size"]),
    ],
)
def test_unexpected(argv, flag, message, fields):
    assert error(*argv) == {"code": "unexpected", "flag": flag, "message": message, "nearest": [], "fields": fields}


@pytest.mark.parametrize(
    "name, code, message, nearest",
    [
        ("--tp", "abbreviation", "is an abbreviation that the engine takes for --tp-size: write the full name", ["--tp-size"]),
        ("--tp-size-", "unknown", "is not a flag of this engine", ["--tp-size", "--page-size"]),
        ("--page-", "ambiguous", "could be --page-limit, --page-size", ["--page-limit", "--page-size"]),
        ("--tp_size", "unknown", "is not a flag of this engine", ["--tp-size"]),
        ("--pagesize", "unknown", "is not a flag of this engine", ["--page-size", "--page"]),
        ("--enforce-piecewise-cuda-graph", "unknown", "is not a flag of this engine", ["--enable-piecewise-cuda-graph"]),
        ("--disable-graph-cuda", "unknown", "is not a flag of this engine", ["--enable-piecewise-cuda-graph"]),
        ("--enable", "abbreviation", None, ["--enable-piecewise-cuda-graph"]),
        ("--enforce", "unknown", "is not a flag of this engine", []),
        ("--zzz", "unknown", "is not a flag of this engine", []),
        ("--kernel", "unknown", "is not a flag of this engine; of --backend it says: Since 1.0 in place of --fast-backend and --kernel.", []),
        ("--fast", "unknown", "is not a flag of this engine", []),
    ],
)
@pytest.mark.parametrize("value", [[], ["2"], None])
def test_names_that_are_none(name, code, message, nearest, value):
    found = error(f"{name}=2") if value is None else error(name, *value)
    assert (found["code"], found["flag"], found["nearest"], found["fields"]) == (code, name, nearest, [])
    assert message in (None, found["message"])


def test_not_more_than_three_names_are_near():
    def many(parser):
        for number in range(6):
            parser.add_argument(f"--cuda-graph-size-{number}")

    (found,) = CommandLine(many, ["--cuda-graph-size_9"]).errors
    assert len(found["nearest"]) == 3
    (found,) = CommandLine(many, ["--graph"]).errors
    assert (found["code"], len(set(found["nearest"]))) == ("unknown", 3)


def test_a_long_help_is_cut():
    def one(parser):
        parser.add_argument("--new", help="--old \n" + "x" * 300)

    (found,) = CommandLine(one, ["--old"]).errors
    assert found["message"].endswith("says: --old " + "x" * 194)


def test_every_wrong_word_at_once():
    line = read("serve", "--tp", "2", "--page-size", "1", "--zzz", "--page-", "--overlap", "yes", "--limit", "7")
    assert [(found["code"], found["flag"]) for found in line.errors] == [
        ("unexpected", "serve"),
        ("abbreviation", "--tp"),
        ("unknown", "--zzz"),
        ("ambiguous", "--page-"),
        ("unexpected", "--overlap"),
        ("invalid", "--limit"),
    ]
    assert [flag["flag"] for flag in line.flags] == ["--page-size"] and line.asked == {"page_size": 1}


def test_help_is_no_flag_of_a_server():
    assert error("--help")["code"] == "unknown"
