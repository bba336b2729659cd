# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
import yaml
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmops.inference.plugins.modules import gpu_facts
from ansible_collections.llmops.inference.tests.unit.gpu import NVRM, REPORT, Host, case, real


@pytest.fixture(name="run")
def fixture_run(run_module, monkeypatch, tmp_path):
    """Runs the module on a played host: it has the programs that answer, and ``timeout``."""

    def run(host, check_mode=False, tools=("timeout",)):
        programs = {command.split()[0] for command in host.answers} | set(tools)
        asked = []

        def find(self, name, required=False, opt_dirs=None):
            assert name in programs or not required
            return f"/usr/bin/{name}" if name in programs else None

        def command(words, environ_update):
            asked.append(words)
            assert words[:2] == ["/usr/bin/timeout", "60"] and environ_update == {"LC_ALL": "C"}, "no driver hangs a play, no locale changes an answer"
            status, output = host.ask(words[2].rpartition("/")[2], *words[3:]) or (1, "")
            return (status, output, "") if status == 0 else (status, "", output)

        monkeypatch.setattr(AnsibleModule, "get_bin_path", find)
        monkeypatch.setenv("LLMOPS_INFERENCE_ROOT", str(tmp_path))
        ran = run_module(gpu_facts, {}, command=command, check_mode=check_mode)
        assert (ran.status, ran.failed, ran.result["changed"], ran.keys) == (0, False, False, {"ansible_facts"})
        ran.asked = asked
        ran.facts = ran.result["ansible_facts"]["llmops_gpu"]
        return ran

    return run


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_host_with_gpus(run, tmp_path, check_mode):
    ran = run(real(tmp_path, "gpu-x2"), check_mode)
    assert (ran.facts["state"], ran.facts["summary"], len(ran.facts["gpus"])) == ("ok", "2x H200, PCIe 5.0 x16, joined by 18 NVLinks, P2P works", 2)
    assert ["/usr/bin/timeout", "60", "/usr/bin/nvidia-smi", "topo", "-p2p", "r"] in ran.asked


def test_every_fact_is_documented(run, tmp_path):
    facts = run(real(tmp_path, "gpu-x2")).facts
    documented = yaml.safe_load(gpu_facts.RETURN)["ansible_facts"]["contains"]["llmops_gpu"]["contains"]
    assert set(documented) == set(facts)
    assert documented["verdict"]["sample"] == facts["verdict"], "the sample is what two H200 say"
    words = " ".join(documented["gpus"]["description"])
    assert [name for name in facts["gpus"][0] if name not in words] == []
    assert [name for name in facts["links"][0] if name not in documented["links"]["description"]] == []
    for name in ("driver", "fabric_manager", "acs", "iommu", "devices"):
        assert [key for key in facts[name] if key.partition("_")[2] not in documented[name]["description"]] == [], name


def test_a_host_without_gpu(run, tmp_path):
    ran = run(Host(tmp_path))
    assert (ran.facts["state"], ran.facts["verdict"]) == ("none", ["no GPU"])
    assert {words[2] for words in ran.asked} == {"/usr/bin/journalctl", "/usr/bin/systemd-detect-virt"}, "nothing is asked that is not there"


def test_what_a_command_says_when_it_fails_is_heard(run, tmp_path):
    """Case L12: nvidia-smi complains on standard output or on standard error."""
    host = Host(tmp_path).has_driver("580.173.02", 0).says(REPORT, case("l12_nvml_mismatch.txt"), 18)
    assert [problem["code"] for problem in run(host).facts["problems"]] == ["driver_library_mismatch"]


def test_a_driver_that_hangs(run, tmp_path):
    host = Host(tmp_path).has_driver("580.95.05", 0).says(REPORT, "", 124)
    assert run(host).facts["problems"][0]["cause"] == "nvidia-smi failed: nvidia-smi gave no answer within 60 s"


def test_a_host_on_which_a_driver_could_hang_the_play(run, tmp_path):
    ran = run(real(tmp_path, "gpu-x1"), tools=())
    assert (ran.asked, [problem["code"] for problem in ran.facts["problems"]]) == ([], ["driver_missing"])


def test_the_kernel_log(run, tmp_path):
    """Case L14."""
    ran = run(real(tmp_path, "gpu-x1").says(NVRM, case("l14a_xid79.log")))
    assert (ran.facts["state"], [found["xid"] for found in ran.facts["xids"]]) == ("broken", [79])
