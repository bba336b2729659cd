# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which lines of the kernel's log are a run's own, and what they make certain."""

from __future__ import annotations

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import diagnose
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis_kernel import Run, gpu_errors, is_kernel_line, killed_by_kernel, own_lines

CASES = ("L14",)
OWN = "/system.slice/sglang-main.service"
KILL = "Out of memory: Killed process 4711 (sglang::schedul) total-vm:61kB, anon-rss:52428800kB, file-rss:0kB, shmem-rss:0kB, UID:999 pgtables:1kB"
SCOPE = "oom-kill:constraint=CONSTRAINT_%s,nodemask=(null),cpuset=/,mems_allowed=0,%stask_memcg=%s,task=sglang::schedul,pid=4711,uid=999"
GLOBAL = SCOPE % ("NONE", "global_oom,", OWN)
LIMIT = SCOPE % ("MEMCG", f"oom_memcg={OWN},", OWN)
SLICE = SCOPE % ("MEMCG", "oom_memcg=/system.slice,", OWN)
CONTAINED = SCOPE % ("MEMCG", "oom_memcg=/lxc.payload.105/system.slice/sglang-main.service,", f"/lxc.payload.105{OWN}")
FOREIGN = SCOPE % ("NONE", "global_oom,", "/system.slice/postgresql.service")
CGROUP_KILL = KILL.replace("Out of memory", "Memory cgroup out of memory")
REAPED = "oom_reaper: reaped process 4711 (sglang::schedul), now anon-rss:0kB"
DIED = ["[2026-02-03 09:15:02] Subprocess scheduler_0 (pid=4711) crashed with exit code -9. Triggering SIGQUIT for cleanup..."]
LOST = "NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
FAULT = "NVRM: Xid (PCI:0000:41:00): 31, pid=4711, name=sglang::schedul, Ch 00000008, intr 00000000. MMU Fault"
SEGFAULT = "python[4711]: segfault at 0 ip 00007f3b2c sp 00007ffd error 4 in libtorch_cpu.so[7f3b00+1000]"
SECCOMP = 'audit: type=1326 audit(1770110102.1:71): auid=4294967295 uid=999 gid=999 ses=4294967295 pid=4711 comm="python" exe="/opt/x/python" sig=31 syscall=62'


@pytest.mark.parametrize(
    "kernel, run, code, where, certainty, words",
    [
        pytest.param([KILL], Run({4711}), "oom_killer", "host", "certain", "process 4711 (sglang::schedul), which held 52428800 kB", id="own-process"),
        pytest.param([GLOBAL, KILL, REAPED], Run((), OWN), "oom_killer", "host", "certain", "process 4711 (sglang::schedul)", id="own-unit"),
        pytest.param([GLOBAL], Run((), f"{OWN}"), "oom_killer", "host", "certain", "process 4711 (sglang::schedul)", id="only-the-first-line"),
        pytest.param([SLICE, CGROUP_KILL], Run((), OWN), "oom_killer", "host", "certain", "process 4711", id="limit-of-the-slice"),
        pytest.param([LIMIT, CGROUP_KILL], Run((), OWN), "memory_limit_hit", "release", "certain", "the unit's own memory limit", id="limit-of-the-unit"),
        pytest.param([LIMIT, CGROUP_KILL], Run({4711}), "memory_limit_hit", "release", "certain", "process 4711 (sglang::schedul)", id="limit-by-process"),
        pytest.param([KILL], Run({815}), "killed", "host", "suspected", "killed from outside", id="another-process"),
        pytest.param([FOREIGN, KILL], Run((), OWN), "killed", "host", "suspected", "killed from outside", id="another-unit"),
        pytest.param([GLOBAL.replace("-main", "-main2"), KILL], Run((), OWN), "killed", "host", "suspected", "killed", id="a-unit-with-a-longer-name"),
        pytest.param([CONTAINED, CGROUP_KILL], Run((), OWN), "memory_limit_hit", "release", "suspected", "the unit's own memory limit", id="some-container"),
        pytest.param([GLOBAL.replace(OWN, f"/lxc/9{OWN}"), KILL], Run((), OWN), "oom_killer", "host", "suspected", "process 4711", id="any-container"),
        pytest.param([KILL], Run(), "oom_killer", "host", "suspected", "which may be the server's", id="whose-is-not-known"),
        pytest.param([KILL.replace("sglang::schedul", "postgres")], Run(), "killed", "host", "suspected", "killed from outside", id="another-program"),
        pytest.param([], Run({4711}, OWN), "killed", "host", "suspected", "most often the kernel's OOM killer", id="no-kernel-log"),
    ],
)
def test_a_process_that_died_by_sigkill(kernel, run, code, where, certainty, words):
    found = diagnose(DIED, "exit-code", kernel, Run(run.pids, run.control_group))
    assert (found.code, found.where, found.certainty) == (code, where, certainty)
    assert words in found.cause


def test_the_kernel_is_asked_before_what_follows():
    lines = ["RuntimeError: CUDA error: x", "FileNotFoundError: [Errno 2] No such file or directory: 'ninja'", *DIED]
    assert diagnose(lines, "", [KILL], Run({4711})).code == "oom_killer"
    assert diagnose([*lines, f"kernel: {KILL}"], "", (), Run({4711})).code == "oom_killer"
    assert diagnose(lines, "", [KILL], Run({815})).code == "ninja_missing"
    assert diagnose([*lines, f"kernel: {KILL}"]).code == "ninja_missing"


def test_what_systemd_says_is_certain_without_the_kernel():
    found = diagnose(DIED, "oom-kill", (), Run({4711}, OWN))
    assert (found.code, found.certainty) == ("oom_killer", "certain")
    assert diagnose([*DIED, "sglang-main.service: systemd-oomd killed 3 process(es) in this unit."]).certainty == "certain"


@pytest.mark.parametrize(
    "kernel, run, code, certainty",
    [
        pytest.param([LOST], Run(gpus=["00000000:41:00.0"]), "xid", "certain", id="its-gpu"),
        pytest.param([LOST], Run(gpus=["0000:c1:00.0"]), "ninja_missing", "certain", id="another-gpu"),
        pytest.param([LOST], Run({4711}), "xid", "suspected", id="some-gpu"),
        pytest.param([LOST.replace("'<unknown>'", "4711")], Run({4711}), "xid", "certain", id="its-process-used-it"),
        pytest.param([LOST.replace("'<unknown>'", "815")], Run({4711}), "xid", "suspected", id="another-process-used-it"),
        pytest.param([FAULT], Run({4711}), "ninja_missing", "certain", id="a-fault-after-a-cause"),
    ],
)
def test_a_gpu_error_counts_for_the_gpus_in_use(kernel, run, code, certainty):
    found = diagnose(["FileNotFoundError: [Errno 2] No such file or directory: 'ninja'"], "", kernel, run)
    assert (found.code, found.certainty) == (code, certainty)


@pytest.mark.parametrize(
    "line, run, own",
    [
        pytest.param(FAULT, Run({4711}), True, id="fault"),
        pytest.param(FAULT, Run({815}), False, id="fault-of-another-process"),
        pytest.param(FAULT, Run(), True, id="fault-of-somebody"),
        pytest.param(FAULT.replace("4711", "'<unknown>'"), Run({815}), True, id="fault-of-nobody"),
        pytest.param(LOST.replace("'<unknown>'", "815"), Run({4711}), True, id="a-gpu-in-doubt-is-everybodys"),
        pytest.param("NVRM: API mismatch: the client has version 580.178", Run({4711}), True, id="driver"),
        pytest.param(KILL, Run({4711}), True, id="killed"),
        pytest.param(KILL, Run({815}), False, id="killed-another"),
        pytest.param(SEGFAULT, Run({4711}), True, id="crash"),
        pytest.param(SEGFAULT, Run({815}), False, id="crash-of-another"),
        pytest.param(SECCOMP, Run({4711}), True, id="system-call"),
        pytest.param(SECCOMP, Run({815}), False, id="system-call-of-another"),
        pytest.param("EXT4-fs (sda1): mounted filesystem", Run({4711}), False, id="nothing"),
        pytest.param("EXT4-fs (sda1): mounted filesystem", Run(), False, id="nothing-of-nobody"),
        pytest.param(REAPED, Run({4711}), False, id="what-follows"),
    ],
)
def test_own_lines(line, run, own):
    assert own_lines([line], run) == ([line] if own else [])
    assert own is False or is_kernel_line(line)


def test_a_kill_belongs_to_the_unit_that_the_line_before_names():
    assert killed_by_kernel([GLOBAL, KILL], Run((), OWN)) == [GLOBAL, KILL]
    assert killed_by_kernel([FOREIGN, KILL], Run((), OWN)) == killed_by_kernel([KILL], Run((), OWN)) == killed_by_kernel([KILL], Run()) == []
    assert killed_by_kernel([SCOPE % ("NONE", "global_oom,", f"{OWN}/x"), KILL], Run((), OWN))[1:] == [KILL]


def test_gpu_errors_of_several_gpus():
    """L14"""
    other = LOST.replace("41:00", "c1:00")
    assert [root["pci"] for root in gpu_errors([LOST, other], Run())] == ["0000:41:00", "0000:c1:00"]
    (root,) = gpu_errors([LOST, other], Run(gpus=["0000:C1:00.0"]))
    assert (root["pci"], root["xid"], root["certain"]) == ("0000:c1:00", 79, True)
    assert [root["certain"] for root in gpu_errors([FAULT], Run({4711}, gpus=["0000:41:00"]))] == [False]
