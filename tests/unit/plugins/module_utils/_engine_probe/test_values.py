# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import enum
import json

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._engine_probe.values import field_names, flat, plain


class Backend(str, enum.Enum):
    FULL = "full"


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Phase:
    backend: object = Backend.FULL
    sizes: tuple = (1, 2)


@dataclasses.dataclass
class Graphs:
    prefill: Phase = dataclasses.field(default_factory=Phase)
    force: bool = False


class Struct:
    """As msgspec makes them: names of the fields, and slots."""

    __struct_fields__ = ("one", "two")
    one = 1


class Opaque:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


@pytest.mark.parametrize("cls, names", [(Graphs, ["prefill", "force"]), (Struct, ["one", "two"]), (dict, []), (Opaque, [])])
def test_fields(cls, names):
    assert field_names(cls) == names


@pytest.mark.parametrize(
    "value, shown",
    [
        (None, None),
        (True, True),
        (0.5, 0.5),
        ("x", "x"),
        (Backend.FULL, "full"),
        (Level.HIGH, 3),
        ((1, [2, {3}]), [1, [2, [3]]]),
        (frozenset("a"), ["a"]),
        ({1: Backend.FULL, None: ()}, {"1": "full", "None": []}),
        (Graphs(), {"prefill": {"backend": "full", "sizes": [1, 2]}, "force": False}),
        (Struct(), {"one": 1, "two": None}),
        (Opaque("<device>"), "<device>"),
        (Opaque("x" * 300), "x" * 200),
    ],
)
def test_plain(value, shown):
    found = plain(value)
    assert found == shown and type(found) is type(shown)
    json.dumps(found)


def test_an_enum_is_its_value_and_no_enum():
    assert not isinstance(plain(Backend.FULL), Backend) and not isinstance(plain(Level.HIGH), Level)


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"force": value}, lambda value: Graphs(value, None)])
def test_what_goes_too_deep_is_cut(wrap):
    value = "bottom"
    for _level in range(6):
        value = wrap(value)
    shown = plain(value)
    for _level in range(6):
        assert isinstance(shown, (list, dict)), "six levels are shown, and plain values at any"
        shown = next(iter(shown.values())) if isinstance(shown, dict) else shown[0]
    assert shown == "bottom"
    assert repr(repr(wrap("bottom"))) in repr(plain(wrap(value))), "the seventh as one text"


def test_a_record_that_holds_itself_comes_to_an_end():
    loop = Graphs()
    loop.prefill = [loop, Opaque("y" * 300)]
    assert "..." in json.dumps(plain(loop)) and len(json.dumps(plain(loop))) < 3000


def test_flat():
    assert flat("tp_size", 2) == {"tp_size": 2}
    assert flat("rules", {"a": {"b": 1}}) == {"rules": {"a": {"b": 1}}}, "a plain dictionary is one value"
    assert flat("graphs", Graphs()) == {"graphs.prefill.backend": "full", "graphs.prefill.sizes": [1, 2], "graphs.force": False}
    assert flat("graphs", None) == {"graphs": None}
