# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The table of causes: how each shows in the journal of a failed start, what it means and what to do.

The order matters: the first row that matches anywhere wins, so that a cause stands before what follows from it. Tables, asked in this order:

* ``KERNEL``: lines of the kernel about a process of this run that its OOM killer ended, and no others.
* ``ROWS``: lines that name a cause, wherever they stand. Arguments, unit, driver, toolchain, communication, disk and permissions, network, model, memory.
* ``EXCEPTIONS``: what the last exception that is nobody's consequence says. No row: the exception itself is the answer.
* ``LATE``: what remains when no exception was printed: time limits, signals, systemd.
* ``STALLS``: a journal that just ends, of a start that makes no progress and has not failed; of one that systemd ended for that, too.

``HOPELESS`` are lines of a process that lives and will never be ready.

``UNREADY`` says why a server that is up does not become ready (what the watch itself was answered is better).

A row has a ``remedy``, the line of the inventory to change, only where that line is right as a whole: a flag or variable that has to go is set to null,
a value is the engine's own (in the deciding line) or follows from its figures by a rule of ``_diagnosis_figures``.

``REMARKS`` are warnings that look like causes and are none. GPU errors in kernel lines (Xid) have their own table in ``_gpu_kernel``.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.llmops.inference.plugins.module_utils import _diagnosis_host_rows as host
from ansible_collections.llmops.inference.plugins.module_utils import _diagnosis_release_rows as release
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis_types import HOST, RELEASE, Row, row

_CUDA_MAJOR, _CUDA_MINOR = 1000, 10
# What a captured text becomes; other values stay text.
CONVERT: dict[str, t.Callable[[str], t.Any]] = {
    "avail_mem_gb": float,
    "block": int,
    "after_gb": float,
    "bytes": int,
    "context_length": int,
    # systemd mounts the root of a unit's own namespace there first.
    "detail": lambda text: text.replace("/run/systemd/unit-root", ""),
    "count": int,
    "driver_cuda": lambda text: f"{int(text) // _CUDA_MAJOR}.{int(text) % _CUDA_MAJOR // _CUDA_MINOR}",
    "free_gb": float,
    "free_mb": float,
    "gpu": int,
    "held_gb": float,
    "http": int,
    "max_total_tokens": int,
    "maximum": int,
    "mem_fraction_static": float,
    "nnodes": int,
    "minimum": float,
    "needed_gb": float,
    "needed_mb": float,
    "pid": int,
    "port": int,
    "size": int,
    "timeout_s": int,
    "total_gb": float,
    "resident_kb": int,
    "tp_size": int,
    "used_gb": float,
}
# Lines that tell of something optional: never a cause, whatever stands in them.
HARMLESS = re.compile(r"Ignore import error|Setup Custom allreduce failed|Custom[Aa]llreduce is disabled|will not be applied: ")

KERNEL = host.KERNEL
ROWS: tuple[Row, ...] = (
    *release.ARGUMENTS,
    *host.UNIT,
    *host.DRIVER,
    *host.TOOLCHAIN,
    *host.COMMUNICATION,
    *host.FILES,
    *host.NETWORK,
    *release.MODEL,
    *release.MEMORY,
)

_ARGUMENT_CODE = r"/(?:server_args|server_args_config_parser|launch_server|arg_groups/\w+|configs/model_config)\.py\", line \d+, in \S+$"
_MODEL_CODE = r"/(?:transformers|tokenizers|huggingface_hub|hf_transformers|model_loader)/[\w/]+\.py\", line \d+, in \S+$"
EXCEPTIONS: tuple[Row, ...] = (
    row(
        "arguments_refused",
        RELEASE,
        r"^(?:\w+\.)*(?:ValueError|AssertionError|NotImplementedError|RuntimeError|JSONDecodeError): (?P<message>.+)",
        "the engine refused its arguments: {message}",
        "correct the flags in the inventory; what the engine makes of them shows the preflight",
        "sglang_server_flags",
        frames=_ARGUMENT_CODE,
    ),
    row(
        "model_file_corrupt",
        RELEASE,
        r"JSONDecodeError: (?P<reason>.+)",
        "a JSON file of the model is truncated or is not what it should be ({reason})",
        "download the model again; check for Git LFS pointer files (small text files in place of weights)",
        "sglang_server_model tokenizer_path",
        frames=_MODEL_CODE,
        certainty="suspected",
    ),
    row(
        "heads_tp",
        RELEASE,
        r"start \(\d+\) \+ length \(\d+\) exceeds dimension size \((?P<size>\d+)\)",
        "the model's heads or sizes[ ({size})] do not divide by tp_size[ {tp_size}]",
        "choose a tp_size that divides the model's attention heads",
        "tp_size sglang_server_model",
        details=(release.TP,),
        frames=r"\bweight_loader\w*$",
        check=lambda values: values.get("tp_size", 1) > 1,
        certainty="suspected",
    ),
    row(
        "weights_mismatch",
        RELEASE,
        r"^(?:Runtime|Assertion|Value|Key|Index|Attribute)Error\b(?:: (?P<name>.+))?",
        "the weights do not fit the model's configuration[: {name}]",
        "take config.json and weights from the same revision; check quantization and the draft model, which must be made for this model",
        "sglang_server_model quantization speculative_draft_model_path json_model_override_args load_format",
        frames=r", in (?:\w*weight_loader\w*|load_\w*weights?\w*|_?load_(?:column|row|qkv|merged|w\d+)\w*)$",
        certainty="suspected",
    ),
    row(
        "tokenizer_missing",
        RELEASE,
        r"^IndexError: index is out of bounds for dimension with size 0",
        "the engine finds no usable tokenizer[ in {path}]",
        "correct tokenizer_path, or complete the model's files (tokenizer.json, tokenizer_config.json)",
        "tokenizer_path sglang_server_model",
        details=(r"error loading tokenizer\.json for (?P<path>[^\s,]+)",),
        also=r"error loading tokenizer\.json for ",
        certainty="suspected",
    ),
    row(
        "kernel_build_failed",
        HOST,
        r"Ninja build failed|Error building extension '(?P<module>[^']*)'"
        r"|CalledProcessError: Command '\[?'?(?:\S*/)?(?P<module_2>gcc|g\+\+|clang|cc|nvcc|ninja)\b",
        "a kernel could not be compiled[: {module}]",
        "read the compiler's lines before it; check compiler, CUDA toolkit and Python headers",
        "sglang_server_engine CUDA_HOME attention_backend",
        certainty="suspected",
    ),
    row(
        "module_missing",
        RELEASE,
        r"^(?:ModuleNotFoundError|ImportError): No module named '(?P<module>[^']*)'",
        "the engine needs the Python module {module}, which its environment does not have",
        "install the engine anew with what this feature needs, or take the flag away that needs it; the lines before it in the journal show which",
        "sglang_server_engine sglang_server_flags",
    ),
    row(
        "library_missing",
        HOST,
        r"^(?:ImportError|OSError): (?P<library>lib[\w.+-]+\.so[\d.]*): cannot open shared object file(?:: (?P<reason>[\w ]+))?",
        "the engine needs the library {library}, which cannot be opened[: {reason}]",
        "install the system package that has it, or the engine built for this CUDA",
        "sglang_server_engine LD_LIBRARY_PATH",
    ),
    row(
        "library_mismatch",
        RELEASE,
        r"^(?:ImportError|OSError): .*undefined symbol: (?P<symbol>\S+)",
        "a compiled package of the engine was built for another torch or CUDA ({symbol} is missing)",
        "install the engine anew into a clean environment",
        "sglang_server_engine LD_LIBRARY_PATH",
    ),
    row(
        "tls_not_usable",
        RELEASE,
        r"^(?:ssl\.)?(?:SSLError: (?P<reason>.*)|(?:PermissionError|FileNotFoundError): \[Errno \d+\] (?P<reason_2>[\w ]+)$)",
        "the TLS key or certificate cannot be used: {reason}",
        "let the service user read the files of ssl_keyfile and ssl_certfile; both are PEM, and the key belongs to the certificate",
        "ssl_keyfile ssl_certfile ssl_ca_certs ssl_keyfile_password",
        frames=r"\bcreate_ssl_context$",
    ),
    row(
        "permission_denied",
        HOST,
        r"^[\w.]+Error: .*?\[Errno (?:1|13)\] [^:]*(?:: '(?P<path>[^']*)')?",
        "the service lacks a permission[: it may not use {path}]",
        "give the service user access, or add the path to the unit's ReadWritePaths; without a path look at SystemCallFilter= and the lines before it",
        "sglang_server_user sglang_server_unit_options",
    ),
    row(
        "too_many_threads",
        HOST,
        r"^(?:RuntimeError|BlockingIOError|OSError): (?:\[Errno 11\] )?Resource temporarily unavailable",
        "the service may not start more threads",
        "raise TasksMax= and LimitNPROC= of the unit (in a container the pids limit of the host); a low LimitAS= does the same",
        "sglang_server_unit_options OMP_NUM_THREADS",
        certainty="suspected",
    ),
    row(
        "cuda_fault",
        "",
        r"CUDA error: (?P<error>an illegal (?:memory access|instruction) was encountered|misaligned address|unspecified launch failure"
        r"|device-side assert triggered|uncorrectable (?:ECC|NVLink) error|hardware stack error|the launch timed out and was terminated)",
        "a kernel failed on the GPU: {error}",
        "look for Xid lines in the kernel log (`journalctl -k --grep=NVRM`): with one the GPU is in doubt, without one the engine",
        "sglang_server_engine attention_backend",
        certainty="suspected",
    ),
    row(
        "nccl_error",
        HOST,
        r"^(?:torch\.distributed\.)?DistBackendError: NCCL error|NCCL error: ",
        "communication between the GPUs failed[: {last_error}]",
        "run once with NCCL_DEBUG=INFO in sglang_server_env and read the lines with NCCL WARN",
        "NCCL_DEBUG sglang_server_env",
        details=(r"NCCL WARN (?P<last_error>.+)",),
        certainty="suspected",
    ),
    row(
        "graph_capture_failed",
        RELEASE,
        r"^(?!(?:[\w.]+\.)?(?:OutOfMemoryError|KeyboardInterrupt))[\w.]+: (?P<reason>.+)",
        "CUDA graphs could not be captured: {reason}",
        "read the lines before it; another backend or no graphs for that phase avoids it",
        "cuda_graph_backend_prefill cuda_graph_backend_decode disable_cuda_graph disable_piecewise_cuda_graph enforce_piecewise_cuda_graph",
        frames=r"/(?:model_executor|speculative)/(?:\w+/)*\w*(?:cuda_graph|graph_runner)\w*\.py\", line \d+",
        certainty="suspected",
    ),
    row(
        "package_mismatch",
        RELEASE,
        r"^AttributeError: module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)'"
        r"|^ImportError: cannot import name '(?P<name_2>[^']+)' from (?:partially initialized module )?'(?P<module_2>[\w.]+)'",
        "the Python module {module} is not what the engine expects: it has no {name}",
        "install the engine anew into a clean environment; the service must be able to read all of it",
        "sglang_server_engine PYTHONPATH",
        certainty="suspected",
    ),
)

LATE: tuple[Row, ...] = (
    row(
        "unit_watchdog",
        RELEASE,
        r"Watchdog timeout \(limit (?P<limit>[^)]*)\)|Result=watchdog",
        "systemd's watchdog ended the server[ after {limit}]: the engine does not answer it",
        "take WatchdogSec= out of sglang_server_unit_options",
        "sglang_server_unit_options",
        remedy="sglang_server_unit_options: {WatchdogSec: 0}",
    ),
    row(
        "system_call_denied",
        RELEASE,
        r"status=31/SYS|exit code:? -31\b|type=1326 .*\bsyscall=(?P<number>\d+)",
        "the unit's SystemCallFilter= does not allow a system call of the engine[ (number {number})]",
        "take SystemCallFilter= out of sglang_server_unit_options, or allow the call (`systemd-analyze syscall-filter`)",
        "sglang_server_unit_options",
    ),
    row(
        "illegal_instruction",
        HOST,
        r"status=4/ILL|exit code:? -4\b|Illegal instruction",
        "the processor lacks an instruction that the engine was built for",
        "on a virtual machine pass the host's CPU type through; the cpu flavour needs AVX-512 or AMX",
        "sglang_server_engine",
    ),
    row(
        "bus_error",
        HOST,
        r"status=7/BUS|exit code:? -7\b|Bus error",
        "mapped memory could not be read: /dev/shm or the disk is full, or a file was cut while it was read",
        "look at `df /dev/shm` and at the model's file system",
        "sglang_server_model",
        certainty="suspected",
    ),
    row(
        "crashed",
        "",
        r"status=(?:11/SEGV|6/ABRT|8/FPE)|exit code:? -(?:6|8|11)\b|Fatal Python error: (?P<what>[\w ]+)|Segmentation fault"
        r"|segfault at .* in (?P<library>[\w.+-]+)\[",
        "the engine crashed in compiled code[: {what}][ ({library})]",
        "the lines before it show where; try another attention_backend, or another engine",
        "sglang_server_engine attention_backend",
        certainty="suspected",
    ),
    row(
        "nccl_collective_timeout",
        HOST,
        r"Watchdog caught collective operation timeout: WorkNCCL\(.*?OpType=(?P<operation>\w+)",
        "a collective operation ({operation}) did not end: a rank is gone, or transfers between the GPUs hang",
        "look at the other ranks' lines; try NCCL_P2P_DISABLE=1; check ACS and IOMMU on the host",
        "NCCL_P2P_DISABLE disable_custom_all_reduce dist_timeout",
        certainty="suspected",
    ),
    row(
        "unit_runtime_limit",
        RELEASE,
        r"Service reached runtime time limit",
        "systemd ended the server after its time to run (RuntimeMaxSec=)",
        "take RuntimeMaxSec= out of sglang_server_unit_options",
        "sglang_server_unit_options",
        remedy="sglang_server_unit_options: {RuntimeMaxSec: infinity}",
    ),
    row(
        "watchdog_timeout",
        "",
        r"[Ww]atchdog timeout \(self\.watchdog_timeout=(?P<timeout_s>\d+)(?!.*soft=True)",
        "the engine's own watchdog ended it: a batch took more than {timeout_s} s",
        "the stacks in the lines before it show where it hung; raise watchdog_timeout if kernels were just being compiled",
        "watchdog_timeout",
        certainty="suspected",
    ),
    row(
        "unit_start_timeout",
        RELEASE,
        r"start operation timed out|Result=timeout",
        "systemd ended the start after its time limit (TimeoutStartSec=)",
        "raise sglang_server_start_timeout_seconds above the time that the model needs to load",
        "sglang_server_start_timeout_seconds",
    ),
    row(
        "stopped",
        HOST,
        r"SIGTERM received\.|Received SIGTERM|^Stopping \S+\.service\b|Sent signal (?P<signal>\w+) to .* on client request",
        "the server was told to stop[ ({signal})]",
        "find out who stopped the unit: `journalctl` of systemd and of sudo at that time",
    ),
    row(
        "oom_killer",
        HOST,
        r"Killed process (?P<pid>\d+)[^(]*\((?P<name>(?:python|sglang|pt_)[^)]*)\)",
        "the kernel's OOM killer ended a process {pid} ({name}) at that time, which may be the server's",
        host.MORE_MEMORY,
        host.HOST_MEMORY,
        certainty="suspected",
    ),
    row(
        "killed",
        HOST,
        r"status=9/KILL|exit code:? -9\b",
        "the server was killed from outside: most often the kernel's OOM killer",
        "look at the kernel log; give the host more memory or lower the server's",
        "mem_fraction_static hicache_size",
        certainty="suspected",
    ),
    row(
        "killed",
        HOST,
        r"\.service: Deactivated successfully",
        "the server ended without a word: killed from outside, most often by the kernel's OOM killer",
        "look at the kernel log; give the host more memory or lower the server's",
        "mem_fraction_static hicache_size",
        unless=r"kill_process_tree called|Received sigquit|SIGQUIT received|The server is fired up",
        certainty="suspected",
    ),
    row(
        "start_limit_hit",
        HOST,
        r"Start request repeated too quickly|Result=start-limit-hit",
        "systemd gave up after repeated crashes",
        "mend the first failure (journal of the runs before), then `systemctl reset-failed`",
        "sglang_server_start_limit_burst sglang_server_start_limit_interval_seconds",
    ),
)

_P2P = "try NCCL_P2P_DISABLE=1 once; check ACS and IOMMU on the host (`lspci -vvv | grep ACSCtl`: SrcValid+); disable_custom_all_reduce"
STALLS: tuple[Row, ...] = (
    *host.RENDEZVOUS,
    row(
        "nccl_hang_p2p_suspected",
        HOST,
        r"NCCL INFO .*Init COMPLETE",
        "it hangs after NCCL was initialised: transfers between the GPUs ({transport}) do not arrive",
        _P2P,
        "NCCL_P2P_DISABLE NCCL_P2P_LEVEL disable_custom_all_reduce",
        details=(r"NCCL INFO Channel .* via (?P<transport>P2P/\S+)",),
        also=r"NCCL INFO Channel .* via P2P/",
        until=host.PROGRESS,
        certainty="suspected",
        facts={"last_phase": "nccl init complete"},
        remedy="sglang_server_env: {NCCL_P2P_DISABLE: 1}",
    ),
    row(
        "nccl_hang_suspected",
        HOST,
        r"sglang is using nccl==|NCCL INFO .*Init COMPLETE",
        "it hangs while the ranks set up their communication",
        f"run once with NCCL_DEBUG=INFO in sglang_server_env; {_P2P}",
        "NCCL_P2P_DISABLE NCCL_DEBUG NCCL_SOCKET_IFNAME dist_init_addr disable_custom_all_reduce",
        until=host.PROGRESS,
        certainty="suspected",
        facts={"last_phase": "distributed"},
    ),
    row(
        "rendezvous_hang_suspected",
        HOST,
        r"Init (?:torch distributed|parallel) begin",
        "it hangs while the ranks look for each other",
        "start all nodes; check dist_init_addr and GLOO_SOCKET_IFNAME, and that TasksMax= and LimitNPROC= of the unit allow hundreds of threads",
        "dist_init_addr nnodes node_rank GLOO_SOCKET_IFNAME sglang_server_unit_options",
        until=host.PROGRESS,
        certainty="suspected",
        facts={"last_phase": "distributed"},
    ),
    row(
        "warm_up_hang_suspected",
        RELEASE,
        r"Uvicorn running on (?P<url>https?://\S+)",
        "it listens at {url} and its own warm-up request does not arrive there",
        "add 127.0.0.1, 0.0.0.0 and localhost to no_proxy and NO_PROXY of the unit; look for a firewall on the loopback interface",
        "http_proxy https_proxy all_proxy no_proxy NO_PROXY sglang_server_env sglang_server_host",
        until=r"\"(?:GET|POST) /\S* HTTP/1\.[01]\" |The server is fired up",
        certainty="suspected",
        facts={"last_phase": "warm up"},
    ),
)
# After one of these the process may live on for minutes (it asks itself for a warm-up) and will never be ready.
HOPELESS = re.compile(r"ERROR: +\[Errno \d+\] error while attempting to bind on address")
UNREADY: tuple[Row, ...] = (
    row(
        "probe_unauthorized",
        RELEASE,
        r"INFO: +(?:127\.0\.0\.1|\[?::1\]?):\d+ - \"GET (?P<path>/\S*) HTTP/1\.[01]\" 40[13]\b",
        "the server refused the probe of {path}: the API key sent is not the server's",
        "send the configured API key in the probe: set sglang_server_api_key to the key the server runs with",
        "sglang_server_api_key",
        also=r"The server is fired up",
        until=r"\"(?:GET|POST) /\S* HTTP/1\.[01]\" 200",
        certainty="suspected",
    ),
)
REMARKS: tuple[Row, ...] = (
    row(
        "custom_all_reduce_off",
        HOST,
        r"Setup Custom allreduce failed with CUDART error: peer access is not supported",
        "the GPUs cannot reach each other's memory: all-reduce goes through NCCL, which works and is slower",
        "--disable-custom-all-reduce (disable_custom_all_reduce: true) silences it; it is no error",
        "disable_custom_all_reduce",
        remedy="sglang_server_flags: {disable_custom_all_reduce: true}",
    ),
)
