#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_server_info
short_description: Tell what an SGLang server on this host is and whether it is healthy
version_added: "0.1.0"
description:
  - Reads systemd's state of the unit, the release that is good, the ports on which its processes listen, and its health endpoint.
extends_documentation_fragment:
  - llmops.inference.attributes
attributes:
  check_mode:
    support: full
    details: Changes nothing.
  diff_mode:
    support: none
    details: Changes nothing.
  async:
    support: none
options:
  instance:
    description: Name of the instance; its unit is C(sglang-INSTANCE.service).
    type: str
    required: true
  store:
    description: Directory under which the releases of all instances are kept.
    type: path
    default: /var/lib/llmops-inference
  ca_path:
    description: CA bundle for HTTPS, for a private CA.
    type: path
  effective:
    description: Also ask a running server what it runs with, and hold that against what the preflight of its release said.
    type: bool
    default: false
  api_key:
    description: Key of the server, for O(effective=true).
    type: str
    default: ""
author:
  - the llmops.inference authors (@llmops)
"""

EXAMPLES = r"""
- name: Look at the server
  llmops.inference.sglang_server_info:
    instance: main
  register: sglang_state
"""

RETURN = r"""
server:
  description: The server.
  returned: always
  type: dict
  contains:
    unit:
      description: Its unit.
      type: str
      returned: always
      sample: sglang-main.service
    state:
      description: systemd's C(ActiveState); V(not-found) when there is no such unit.
      type: str
      returned: always
      sample: active
    since:
      description: Start of the main process, UTC; empty when it does not run.
      type: str
      returned: always
      sample: "2026-11-29T19:26:10Z"
    restarts:
      description: Restarts by systemd since the last deliberate start.
      type: int
      returned: always
    healthy:
      description: Whether its health endpoint says so.
      type: bool
      returned: always
    health:
      description: What the health endpoint answered.
      type: str
      returned: always
      sample: HTTP 200
    ports:
      description: TCP ports on which the server's processes listen, the ones derived by the engine included.
      type: list
      elements: int
      returned: always
    release:
      description: The good release - id, engine, model, argv, environment, names of secrets; empty when there is none.
      type: dict
      returned: always
    start:
      description: Phases and vital signs of the start that proved that release.
      type: dict
      returned: always
    benchmark:
      description: The benchmark stored with that release.
      type: dict
      returned: always
    effective:
      description:
        - With O(effective=true), of a server that runs - C(version) of its engine, C(differences) (what it runs otherwise than the preflight said, in words),
          C(problem) (why that is not known; empty when it is).
        - Empty otherwise.
      type: dict
      returned: always
"""

import time
import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmops.inference.plugins.module_utils._host import HostError, LocalHost
from ansible_collections.llmops.inference.plugins.module_utils._http import Client, ClientError, base_url
from ansible_collections.llmops.inference.plugins.module_utils._probe import unit_name
from ansible_collections.llmops.inference.plugins.module_utils._proc import cgroup_pids, ports_of
from ansible_collections.llmops.inference.plugins.module_utils._promise import ask_server_info, differences
from ansible_collections.llmops.inference.plugins.module_utils._redact import redact
from ansible_collections.llmops.inference.plugins.module_utils._release import Store

OPTIONS = {
    "instance": {"type": "str", "required": True},
    "store": {"type": "path", "default": "/var/lib/llmops-inference"},
    "ca_path": {"type": "path"},
    "effective": {"type": "bool", "default": False},
    "api_key": {"type": "str", "default": "", "no_log": True},
}


def option_of(argv: list[str], name: str, default: str) -> str:
    return argv[argv.index(name) + 1] if name in argv[:-1] else default


def url_of(argv: list[str]) -> str:
    return base_url(option_of(argv, "--host", "127.0.0.1"), int(option_of(argv, "--port", "30000")), "--ssl-certfile" in argv)


def ask_health(argv: list[str], ca_path: str | None) -> str:
    """Health endpoints need no key (SGLang's auth middleware lets them pass)."""
    reply = Client(url_of(argv), ca_path=ca_path).request("/health", timeout=25.0)
    return f"HTTP {reply.status}" if reply.status else reply.error


def ask_effective(client: Client, promised: dict[str, t.Any], secrets: list[str]) -> dict[str, t.Any]:
    """What is not known is said: a server that gives no answer may run with anything."""
    told = ask_server_info(client.request)
    found: dict[str, t.Any] = {"version": str(told.get("version") or ""), "differences": [], "problem": ""}
    if not told:
        return {**found, "problem": "the server does not tell what it runs with"}
    if not promised:
        return {**found, "problem": "its release was stored without a preflight"}
    try:
        found["differences"] = [redact(one.text, secrets) for one in differences(promised, told)]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        found["problem"] = f"what it runs with could not be compared: {type(error).__name__}: {error}"
    return found


def describe(module: AnsibleModule) -> dict[str, t.Any]:
    unit = unit_name(module.params["instance"])
    store = Store(Path(module.params["store"]) / module.params["instance"])
    release = store.read(store.good, "release")
    argv = release.get("argv", [])
    state = LocalHost(module.run_command, unit, 0, Client("")).unit_state()
    key, ca_path = module.params["api_key"], module.params["ca_path"]
    health = ask_health(argv, ca_path) if state.alive and argv else "not running"
    asked = module.params["effective"] and health == "HTTP 200"
    effective = ask_effective(Client(url_of(argv), key, ca_path), store.read(store.good, "preflight"), [key]) if asked else {}
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(state.started)) if state.alive else ""
    return {
        "unit": unit,
        "state": state.active if state.alive or release else "not-found",
        "since": since,
        "restarts": state.restarts,
        "healthy": health == "HTTP 200",
        "health": health,
        "ports": ports_of(cgroup_pids(state.control_group)),
        "release": release,
        "start": store.read(store.good, "vitals"),
        "benchmark": store.read(store.good, "benchmark"),
        "effective": effective,
    }


def main() -> None:
    module = AnsibleModule(OPTIONS, supports_check_mode=True)
    try:
        module.exit_json(changed=False, server=describe(module))
    except (ClientError, HostError) as error:
        module.fail_json(msg=str(error), server={})


if __name__ == "__main__":
    main()
