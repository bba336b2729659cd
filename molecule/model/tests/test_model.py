# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model is there whole and verified, or its marker is not there."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

SCENARIO = Path(__file__).resolve().parents[1]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
MODEL = f"/var/lib/models/llmops--tiny/{COMMIT}"


@pytest.fixture(scope="module")
def converge():
    """Runs the scenario's converge playbook; returns its output on one line."""

    def run(rc=0, **variables):
        command = [
            "ansible-playbook",
            "-i",
            os.path.dirname(os.environ["MOLECULE_INVENTORY_FILE"]),
            str(SCENARIO / "converge.yml"),
            "-e",
            json.dumps(variables),
        ]
        process = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert (process.returncode == 0) == (rc == 0), process.stdout[-4000:]
        return " ".join(process.stdout.split())

    return run


def test_all_of_it_is_there(host):
    marker = json.loads(host.file(f"{MODEL}/.llmops-model.json").content_string)
    assert marker["repository"] == "llmops/tiny"
    assert marker["revision"] == COMMIT
    assert host.file(f"{MODEL}/model.safetensors").sha256sum == host.file("/srv/models/tiny-qwen3/model.safetensors").sha256sum


def test_everybody_reads_it_and_only_root_writes(host):
    assert host.check_output(f"find {MODEL} -perm /022") == ""
    assert host.run(f"runuser -u nobody -- cat {MODEL}/config.json {MODEL}/model.safetensors").rc == 0


def test_the_token_is_gone(host):
    assert host.run("grep -r hf_scenario_token /var/lib/models /opt/sglang/tools /root").stdout == ""


def test_a_damaged_file_is_fetched_again_when_the_marker_is_gone(host, converge):
    host.check_output(f"rm {MODEL}/.llmops-model.json && truncate -s 1000 {MODEL}/model.safetensors")
    converge()
    assert host.file(f"{MODEL}/model.safetensors").sha256sum == host.file("/srv/models/tiny-qwen3/model.safetensors").sha256sum


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"sglang_model_id": "llmops/wrong"}, "model.safetensors does not have the SHA-256 that the hub names"),
        ({"sglang_model_id": "llmops/gated"}, "llmops/gated is gated: accept its licence on the hub and set sglang_model_hub_token"),
        ({"sglang_model_id": "llmops/none"}, "llmops/none does not exist, or sglang_model_hub_token may not read it"),
        ({"sglang_model_revision": "f" * 40}, "has no such revision: correct sglang_model_revision"),
        ({"sglang_model_revision": "main"}, "sglang_model_revision \\(a commit of 40 hexadecimal digits"),
        ({"sglang_model_source": "local", "sglang_model_path": "models/x"}, "A local model needs sglang_model_path, an absolute path on the host"),
        ({"sglang_model_source": "dummy"}, "A dummy model needs sglang_model_config_path"),
    ],
    ids=["digest", "gated", "missing", "revision", "branch", "relative", "dummy"],
)
def test_bad_input_is_one_sentence(host, converge, variables, message):
    output = converge(rc=1, **variables)
    assert re.search(message, output), output[-3000:]
    assert "hf_scenario_token" not in output


def test_a_model_that_does_not_fit_is_refused_before_the_download(host, converge):
    host.check_output("mkdir -p /mnt/small && mount -t tmpfs -o size=200k tmpfs /mnt/small")
    assert re.search(r"the model needs 0\.0 GB more and 0\.0 GB are free below", converge(rc=1, sglang_model_root="/mnt/small"))
    assert host.run("find /mnt/small -name '*.safetensors'").stdout == ""
