# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole journals: the reported cases, real starts, and which of several lines is the cause. One line each: test__diagnosis_table.py."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import Diagnosis, diagnose, diagnose_hopeless, diagnose_stall, remarks
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis_kernel import Run

FIXTURES = Path(__file__).parents[2] / "fixtures"
SIGQUIT = "[2026-02-03 09:15:42] Received sigquit from a child process. It usually means the child failed."
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB."
XID = "kernel: NVRM: Xid (PCI:0000:41:00): %d, pid=7, name=python3"
REAL_CAUSE = "FileNotFoundError: [Errno 2] No such file or directory: 'ninja'"
# case, file, code, where, what cause and hint say, values
REPORTED = [
    ("U04", "u04_start_limit_status", "start_limit_hit", "host", "gave up after repeated crashes", "systemctl reset-failed", {}),
    (
        "U05",
        "u05_cache_permission",
        "cache_not_writable",
        "host",
        "may not write its cache at /.cache",
        "set HOME and the cache variables",
        {"path": "/.cache"},
    ),
    (
        "U05",
        "u05b_cache_readonly",
        "cache_read_only",
        "host",
        "/home/sglang/.cache/flashinfer read-only",
        "CacheDirectory, or add the path to ReadWritePaths",
        {},
    ),
    ("U06", "u06_mdwe", "mdwe", "release", "generated code could not be made executable", "MemoryDenyWriteExecute=no", {}),
    (
        "N03",
        "n03_proxy_warmup",
        "proxy_intercepts_localhost",
        "release",
        "went through the proxy 192.0.2.10:3128",
        "add 127.0.0.1, 0.0.0.0 and localhost to no_proxy",
        {"proxy": "192.0.2.10:3128", "http": [403, 502]},
    ),
    (
        "N07",
        "n07_router_pending",
        "router_workers_unhealthy",
        "host",
        "the router gave up after 300 s: its worker http://127.0.0.1:31000 did not become healthy",
        "diagnose the worker at http://127.0.0.1:31000; start it before the router; raise",
        {"worker": "http://127.0.0.1:31000", "timeout_s": 300},
    ),
    ("I01", "i01b_undefined_nccl_symbol", "nccl_library_mismatch", "release", "without ncclCommResume", "one NCCL package only", {"symbol": "ncclCommResume"}),
    (
        "L01",
        "l01_kv_pool_too_small",
        "kv_pool_too_small",
        "release",
        "the weights leave no memory for the KV cache under mem_fraction_static 0.7 (11.2 GB left after them)",
        "raise mem_fraction_static above 0.7, use more GPUs (tp_size), or a smaller or quantised model",
        {"mem_fraction_static": 0.7, "avail_mem_gb": 11.2},
    ),
    (
        "L02",
        "l02_cuda_graph_oom",
        "cuda_graph_oom",
        "release",
        "while CUDA graphs were captured (1.98 GB were free before)",
        "lower mem_fraction_static or the largest captured batch size (cuda_graph_max_bs",
        {"phase": "cuda graph capture", "avail_mem_gb": 1.98},
    ),
    ("L04", "l04_custom_ar_warning_then_real_cause", "ninja_missing", "host", "ninja is missing", "install ninja into the engine's environment", {}),
    (
        "L05",
        "l05_nccl_shm",
        "shm_too_small",
        "host",
        "/dev/shm is too small: NCCL asked for 9637892 bytes",
        "container --shm-size, LXC a larger tmpfs",
        {"bytes": 9637892},
    ),
    ("L07", "l07a_ninja_missing", "ninja_missing", "host", "ninja is missing", "put its bin directory on the unit's PATH", {}),
    (
        "L07",
        "l07b_nvcc_missing",
        "nvcc_missing",
        "host",
        "nvcc is missing (/usr/local/cuda)",
        "install the CUDA toolkit, or set CUDA_HOME",
        {"cuda_home": "/usr/local/cuda"},
    ),
    (
        "L07",
        "l07c_cuda_home_leading_colon",
        "cuda_home_malformed",
        "release",
        "CUDA_HOME has a leading ':' (:/usr/local/cuda-12.8)",
        "set CUDA_HOME to one directory, without ':'",
        {"cuda_home": ":/usr/local/cuda-12.8"},
    ),
    (
        "L08",
        "l08a_python_h",
        "python_headers_missing",
        "host",
        "Python's headers are missing",
        "python3-dev for the Python version of the engine's environment",
        {},
    ),
    ("L08", "l08b_no_c_compiler", "c_compiler_missing", "host", "there is no C compiler", "install gcc and g++ (build-essential), or set CC", {}),
    ("L10", "l10a_no_kernel_image", "unsupported_arch", "release", "no kernel for this GPU's compute capability", "choose another attention_backend", {}),
    (
        "L10",
        "l10b_fp8e4nv_ampere",
        "fp8_unsupported_arch",
        "release",
        "this GPU has no fp8e4nv",
        "another quantisation (AWQ, GPTQ, INT8) or another kv_cache_dtype",
        {},
    ),
    (
        "L11",
        "l11a_driver_too_old",
        "driver_too_old",
        "host",
        "older than the engine's CUDA needs: it goes up to CUDA 12.2",
        "install a newer driver or an engine built for this one (CUDA 12.2 or older)",
        {"driver_cuda": "12.2"},
    ),
    ("L11", "l11b_error_804", "cuda_forward_compat_unsupported", "host", "error 804", "remove cuda-compat from LD_LIBRARY_PATH", {}),
    ("L11", "l11c_error_802", "system_not_initialized", "host", "error 802", "start nvidia-fabricmanager, of exactly the driver's version", {}),
    (
        "L11",
        "l11d_fabricmanager_mismatch",
        "fabricmanager_version_mismatch",
        "host",
        "the fabric manager is of version 550.90.07, the driver of 550.107.02",
        "install the fabric manager of exactly 550.107.02",
        {"fm": "550.90.07", "driver": "550.107.02"},
    ),
    (
        "L12",
        "l12_nvml_mismatch",
        "driver_library_mismatch",
        "host",
        "the NVIDIA userspace 580.178 is not of the loaded kernel module's version 580.173.02",
        "reboot, or unload and load the nvidia modules; in a container install the userspace of the host's driver; hold",
        {"library": "580.178", "kernel_module": "580.173.02"},
    ),
    (
        "L14",
        "l14a_xid79",
        "xid",
        "host",
        "GPU 0000:41:00: Xid 79: the GPU has fallen off the bus",
        "power the host off and on",
        {"xid": 79, "pci": "0000:41:00", "followers": []},
    ),
    ("L14", "l14b_xid31_exit0", "xid", "host", "GPU 0000:01:00: Xid 31", "if it comes back on one GPU only, test that GPU", {"xid": 31, "pci": "0000:01:00"}),
    (
        "L14",
        "l14c_xid119_then_45",
        "xid",
        "host",
        "GPU 0000:c1:00: Xid 119",
        "update the driver; until then reset the GPU on the host",
        {"xid": 119, "pci": "0000:c1:00", "followers": [45, 45]},
    ),
    (
        "L14",
        "l14d_off_bus_no_xid",
        "gpu_off_bus",
        "host",
        "GPU 0000:b3:00.0: the GPU has fallen off the bus",
        "power the host",
        {"pci": "0000:b3:00.0", "xid": None},
    ),
    (
        "L16",
        "l16a_hf_gated",
        "hf_gated",
        "release",
        "the model example-org/gated-8b is gated",
        "accept its licence and set HF_TOKEN for the service user",
        {"repo": "example-org/gated-8b"},
    ),
    (
        "L16",
        "l16b_hf_offline_no_cache",
        "hf_offline_no_cache",
        "release",
        "not in the cache and downloads are switched off",
        "unset HF_HUB_OFFLINE; check that HF_HOME",
        {},
    ),
    ("L16", "l16c_safetensors_truncated", "model_file_corrupt", "release", "truncated", "download the model again; check for Git LFS pointer files", {}),
    (
        "L17",
        "l17_disk_full",
        "disk_full",
        "host",
        "the disk is full: /var/lib/sglang/hf needs 4973.59 MB and has 812.3 MB free",
        "free space, or move HF_HOME",
        {"needed_mb": 4973.59, "free_mb": 812.3, "path": "/var/lib/sglang/hf"},
    ),
]


def case(name):
    """Lines of a reported case."""
    (path,) = [*FIXTURES.glob(f"cases/{name}.*"), *FIXTURES.glob(f"gpu/cases/{name}.*")]
    return path.read_text().splitlines()


def real(name):
    """Lines of a real start."""
    return (FIXTURES / "logs" / f"{name}.log").read_text().splitlines()


@pytest.mark.parametrize("number, name, code, where, cause, hint, values", REPORTED, ids=[f"{number}-{name}" for number, name, *rest in REPORTED])
def test_reported_cases(number, name, code, where, cause, hint, values):
    found = diagnose(case(name))
    assert (found.code, found.where) == (code, where)
    assert cause in found.cause
    assert hint in found.hint
    assert {key: found.captured[key] for key in values} == values


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda line: f"\x1b[31m{line}\x1b[0m", id="colours"),
        pytest.param(lambda line: line if line.startswith("[2026") else f"[2026-02-03 09:15:42 DP0 TP1] {line}", id="ranks"),
        pytest.param(lambda line: f"  {line}\t", id="blanks"),
    ],
)
@pytest.mark.parametrize("name, code", [(name, code) for number, name, code, *rest in REPORTED])
def test_how_a_line_is_logged_does_not_matter(name, code, change):
    found = diagnose([change(line) for line in case(name)])
    assert found.code == code and not any("\x1b" in line or line.startswith("[2026") for line in found.evidence)


@pytest.mark.parametrize("name", [name for number, name, code, *rest in REPORTED if code != "start_limit_hit"])
def test_what_follows_a_cause_hides_nothing(name):
    """Nor do lines before it that are no cause."""
    before = ["Setup Custom allreduce failed with CUDART error: peer access is not supported between these two devices.", "ImportError: handled"]
    after = [
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        SIGQUIT,
        "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9",
        XID % 45,
        "x.service: Main process exited, code=killed, status=9/KILL",
        "x.service: Start request repeated too quickly.",
    ]
    expected = diagnose(case(name))
    found = diagnose([*before, *case(name), *after], "exit-code")
    assert (found.code, found.where, found.evidence) == (expected.code, expected.where, expected.evidence)


def test_a_warning_that_is_no_cause():
    """L04: the server is ready."""
    lines = case("l04b_custom_ar_warning_but_ready")
    (remark,) = remarks(lines)
    assert remark.code == "custom_all_reduce_off" and "--disable-custom-all-reduce" in remark.hint
    assert diagnose_stall(lines) is None
    assert diagnose(lines).code == "unknown"


def test_a_hang_after_nccl():
    """L19: no error line, only the last phase and the transport."""
    lines = case("l19_nccl_hang_after_init")
    found = diagnose_stall(lines)
    assert (found.code, found.certainty, found.where) == ("nccl_hang_p2p_suspected", "suspected", "host")
    assert found.captured == {"last_phase": "nccl init complete", "transport": "P2P/CUMEM"}
    assert "NCCL_P2P_DISABLE=1" in found.hint and "ACS" in found.hint
    assert diagnose([*lines, "x.service: start operation timed out. Terminating."]).code == "nccl_hang_p2p_suspected"
    assert diagnose(lines, "timeout").code == "nccl_hang_p2p_suspected"


@pytest.mark.parametrize(
    "change, code",
    [
        pytest.param(lambda lines: [*lines, "[2026-02-03 18:00:09 TP0] Init torch distributed ends. elapsed=7.1 s"], None, id="it-went-on"),
        pytest.param(lambda lines: [*lines, "Load weight begin. avail mem=46.90 GB"], None, id="loading"),
        pytest.param(lambda lines: [re.sub("P2P/CUMEM", "SHM/direct/direct", line) for line in lines], "nccl_hang_suspected", id="no-p2p"),
        pytest.param(lambda lines: lines[:1], "rendezvous_hang_suspected", id="before-nccl"),
    ],
)
def test_what_is_another_hang_or_none(change, code):
    found = diagnose_stall(change(case("l19_nccl_hang_after_init")))
    assert (found.code if found else None) == code


BIND = "[2026-02-03 09:15:42] ERROR:    [Errno %d] error while attempting to bind on address ('127.0.0.1', 80): x"


@pytest.mark.parametrize(
    "lines, code",
    [
        pytest.param([BIND % 98 + "address already in use"], "port_in_use", id="N08-port"),
        pytest.param([BIND % 13], "port_not_allowed", id="port-of-root"),
        pytest.param([BIND % 99 + "cannot assign requested address", "later lines"], "address_not_local", id="address"),
        pytest.param(["ValueError: handled", "INFO:     Application startup complete."], None, id="it-may-go-on"),
        pytest.param(["OSError: [Errno 98] Address already in use"], None, id="it-tries-another-port"),
    ],
)
def test_a_process_that_lives_and_will_never_be_ready(lines, code):
    found = diagnose_hopeless(lines)
    assert (found.code if found else None) == code


def test_a_probe_without_the_key():
    """N04"""
    lines = case("n04_access_log_401")
    found = diagnose_stall(lines)
    assert (found.code, found.implicated) == ("probe_unauthorized", ["sglang_server_api_key"])
    assert diagnose_stall([*lines, 'INFO:     127.0.0.1:40004 - "GET /v1/models HTTP/1.1" 200 OK']) is None


def test_a_real_failure_names_the_module_and_where():
    found = diagnose(real("gpu-module-missing"))
    assert (found.code, found.where, found.captured) == ("module_missing", "release", {"module": "deep_gemm"})
    assert found.evidence[-1] == "ModuleNotFoundError: No module named 'deep_gemm'"
    assert [re.sub(r".*/", "", line) for line in found.evidence[:-1]] == [
        'eagle_worker_v2.py", line 237, in init_cuda_graphs',
        'eagle_worker_v2.py", line 417, in _capture_cuda_graphs',
        'dsa_backend.py", line 90, in <module>',
    ]


@pytest.mark.parametrize("name", sorted(path.stem for path in (FIXTURES / "logs").glob("*.log") if path.stem != "gpu-module-missing"))
def test_a_real_start_that_went_well_has_no_cause_in_it(name):
    assert diagnose(real(name)).code == "unknown"
    assert diagnose_stall(real(name)) is None


@pytest.mark.parametrize(
    "line, code",
    [
        pytest.param("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB.", "gpu_memory", id="gpu-memory"),
        pytest.param("RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9", "killed", id="child-killed"),
        pytest.param("sglang-main.service: Main process exited, code=killed, status=9/KILL", "killed", id="main-process-killed"),
        pytest.param("AssertionError", "exception", id="bare-assertion"),
        pytest.param("TypeError: '>' not supported between instances of 'NoneType' and 'int'", "exception", id="speculative-steps-only"),
    ],
)
def test_fatal_lines(line, code):
    found = diagnose(["[2026-02-03 09:15:02] server_args=ServerArgs(model_path='/m')", line, SIGQUIT])
    assert (found.code, found.evidence) == (code, [line])
    assert code != "exception" or found.cause == f"the engine stopped with {line}"


@pytest.mark.parametrize(
    "line, where",
    [
        ("ValueError: no such combination", "release"),
        ("AssertionError", "release"),
        ("RuntimeError: anything", ""),
        ("OSError: anything", ""),
        ("ConnectionResetError: [Errno 104] Connection reset by peer", ""),
    ],
)
def test_where_an_exception_without_a_row_lies(line, where):
    found = diagnose([line])
    assert (found.code, found.where, found.certainty) == ("exception", where, "suspected")


@pytest.mark.parametrize(
    "lines, code, evidence",
    [
        pytest.param(
            ["ValueError: real cause", SIGQUIT, "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit code"],
            "exception",
            "ValueError: real cause",
            id="the-parent-tells-of-the-dead-child",
        ),
        pytest.param(
            ["ValueError: real cause", "RuntimeError: Initialization failed. Please see the error messages above."],
            "exception",
            "ValueError: real cause",
            id="the-parent-points-above",
        ),
        pytest.param(["ImportError: handled", "KeyError: 'last'"], "exception", "KeyError: 'last'", id="the-last-exception"),
        pytest.param(["ModuleNotFoundError: No module named 'handled'", "KeyError: 'last'"], "exception", "KeyError: 'last'", id="a-handled-one-with-a-row"),
        pytest.param(
            ["ValueError: real cause", "x.service: Main process exited, code=killed, status=9/KILL"],
            "exception",
            "ValueError: real cause",
            id="killed-after-an-exception",
        ),
        pytest.param(
            ["ValueError: real cause", "torch.distributed.DistBackendError: NCCL error in: x, remote process exited: ncclRemoteError"],
            "exception",
            "ValueError: real cause",
            id="another-rank-missed-its-peer",
        ),
        pytest.param(["Traceback (most recent call last):", OOM, "RuntimeError: consequence"], "gpu_memory", OOM, id="a-row-before-an-exception"),
        pytest.param(
            ["Warning: No accelerator (CUDA) is available.", "UserWarning: The NVIDIA driver on your system is too old (found version 12020)"],
            "driver_too_old",
            "UserWarning: The NVIDIA driver on your system is too old (found version 12020)",
            id="L11-no-gpu-is-the-consequence",
        ),
        pytest.param(
            ["Start request repeated too quickly.", "ValueError: first failure"],
            "exception",
            "ValueError: first failure",
            id="U04-first-failure-before-the-limit",
        ),
        pytest.param([XID % 79, REAL_CAUSE], "xid", XID % 79, id="L14-a-lost-gpu-before-anything"),
        pytest.param([XID % 31, REAL_CAUSE], "ninja_missing", REAL_CAUSE, id="L14-a-process-fault-after-a-cause"),
        pytest.param(["RuntimeError: CUDA error: x", XID % 31], "xid", XID % 31, id="L14-a-process-fault-before-its-exception"),
        pytest.param(["ValueError: real cause", XID % 45], "exception", "ValueError: real cause", id="L14-45-follows"),
        pytest.param([XID % 45], "xid", XID % 45, id="L14-45-alone"),
        pytest.param([OOM, "Capture decode CUDA graph begin.", "KeyError: 1"], "gpu_memory", OOM, id="L02-before-the-capture"),
        pytest.param(["Capture decode CUDA graph begin.", "Capture decode CUDA graph end. bs=[1]", OOM], "gpu_memory", OOM, id="L02-after-the-capture"),
        pytest.param(["Capture decode CUDA graph begin.", OOM], "cuda_graph_oom", OOM, id="L02-in-the-capture"),
    ],
)
def test_the_cause_and_not_its_consequence(lines, code, evidence):
    found = diagnose(lines)
    assert (found.code, found.evidence) == (code, [evidence])


@pytest.mark.parametrize(
    "result, code",
    [("oom-kill", "oom_killer"), ("start-limit-hit", "start_limit_hit"), ("timeout", "unit_start_timeout"), ("exit-code", "unknown"), ("", "unknown")],
)
def test_what_systemd_says_when_the_journal_says_nothing(result, code):
    assert diagnose(["some line"], result).code == code


def test_the_oom_killer_is_certain_where_systemd_says_so():
    lines = ["Subprocess scheduler_0 (pid=7) crashed with exit code -9.", "EOFError"]
    assert [(found.code, found.certainty) for found in (diagnose(lines), diagnose(lines, "oom-kill"))] == [("killed", "suspected"), ("oom_killer", "certain")]


def test_evidence_is_the_first_three_different_lines_cut():
    long = "OSError: [Errno 28] No space left on device: " + "x" * 600
    ranks = [f"[2026-02-03 09:15:42 TP{rank}] y No space left on device" for rank in range(4)]
    found = diagnose([f"  {long}", "a", *ranks, "z No space left on device", "No space left on device, again"])
    assert found.evidence == [long[:500], "y No space left on device", "z No space left on device"]


def test_a_cut_does_not_bare_half_of_a_secret():
    """U09"""
    line = f"{'x' * 480} api_key='s3cret-of-the-server' No space left on device"
    (shown,) = diagnose([line]).evidence
    assert "s3c" not in shown and shown.startswith(f"{'x' * 480} api_key='***")
    found = diagnose([f"error: unrecognized arguments: {'y' * 280} --api-key=s3cret-of-the-server"])
    assert "s3c" not in repr(found)


OTHERS = [
    "Jan 01 postgres[1]: LOG:  database system is ready to accept connections",
    "nginx: [warn] conflicting server name",
    "sshd[1]: Connection closed by authenticating user root 192.0.2.1 port 4000 [preauth]",
    'dockerd: level=error msg="Handler for GET returned error: No such container"',
    "ERROR: a logger's level is no exception",
    "/opt/x.py:1: UserWarning: something",
    "[2026-02-03 11:00:16] Ignore import error when loading sglang.srt.models.x: No module named 'cutlass'",
]


def test_other_programs_are_no_cause():
    assert diagnose(OTHERS, "exit-code").code == "unknown" and diagnose_stall(OTHERS) is None


# Logs of other programs, in our words: what each may come out as. A name of a cause would be a wrong one, whatever stands in them.
FOREIGN = {
    "apt": "unknown",
    "build": "unknown",
    "cron": "unknown",
    "docker": "unknown",
    "jvm": "exception",
    "kernel-boot": "unknown",
    "nginx": "unknown",
    "ollama": "unknown",
    "postgres": "unknown",
    "prometheus": "stopped",
    "redis": "stopped",
    "sshd": "unknown",
    "user-session": "unknown",
    "vllm": "exception",
    "webapp": "exception",
}


def foreign(name):
    """Lines of another program."""
    return (FIXTURES / "foreign" / f"{name}.log").read_text().splitlines()


def test_every_log_of_another_program_has_an_answer():
    assert {path.stem for path in (FIXTURES / "foreign").iterdir()} == set(FOREIGN)


@pytest.mark.parametrize("name, code", FOREIGN.items())
def test_a_log_of_another_program_has_no_cause_in_it(name, code):
    found = diagnose(foreign(name), "exit-code")
    assert found.code == code and (code == "stopped" or found.certainty != "certain")
    assert found.implicated == [] and found.remedy == "" and diagnose_stall(foreign(name)) is None and remarks(foreign(name)) == []
    assert diagnose([], "exit-code", foreign(name), Run({1}, "/system.slice/sglang-main.service")).code == "unknown", "the kernel log holds more than this run"


@pytest.mark.parametrize("name", FOREIGN)
def test_a_log_of_another_program_hides_nothing(name):
    lines = case("l05_nccl_shm")
    assert diagnose([*foreign(name), *lines, *foreign(name)]) == diagnose(lines)


def test_harmless_lines_are_no_cause():
    lines = [
        "[2026-02-03 11:00:15 TP0] Setup Custom allreduce failed with CUDART error: peer access is not supported between these two devices.",
        "[2026-02-03 11:00:16] Ignore import error when loading sglang.srt.models.x: No module named 'cutlass'",
        SIGQUIT,
        "kill_process_tree called: parent_pid=1",
        "x.service: Failed with result 'exit-code'.",
    ]
    assert diagnose(lines, "exit-code") == Diagnosis(
        "unknown",
        "the server stopped and its journal names no cause (systemd: exit-code)",
        [re.sub(r"^\[.*?\] ", "", line) for line in lines[:2]],
        "read the whole journal of the unit",
        certainty="unknown",
    )


def test_an_unknown_cause_shows_the_last_different_lines():
    lines = [f"[2026-02-03 11:00:16 TP{n % 2}] line {n // 2}" for n in range(30)]
    assert diagnose(lines).evidence == [f"line {n}" for n in range(5, 15)]


def test_an_unknown_cause_shows_what_failed_before_the_rest():
    failed = ["a: error: x", "b could not y", "c: connection refused"]
    lines = [failed[0], *(f"line {n}" for n in range(20)), failed[1], *(f"line {n}" for n in range(20, 40)), failed[2], "z1", "z2", "z3"]
    assert diagnose(lines).evidence == [*failed[:2], *(f"line {n}" for n in range(36, 40)), failed[2], "z1", "z2", "z3"]


def test_an_exception_without_a_row_shows_its_frames_once_and_what_failed_before_it():
    """Several ranks tell the same; source code is no message."""
    frames = [f'  File "/x/site-packages/a.py", line {n}, in f{n}' for n in range(5)]
    code = '    raise OSError("No space left on device")'
    ranks = [line for rank in range(2) for line in (f"[2026-02-03 09:15:42 TP{rank}] Traceback (most recent call last):", *frames, code, "RuntimeError: odd")]
    found = diagnose(["[2026-02-03 09:15:40] ERROR: could not read the thing", "UserWarning: something", *ranks])
    assert (found.code, found.where, found.certainty) == ("exception", "", "suspected")
    assert found.evidence == ["ERROR: could not read the thing", *(frame.strip() for frame in frames[-3:]), "RuntimeError: odd"]


@pytest.mark.parametrize(
    "between, code",
    [
        pytest.param(["", "The above exception was the direct cause of the following exception:", ""], "library_missing", id="cause"),
        pytest.param(["During handling of the above exception, another exception occurred:"], "library_missing", id="handled-in-vain"),
        pytest.param(["[2026-02-03 09:15:42] went on"], "exception", id="handled"),
    ],
)
def test_the_root_of_a_chain_of_exceptions(between, code):
    first = [
        "Traceback (most recent call last):",
        '  File "/x/a.py", line 1, in f',
        "ImportError: libstdc++.so.6: cannot open shared object file: No such file",
    ]
    second = ["Traceback (most recent call last):", '  File "/x/b.py", line 1, in g', "RuntimeError: numpy is not usable"]
    third = ["Traceback (most recent call last):", '  File "/x/c.py", line 1, in h', "RuntimeError: nothing is usable"]
    for lines in ([*first, *between, *second], [*first, *between, *second, *between, *third]):
        assert diagnose(lines).code == code
    assert diagnose([*first, *between, *third]).evidence[-2:] == ([first[1].strip(), first[2]] if code != "exception" else [third[1].strip(), third[2]])


def test_frames_of_pythons_own_modules_say_less_than_who_called_them():
    frames = [
        '  File "/x/site-packages/a.py", line 1, in f',
        '  File "/usr/lib/python3.11/json/decoder.py", line 353, in raw_decode',
        '  File "<frozen x>", line 2, in y',
    ]
    found = diagnose(["Traceback (most recent call last):", *frames, "LookupError: odd"])
    assert found.evidence == [frames[0].strip(), "LookupError: odd"]


@pytest.mark.parametrize("piece", ["x", "a=1, ", "/a/b", "'a': 'b', ", "x-", ":/a ", "1.5 "])
def test_long_lines_take_no_time(piece):
    """A line with all arguments has 10 kB and more; a pattern that goes back over a line again and again would take minutes."""
    started = time.perf_counter()
    assert diagnose(["server_args=" + piece * (20000 // len(piece))] * 20).code == "unknown"
    assert time.perf_counter() - started < 5


def test_an_empty_journal():
    expected = Diagnosis("unknown", "the server stopped and its journal names no cause", [], "read the whole journal of the unit", certainty="unknown")
    assert diagnose([]) == diagnose(["", " "]) == expected
