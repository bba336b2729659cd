#!/usr/bin/python
# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_facts
short_description: Tell what GPUs a host has, how they are joined, and what is wrong with them
version_added: "0.1.0"
description:
  - Reads C(nvidia-smi) (the XML report, queries, topology matrices), C(/proc/driver/nvidia), the kernel log, C(lspci) where it is installed, and sysfs.
  - A host without a GPU is a clean answer (RV(ansible_facts.llmops_gpu.state) is V(none)); a GPU or driver that is broken is V(broken) with its cause
    named. The module does not fail for either.
  - C(LLMOPS_INFERENCE_ROOT) in the environment has files read below another directory than C(/).
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
    support: full
options: {}
author:
  - the llmops.inference authors (@llmops)
"""

EXAMPLES = r"""
- name: Look at the GPUs
  llmops.inference.gpu_facts:

- name: Say what there is
  ansible.builtin.debug:
    msg: "{{ ansible_facts['llmops_gpu']['verdict'] }}"
"""

RETURN = r"""
ansible_facts:
  description: The facts.
  returned: always
  type: dict
  contains:
    llmops_gpu:
      description: GPUs, links, driver and machine.
      returned: always
      type: dict
      contains:
        state:
          description: V(ok), V(none) (no GPU here) or V(broken) (see RV(ansible_facts.llmops_gpu.problems)).
          type: str
          returned: always
          sample: ok
        verdict:
          description: The host's GPUs, their problems and what deserves a look, one sentence each.
          type: list
          elements: str
          returned: always
          sample: ["2x H200, PCIe 5.0 x16, joined by 18 NVLinks, P2P works"]
        summary:
          description: The first sentence of the verdict.
          type: str
          returned: always
        remarks:
          description: What deserves a look (a link with fewer lanes than it could have, ACS, a power limit).
          type: list
          elements: str
          returned: always
        problems:
          description: What is broken - code, cause, evidence, hint.
          type: list
          elements: dict
          returned: always
        gpus:
          description:
            - One entry per GPU - index, name, uuid, pci, minor, compute_capability, memory_total_mib, memory_used_mib, memory_free_mib, power_limit_w,
              power_limit_max_w, ecc, persistence, mig, mig_devices, virtualization, fabric, numa_node, cpus.
            - C(pcie) holds generation and width, now and at most; a GPU at rest may lower its generation, never its width.
            - C(processes) holds what uses the GPU - pid, name, memory_mib, and the unit where it belongs to one.
          type: list
          elements: dict
          returned: always
        links:
          description: One entry per pair of GPUs - gpus, kind (C(NV12), C(PIX), C(PXB), C(PHB), C(NODE), C(SYS)), nvlinks, pcie, p2p, p2p_state.
          type: list
          elements: dict
          returned: always
        driver:
          description: >-
            version, cuda (the newest CUDA that it supports), module (loaded), module_open, nouveau (loaded), library, and compatibility (of an installed
            cuda-compat).
          type: dict
          returned: always
        machine:
          description: kind (V(bare), V(vm) or V(container)) and what C(systemd-detect-virt) says.
          type: dict
          returned: always
        devices:
          description: Device nodes of the driver, present and missing.
          type: dict
          returned: always
        pci:
          description: PCI addresses of NVIDIA GPUs, with or without a driver.
          type: list
          elements: str
          returned: always
        nics:
          description: Network adapters that the topology matrix lists.
          type: list
          elements: str
          returned: always
        infiniband:
          description: InfiniBand and RoCE adapters.
          type: list
          elements: str
          returned: always
        iommu:
          description: enabled, and translating (for the GPUs' groups).
          type: dict
          returned: always
        acs:
          description: known (C(lspci) is there), and the bridges where ACS is enabled.
          type: dict
          returned: always
        fabric_manager:
          description: needed (there is an NVSwitch, or the fabric waits), active, ready (every GPU has joined the fabric), switches.
          type: dict
          returned: always
        xids:
          description: The root of each GPU's errors in the kernel log since boot, its first serious Xid or else its first - pci, xid, followers, line.
          type: list
          elements: dict
          returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.llmops.inference.plugins.module_utils._gpu_host import Files, GpuHost, make_ask


def main() -> None:
    module = AnsibleModule({}, supports_check_mode=True)
    module.exit_json(changed=False, ansible_facts={"llmops_gpu": GpuHost(make_ask(module), Files.here()).collect()})


if __name__ == "__main__":
    main()
