# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import re

import pytest
import yaml
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args

# What Ansible adds to a result, and what a module adds to its own keys.
COMMON = {"changed", "diff", "failed", "invocation", "msg", "warnings"}
OF_A_PATH = {"gid", "group", "mode", "owner", "secontext", "size", "state", "uid"}


class Ran:
    """A module that has run: its exit status, its result, everything it printed, and the environment that it gave to all commands."""

    def __init__(self, status, output, environment):
        self.environment = environment
        self.status = status
        self.output = output
        self.result = json.loads(re.search(r"^\{.*\}$", output, re.MULTILINE)[0])
        self.failed = bool(self.result.get("failed"))
        self.keys = set(self.result) - COMMON - (OF_A_PATH if "path" in self.result else set())


@pytest.fixture(name="run_module")
def fixture_run_module(capfd, monkeypatch, tmp_path):
    """Runs a module's main() with arguments; run_command is played by the function given."""

    def run(module, args, command=None, check_mode=False, diff=False):
        environment = {}

        def run_command(self, words, **options):
            environment.update(self.run_command_environ_update)
            return command(words, **options)

        if command is not None:
            monkeypatch.setattr(AnsibleModule, "run_command", run_command)
        internal = {"_ansible_check_mode": check_mode, "_ansible_diff": diff, "_ansible_remote_tmp": str(tmp_path), "_ansible_tmpdir": str(tmp_path)}
        with patch_module_args({**args, **internal}), pytest.raises(SystemExit) as ended:
            module.main()
        output = capfd.readouterr()
        return Ran(ended.value.code, output.out + output.err, environment)

    return run


@pytest.fixture(name="documented")
def fixture_documented():
    """Returns the keys that a module's RETURN promises in any case."""

    def keys(module):
        entries = yaml.safe_load(module.RETURN)
        assert all(entry["returned"] == "always" for entry in entries.values())
        return set(entries)

    return keys
