#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: sglang_release
short_description: Bring an SGLang server to a release or back to one, and keep the last good one serving when that fails
version_added: "0.1.0"
description:
  - Compares the release that the inventory asks for with the one that is good on this host, by an id that hashes meaning and not bytes.
    When they are equal, the server is healthy and nothing was edited by hand, it changes nothing.
  - Otherwise it holds the instance's lock, runs the candidate on trial (a drop-in under C(/run), or a unit there when the server is new),
    watches the start as M(llmops.inference.sglang_ready) does, and either promotes the candidate to C(/etc) or puts the good release back.
  - Refuses before it touches the running server when another process holds the port, systemd does not accept the unit, or this very release failed on
    this host before for a cause of its own (arguments, model, engine, memory for these flags). A cause of the host (disk, busy GPU, port) is tried again.
  - A job that was interrupted (host down, job killed) is gone on with by the next one.
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
    description:
      - V(present) deploys the release, V(absent) stops the server and removes its unit, releases and secrets.
      - V(rolled_back) brings the server back to the release named by O(to), which this host has; O(unit) and what it holds are not needed for that.
    type: str
    choices: [present, absent, rolled_back]
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
  to:
    description:
      - The release for O(state=rolled_back), by the beginning of its id.
      - V(good) is the one that C(/etc) holds, for a server that does not run it; V(previous) the one that was good before.
    type: str
    default: good
  rollback:
    description: Whether a failed trial ends with the good release serving again. Otherwise the server stays down and the trial stays for a look at it.
    type: bool
    default: true
  retry_failed:
    description: Try a release again that failed on this host for a cause of its own.
    type: bool
    default: false
  gate:
    description:
      - What a new release has to keep before it stays, see C(sglang_server_gate) of the role; empty asks nothing. It is measured while it is on trial, and
        rolled back when it is slower than the baseline by more than is tolerated.
      - C(settings) as in the inventory; C(records_dir) on the controller, from which the action plugin takes C(baseline), C(history) and C(host); C(flags)
        by layer, for the record; C(benchmark), the options of M(llmops.inference.sglang_benchmark) that say what is measured.
    type: dict
    default: {}
  by:
    description: Who asks for it, told to others who find the instance locked. The action plugin fills it in.
    type: str
    default: ""
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

- name: Go back to the release that was good before
  llmops.inference.sglang_release:
    instance: main
    port: 30000
    model_name: qwen3-8b
    state: rolled_back
    to: previous

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
    What was done: V(unchanged), V(repaired), V(started), V(restarted), V(deployed), V(refused), V(rolled_back), V(failed) or V(removed).
    In check mode V(would_change), V(unchanged) or V(refused), with O(quick=true) V(pending), V(unchanged) or V(refused).
    V(busy) when another run's job holds the instance; the action plugin then follows that one and looks again.
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
suspects:
  description: Of a failure, which of the changes since the good release the evidence points to; empty otherwise.
  returned: always
  type: str
  sample: "the only change since the good release is --mem-fraction-static: 0.88 -> 0.6"
changes:
  description: Vital signs that differ from those of the last good start, in words; those that matter come first and begin with C(!).
  returned: always
  type: list
  elements: str
  sample: ["KV cache 242,880 -> 201,344 tokens (-17 %)"]
differences:
  description: What the server runs otherwise than the preflight said, in words.
  returned: always
  type: list
  elements: str
rollback:
  description: Of a failed trial, how putting the good release back went - ready, release, diagnosis; empty when there was none.
  returned: always
  type: dict
releases:
  description: >-
    The releases on this host - release (id), state, good, since (seconds since the epoch), cause (of a failure); the good one first, then the one before.
  returned: always
  type: list
  elements: dict
holder:
  description: With RV(action=busy) whose job holds the instance - purpose, release, since, by, pid.
  returned: always
  type: dict
gate:
  description: What the gate said - outcome, text, comparison; empty when none was asked for, or it was not reached.
  returned: always
  type: dict
benchmark:
  description: The records stored with this release (format, records); empty when there are none.
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
remarks:
  description: What is worth knowing and is no failure.
  returned: always
  type: list
  elements: str
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
from dataclasses import replace
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.llmops.inference.plugins.module_utils._benchmark_host import JOB, HostBenchmark
from ansible_collections.llmops.inference.plugins.module_utils._gate import GateError
from ansible_collections.llmops.inference.plugins.module_utils._gating import Gate
from ansible_collections.llmops.inference.plugins.module_utils._host import HostError
from ansible_collections.llmops.inference.plugins.module_utils._http import ClientError
from ansible_collections.llmops.inference.plugins.module_utils._probe import (
    ARGUMENTS,
    PROBE,
    ProbeError,
    make_expectation,
    make_host,
    unit_name,
)
from ansible_collections.llmops.inference.plugins.module_utils._progress import Progress
from ansible_collections.llmops.inference.plugins.module_utils._readiness import Expectation
from ansible_collections.llmops.inference.plugins.module_utils._redact import redact
from ansible_collections.llmops.inference.plugins.module_utils._release import Candidate, Store, StoreBusy, StoreError
from ansible_collections.llmops.inference.plugins.module_utils._repetition import BenchmarkError
from ansible_collections.llmops.inference.plugins.module_utils._standing import Settings
from ansible_collections.llmops.inference.plugins.module_utils._switch import Result, Switch
from ansible_collections.llmops.inference.plugins.module_utils._switch_words import describe_release, failure
from ansible_collections.llmops.inference.plugins.module_utils._systemd import SystemdError, environment_file
from ansible_collections.llmops.inference.plugins.module_utils._vitals import TITLES
from ansible_collections.llmops.inference.plugins.module_utils._watch import Host
from ansible_collections.llmops.inference.plugins.module_utils._workload import WorkloadError

OPTIONS = {
    "instance": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["present", "absent", "rolled_back"], "default": "present"},
    "store": {"type": "path", "default": "/var/lib/llmops-inference"},
    "unit": {"type": "str"},
    "argv": {"type": "list", "elements": "str", "default": []},
    "environment": {"type": "dict", "default": {}},
    "secret_flags": {"type": "dict", "default": {}, "no_log": True},
    "secret_environment": {"type": "dict", "default": {}, "no_log": True},
    "engine": {"type": "dict", "default": {}},
    "model": {"type": "dict", "default": {}},
    "preflight": {"type": "dict", "default": {}},
    "to": {"type": "str", "default": "good"},
    "rollback": {"type": "bool", "default": True},
    "retry_failed": {"type": "bool", "default": False},
    "gate": {"type": "dict", "default": {}},
    "by": {"type": "str", "default": ""},
    "enabled": {"type": "bool", "default": True},
    "keep": {"type": "int", "default": 5},
    "quick": {"type": "bool", "default": False},
}


def make_settings(params: dict[str, t.Any]) -> Settings:
    names = ("enabled", "keep", "secret_flags", "secret_environment", "rollback", "retry_failed", "by")
    return Settings(unit_name(params["instance"]), **{name: params[name] for name in names})


def make_candidate(params: dict[str, t.Any]) -> Candidate:
    names = (*params["secret_flags"], *params["secret_environment"])
    strings = {name: str(value) for name, value in params["environment"].items()}
    probe = {name: params[name] for name in PROBE}
    return Candidate(params["unit"], tuple(params["argv"]), strings, params["engine"], params["model"], tuple(names), probe, params["preflight"])


def make_gate(module: AnsibleModule, store: Store, progress: Progress) -> Gate | None:
    """Checks what is asked of the gate before anything is touched."""
    params = module.params
    asked = params["gate"]
    if not asked or params["state"] != "present":
        return None
    validated = ArgumentSpecValidator(JOB).validate(asked["benchmark"])
    if validated.error_messages:
        raise GateError("; ".join(f"gate.benchmark: {message}" for message in validated.error_messages))
    job = {**validated.validated_parameters, "admin_api_key": str(params["secret_flags"].get("admin_api_key", ""))}
    benchmark = HostBenchmark(module, params["instance"], store, job, params, report=progress)
    # Of a release that fails its requests nothing else is worth the wait for the good one.
    return Gate(asked, store, lambda release: benchmark.run(release, goes_on=False))


def make_diff(switch: Switch, store: Store, candidate: Candidate, secrets: list[str]) -> list[dict[str, str]]:
    before = environment_file(store.read(store.good, "release").get("environment", {}))
    pairs = [(str(switch.files.etc), switch.files.text, switch.candidate_unit(candidate)), ("environment", before, environment_file(candidate.environment))]
    masked = ((name, redact(old, secrets), redact(new, secrets)) for name, old, new in pairs if old != new)
    return [{"before_header": name, "after_header": name, "before": old, "after": new} for name, old, new in masked]


def run(module: AnsibleModule, switch: Switch, candidate: Candidate | None) -> Result:
    params = module.params
    if params["state"] == "absent":
        changed = (switch.files.any or Path(params["store"], params["instance"]).exists()) if module.check_mode else switch.remove()
        return Result("removed" if changed else "unchanged", "", "")
    if candidate is None:
        return switch.roll_back(params["to"], look=module.check_mode)
    if not module.check_mode and not params["quick"]:
        return switch.deploy(candidate)
    looked = switch.look(candidate)
    return replace(looked, action="would_change") if module.check_mode and looked.action == "pending" else looked


def main() -> None:
    module = AnsibleModule({**OPTIONS, **ARGUMENTS}, supports_check_mode=True, required_if=[("state", "present", ("unit",))])
    params = module.params
    store = Store(Path(params["store"]) / params["instance"])
    settings = make_settings(params)
    secrets = [*settings.secrets, params["api_key"]]
    progress = Progress(f"sglang_release-{params['instance']}", titles=TITLES)

    def revive(probe: t.Mapping[str, t.Any]) -> tuple[Host, Expectation]:
        return make_host(module.run_command, {**params, **probe}), make_expectation({**params, **probe})

    diff: list[dict[str, str]] = []
    try:
        host, expect = revive({})
        gate = make_gate(module, store, progress)
        switch = Switch(store, host, module.run_command, expect, settings, report=progress, revive=revive, gate=gate)
        candidate = make_candidate(params) if params["state"] == "present" else None
        if candidate:
            diff = make_diff(switch, store, candidate, secrets)
        result = run(module, switch, candidate)
        told = describe_release(result, store, secrets)
    except StoreBusy as busy:
        module.exit_json(changed=False, **describe_release(Result("busy", "", ""), None, secrets, busy.holder))
    except (BenchmarkError, ClientError, GateError, StoreError, HostError, ProbeError, SystemdError, WorkloadError, OSError) as error:
        text = f"{settings.unit}: {redact(str(error), secrets)}"
        module.fail_json(msg=text, **describe_release(Result("failed", "", ""), None, secrets))
    finally:
        progress.end()
    if result.failed:
        module.fail_json(msg=failure(result, settings.unit, secrets), diff=diff, changed=result.action == "rolled_back", **told)
    module.exit_json(changed=result.action not in ("unchanged", "pending"), diff=diff, **told)


if __name__ == "__main__":
    main()
