#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_engine
short_description: Install one pinned SGLang engine as an immutable virtual environment
version_added: "0.1.0"
description:
  - Builds a virtual environment at its final path from a lock with C(uv), proves it by importing the server, exports its parser table
    C(flags.json), and writes the completion marker C(engine.json) last. An environment without the marker is never used and is rebuilt.
  - Before anything is downloaded it checks Python, C library, architecture and disk against the lock's header, the NVIDIA driver and GPUs against
    the lock's CUDA, and that the lock mixes no CUDA versions. After the installation it checks that torch has kernels for the GPUs.
  - An engine whose lock brings the CUDA compiler gets a C(CUDA_HOME) of links into its packages, C(cuda) in its directory, proven by compiling a kernel.
  - Removes the oldest engines beyond O(keep), never one that a server unit, a kept release or a running process uses.
extends_documentation_fragment:
  - llmops.inference.attributes
attributes:
  check_mode:
    support: full
    details: Checks the host and says whether the engine would be installed.
  diff_mode:
    support: none
  async:
    support: none
    details: The action plugin runs it in the background and shows its progress.
options:
  root:
    description: Directory of all engines on this host.
    type: path
    default: /opt/sglang/engines
  version:
    description: SGLang version that the lock pins.
    type: str
    required: true
  flavour:
    description: V(cuda) for GPU hosts; V(cpu) for sandboxes and for judging flags without a GPU.
    type: str
    choices: [cuda, cpu]
    default: cuda
  lock:
    description: Path of the lock on the host.
    type: path
    required: true
  prove:
    description: Path of the script on the host that proves an engine.
    type: path
    required: true
  support:
    description: Path of the CPU support package on the host; only with O(flavour=cpu).
    type: path
  uv:
    description: Path of the C(uv) executable.
    type: path
    required: true
  python:
    description: Path of the base interpreter.
    type: path
    default: /usr/bin/python3
  index_url:
    description: Package index that replaces the default one.
    type: str
    default: ""
  extra_index_urls:
    description: Further package indexes.
    type: list
    elements: str
    default: []
  find_links:
    description: Directories or pages with wheels.
    type: list
    elements: str
    default: []
  offline:
    description: Use no index at all, only O(find_links) and the cache.
    type: bool
    default: false
  cache:
    description: C(uv)'s cache; on the same file system as O(root) it makes an installation hard links instead of copies.
    type: path
  keep:
    description: How many engines stay on the host.
    type: int
    default: 3
author:
  - the llmops.inference authors (@llmops)
"""

EXAMPLES = r"""
- name: Install the engine
  llmops.inference.sglang_engine:
    version: 0.5.23
    flavour: cuda
    lock: /opt/sglang/locks/0.5.23-cuda-py312.txt
    prove: /opt/sglang/tools/prove_engine.py
    uv: /opt/sglang/uv/0.13.9/bin/uv
"""

RETURN = r"""
path:
  description: Directory of the engine.
  returned: always
  type: str
  sample: /opt/sglang/engines/0.5.23-cuda-1a2b3c4d-py312-x86_64
engine:
  description: Content of the completion marker; empty when there is no complete engine.
  returned: always
  type: dict
  sample: {"version": "0.5.23", "torch": "2.14.1+cu130", "cuda": "13.0", "cuda_home": "/opt/sglang/engines/0.5.23-cuda-1a2b3c4d-py312-x86_64/cuda"}
pruned:
  description: Engines that were removed.
  returned: always
  type: list
  elements: str
"""

import os
import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmops.inference.plugins.module_utils._compat import Machine
from ansible_collections.llmops.inference.plugins.module_utils._engine import (
    EngineError,
    Installer,
    Lock,
    Plan,
    Source,
    engine_name,
    engines_in_use,
    machine_of,
    parse_lock,
    prune,
    read_host_facts,
    refuse_unfit_host,
    refuse_unfit_lock,
)
from ansible_collections.llmops.inference.plugins.module_utils._gpu_host import Files, GpuHost, make_ask
from ansible_collections.llmops.inference.plugins.module_utils._progress import Progress

OPTIONS = {
    "root": {"type": "path", "default": "/opt/sglang/engines"},
    "version": {"type": "str", "required": True},
    "flavour": {"type": "str", "choices": ["cuda", "cpu"], "default": "cuda"},
    "lock": {"type": "path", "required": True},
    "prove": {"type": "path", "required": True},
    "support": {"type": "path"},
    "uv": {"type": "path", "required": True},
    "python": {"type": "path", "default": "/usr/bin/python3"},
    "index_url": {"type": "str", "default": ""},
    "extra_index_urls": {"type": "list", "elements": "str", "default": []},
    "find_links": {"type": "list", "elements": "str", "default": []},
    "offline": {"type": "bool", "default": False},
    "cache": {"type": "path"},
    "keep": {"type": "int", "default": 3},
}


def python_minor(module: AnsibleModule) -> str:
    command = [module.params["python"], "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    status, output, error = module.run_command(command)
    if status != 0:
        raise EngineError(f"sglang_engine_python {module.params['python']} does not run: {error.strip()}")
    return str(output).strip()


def make_plan(params: dict[str, t.Any], name: str, lock: Lock, machine: Machine) -> Plan:
    source = Source(params["index_url"], params["extra_index_urls"], params["find_links"], params["offline"], params["cache"] or "")
    support = params["support"] if params["flavour"] == "cpu" else ""
    places = (Path(params["root"]), params["uv"], params["python"], params["lock"])
    return Plan(name, *places, lock, source, params["prove"], support or "", params["flavour"], machine)


def main() -> None:
    module = AnsibleModule(OPTIONS, supports_check_mode=True)
    params = module.params
    root = Path(params["root"])
    progress = Progress("sglang_engine")
    os.umask(0o022)
    module.run_command_environ_update = {"PYTHONDONTWRITEBYTECODE": "", "CUDA_VISIBLE_DEVICES": "", "LC_ALL": "C.UTF-8"}
    result: dict[str, t.Any] = {"path": "", "engine": {}, "pruned": []}
    try:
        lock = parse_lock(Path(params["lock"]).read_text())
        minor = python_minor(module)
        machine = machine_of(GpuHost(make_ask(module), Files.here()).collect()) if params["flavour"] == "cuda" else Machine()
        host = read_host_facts(root, minor, machine)
        name = engine_name(params["version"], params["flavour"], lock, minor, host.architecture)
        installer = Installer(make_plan(params, name, lock, machine), module.run_command, progress)
        result["path"] = str(installer.path)
        if not installer.complete:
            refuse_unfit_lock(lock, params["flavour"])
            refuse_unfit_host(lock, host)
        if module.check_mode:
            result["engine"] = installer.marker()
            module.exit_json(changed=not installer.complete, **result)
        engine = installer.install()
        changed = engine.pop("changed")
        result["engine"] = engine
        result["pruned"] = prune(root, params["keep"], engines_in_use(root), installer.name)
    except (EngineError, OSError) as error:
        module.fail_json(msg=f"engine {params['version']} ({params['flavour']}): {error}", **result)
    finally:
        progress.end()
    module.exit_json(changed=changed or bool(result["pruned"]), **result)


if __name__ == "__main__":
    main()
