# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real engines (``tools/engines.sh``), each imported once for all candidates of one environment and hardware."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import jsonschema
import pytest
from ansible_collections.llmops.inference.plugins.module_utils._preflight import Policy, Subject
from ansible_collections.llmops.inference.plugins.module_utils._preflight_cache import Cache
from ansible_collections.llmops.inference.plugins.module_utils._preflight_host import Preflight, Request
from ansible_collections.llmops.inference.plugins.module_utils._probe_sandbox import Probe

HERE = Path(__file__).resolve().parent
MODELS = HERE / "models"
SCHEMA = json.loads((HERE.parents[1] / "docs" / "preflight.schema.json").read_text())


def cache() -> Path:
    return Path(os.environ.get("LLMOPS_CACHE") or Path.home() / ".cache" / "llmops-inference")


def hardware(name: str) -> dict:
    """Facts of a GPU host: recorded ones of H200s, written ones of the story's A6000s."""
    path = HERE.parent / "gpu" / "records" / name / "facts.json" if name.startswith("h200") else HERE / "hardware" / f"{name}.json"
    return json.loads(path.read_text())


class RealEngines:
    """Asks real engines, and remembers: importing one takes ten seconds, a candidate more takes one.

    Args:
        pythons: version to interpreter.
    """

    def __init__(self, pythons):
        self.pythons = pythons
        self._answers = {}

    def preflight(self, version, facts, argv, others=(), environment=None, policy=None, sources=None):
        """The preflight's result for ``argv``; ``others`` are candidates that the same import answers as well."""
        environment = environment or {}
        probe = Probe(self.pythons[version], environment, timeout=300)
        engine = {"name": version, "version": version, "flavour": "cpu", "cuda": "13.0"}
        request = Request(probe, engine, list(argv), gpu_facts=facts, recorded=True)
        subject = Subject(engine, sources or {}, {}, policy or Policy())

        def run_probe(command, text, variables):
            return 0, json.dumps(self._ask(version, command, (json.loads(text), variables), others)), ""

        def run(command):
            raise AssertionError(f"a recorded host is not asked: {command}")

        result = Preflight(request, subject, Cache(None), run_probe, run).result()
        jsonschema.validate(result, SCHEMA)
        return result

    def _ask(self, version, command, asked_for, others):
        request, variables = asked_for
        asked = [list(argv) for argv in dict.fromkeys(map(tuple, [*request["argvs"], *others]))]
        key = json.dumps([version, {**request, "argvs": None}, variables], sort_keys=True)
        known = self._answers.setdefault(key, {})
        if tuple(request["argvs"][0]) not in known:
            document = self._run(command, {**request, "argvs": asked}, variables)
            known["document"] = document
            known.update(zip(map(tuple, asked), document["candidates"]))
        return {**known["document"], "candidates": [known[tuple(request["argvs"][0])]]}

    @staticmethod
    def _run(command, request, variables):
        done = subprocess.run(command, input=json.dumps(request), env={**os.environ, **variables}, capture_output=True, text=True, check=True, timeout=600)
        return json.loads(done.stdout)


@pytest.fixture(scope="session")
def engines():
    index = cache() / "engines" / "index.json"
    assert index.is_file(), f"{index} is missing: run tools/engines.sh"
    return RealEngines(json.loads(index.read_text()))
