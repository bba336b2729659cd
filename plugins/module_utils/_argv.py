# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Turns layered flag variables into the server's argument vector.

What a value becomes is decided by its type and by the engine's own parser table (``flags.json``, exported from the installed
engine); no list of SGLang's flags is kept here. A value never vanishes and never flips: what cannot be rendered is an error that
names the variable, the value, what was expected and the nearest right name.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import typing as t
from dataclasses import dataclass, field

from ansible_collections.llmops.inference.plugins.module_utils._successors import told_elsewhere
from ansible_collections.llmops.inference.plugins.module_utils._variables import kind_of

_CONVERTERS: dict[str, t.Callable[[str], t.Any]] = {"int": int, "float": float, "loads": json.loads}
_SECRET_DEST = re.compile(r"(^|_)(api_key|password|secret)$")
_QUOTED_SCALAR = re.compile(r"^(true|false|null|none|[+-]?\d+(\.\d+)?)$", re.IGNORECASE)


class FlagError(ValueError):
    """A flag variable that cannot be turned into arguments; the message is for the operator."""


@dataclass(frozen=True)
class Flag:
    """One action of the engine's parser.

    Attributes:
        options: the option strings of the action, the first one is rendered.
        dest: the field it sets; two spellings of one setting share it.
        kind: ``value`` (takes words), ``switch`` (bare), ``pair`` (``--x`` and ``--no-x``).
        nargs: argparse's nargs of a value flag (None is exactly one word).
        type: name of argparse's type callable, or None.
        choices: accepted words, or None.
        json: None, ``any`` or ``object``: the word must be JSON text of that shape.
    """

    options: tuple[str, ...]
    dest: str
    kind: str = "value"
    nargs: str | int | None = None
    type: str | None = None
    choices: tuple[t.Any, ...] | None = None
    json: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The spellings an inventory may use, without the ``--no-`` forms."""
        return tuple(
            option[2:].replace("-", "_") for option in self.options if option.startswith("--") and not (self.kind == "pair" and option.startswith("--no-"))
        )

    @property
    def takes_many(self) -> bool:
        """True when the flag takes a list of words."""
        return self.nargs in ("+", "*") or isinstance(self.nargs, int)


class _Parser(argparse.ArgumentParser):
    """argparse that raises instead of leaving the process, and accepts no abbreviation."""

    def __init__(self) -> None:
        super().__init__(prog="sglang", add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)

    def error(self, message: str) -> t.NoReturn:
        raise FlagError(message)

    def _check_value(self, action: argparse.Action, value: t.Any) -> None:
        if action.choices is None or value in action.choices:
            return
        words = [str(choice) for choice in action.choices]
        near = difflib.get_close_matches(str(value), words, n=1, cutoff=0.5)
        hint = f"; nearest: {near[0]}" if near else ""
        raise argparse.ArgumentError(action, f"invalid choice: {value!r} (choose from {', '.join(words)}){hint}")


class FlagTable:
    """The parser table of one installed engine.

    Args:
        document: the parsed ``flags.json``: ``{"format": 1, "engine": "0.5.23", "flags": [{"options": [...], "dest": ..., ...}]}``.
        others: those of other engines, to say what became of a flag that this one does not have.

    Raises:
        FlagError: the document has another format.
    """

    def __init__(self, document: t.Mapping[str, t.Any], others: t.Sequence[t.Mapping[str, t.Any]] = ()) -> None:
        if document.get("format") != 1:
            raise FlagError(f"flags.json has format {document.get('format')!r}, expected 1: install the engine again with this collection")
        self.engine = str(document["engine"])
        self._others = others
        self.flags = [
            Flag(
                options=tuple(entry["options"]),
                dest=entry["dest"],
                kind=entry["kind"],
                nargs=entry.get("nargs"),
                type=entry.get("type"),
                choices=tuple(entry["choices"]) if entry.get("choices") else None,
                json=entry.get("json"),
            )
            for entry in document["flags"]
        ]
        self._by_name = {name: flag for flag in self.flags for name in flag.names}
        self._parser = self._build_parser()

    def _build_parser(self) -> _Parser:
        parser = _Parser()
        for flag in self.flags:
            if flag.kind == "pair":
                parser.add_argument(*(o for o in flag.options if not o.startswith("--no-")), dest=flag.dest, action=argparse.BooleanOptionalAction)
            elif flag.kind == "switch":
                parser.add_argument(*flag.options, dest=flag.dest, action="store_true")
            else:
                converter = _CONVERTERS.get(flag.type or "", str)
                parser.add_argument(*flag.options, dest=flag.dest, nargs=flag.nargs, type=converter, choices=flag.choices)
        return parser

    def find(self, name: str) -> Flag:
        """Returns the flag of a name as an inventory writes it (``_`` or ``-``; ``tp`` stands for ``tp_size``).

        Raises:
            FlagError: the engine has no such flag; the message names the nearest ones.
        """
        plain = name.lstrip("-").replace("-", "_")
        flag = self._by_name.get(plain) or self._by_name.get(f"{plain}_size")
        if flag is None:
            elsewhere = told_elsewhere(plain, self._others)
            known = f" ({elsewhere})" if elsewhere else ""
            raise FlagError(f"SGLang {self.engine} has no flag --{plain.replace('_', '-')}{known}{self._hint(plain)}")
        return flag

    def _hint(self, plain: str) -> str:
        near = difflib.get_close_matches(plain, self._by_name, n=3, cutoff=0.75)
        words = set(plain.split("_")) - {"enable", "disable"}
        near += [name for name in self._by_name if words and words <= set(name.split("_")) and name not in near][:3]
        tail = plain.rsplit("_", maxsplit=1)[-1]
        if not near:
            near = [name for name in self._by_name if tail in name.split("_")][:3]
        return f"; did you mean {' or '.join(near[:3])}?" if near else ""

    def parse(self, words: t.Sequence[str]) -> dict[str, t.Any]:
        """Parses words as the engine's argparse would, abbreviations refused.

        Raises:
            FlagError: unknown words, a wrong type, a wrong number of words.
        """
        namespace, rest = self._parser.parse_known_args(list(words))
        if rest:
            hint = self._hint(rest[0].lstrip("-").split("=")[0].replace("-", "_")) if rest[0].startswith("--") else ""
            raise FlagError(f"unrecognized arguments: {' '.join(rest)}{hint}")
        return vars(namespace)


@dataclass
class Layer:
    """One inventory variable that holds flags.

    Attributes:
        variable: its name, for messages.
        values: its mapping.
    """

    variable: str
    values: t.Mapping[str, t.Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Setting:
    """The value that won for one flag, and where it came from."""

    flag: Flag
    value: t.Any
    variable: str
    name: str


def merge_layers(layers: t.Sequence[Layer], table: FlagTable, reserved: t.Mapping[str, str]) -> dict[str, Setting]:
    """Brings names to the engine's fields, then lets later layers win. ``None`` takes an inherited flag away.

    Args:
        layers: lowest precedence first.
        table: the engine's parser table.
        reserved: fields the role sets itself, with the variable to use instead.

    Returns:
        The settings by field, in the order in which the fields were first named.

    Raises:
        FlagError: an unknown name, a reserved or secret field, or one field under two spellings in one layer.
    """
    merged: dict[str, Setting] = {}
    for layer in layers:
        seen: dict[str, str] = {}
        for name, value in layer.values.items():
            try:
                flag = table.find(str(name))
            except FlagError as error:
                raise FlagError(f"{layer.variable}.{name}: {error}") from None
            if flag.dest in seen:
                raise FlagError(f"{layer.variable}: {seen[flag.dest]} and {name} are two spellings of one flag; keep one")
            seen[flag.dest] = str(name)
            if flag.dest in reserved:
                raise FlagError(f"{layer.variable}.{name}: set {reserved[flag.dest]} instead")
            if _SECRET_DEST.search(flag.dest) and value is not None:
                raise FlagError(f"{layer.variable}.{name} is a secret and would stand on the command line; put it into sglang_server_secret_flags")
            lower = merged.get(flag.dest)
            if value is False and lower and lower.flag is not flag and lower.value is not False:
                raise FlagError(f"{layer.variable}.{name}: false would take {lower.variable}.{lower.name} away; write {lower.name}: null if that is meant")
            if flag.dest in merged and value is None:
                del merged[flag.dest]
            elif value is not None:
                merged[flag.dest] = Setting(flag, value, layer.variable, str(name))
    return merged


def flag_sources(layers: t.Sequence[Layer], extra_args: t.Sequence[str], table: FlagTable, reserved: t.Mapping[str, str]) -> dict[str, str]:
    """Returns which inventory variable sets which field, for messages about the field.

    Raises:
        FlagError: see :func:`merge_layers`.
    """
    merged = merge_layers(layers, table, reserved)
    sources = {dest: f"{setting.variable}.{setting.name}" for dest, setting in merged.items()}
    sources.update(dict.fromkeys(table.parse(extra_args), "sglang_server_extra_args"))
    return {**sources, **reserved}


def _json_word(flag: Flag, value: t.Any) -> str:
    if isinstance(value, str):
        try:
            parsed = json.loads(value)
        except ValueError as error:
            raise FlagError(f"is not JSON: {error}") from None
        text = value
    else:
        parsed, text = value, json.dumps(value)
        quoted = _quoted_scalars(value)
        if quoted:
            raise FlagError(f"{quoted[0]} is a string where JSON has a bare bool or number: write it without quotes (or the whole value as JSON text)")
    if flag.json == "object" and not isinstance(parsed, dict):
        raise FlagError(f"must be a JSON object, not {kind_of(parsed)}")
    return text


def _quoted_scalars(value: t.Any, path: str = "") -> list[str]:
    if isinstance(value, t.Mapping):
        return [found for key, inner in value.items() for found in _quoted_scalars(inner, f"{path}.{key}".lstrip("."))]
    if isinstance(value, str) and path and _QUOTED_SCALAR.match(value):
        return [f"{path}: {value!r}"]
    return []


def _word(value: t.Any) -> str:
    if isinstance(value, bool) or value is None:
        raise FlagError("takes a value, not a boolean")
    if isinstance(value, (t.Mapping, list, tuple)):
        return json.dumps(value)
    return str(value)


def _bare_option(flag: Flag, value: t.Any) -> str:
    if not isinstance(value, bool):
        raise FlagError("is on or off: write true or false without quotes")
    return next(option for option in flag.options if option.startswith("--no-") is not value or flag.kind == "switch")


def render(flag: Flag, value: t.Any) -> list[str]:
    """Returns the words of one flag: none, the bare option, or the option and its words.

    Raises:
        FlagError: the type of the value does not fit the flag.
    """
    option = flag.options[0]
    if value is None or (value is False and flag.kind != "pair"):
        return []
    if flag.kind in ("switch", "pair"):
        return [_bare_option(flag, value)]
    if value is True and flag.nargs == "?":
        return [option]
    if flag.json:
        return [option, _json_word(flag, value)]
    if isinstance(value, (list, tuple)):
        if not flag.takes_many:
            raise FlagError("takes one value, not a list")
        return [option, *(_word(item) for item in value)] if value else []
    return [option, _word(value)]


def _guard_option_like(words: list[str]) -> list[str]:
    """Binds a single word that argparse takes for an option (``-1`` it does not, ``-x`` and ``-1e-5`` it does) to its flag with ``=``."""
    if len(words) == 2 and re.match(r"^-(?!(\d+|\d*\.\d+)?$)", words[1]):
        return [f"{words[0]}={words[1]}"]
    return words


def build_argv(layers: t.Sequence[Layer], extra_args: t.Sequence[str], table: FlagTable, reserved: t.Mapping[str, str]) -> list[str]:
    """Returns the arguments for the merged layers, sorted as first named, followed by the checked extra arguments.

    Raises:
        FlagError: see :func:`merge_layers`, :func:`render`; also extra arguments the engine's parser would refuse or that repeat a flag.
    """
    merged = merge_layers(layers, table, reserved)
    argv: list[str] = []
    for setting in merged.values():
        try:
            words = _guard_option_like(render(setting.flag, setting.value))
            if set(table.parse(words)) - {setting.flag.dest}:
                raise FlagError("holds a word that the engine would read as another flag")
        except FlagError as error:
            text = str(error)
            if "invalid" in text and isinstance(setting.value, str) and setting.flag.takes_many:
                text += "; write several values as a list"
            raise FlagError(f"{setting.variable}.{setting.name}: {setting.value!r}: {text}") from None
        argv += words
    _check_extra(extra_args, merged, table, reserved)
    return argv + list(extra_args)


def _check_extra(extra_args: t.Sequence[str], merged: t.Mapping[str, Setting], table: FlagTable, reserved: t.Mapping[str, str]) -> None:
    variable = "sglang_server_extra_args"
    for word in extra_args:
        if not isinstance(word, str):
            raise FlagError(f"{variable}: {word!r} is not a string; write every word in quotes")
    try:
        fields = table.parse(extra_args)
    except FlagError as error:
        raise FlagError(f"{variable}: {error}") from None
    named = [flag.dest for word in extra_args for flag in table.flags if word.split("=", 1)[0] in flag.options]
    for dest in fields:
        if named.count(dest) > 1:
            raise FlagError(f"{variable}: {dest} is given twice; keep one")
        if dest in merged:
            raise FlagError(f"{variable}: {dest} is already set by {merged[dest].variable}.{merged[dest].name}; keep one")
        if dest in reserved:
            raise FlagError(f"{variable}: set {reserved[dest]} instead of {dest}")
        if _SECRET_DEST.search(dest):
            raise FlagError(f"{variable}: {dest} is a secret and would stand on the command line; put it into sglang_server_secret_flags")
