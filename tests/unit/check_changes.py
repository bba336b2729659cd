# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proposed changes of the story's host, as the steps before a check's report hand them over: rendered releases, and what real engines said of them."""

from __future__ import annotations

import copy

from ansible_collections.llmops.inference.plugins.module_utils._finding import Finding
from ansible_collections.llmops.inference.plugins.module_utils._preflight import Policy, Subject, judge
from ansible_collections.llmops.inference.tests.unit.plugins.module_utils.test__outcome import answer, change, flag

BASE, HEAD = "1c34fe0f2c0a4d1e8b7a6f5e4d3c2b1a09f8e7d6", "9d2f1e0c2c0a4d1e8b7a6f5e4d3c2b1a09f8e7d6"
BEFORE, AFTER = "3494591af2ee", "77ab01c4f3e9"
HOSTILE = (
    "</details><script>alert(1)</script> ``` <!-- llmops.inference check --> @all #1 ![x](https://evil.example/p.png) www.evil.example | a\n\n# b\r\u202e\x00"
)
SOURCES = {
    "tp_size": "sglang_server_hardware_flags.tp_size",
    "mem_fraction_static": "sglang_server_hardware_flags.mem_fraction_static",
    "speculative_algorithm": "sglang_server_model_flags.speculative_algorithm",
    "language_only": "sglang_server_flags.language_only",
    "enable_piecewise_cuda_graph": "sglang_server_flags.enable_piecewise_cuda_graph",
    "enforce_piecewise_cuda_graph": "sglang_server_flags.enforce_piecewise_cuda_graph",
}
FLAGS = {"speculative_algorithm": ("NEXTN", "model"), "tp_size": (2, "hardware"), "mem_fraction_static": (0.88, "hardware")}
_GPU = {"index": 0, "name": "NVIDIA RTX A6000", "memory_total_mib": 49140, "memory_free_mib": 48680, "power_limit_w": 300.0}
HARDWARE = {
    "gpus": [{"name": "NVIDIA RTX A6000", "memory_mib": 49140, "capability": [8, 6]}] * 2,
    "cuda": "12.9",
    "driver": "580.159.04",
    "recorded": True,
}
MEMORY = {"verdict": "fits", "free_gb": 47.5, "weights_gb": 25.48, "wanted_tokens": 262144, "requests": 4}


def argv(flags):
    words = ["--model-path", "/opt/sglang/models/qwen3.6-27b", "--served-model-name", "qwen3.6-27b"]
    for name, (value, _layer) in flags.items():
        words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return words


def render(flags=None, release=BEFORE, version="0.5.12", **more):
    """A rendered release.

    Args:
        flags: value and layer by name, over FLAGS; None takes one away.
        release: its id.
        version: of the engine.
        more: keys of the document.
    """
    asked = {name: found for name, found in {**FLAGS, **(flags or {})}.items() if found}
    words = argv(asked)
    name = f"{version}-cuda-a1b2c3d4-py312-x86_64"
    document = {
        "format": 1,
        "kind": "render",
        "host": "ct129",
        "instance": "main",
        "problems": [],
        "remarks": [],
        "release": {
            "id": release,
            "unit": f"[Service]\nType=exec\nExecStart=/opt/sglang/bin/python -m sglang.launch_server {' '.join(words)}\nRestart=always\n",
            "argv": words,
            "environment": {"NCCL_P2P_LEVEL": "PHB"},
            "engine": {"name": name},
            "model": {"path": "/opt/sglang/models/qwen3.6-27b", "revision": "9d2f1e0c"},
            "secrets": ["api_key"],
        },
        "engine": {"name": name, "version": version, "flavour": "cuda", "cuda": "12.9"},
        "flags": [{"name": name, "value": value, "layer": layer} for name, (value, layer) in asked.items()],
        "sources": {name: SOURCES.get(name, f"sglang_server_flags.{name}") for name in asked},
        "secrets": {"api_key": "vaulted 1a2b3c4d"},
        "policy": {"not_honoured": "fail", "silently_disabled": "warn"},
        "probe_environment": {},
        "hardware": {"gpus": [dict(_GPU), {**_GPU, "index": 1}], "driver": {"version": "580.159.04", "cuda": "12.9"}, "links": []},
        "model_digest": "0a1b2c3d4e5f",
        "model_dir": "/work/models/0a1b2c3d4e5f",
        "gate": {},
        "boot": True,
        "snapshot": {"recorded_at": "2026-11-30T10:00:00Z"},
    }
    return copy.deepcopy({**document, **more})


def memory(pool=7.34, tokens=240652):
    rows = [
        {"name": "weights", "gb": 25.48, "how": "estimate"},
        {"name": "KV pool", "gb": pool, "how": f"{tokens:,} tokens of 32 KiB"},
    ]
    return {**MEMORY, "rows": rows, "kv_tokens": tokens}


def preflight(name="plain", version="0.5.12", findings=(), account=None, not_honoured="fail"):
    """What a real engine said."""
    subject = Subject({"name": f"{version}-cpu", "version": version}, SOURCES, HARDWARE, Policy(not_honoured))
    return judge(answer(version, name), list(findings), subject, account or memory())


def made(effective, flags=(), findings=(), version="0.5.12", **more):
    """What an engine says that is made up."""
    asked = {"flags": list(flags), "effective": effective, **more}
    return judge(asked, list(findings), Subject({"name": f"{version}-cpu", "version": version}, SOURCES, HARDWARE), None)


def row(before, after, host="ct129", requests=None):
    asked = {"before": "base" if before else None, "after": "head" if after else None, "upgrade": None, **(requests or {})}
    return {"host": host, "before": before, "after": after, "requests": asked}


def changes(*hosts, **more):
    found = {"base": {"ref": "origin/main", "commit": BASE}, "head": {"commit": HEAD, "dirty": False}, "inventory": "inventory", "remarks": []}
    return {**found, "hosts": list(hosts), "unchanged": 17, **more}


def answers(**found):
    return {key: {"preflight": document, "cached": key == "base"} for key, document in found.items()}


def _asks(name, value=True):
    return render({name: (value, "host")}, AFTER)


def rejected():
    """The flag that ended the story's server."""
    return changes(row(render(), _asks("language_only"))), answers(base=preflight(), head=preflight("language"))


def not_honoured():
    """A flag that the engine accepts and that does nothing."""
    return changes(row(render(), _asks("enable_piecewise_cuda_graph"))), answers(base=preflight(), head=preflight("removed"))


def useful(*hosts):
    """More memory for the KV pool, on servers of one group."""
    after = made({"mem_fraction_static": 0.9, "tp_size": 2, "max_running_requests": 56}, [flag("mem-fraction-static", 0.9)])
    before = made({"mem_fraction_static": 0.88, "tp_size": 2, "max_running_requests": 48}, [flag("mem-fraction-static", 0.88)])
    documents = answers(base={**before, "memory": memory()}, head={**after, "memory": memory(8.3, 272000)})
    rows = [row(render(), render({"mem_fraction_static": (0.9, "hardware")}, AFTER), host) for host in hosts or ("ct129",)]
    return changes(*rows), documents


def upgrade():
    """Another engine, which does not know a flag any more."""
    flags = {"enforce_piecewise_cuda_graph": (True, "host")}
    before, after = render(flags, BEFORE, "0.5.16"), render(None, AFTER, "0.5.23")
    documents = answers(base=preflight("graphs", "0.5.16"), head=preflight("plain", "0.5.23"), other=preflight("graphs", "0.5.23"))
    return changes(row(before, after, requests={"upgrade": "other"})), documents


def hostile():
    """Whatever a stranger can choose."""
    after = render({HOSTILE: (HOSTILE, "host")}, AFTER)
    after["release"].update(environment={"A": HOSTILE}, unit=f'[Service]\nExecStart=/x --a "{HOSTILE}"\n')
    after.update(remarks=[HOSTILE], secrets={HOSTILE: "plain text"}, sources={HOSTILE: HOSTILE, "a": HOSTILE})
    findings = [Finding("made_up", severity, HOSTILE, HOSTILE, HOSTILE, ("tp_size",)) for severity in ("error", "warning", "note")]
    effective = {"tp_size": 4, HOSTILE: HOSTILE, "other": HOSTILE}
    document = made(effective, [flag("tp-size", True), flag("a", HOSTILE)], findings, changes=[change("tp_size", 8, 4)])
    hosts = [row(render(), after, HOSTILE), row(render(), render(problems=[HOSTILE]), f"b{HOSTILE}")]
    return changes(*hosts, remarks=[HOSTILE], base={"ref": HOSTILE, "commit": None}), answers(base=made({"tp_size": 2}), head=document)


def mixed():
    """One of each, as a branch of several people might have it."""
    bad, silent, good = rejected(), not_honoured(), useful("ct131", "ct132")
    lost = {**row(render(), render(problems=["there is no snapshot of ct133: record it with ansible-playbook llmops.inference.snapshot -l ct133"]), "ct133")}
    silent_row = {**silent[0]["hosts"][0], "host": "ct130", "requests": {"before": "base", "after": "silent", "upgrade": None}}
    good_rows = [{**one, "requests": {"before": "good0", "after": "good1", "upgrade": None}} for one in good[0]["hosts"]]
    documents = {**bad[1], **answers(silent=silent[1]["head"]["preflight"], good0=good[1]["base"]["preflight"], good1=good[1]["head"]["preflight"])}
    hosts = [bad[0]["hosts"][0], silent_row, *good_rows, lost, row(render(), None, "ct134")]
    return changes(*hosts, remarks=["requirements.yml changes: 0.1.0 -> 0.2.0"]), documents
