# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import subprocess
import sys

from ansible_collections.llmops.inference.plugins.module_utils._load_client_files import client_command, request_lines, write_client
from ansible_collections.llmops.inference.plugins.module_utils._workload import Prompt, user_prompt

FAKE_AIOHTTP = "ClientError = OSError\n"


def test_the_client_starts_without_ansible(tmp_path):
    """In an interpreter that has nothing but the library."""
    write_client(tmp_path)
    write_client(tmp_path)
    (tmp_path / "aiohttp.py").write_text(FAKE_AIOHTTP)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"base_url": "http://127.0.0.1:9", "model": "m"}))
    command = client_command(sys.executable, tmp_path, plan)
    done = subprocess.run([command[0], "-I", *command[2:]], input="", capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"event": "ready"}


def test_request_lines():
    tools = Prompt(({"role": "user", "content": "a"}, {"role": "user", "content": "b"}), 3, {"tools": [1]})
    assert [json.loads(line) for line in request_lines([user_prompt("Hi"), tools], 9).splitlines()] == [
        {"messages": [{"role": "user", "content": "Hi"}], "output_tokens": 9, "body": {}},
        {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], "output_tokens": 3, "body": {"tools": [1]}},
    ]
