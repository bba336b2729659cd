# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small repository of an inventory, its snapshots and encrypted values, and what is rendered of it."""

from __future__ import annotations

from types import SimpleNamespace

from ansible.template import Templar
from ansible_collections.llmops.inference.plugins.plugin_utils import _rendered, _snapshots
from ansible_collections.llmops.inference.tests.unit.git_repository import put

NOW = "2026-11-30T10:00:00Z"
MODEL_PATH = "/srv/models/tiny"
FACTS = {
    "architecture": "x86_64",
    "distribution": "Debian",
    "distribution_version": "12.8",
    "os_family": "Debian",
    "python": {"version": {"major": 3, "minor": 11}, "executable": "/usr/bin/python3"},
    "service_mgr": "systemd",
    "system": "Linux",
    "systemd": {"version": 252, "features": "+PAM"},
    "uptime_seconds": 4711,
}
MODEL = {
    "format": 1,
    "path": MODEL_PATH,
    "repository": "",
    "revision": "",
    "files": {"config.json": {"architectures": ["Qwen3ForCausalLM"]}},
    "weights": {"files": 1, "bytes": 4096, "by_dtype": {"BF16": 4096}},
}
GPU = {
    "index": 0,
    "name": "NVIDIA RTX A6000",
    "uuid": "GPU-1",
    "memory_total_mib": 49140,
    "memory_free_mib": 48640,
    "memory_used_mib": 400,
    "compute_capability": "8.6",
    "mig": False,
    "mig_devices": [],
    "pcie": {"generation": 1, "generation_max": 4, "width": 16, "width_max": 16},
    "processes": [],
}
GPUS = {"state": "ok", "gpus": [GPU], "links": [], "driver": {"version": "580.95.05", "cuda": "13.0", "module": "580.95.05"}, "xids": []}


def ciphertext(word):
    """What ansible-vault would make of a value; nobody can read it."""
    text = (word * 80).encode().hex()[:160]
    return f"$ANSIBLE_VAULT;1.1;AES256\n{text[:80]}\n{text[80:]}\n"


def inline(word, indent=10):
    """A single encrypted value of YAML."""
    return "!vault |\n" + "".join(f"{' ' * indent}{line}\n" for line in ciphertext(word).splitlines())


def snapshot(root, *hosts, model=None, gpus=None, inventory="inventory"):
    """Writes snapshots of hosts."""
    for host in hosts:
        _snapshots.write(root / inventory / "snapshots", host, _snapshots.documents(FACTS, gpus, MODEL if model is None else model), NOW)


def site(root, hosts=("ct129", "ct130")):
    """Writes an inventory of servers without GPUs, with snapshots of all."""
    put(root, "inventory/hosts.yml", "sglang:\n  children:\n    model_tiny:\n      hosts:\n" + "".join(f"        {host}:\n" for host in hosts))
    put(root, "inventory/group_vars/all/engine.yml", "sglang_engine_version: 0.5.12\nsglang_engine_flavour: cpu\n")
    put(root, "inventory/group_vars/model_tiny/model.yml", f"sglang_model_source: local\nsglang_model_path: {MODEL_PATH}\n")
    put(root, "inventory/group_vars/model_tiny/server.yml", "sglang_server_model_flags:\n  context_length: 2048\n")
    snapshot(root, *hosts)


def asked(**more):
    """Options of sglang_render, as the action has them."""
    options = {
        "dest": None,
        "problem": "",
        "refused": False,
        "instance": "main",
        "unit": "[Service]\nExecStart=/e/bin/python -m sglang.launch_server\n",
        "argv": ["--model-path", MODEL_PATH, "--tp-size", "2"],
        "environment": {"NCCL_P2P_LEVEL": "PHB", "COUNT": 1},
        "base_environment": {"HOME": "/var/lib/sglang-main", "COUNT": "0"},
        "secret_flags": {"api_key": "vaulted-1a2b3c4d"},
        "secret_environment": {"PROXY_PASSWORD": "s3cret"},
        "engine": {"name": "0.5.12-cuda-a1b2c3d4-py311-x86_64", "version": "0.5.12", "flavour": "cuda", "cuda": "12.9", "path": "/e"},
        "model": {"path": MODEL_PATH, "revision": ""},
        "flags": [{"name": "tp_size", "value": 2, "layer": "hardware"}],
        "sources": {"tp_size": "sglang_server_hardware_flags.tp_size"},
        "not_honoured": "fail",
        "silently_disabled": "warn",
        "gpu_facts": GPUS,
        "snapshot": {"recorded_at": NOW, "model": {"path": MODEL_PATH, "revision": ""}, "model_dir": "/s/model", "model_digest": "0a1b2c3d4e5f"},
        "gate": {"settings": {"tolerance_pct": 5}, "records_dir": "/i/benchmarks"},
        "enabled": True,
    }
    return {**options, **more}


def document(host="ct129", **more):
    """The rendered release of a host."""
    return _rendered.rendered(host, asked(**more))


def run_action(action, args, host="ct129", check_mode=False, **variables):
    """Returns the result of an action plugin that reaches no host."""
    task = SimpleNamespace(args=args, check_mode=check_mode, diff=False, async_val=0, action=f"llmops.inference.{action.__module__.rpartition('.')[2]}")
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None), _remote_is_local=True)
    return action(task, connection, None, None, Templar(None), None).run(task_vars={"inventory_hostname": host, **variables})


def options_of(documentation):
    """What a documentation says of options, as a specification of arguments."""
    return {name: {key: value for key, value in option.items() if key != "description"} for name, option in documentation["options"].items()}
