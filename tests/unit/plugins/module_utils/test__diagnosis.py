# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import Diagnosis, diagnose

CASES = Path(__file__).parents[2] / "fixtures" / "cases"
SIGQUIT = "[2026-02-03 09:15:42] Received sigquit from a child process. It usually means the child failed."


@pytest.mark.parametrize(
    "case, code, cause, hint",
    [
        ("u04_start_limit_status", "start_limit_hit", "gave up after repeated crashes", "reset-failed"),
        ("u05_cache_permission", "cache_not_writable", "may not write its cache at /.cache", "set HOME and the cache variables"),
        ("u05b_cache_readonly", "cache_read_only", "makes /home/sglang/.cache/flashinfer read-only", "ReadWritePaths"),
        ("u06_mdwe", "mdwe", "generated code could not be made executable", "MemoryDenyWriteExecute must stay off"),
        ("n03_proxy_warmup", "proxy_intercepts_localhost", "went through the proxy 192.0.2.10:3128", "add 127.0.0.1, 0.0.0.0 and localhost to no_proxy"),
        ("l01_kv_pool_too_small", "kv_cache_memory", "the weights leave no memory for the KV cache", "raise mem_fraction_static"),
        ("l02_cuda_graph_oom", "graph_memory", "while CUDA graphs were captured", "lower mem_fraction_static"),
        ("l04_custom_ar_warning_then_real_cause", "exception", "FileNotFoundError: [Errno 2] No such file or directory: 'ninja'", "the lines before it"),
        ("l07b_nvcc_missing", "exception", "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist", "the lines before it"),
        ("l10b_fp8e4nv_ampere", "exception", "type fp8e4nv not supported in this architecture", "the lines before it"),
        ("l11a_driver_too_old", "driver_too_old", "older than the engine's CUDA needs", "install a newer driver"),
        ("l16a_hf_gated", "exception", "huggingface_hub.errors.GatedRepoError: 401 Client Error.", "the lines before it"),
        ("l17_disk_full", "disk_full", "the disk is full", "free space"),
    ],
    ids=lambda value: value.split("_")[0].upper() if "_" in value and value[0] in "ulnf" and value[1].isdigit() else "",
)
def test_reported_cases(case, code, cause, hint):
    found = diagnose((CASES / f"{case}.log").read_text().splitlines())
    assert found.code == code
    assert cause in found.cause
    assert hint in found.hint


@pytest.mark.parametrize(
    "line, code, cause",
    [
        pytest.param(
            "sglang serve: error: unrecognized arguments: --enforce-piecewise-cuda-graph",
            "unknown_argument",
            "this engine does not know the arguments --enforce-piecewise-cuda-graph",
            id="unknown-flag",
        ),
        pytest.param(
            "sglang serve: error: ambiguous option: --cuda-graph-max-bs could match --cuda-graph-max-bs-decode, --cuda-graph-max-bs-prefill",
            "bad_argument",
            "the engine refused an argument: ambiguous option: --cuda-graph-max-bs could match --cuda-graph-max-bs-decode, --cuda-graph-max-bs-prefill",
            id="ambiguous-prefix",
        ),
        pytest.param(
            "launch_server.py: error: argument --kv-cache-dtype: invalid choice: 'int8' (choose from 'auto', 'fp8_e5m2')",
            "bad_argument",
            "the engine refused an argument: argument --kv-cache-dtype: invalid choice: 'int8' (choose from 'auto', 'fp8_e5m2')",
            id="bad-choice",
        ),
        pytest.param(
            "error: argument --cuda-graph-backend-prefill: tc_piecewise was removed; select breakable, full, or disabled",
            "bad_argument",
            "the engine refused an argument: argument --cuda-graph-backend-prefill: tc_piecewise was removed; select breakable, full, or disabled",
            id="removed-value",
        ),
        pytest.param(
            "OSError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/nonexistent/model'. Use `repo_type` argument if needed.",
            "model_missing",
            "the model path does not hold a model (/nonexistent/model)",
            id="no-model",
        ),
        pytest.param(
            "FileNotFoundError: [Errno 2] No such file or directory: '/models/a/config.json'",
            "model_missing",
            "the model path does not hold a model",
            id="no-config",
        ),
        pytest.param(
            "RuntimeError: No accelerator (CUDA, XPU, HPU, NPU, MUSA, MPS) or platform plugin is available.",
            "no_accelerator",
            "the engine finds no GPU",
            id="no-accelerator",
        ),
        pytest.param(
            "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.001. Raise --mem-fraction-static above 0.004",
            "kv_cache_memory",
            "the weights leave no memory for the KV cache",
            id="too-little-memory",
        ),
        pytest.param(
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
            "kv_cache_memory",
            "the weights leave no memory for the KV cache",
            id="too-little-memory-old",
        ),
        pytest.param(
            "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 31001): address already in use",
            "port_in_use",
            "another process holds the server's port",
            id="port-in-use",
        ),
        pytest.param(
            "AssertionError: requires at least one encoder urls to be set via --encoder-urls",
            "encoder_urls",
            "language_only needs encoder_urls: it belongs to encoder disaggregation",
            id="language-only",
        ),
        pytest.param(
            "Exception: Capture cuda graph failed: out of memory", "graph_memory", "memory ran out while CUDA graphs were captured", id="graph-capture"
        ),
        pytest.param("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB.", "gpu_memory", "GPU memory ran out", id="gpu-memory"),
        pytest.param(
            "FileNotFoundError: [Errno 2] No usable temporary directory found in ['/tmp', '/var/tmp']",
            "no_temporary_directory",
            "the service finds no writable temporary directory",
            id="no-temporary-directory",
        ),
        pytest.param(
            "ValueError: Warning: User-specified context_length (99999) is greater than the derived context_length (2048).",
            "exception",
            "the engine stopped with ValueError: Warning: User-specified context_length (99999) is greater than the derived context_length (2048).",
            id="F10-context-too-long",
        ),
        pytest.param("AssertionError", "exception", "the engine stopped with AssertionError", id="bare-assertion"),
        pytest.param(
            "AssertionError: tp_size must be divisible by number of nodes",
            "exception",
            "the engine stopped with AssertionError: tp_size must be divisible by number of nodes",
            id="nnodes",
        ),
        pytest.param(
            "TypeError: '>' not supported between instances of 'NoneType' and 'int'",
            "exception",
            "the engine stopped with TypeError: '>' not supported between instances of 'NoneType' and 'int'",
            id="speculative-steps-only",
        ),
        pytest.param(
            "ValueError: Model type LlamaForCausalLM is not supported for encoder disaggregation. ",
            "exception",
            "the engine stopped with ValueError: Model type LlamaForCausalLM is not supported for encoder disaggregation.",
            id="language-only-text-model",
        ),
        pytest.param(
            "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer.",
            "killed",
            "the server was killed from outside: most often the kernel's OOM killer",
            id="oom-killer",
        ),
        pytest.param(
            "sglang-main.service: Main process exited, code=killed, status=9/KILL",
            "killed",
            "the server was killed from outside: most often the kernel's OOM killer",
            id="main-process-killed",
        ),
    ],
)
def test_fatal_lines(line, code, cause):
    found = diagnose(["[2026-02-03 09:15:02] server_args=ServerArgs(model_path='/m')", line, SIGQUIT])
    assert (found.code, found.cause, found.evidence) == (code, cause, [line.strip()])
    assert found.hint


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
        pytest.param(
            ["ValueError: real cause", "x.service: Main process exited, code=killed, status=9/KILL"],
            "exception",
            "ValueError: real cause",
            id="killed-after-an-exception",
        ),
        pytest.param(
            ["Traceback (most recent call last):", "torch.OutOfMemoryError: CUDA out of memory.", "RuntimeError: consequence"],
            "gpu_memory",
            "torch.OutOfMemoryError: CUDA out of memory.",
            id="a-rule-before-an-exception",
        ),
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
    ],
)
def test_the_cause_and_not_its_consequence(lines, code, evidence):
    found = diagnose(lines)
    assert (found.code, found.evidence) == (code, [evidence])


def test_evidence_is_the_first_three_lines_cut():
    long = "OSError: [Errno 28] No space left on device: " + "x" * 600
    found = diagnose([f"  {long}", "a", *["y No space left on device"] * 4])
    assert found.evidence == [long[:500], "y No space left on device", "y No space left on device"]


def test_harmless_lines_are_no_cause():
    lines = [
        "[2026-02-03 11:00:15 TP0] Setup Custom allreduce failed with CUDART error: peer access is not supported between these two devices.",
        "[2026-02-03 11:00:16] Ignore import error when loading sglang.srt.models.x: No module named 'cutlass'",
        "/opt/x.py:1: UserWarning: something",
        "ERROR: a logger's level is no exception",
        SIGQUIT,
        "kill_process_tree called: parent_pid=1",
        "x.service: Failed with result 'exit-code'.",
    ]
    assert diagnose(lines, "exit-code") == Diagnosis(
        "unknown", "the server stopped and its journal names no cause (systemd: exit-code)", lines[:4], "read the whole journal of the unit"
    )


def test_an_unknown_cause_shows_the_last_lines():
    assert diagnose([f"line {n}" for n in range(9)]).evidence == [f"line {n}" for n in range(4, 9)]


def test_an_empty_journal():
    assert diagnose([]) == Diagnosis("unknown", "the server stopped and its journal names no cause", [], "read the whole journal of the unit")
