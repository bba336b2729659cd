# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The flags that an inventory asks for, as a record keeps them: by the engine's own names, each with the layer that won."""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils._argv import FlagError, FlagTable, Layer, build_argv, merge_layers

LAYERS: t.Mapping[str, str] = {
    "sglang_server_model_flags": "model",
    "sglang_server_hardware_flags": "hardware",
    "sglang_server_flags": "host",
}
EXTRA = "extra"


def requested_flags(layers: t.Sequence[Layer], extra_args: t.Sequence[str], table: FlagTable, reserved: t.Mapping[str, str]) -> list[dict[str, t.Any]]:
    """Returns name (the engine's field), value and layer of each flag, sorted as first named.

    Args:
        layers: lowest precedence first, by the variables of :data:`LAYERS`.
        extra_args: words of ``sglang_server_extra_args``.
        table: the engine's parser table.
        reserved: fields the role sets itself, with the variable to use instead.

    Raises:
        FlagError: the flags are none that a server could be started with, see :func:`_argv.build_argv`; also a variable that is no layer.
    """
    unknown = [layer.variable for layer in layers if layer.variable not in LAYERS]
    if unknown:
        raise FlagError(f"{unknown[0]} is no layer of flags: there is {', '.join(LAYERS)}")
    # For its checks: what is recorded is what was asked of a server, and nothing that none would take.
    build_argv(layers, extra_args, table, reserved)
    found = [(dest, setting.value, LAYERS[setting.variable]) for dest, setting in merge_layers(layers, table, reserved).items()]
    # A bare option that may take a word has none.
    found += [(dest, True if value is None else value, EXTRA) for dest, value in table.parse(extra_args).items()]
    return [{"name": name, "value": value, "layer": layer} for name, value, layer in found]
