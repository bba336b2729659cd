# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reports in docs/preflight.md are what real engines answer. ``UPDATE_GUIDE=1`` writes them there."""

from __future__ import annotations

import os
import re

import yaml
from ansible_collections.llmops.inference.plugins.module_utils._argv import FlagTable, Layer, build_argv, flag_sources
from ansible_collections.llmops.inference.plugins.module_utils._preflight_report import report

from .conftest import HERE, MODELS, hardware

ROOT = HERE.parents[1]
GUIDE = ROOT / "docs" / "preflight.md"
BLOCK = re.compile(r"```text\n(.*?)```", re.DOTALL)
# Which inventory the reports of the guide are about, in their order: engine, and the host's own flags where they differ from the first.
REPORTS = (("0.5.12", {}), ("0.5.12", "three"), ("0.5.23", {"enforce_piecewise_cuda_graph": True}))


def layers(text):
    """The flag layers of the guide's inventory, and the host's own flags of its second example."""
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[:2]]
    return [Layer(variable, values) for variable, values in blocks[0].items()], blocks[1]["sglang_server_flags"]


def reports(engines, text):
    inventory, three = layers(text)
    for version, own in REPORTS:
        table = FlagTable(yaml.safe_load((ROOT / "roles" / "sglang_engine" / "files" / "flags" / f"{version}.json").read_text()))
        # A newer engine has neither the old name of the strategy nor the flag that is asked about.
        removed = {} if version == "0.5.12" else {"mamba_scheduler_strategy"}
        flags = [Layer(layer.variable, {name: value for name, value in layer.values.items() if name not in removed}) for layer in inventory]
        flags[-1] = Layer(flags[-1].variable, three if own == "three" else dict(flags[-1].values))
        argv = ["--model-path", str(MODELS / "qwen3.6-27b"), *build_argv(flags, [], table, {})]
        sources = flag_sources(flags, [], table, {})
        if isinstance(own, dict):
            for name in own:
                argv.append(f"--{name.replace('_', '-')}")
                sources[name] = f"sglang_server_flags.{name}"
        result = engines.preflight(version, hardware("a6000-x2"), argv, sources=sources)
        yield "".join(f"    ct129 | {line}\n" for line in report(result))


def test_the_guide_shows_what_engines_answer(engines):
    text = GUIDE.read_text()
    real = list(reports(engines, text))
    if os.environ.get("UPDATE_GUIDE"):
        for shown, answer in zip(BLOCK.findall(text), real):
            text = text.replace(f"```text\n{shown}```", f"```text\n{answer}```", 1)
        GUIDE.write_text(text)
    assert BLOCK.findall(text) == real
