# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The candidate's words against the engine's own parser, every wrong one at once.

argparse takes a unique prefix of a flag silently (``--tp`` for ``--tp-size``) and stops at the first error. Here only full names and declared aliases
count, and each flag is parsed for itself.
"""

from __future__ import annotations

import argparse
import difflib
import re
import typing as t

from .values import plain

_TOLD = re.compile(r"deprecat[^.]*\.?[^.]*(?:\buse\b|instead)[^.]*", re.IGNORECASE)
_TEXT = 200
_VERBS = {"enable", "disable", "enforce"}


class Refused(Exception):
    """The engine's parser refuses a word."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> t.NoReturn:
        raise Refused(message)


class CommandLine:
    """An argument vector, read by the parser of one engine.

    Args:
        add_arguments: the engine's ``ServerArgs.add_cli_args``.
        argv: the server's words, without the program.

    Attributes:
        flags: one entry per flag that was found.
        errors: one entry per word that the engine would refuse, or take for another flag.
        asked: field of the parser -> plain value, only of what was asked for.
    """

    def __init__(self, add_arguments: t.Callable[[argparse.ArgumentParser], t.Any], argv: t.Sequence[str]) -> None:
        self._parser = _Parser(prog="sglang", allow_abbrev=False, add_help=False)
        add_arguments(self._parser)
        for action in self._parser._actions:
            action.default = argparse.SUPPRESS
            # A missing model is for the engine to say.
            action.required = False
        self._table: dict[str, argparse.Action] = self._parser._option_string_actions
        self.flags: list[dict[str, t.Any]] = []
        self.errors: list[dict[str, t.Any]] = []
        self.asked: dict[str, t.Any] = {}
        for words in _split(argv):
            self._read(words)

    def _read(self, words: t.Sequence[str]) -> None:
        name = words[0].split("=", maxsplit=1)[0]
        if not name.startswith("--"):
            self._refuse("unexpected", words[0], "stands where the engine expects a flag")
            return
        action = self._table.get(name)
        if action is None:
            self._refuse_name(name)
            return
        namespace = argparse.Namespace()
        try:
            _same, rest = self._parser.parse_known_args(list(words), namespace)
        except Refused as refusal:
            self._refuse("invalid", name, re.sub(r"^argument \S+: ", "", str(refusal)), self._near_choices(action, words))
            return
        if rest:
            self._refuse("unexpected", name, f"does not take {' '.join(rest)!r}")
            return
        values = {key: plain(value) for key, value in vars(namespace).items()}
        self.asked.update(values)
        self.flags.append(self._describe(name, action, values))

    def _describe(self, name: str, action: argparse.Action, values: dict[str, t.Any]) -> dict[str, t.Any]:
        kind = type(action).__name__
        told = _TOLD.search(action.help or "")
        canonical = next(option for option in action.option_strings if option.startswith("--"))
        return {
            "flag": name,
            "canonical": canonical,
            "fields": _fields(action),
            "asked": values,
            "deprecated": " ".join(told.group(0).split())[:_TEXT] if told else "deprecated" if "Deprecated" in kind else None,
            "successor": getattr(action, "new_flag", None),
        }

    def _near_choices(self, action: argparse.Action, words: t.Sequence[str]) -> list[str]:
        choices = [str(choice) for choice in action.choices or ()]
        given = words[1] if len(words) > 1 else words[0].partition("=")[2]
        return difflib.get_close_matches(given, choices, n=3, cutoff=0.5)

    def _refuse_name(self, name: str) -> None:
        longer = sorted(option for option in self._table if option.startswith(name))
        if len(longer) == 1:
            self._refuse("abbreviation", name, f"is an abbreviation that the engine takes for {longer[0]}: write the full name", longer)
        elif longer:
            self._refuse("ambiguous", name, f"could be {', '.join(longer)}", longer)
        else:
            self._refuse("unknown", name, self._told_elsewhere(name) or "is not a flag of this engine", self._near_names(name))

    def _near_names(self, name: str) -> list[str]:
        dashed = name.replace("_", "-")
        if dashed in self._table:
            return [dashed]
        near = difflib.get_close_matches(dashed, self._table, n=3, cutoff=0.75)
        words = set(dashed[2:].split("-")) - _VERBS
        near += [option for option in self._table if words and words <= set(option[2:].split("-")) and option not in near]
        return near[:3]

    def _told_elsewhere(self, name: str) -> str:
        """What the parser says of a name in the help of other flags."""
        mention = re.compile(re.escape(name) + r"(?![\w-])")
        for action in dict.fromkeys(self._table.values()):
            if action.help and mention.search(action.help):
                return f"is not a flag of this engine; of {action.option_strings[0]} it says: {' '.join(action.help.split())[:_TEXT]}"
        return ""

    def _refuse(self, code: str, flag: str, message: str, nearest: t.Sequence[str] = ()) -> None:
        action = self._table.get(flag)
        self.errors.append({"code": code, "flag": flag, "message": message, "nearest": list(nearest), "fields": _fields(action) if action else []})


def _fields(action: argparse.Action) -> list[str]:
    """Names under which a flag's value may be known: argparse's, and those of its spellings."""
    return [action.dest, *(option[2:].replace("-", "_") for option in action.option_strings if option.startswith("--"))]


def _split(argv: t.Sequence[str]) -> t.Iterator[list[str]]:
    """Each flag with the words that follow it."""
    words: list[str] = []
    for word in argv:
        if word.startswith("--") and words:
            yield words
            words = []
        words.append(word)
    if words:
        yield words
