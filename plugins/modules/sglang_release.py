#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_release
short_description: Bring an SGLang server to a release, and keep the last good one serving when that fails
version_added: "0.1.0"
description:
  - Compares the release that the inventory asks for with the one that is good on this host, by an id that hashes meaning and not bytes.
    When they are equal, the server is healthy and nothing was edited by hand, it changes nothing.
  - Otherwise it holds the instance's lock, runs the candidate on trial (a drop-in under C(/run), or a unit there when the server is new),
    watches the start as M(llmops.inference.sglang_ready) does, and either promotes the candidate to C(/etc) or puts the good release back.
  - Refuses before it touches the running server when another process holds the port or systemd does not accept the unit.
extends_documentation_fragment:
  - llmops.inference.attributes
  - llmops.inference.attributes.probe
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: Shows the unit and the environment, without secrets.
  async:
    support: none
    details: The action plugin runs it in the background, so that it finishes on the host when the controller is gone, and shows its progress.
options:
  instance:
    description: Name of the instance; its unit is C(sglang-INSTANCE.service).
    type: str
    required: true
  state:
    description: V(present) deploys the release, V(absent) stops the server and removes its unit, releases and secrets.
    type: str
    choices: [present, absent]
    default: present
  store:
    description: Directory under which the releases of all instances are kept, readable by root only.
    type: path
    default: /var/lib/llmops-inference
  unit:
    description: Text of the unit; C(@RELEASE@) stands for the directory of the release. Required when O(state=present).
    type: str
  argv:
    description: Arguments of the server without secrets.
    type: list
    elements: str
    default: []
  environment:
    description: Environment variables that are no secrets.
    type: dict
    default: {}
  secret_flags:
    description: Flags that hold secrets, by the engine's names; written to the engine's C(--config) file and never to the command line.
    type: dict
    default: {}
  secret_environment:
    description: Environment variables that hold secrets.
    type: dict
    default: {}
  engine:
    description: Identity of the engine, part of the release.
    type: dict
    default: {}
  model:
    description: Identity of the model, part of the release.
    type: dict
    default: {}
  preflight:
    description: Result of M(llmops.inference.sglang_preflight) for this release, kept beside it as C(preflight.json); not part of the release's id.
    type: dict
    default: {}
  enabled:
    description: Whether the server starts at boot.
    type: bool
    default: true
  keep:
    description: How many releases stay on the host, the good one included.
    type: int
    default: 5
  quick:
    description:
      - Only look, and return RV(action=pending) when there is anything to do.
      - The action plugin looks first and starts the job in the background only when there is something to do.
    type: bool
    default: false
author:
  - the llmops.inference authors (@llmops)
seealso:
  - module: llmops.inference.sglang_ready
"""

EXAMPLES = r"""
- name: Deploy the release
  llmops.inference.sglang_release:
    instance: main
    port: 30000
    model_name: qwen3-8b
    unit: "{{ lookup('ansible.builtin.template', 'sglang.service.j2') }}"
    argv: "{{ sglang_argv }}"

- name: Take the server away
  llmops.inference.sglang_release:
    instance: main
    port: 30000
    model_name: qwen3-8b
    state: absent
"""

RETURN = r"""
action:
  description: >-
    What was done: V(unchanged), V(repaired), V(started), V(restarted), V(deployed), V(rolled_back), V(failed) or V(removed).
    In check mode V(would_change) or V(unchanged), with O(quick=true) V(pending) or V(unchanged).
  returned: always
  type: str
  sample: deployed
release:
  description: Id of the release asked for.
  returned: always
  type: str
  sample: 0f3a9c1be27d
previous:
  description: Id of the release that was good before; empty for a new server.
  returned: always
  type: str
  sample: 77ab01c4f3e9
reasons:
  description: Why the host differed from the inventory.
  returned: always
  type: list
  elements: str
  sample: ["the release changes from 77ab01c4f3e9 to 0f3a9c1be27d"]
benchmark:
  description: The benchmark stored with this release; empty when there is none.
  returned: always
  type: dict
start:
  description: Phases and vital signs of the start that proved this release.
  returned: always
  type: dict
ready:
  description: Whether the release asked for serves.
  returned: always
  type: bool
phases:
  description: Phases of the start so far, in order, with their seconds.
  returned: always
  type: list
  elements: dict
vitals:
  description: Vital signs read from the journal.
  returned: always
  type: dict
elapsed:
  description: Seconds from the restart until the server was proven, or given up.
  returned: always
  type: float
diagnosis:
  description: Why the candidate failed, as RV(llmops.inference.sglang_ready#module:diagnosis); empty otherwise.
  returned: always
  type: dict
journal:
  description: Last lines of the failed run's journal, secrets masked; empty otherwise.
  returned: always
  type: list
  elements: str
"""

import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmops.inference.plugins.module_utils._host import HostError
from ansible_collections.llmops.inference.plugins.module_utils._http import ClientError
from ansible_collections.llmops.inference.plugins.module_utils._probe import ARGUMENTS, make_expectation, make_host, present, sentence, unit_name
from ansible_collections.llmops.inference.plugins.module_utils._progress import Progress
from ansible_collections.llmops.inference.plugins.module_utils._redact import redact
from ansible_collections.llmops.inference.plugins.module_utils._release import Candidate, Store, StoreError
from ansible_collections.llmops.inference.plugins.module_utils._switch import Result, Settings, Switch
from ansible_collections.llmops.inference.plugins.module_utils._systemd import SystemdError, environment_file
from ansible_collections.llmops.inference.plugins.module_utils._vitals import TITLES
from ansible_collections.llmops.inference.plugins.module_utils._watch import Expectation, Host

OPTIONS = {
    "instance": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "store": {"type": "path", "default": "/var/lib/llmops-inference"},
    "unit": {"type": "str"},
    "argv": {"type": "list", "elements": "str", "default": []},
    "environment": {"type": "dict", "default": {}},
    "secret_flags": {"type": "dict", "default": {}, "no_log": True},
    "secret_environment": {"type": "dict", "default": {}, "no_log": True},
    "engine": {"type": "dict", "default": {}},
    "model": {"type": "dict", "default": {}},
    "preflight": {"type": "dict", "default": {}},
    "enabled": {"type": "bool", "default": True},
    "keep": {"type": "int", "default": 5},
    "quick": {"type": "bool", "default": False},
}


def make_candidate(params: dict[str, t.Any]) -> Candidate:
    names = (*params["secret_flags"], *params["secret_environment"])
    strings = {name: str(value) for name, value in params["environment"].items()}
    probe = {name: params[name] for name in ("host", "port", "tls", "ca_path", "model_name")}
    return Candidate(params["unit"], tuple(params["argv"]), strings, params["engine"], params["model"], tuple(names), probe, params["preflight"])


def make_diff(switch: Switch, store: Store, candidate: Candidate, secrets: list[str]) -> list[dict[str, str]]:
    before = environment_file(store.read(store.good, "release").get("environment", {}))
    pairs = [(str(switch.unit_path), switch.current_unit(), switch.candidate_unit(candidate)), ("environment", before, environment_file(candidate.environment))]
    masked = ((name, redact(old, secrets), redact(new, secrets)) for name, old, new in pairs if old != new)
    return [{"before_header": name, "after_header": name, "before": old, "after": new} for name, old, new in masked]


def describe(result: Result, store: Store, secrets: list[str]) -> dict[str, t.Any]:
    return {
        "action": result.action,
        "release": result.release,
        "previous": result.previous,
        "reasons": result.reasons,
        "benchmark": store.read(result.release, "benchmark"),
        "start": store.read(result.release, "vitals"),
        **present(result.outcome, secrets),
    }


def failure(result: Result, unit: str, secrets: list[str]) -> str:
    text = f"{unit}: release {result.release} failed: {sentence(result.outcome, secrets)}"
    if result.rollback is None:
        return text
    if result.rollback.ready:
        return f"{text}. The last good release {result.previous or '(the unit that was there before)'} is serving again"
    return f"{text}. Putting {result.previous} back failed as well: {sentence(result.rollback, secrets)}"


def main() -> None:
    module = AnsibleModule({**OPTIONS, **ARGUMENTS}, supports_check_mode=True, required_if=[("state", "present", ("unit",))])
    params = module.params
    store = Store(Path(params["store"]) / params["instance"])
    unit = unit_name(params["instance"])
    settings = Settings(unit, params["enabled"], params["keep"], params["secret_flags"], params["secret_environment"])
    secrets = [*settings.secrets, params["api_key"]]
    progress = Progress(f"sglang_release-{params['instance']}", titles=TITLES)

    def revive(probe: t.Mapping[str, t.Any]) -> tuple[Host, Expectation]:
        return make_host(module.run_command, {**params, **probe}), make_expectation({**params, **probe})

    nothing = Result("failed", "", store.good)
    try:
        host, expect = revive({})
        switch = Switch(store, host, module.run_command, expect, settings, report=progress, revive=revive)
        if params["state"] == "absent":
            exists = switch.unit_path.exists() or store.path.exists()
            changed = exists if module.check_mode else switch.remove()
            module.exit_json(changed=changed, **describe(Result("removed" if changed else "unchanged", "", nothing.previous), store, secrets))
        candidate = make_candidate(params)
        diff = make_diff(switch, store, candidate, secrets)
        if module.check_mode:
            reasons = switch.reasons(candidate)
            result = Result("would_change" if reasons else "unchanged", candidate.id, store.good, reasons)
        elif params["quick"]:
            result = switch.look(candidate)
        else:
            result = switch.deploy(candidate)
    except (ClientError, StoreError, HostError, SystemdError) as error:
        module.fail_json(msg=f"{unit}: {redact(str(error), secrets)}", **describe(nothing, store, secrets))
    finally:
        progress.end()
    if result.failed:
        module.fail_json(msg=failure(result, unit, secrets), diff=diff, changed=result.action == "rolled_back", **describe(result, store, secrets))
    module.exit_json(changed=result.action not in ("unchanged", "pending"), diff=diff, **describe(result, store, secrets))


if __name__ == "__main__":
    main()
