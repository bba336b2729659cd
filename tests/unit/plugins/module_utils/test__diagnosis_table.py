# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table as data, and lines that lead to each row. Cases of whole journals: test__diagnosis.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ansible_collections.llmops.inference.plugins.module_utils import _diagnosis_table as table
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import diagnose, diagnose_stall, remarks

ROLE = Path(__file__).resolve().parents[4] / "roles" / "sglang_server"
TABLES = {name: getattr(table, name) for name in ("KERNEL", "ROWS", "EXCEPTIONS", "LATE", "STALLS", "UNREADY", "REMARKS")}
ALL = [row for rows in TABLES.values() for row in rows]
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
BUSY = f"{OOM} GPU 1 has a total capacity of 79.10 GiB of which 201.19 MiB is free. Process 4711 has %s memory in use. Including non-PyTorch memory, this"
WATCHDOG = "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=4, Timeout(ms)=600000) ran for 600 s"
# For each code: lines of a journal, what the sentence says, and values.
SAMPLES = [
    ("unknown_argument", ["sglang serve: error: unrecognized arguments: --x {y}"], "does not know the arguments --x {y}", {"arguments": "--x {y}"}),
    ("bad_argument", ["error: argument --tp-size: invalid int value: 'a'"], "refused an argument: argument --tp-size: invalid int value: 'a'", {}),
    (
        "context_too_long",
        ["ValueError: Warning: User-specified context_length (99999) is greater than the derived context_length (2048). This may"],
        "context_length 99999 is more than the model's own 2048",
        {"context_length": 99999, "maximum": 2048},
    ),
    ("encoder_urls", ["AssertionError: requires at least one encoder urls to be set via --encoder-urls"], "language_only needs encoder_urls", {}),
    (
        "language_only_text_model",
        ["ValueError: Model type LlamaForCausalLM is not supported for encoder disaggregation."],
        "LlamaForCausalLM has none",
        {"architecture": "LlamaForCausalLM"},
    ),
    (
        "tp_nodes",
        ["server_args=ServerArgs(tp_size=3, nnodes=2)", "AssertionError: tp_size must be divisible by number of nodes"],
        "tp_size 3 does not divide over the nodes",
        {"tp_size": 3},
    ),
    (
        "cpu_ranks",
        ["AssertionError: SGLANG_CPU_OMP_THREADS_BIND is not set, in this case, the total number of ranks (dp_size * tp_size * pp_size = 3) should be smaller"],
        "the 3 ranks are more than the machine has NUMA nodes",
        {"ranks": "3"},
    ),
    (
        "unit_step_failed",
        ["sglang-a.service: Failed at step NAMESPACE spawning /opt/x/python: No such file or directory"],
        "could not start /opt/x/python: step NAMESPACE failed: No such file or directory",
        {"step": "NAMESPACE"},
    ),
    ("oom_killer", ["sglang-a.service: A process of this unit has been killed by the OOM killer."], "OOM killer ended the server: its", {}),
    (
        "oom_killer",
        ["kernel: Out of memory: Killed process 4711 (sglang::schedul) total-vm:1kB"],
        "a process 4711 (sglang::schedul) at that time, which may be",
        {"pid": 4711},
    ),
    ("oom_killer", ["sglang-a.service: Failed with result 'oom-kill'."], "OOM killer ended the server", {}),
    ("driver_library_mismatch", ["Failed to initialize NVML: Driver/library version mismatch"], "is not of the loaded kernel module's version", {}),
    (
        "fabricmanager_version_mismatch",
        ["driver interface version 550.1.2 doesn't match with driver version 550.3."],
        "of version 550.1.2, the driver of 550.3",
        {"fm": "550.1.2", "driver": "550.3"},
    ),
    ("cuda_forward_compat_unsupported", ["RuntimeError: x. Error 804: forward compatibility was attempted"], "error 804", {}),
    ("system_not_initialized", ["RuntimeError: x. Error 802: system not yet initialized"], "error 802", {}),
    ("driver_too_old", ["UserWarning: The NVIDIA driver on your system is too old (found version 11040)."], "up to CUDA 11.4", {"driver_cuda": "11.4"}),
    ("driver_too_old", ["RuntimeError: CUDA driver version is insufficient for CUDA runtime version"], "older than the engine's CUDA needs", {}),
    ("cuda_unknown_error", ["RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment"], "/dev/nvidia-uvm", {}),
    ("driver_missing", ["ImportError: libcuda.so.1: cannot open shared object file: No such file or directory"], "libcuda.so.1 is not there", {}),
    ("driver_missing", ["RuntimeError: Found no NVIDIA driver on your system. Please check"], "libcuda.so.1 is not there", {}),
    ("no_accelerator", ["RuntimeError: No CUDA GPUs are available"], "finds no GPU", {}),
    ("cuda_home_malformed", ["/bin/sh: 1: :/opt/cuda/bin/nvcc: not found"], "leading ':' (:/opt/cuda)", {"cuda_home": ":/opt/cuda"}),
    ("ninja_missing", ["RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)"], "ninja is missing", {}),
    ("nvcc_missing", ["FileNotFoundError: [Errno 2] No such file or directory: '/usr/local/cuda/bin/nvcc'"], "nvcc is missing", {}),
    ("nvcc_missing", ["/bin/sh: 1: nvcc: not found"], "nvcc is missing", {}),
    ("nvcc_missing", ["OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root."], "nvcc is missing", {}),
    ("cuda_toolkit_too_old", ["nvcc fatal   : Unsupported gpu architecture 'compute_120'"], "compute_120", {"architecture": "compute_120"}),
    ("cuda_toolkit_too_old", ["ptxas fatal   : Value 'sm_120a' is not defined for option 'gpu-name'"], "sm_120a", {"architecture": "sm_120a"}),
    (
        "cuda_toolkit_mismatch",
        ["RuntimeError: The detected CUDA version (12.2) mismatches the version that was used to compile PyTorch (13.0)."],
        "the CUDA toolkit is 12.2, torch was built for 13.0",
        {"toolkit": "12.2", "torch_cuda": "13.0"},
    ),
    ("python_headers_missing", ["main.c:5:10: fatal error: Python.h: No such file or directory"], "Python's headers are missing", {}),
    ("c_compiler_missing", ["FileNotFoundError: [Errno 2] No such file or directory: 'gcc'"], "no C compiler", {}),
    ("c_compiler_missing", ["/bin/sh: 1: g++: not found"], "no C compiler", {}),
    (
        "libnuma_missing",
        ["ImportError:", "[sgl_kernel] CRITICAL: Could not load any common_ops library!", "- ImportError: libnuma.so.1: cannot open shared object file"],
        "need libnuma.so.1",
        {},
    ),
    ("nccl_library_mismatch", ["ImportError: /x/libtorch_cuda.so: undefined symbol: ncclCommResume"], "without ncclCommResume", {"symbol": "ncclCommResume"}),
    (
        "kernels_not_loadable",
        ["ImportError: [sgl_kernel] CRITICAL: Could not load any common_ops library!", "- ImportError: libnvrtc.so.13: cannot open shared object file"],
        "cannot be loaded: libnvrtc.so.13 is missing",
        {"library": "libnvrtc.so.13"},
    ),
    ("fp8_unsupported_arch", ['ValueError("type fp8e4nv not supported in this architecture. The")'], "no fp8e4nv", {}),
    ("unsupported_arch", ["RuntimeError: CUDA error: no kernel image is available for execution on the device"], "no kernel for this GPU's", {}),
    (
        "backend_unsupported_arch",
        ["AssertionError: FlashAttention v3 Backend requires SM>=80 and SM<=90. Please use `--attention-backend flashinfer`."],
        "FlashAttention v3 requires SM>=80 and SM<=90",
        {"backend": "FlashAttention v3"},
    ),
    ("shm_too_small", ["NCCL WARN Error: failed to extend /dev/shm/nccl-x to 96 bytes, error: No space left on device (28)"], "96 bytes", {"bytes": 96}),
    ("shm_too_small", ["RuntimeError: unable to write, insufficient shared memory (shm)"], "/dev/shm is too small", {}),
    ("nccl_interface", ["h:1:2 [0] NCCL WARN Bootstrap : no socket interface found"], "finds no network interface", {}),
    ("nccl_interface", ["RuntimeError: [enforce fail] Unable to find address for: eth7"], "no network interface eth7", {"interface": "eth7"}),
    (
        "nodes_missing",
        ["torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined."],
        "did not find each other within 601 s: only 1/2 did",
        {"timeout_s": 601, "joined": "1/2"},
    ),
    ("nccl_connection", ["h:1:2 [0] NCCL WARN socketStartConnect: Connect to 192.0.2.7<4000> failed : No route"], "192.0.2.7", {"peer": "192.0.2.7<4000>"}),
    ("nccl_p2p", ["h:1:2 [0] NCCL WARN Cuda failure 217 'peer access is not supported between these two devices'"], "peer-to-peer", {}),
    ("disk_full", ["OSError: [Errno 28] No space left on device"], "the disk is full", {}),
    ("disk_full", ["OSError: [Errno 122] Disk quota exceeded"], "the disk is full", {}),
    ("cache_not_writable", ["PermissionError: [Errno 13] Permission denied: '/nonexistent/.triton'"], "its cache at /nonexistent/.triton", {}),
    ("cache_read_only", ["OSError: [Errno 30] Read-only file system: '/x/y'"], "makes /x/y read-only", {"path": "/x/y"}),
    ("mdwe", ["ImportError: libx.so: failed to map segment from shared object"], "could not be made executable", {}),
    ("no_temporary_directory", ["FileNotFoundError: [Errno 2] No usable temporary directory found in ['/tmp']"], "temporary directory", {}),
    ("too_many_open_files", ["OSError: [Errno 24] Too many open files: '/models/a'"], "may not open more files", {}),
    ("too_many_threads", ["RuntimeError: can't start new thread"], "may not start more threads", {}),
    (
        "port_in_use",
        ["ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 31001): address already in use", "The server is fired up and ready"],
        "holds the server's port 31001",
        {"port": 31001},
    ),
    ("port_in_use", ["ValueError: Port is already in use. dist_init_port=30 port_base=31"], "holds the server's port", {}),
    ("port_in_use", ["RuntimeError: engine_info_bootstrap_port 6789 is already in use."], "port 6789", {"port": 6789}),
    (
        "port_in_use",
        ["torch.distributed.DistNetworkError: The server socket has failed to listen. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: x"],
        "port 29500",
        {"port": 29500},
    ),
    ("proxy_intercepts_localhost", ['http://192.0.2.1:3128 "GET http://127.0.0.1:30000/model_info HTTP/1.1" 502 0'], "192.0.2.1:3128", {"http": [502]}),
    ("router_workers_unhealthy", ["ERROR - Timeout 60s waiting for workers to become healthy"], "after 60 s: its worker did not", {"timeout_s": 60}),
    ("hf_gated", ["huggingface_hub.errors.GatedRepoError: 403 Client Error."], "the model is gated", {}),
    ("hf_offline_no_cache", ["huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://hf.co/x: offline mode is enabled."], "switched off", {}),
    ("hf_unreachable", ["OSError: We couldn't connect to 'https://huggingface.co' to load the files"], "hub cannot be reached", {}),
    ("hf_unreachable", ["requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries"], "hub cannot be", {}),
    ("model_not_on_hub", ["huggingface_hub.errors.RepositoryNotFoundError: 401 Client Error."], "no such model", {}),
    ("model_file_corrupt", ["_pickle.UnpicklingError: invalid load key, 'v'."], "truncated or is not what it should be", {}),
    ("model_file_corrupt", ["safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata"], "truncated", {}),
    (
        "tokenizer_missing",
        ["server_args=ServerArgs(tokenizer_path='/srv/x', tp_size=1)", "ValueError: Couldn't instantiate the backend tokenizer from one of: "],
        "no usable tokenizer in /srv/x",
        {"path": "/srv/x"},
    ),
    ("tokenizer_missing", ["OSError: Can't load tokenizer for '/srv/y'. If you were"], "no usable tokenizer in /srv/y", {"path": "/srv/y"}),
    ("tokenizer_missing", ["FileNotFoundError: [Errno 2] No such file or directory: '/models/a/tokenizer.json'"], "no usable tokenizer", {}),
    ("model_missing", ["FileNotFoundError: [Errno 2] No such file or directory: '/models/a/config.json'"], "can read in /models/a", {"path": "/models/a"}),
    ("model_missing", ["RuntimeError: Cannot find any model weights with `/models/b`"], "can read in /models/b", {"path": "/models/b"}),
    (
        "architecture_unknown",
        ["ValueError: Model architectures ['NewForCausalLM'] are not supported for now. Supported architectures: dict_keys(['A'])"],
        "architecture ['NewForCausalLM']",
        {"architecture": "['NewForCausalLM']"},
    ),
    (
        "architecture_unknown",
        ["ValueError: The checkpoint you are trying to load has model type `new` but Transformers does not recognize this architecture. This"],
        "architecture new",
        {"architecture": "new"},
    ),
    ("remote_code_needed", ["ValueError: Loading /m requires you to execute the configuration file in that repo"], "brings its own code", {}),
    (
        "quantization_mismatch",
        ["ValueError: Quantization method specified in the model config (awq) does not match"],
        "which is quantised as awq",
        {"model": "awq"},
    ),
    (
        "quantized_blocks_tp",
        ["tp_size=8", "ValueError: The output_size of gate's and up's weight = 192 is not divisible by weight quantization block_n = 128."],
        "over tp_size 8 a weight is 192 wide, which its quantisation blocks of 128 do not divide",
        {"tp_size": 8, "size": 192, "block": 128},
    ),
    ("heads_tp", ["    assert self.total_num_heads % tp_size == 0", "AssertionError"], "do not divide by tp_size", {}),
    ("heads_tp", ["    assert attn_tp_size % self.total_num_kv_heads == 0", "AssertionError"], "do not divide by tp_size", {}),
    ("heads_tp", ['"tp_size": 3', "AssertionError: 4096 is not divisible by 3"], "sizes (4096) do not divide by tp_size 3", {"tp_size": 3, "size": 4096}),
    ("gpu_busy", [BUSY % "60.25 GiB"], "GPU 1 is busy: process 4711 holds 60.25 of its 79.1 GiB", {"pid": 4711, "gpu": 1, "held_gb": 60.25}),
    (
        "gpu_busy",
        [
            "The memory capacity is unbalanced. Some GPUs may be occupied by other processes. min_per_gpu_memory=3.5, local_gpu_memory=46.8",
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
        ],
        "much less free memory than the others (3.5 GB)",
        {"avail_mem_gb": 3.5},
    ),
    (
        "kv_pool_too_small",
        ["ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.5. Raise --mem-fraction-static above 0.704 (minimum"],
        "under mem_fraction_static 0.5",
        {"mem_fraction_static": 0.5, "minimum": 0.704},
    ),
    ("state_cache_too_small", ["RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed"], "linear attention", {}),
    ("cuda_graph_oom", ["Capture target decode CUDA graph begin. backend=full, avail mem=1.50 GB", OOM], "(1.5 GB were free", {"avail_mem_gb": 1.5}),
    ("batch_out_of_memory", ["RuntimeError: Prefill out of memory. Try to lower your batch size."], "Prefill found no room", {"phase": "Prefill"}),
    ("gpu_memory", ["Load weight begin. avail mem=9.25 GB", OOM], "GPU memory ran out (9.25 GB were free at last)", {"avail_mem_gb": 9.25}),
    ("gpu_memory", [BUSY % "458.00 MiB"], "GPU memory ran out", {}),
    ("gpu_memory", [BUSY % "2.00 GiB"], "GPU memory ran out", {}),
    ("host_memory", ["RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."], "host's memory", {}),
    ("host_memory", ["numpy._core._exceptions._ArrayMemoryError: Unable to allocate"], "host's memory", {}),
    ("graph_capture_failed", ["Exception: Capture cuda graph failed: no such kernel"], "could not be captured: no such kernel", {"reason": "no such kernel"}),
    ("graph_capture_failed", ["Fail when using backend: tc_piecewise for prefill runner."], "backend tc_piecewise", {"backend": "tc_piecewise"}),
    ("driver_library_mismatch", ["kernel: NVRM: API mismatch: the client has version 550.54.14, but"], "userspace 550.54.14 is not", {"library": "550.54.14"}),
    ("driver_library_mismatch", ["RuntimeError: x. Error 803: system has unsupported display driver / cuda driver combination"], "is not of the loaded", {}),
    ("driver_too_old", ["RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain."], "older than the engine's CUDA", {}),
    ("gpu_not_there", ["RuntimeError: CUDA error: invalid device ordinal"], "fewer GPUs than ranks", {}),
    (
        "gpu_not_there",
        ["h:1:2 [1] NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 41000"],
        "two of them got GPU 41000",
        {"pci": "41000"},
    ),
    ("gpu_exclusive", ["torch.AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable"], "lets nobody else in", {}),
    ("cuda_headers_missing", ["/x/y.cuh:3:10: fatal error: curand_kernel.h: No such file or directory"], "missing: curand_kernel.h", {}),
    ("cuda_headers_missing", ["/usr/bin/ld: cannot find -lcudart: No such file or directory"], "missing: cudart", {"library": "cudart"}),
    ("compiler_killed", ["c++: fatal error: Killed signal terminated program cc1plus"], "(cc1plus) was killed", {"program": "cc1plus"}),
    ("compiler_killed", ["nvcc error   : 'cicc' died due to signal 9 (Kill signal)"], "(cicc) was killed", {"program": "cicc"}),
    (
        "package_too_old",
        ["Exception: flashinfer_python is installed with version 0.2.1, which is less than the minimum required version 0.6.2. Please uninstall"],
        "needs flashinfer_python 0.6.2 and has 0.2.1",
        {"package": "flashinfer_python", "needed": "0.6.2", "version": "0.2.1"},
    ),
    ("package_too_old", ["Exception: sgl-kernel with minimum required version 0.3.1 is not installed. x"], "needs sgl-kernel 0.3.1", {"needed": "0.3.1"}),
    (
        "quantization_unsupported_arch",
        ["ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 89. Current capability: 86."],
        "the quantisation fp8 needs compute capability 89, this GPU has 86",
        {"method": "fp8", "needs": "89", "has": "86"},
    ),
    (
        "quantization_unsupported_arch",
        ["RuntimeError: ('Quantization scheme is not supported for ', 'the current GPU. Min capability: 89. ', 'Current capability: 86.')"],
        "the quantisation needs compute capability 89",
        {},
    ),
    ("gpu_too_old", ["RuntimeError: SGLang only supports sm75 and above."], "compute capability sm75", {"needs": "sm75"}),
    (
        "shared_memory_exceeded",
        ["triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 106496, Hardware limit: 101376. Reducing block sizes"],
        "needs 106496 bytes of shared memory per block, this GPU has 101376",
        {},
    ),
    (
        "nodes_missing",
        ["torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (192.0.2.3, 5000)."],
        "find each other: no answer from 192.0.2.3",
        {"peer": "192.0.2.3"},
    ),
    ("gloo_connection", ["RuntimeError: Gloo connectFullMesh failed with [../gloo/transport/tcp/pair.cc:144] no error"], "Gloo connections cannot", {}),
    ("rdma_memory_limit", ["h:1:2 [0] NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"], "lock enough memory", {}),
    ("rdma_failed", ["h:1:2 [0] NCCL WARN NET/IB : Got completion from peer with status=12"], "RDMA transfers failed: Got completion", {}),
    ("disk_error", ["OSError: [Errno 5] Input/output error: '/models/a'"], "failed at /models/a: Input/output error", {"path": "/models/a"}),
    ("disk_error", ["OSError: [Errno 116] Stale file handle"], "a file system failed: Stale file handle", {}),
    ("port_in_use", ["ValueError: nccl_port at 30100 is not available in 30 seconds. nccl_port is used by a process already."], "port 30100", {"port": 30100}),
    (
        "address_not_local",
        ["ERROR:    [Errno 99] error while attempting to bind on address ('192.0.2.1', 30000): cannot assign requested address"],
        "the address 192.0.2.1 that",
        {"address": "192.0.2.1"},
    ),
    ("address_not_local", ["zmq.error.ZMQError: [Errno 99] Cannot assign requested address"], "the address that the server", {}),
    (
        "port_not_allowed",
        ["ERROR:    [Errno 13] error while attempting to bind on address ('127.0.0.1', 80): permission denied"],
        "may not listen on port 80",
        {"port": 80},
    ),
    ("address_family_denied", ["OSError: [Errno 97] Address family not supported by protocol"], "may not open sockets", {}),
    ("model_file_corrupt", ["OSError: It looks like the config file at '/m/config.json' is not a valid JSON file."], "(/m/config.json)", {}),
    ("model_file_corrupt", ["OSError: Consistency check failed: file should be of size 99 but has size 9 (model.safetensors)."], "truncated", {}),
    ("model_file_corrupt", ["RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"], "truncated", {}),
    (
        "model_file_corrupt",
        [
            "Traceback (most recent call last):",
            'File "/x/site-packages/transformers/tokenization_utils_base.py", line 9, in from_pretrained',
            'File "/usr/lib/python3.11/json/decoder.py", line 353, in raw_decode',
            "json.decoder.JSONDecodeError: Expecting ':' delimiter: line 1 column 1001 (char 1000)",
        ],
        "a JSON file of the model is truncated",
        {},
    ),
    (
        "model_incomplete",
        ["RuntimeError: /m/model.safetensors.index.json references 2 shard file(s) missing from /m (incomplete download?): ['a', 'b']"],
        "files of the model are missing in /m (2)",
        {"count": 2, "path": "/m"},
    ),
    ("model_incomplete", ["OSError: Error no file named model.safetensors, or pytorch_model.bin, found in directory /m."], "missing in /m", {"path": "/m"}),
    (
        "weights_mismatch",
        ["AssertionError: Attempted to load weight (torch.Size([64, 32])) into parameter (torch.Size([128, 32]))"],
        "configuration: torch.Size([64, 32]) for torch.Size([128, 32])",
        {"loaded": "torch.Size([64, 32])"},
    ),
    (
        "weights_mismatch",
        ["Traceback (most recent call last):", 'File "/x/models/a.py", line 1, in load_weights', "KeyError: 'model.layers.0.mlp.experts.w2_weight'"],
        "configuration: 'model.layers.0.mlp.experts.w2_weight'",
        {},
    ),
    (
        "weights_mismatch",
        [
            "Traceback (most recent call last):",
            'File "/x/linear.py", line 1, in weight_loader',
            "RuntimeError: start (32) + length (16) exceeds dimension size (32).",
        ],
        "configuration: start (32)",
        {},
    ),
    ("weights_mismatch", ["Traceback (most recent call last):", 'File "/x/a.py", line 1, in default_weight_loader', "AssertionError"], "configuration", {}),
    (
        "tokenizer_missing",
        ["x: unexpected error loading tokenizer.json for /m, y", "IndexError: index is out of bounds for dimension with size 0"],
        "in /m",
        {},
    ),
    ("model_missing", ["ValueError: Unrecognized model in /m/a. Should have a `model_type` key in its config.json."], "can read in /m/a", {"path": "/m/a"}),
    (
        "architecture_unknown",
        ["ValueError: Cannot find model module. 'Foo9ForCausalLM' is not a registered model in the Transformers library"],
        "architecture Foo9ForCausalLM",
        {},
    ),
    ("hf_token_refused", ["huggingface_hub.errors.HfHubHTTPError: 401 Client Error. Invalid user token."], "refuses the token", {}),
    ("state_cache_too_small", ["RuntimeError: Hybrid (mamba/linear-attention) state cache is too small to serve any requests."], "linear attention", {}),
    (
        "host_cache_too_large",
        ["ValueError: Not enough host memory available. Requesting 120.00 GB but only have 61.20 GB free. Please reduce the"],
        "hierarchical cache: 120.0 GB wanted, 61.2 GB free",
        {"needed_gb": 120.0, "free_gb": 61.2},
    ),
    (
        "arguments_refused",
        [
            "Traceback (most recent call last):",
            'File "/x/sglang/srt/server_args.py", line 88, in check_server_args',
            "ValueError: --enable-a and --enable-b exclude each other",
        ],
        "refused its arguments: --enable-a and --enable-b exclude each other",
        {},
    ),
    ("kernel_build_failed", ["RuntimeError: Ninja build failed. Ninja output:"], "could not be compiled", {}),
    ("kernel_build_failed", ["RuntimeError: Error building extension 'batch_prefill'"], "compiled: batch_prefill", {"module": "batch_prefill"}),
    ("kernel_build_failed", ["subprocess.CalledProcessError: Command '['/usr/bin/gcc', '/tmp/main.c']' returned non-zero exit status 1."], "compiled: gcc", {}),
    ("system_call_denied", ["x.service: Main process exited, code=killed, status=31/SYS"], "does not allow a system call of the engine", {}),
    (
        "system_call_denied",
        ['audit: type=1326 audit(1.1:7): uid=999 pid=4711 comm="python" exe="/x" sig=31 arch=c000003e syscall=203 compat=0'],
        "(number 203)",
        {},
    ),
    ("file_size_limit", ["x.service: Main process exited, code=killed, status=25/XFSZ"], "beyond what the service may write", {}),
    ("crashed", ["python[4711]: segfault at 0 ip 00007f sp 00007ffd error 4 in libtorch_cpu.so[7f3b00+1000]"], "compiled code (libtorch_cpu.so)", {}),
    ("unit_not_startable", ["x.service: Failed to load environment files: No such file or directory"], "the unit: No such file or directory", {}),
    ("unit_watchdog", ["x.service: Watchdog timeout (limit 15s)!"], "ended the server after 15s", {"limit": "15s"}),
    ("unit_runtime_limit", ["x.service: Service reached runtime time limit. Stopping."], "RuntimeMaxSec=", {}),
    ("chat_template_missing", ["RuntimeError: Chat template /x.jinja is not a built-in template name or a valid chat template file path."], "/x.jinja", {}),
    (
        "heads_tp",
        [
            "tp_size=3",
            "Traceback (most recent call last):",
            'File "/x/linear.py", line 1523, in weight_loader',
            "RuntimeError: start (32) + length (16) exceeds dimension size (32).",
        ],
        "sizes (32) do not divide by tp_size 3",
        {"size": 32, "tp_size": 3},
    ),
    ("quantization_mismatch", ["ValueError: Cannot find the config file for awq"], "quantization awq does not fit the model", {"asked": "awq"}),
    ("lora_not_loadable", ["RuntimeError: Failed to load LoRA adapter a: no such file"], "the LoRA adapter a cannot be loaded: no such file", {"name": "a"}),
    ("kv_pool_too_small", ["max_total_tokens=1", "AssertionError: max_running_request is zero"], "one request: max_total_tokens is 1", {"max_total_tokens": 1}),
    ("shm_denied", ["h:1:2 [0] include/shm.h:27 NCCL WARN Call to shm_open failed : Permission denied"], "may not use /dev/shm", {}),
    ("shm_too_small", ["NCCL WARN Error while creating shared memory segment nccl-shm-recv-b7-0-3-0 (size 4460544)"], "4460544", {"bytes": 4460544}),
    (
        "custom_all_reduce_failed",
        ['File "/x/device_communicators/custom_all_reduce.py", line 307, in register_graph_buffers', "Exception: Capture cuda graph failed: invalid argument"],
        "own all-reduce failed (invalid argument)",
        {"reason": "invalid argument"},
    ),
    (
        "address_not_local",
        [
            "server_args=ServerArgs(nnodes=1)",
            "[E1 socket.cpp:818] [c10d] The client socket has failed to connect to any network address of (192.0.2.1, 25997).",
        ],
        "cannot reach 192.0.2.1, which",
        {"peer": "192.0.2.1", "nnodes": 1},
    ),
    (
        "nodes_missing",
        [
            "server_args=ServerArgs(nnodes=2)",
            "[E1 socket.cpp:818] [c10d] The client socket has failed to connect to any network address of (192.0.2.1, 25997).",
        ],
        "no answer from 192.0.2.1",
        {"peer": "192.0.2.1"},
    ),
    (
        "tls_not_usable",
        ["Traceback (most recent call last):", 'File "/x/uvicorn/config.py", line 131, in create_ssl_context', "ssl.SSLError: [SSL] PEM lib (_ssl.c:3877)"],
        "cannot be used: [SSL] PEM lib",
        {},
    ),
    ("permission_denied", ["PermissionError: [Errno 1] Operation not permitted"], "lacks a permission", {}),
    ("address_family_denied", ["zmq.error.ZMQError: Address family not supported by protocol (addr='ipc:///tmp/x')"], "may not open sockets", {}),
    ("too_many_threads", ["RuntimeError: Resource temporarily unavailable"], "may not start more threads", {}),
    ("too_many_threads", ["Resource temporarily unavailable (src/thread.cpp:241)"], "may not start more threads", {}),
    ("permission_denied", ["RuntimeError: Unexpected error running 'lscpu': [Errno 1] Operation not permitted"], "lacks a permission", {}),
    ("package_mismatch", ["AttributeError: module 'msgspec' has no attribute 'Struct'"], "module msgspec is not what", {"module": "msgspec"}),
    ("package_mismatch", ["ImportError: cannot import name 'x' from 'transformers.y' (/z.py)"], "transformers.y is not", {"name": "x"}),
    ("stopped", ["Stopping sglang-main.service - SGLang server main..."], "told to stop", {}),
    ("stopped", ["x.service: Sent signal SIGKILL to main process 29452 (python) on client request."], "told to stop (SIGKILL)", {"signal": "SIGKILL"}),
    (
        "unit_step_failed",
        [
            "x.service: Failed to set up mount namespacing: /run/systemd/unit-root/nonexistent: No such file or directory",
            "x.service: Failed at step NAMESPACE spawning /opt/x/python: No such file or directory",
        ],
        "(Failed to set up mount namespacing: /nonexistent: No such file or directory)",
        {},
    ),
    (
        "graph_capture_failed",
        [
            "Traceback (most recent call last):",
            'File "/x/model_executor/piecewise_cuda_graph_runner.py", line 1, in __init__',
            "AttributeError: module 'torch.cpu' has no attribute 'graph_pool_handle'",
        ],
        "could not be captured: module 'torch.cpu' has no",
        {},
    ),
    (
        "module_missing",
        [
            "Traceback (most recent call last):",
            'File "/x/model_executor/cuda_graph_runner.py", line 1, in capture',
            "ModuleNotFoundError: No module named 'deep_gemm'",
        ],
        "deep_gemm",
        {},
    ),
    ("module_missing", ["ModuleNotFoundError: No module named 'deep_gemm'"], "the Python module deep_gemm", {"module": "deep_gemm"}),
    ("library_missing", ["OSError: libavutil.so.59: cannot open shared object file: No such file"], "libavutil.so.59", {"library": "libavutil.so.59"}),
    ("library_mismatch", ["ImportError: /x/ops.so: undefined symbol: _ZN3c10"], "_ZN3c10 is missing", {"symbol": "_ZN3c10"}),
    ("permission_denied", ["PermissionError: [Errno 13] Permission denied: '/models/a'"], "it may not use /models/a", {"path": "/models/a"}),
    ("cuda_fault", ["torch.AcceleratorError: CUDA error: unspecified launch failure"], "failed on the GPU: unspecified launch failure", {}),
    (
        "nccl_error",
        ["h:1:2 [0] NCCL WARN Call to bind failed", "torch.distributed.DistBackendError: NCCL error in: x.hpp:2, unhandled system error"],
        "failed: Call to bind failed",
        {"last_error": "Call to bind failed"},
    ),
    ("illegal_instruction", ["x.service: Main process exited, code=dumped, status=4/ILL"], "lacks an instruction", {}),
    ("bus_error", ["Subprocess scheduler_0 (pid=7) crashed with exit code -7."], "mapped memory could not be read", {}),
    ("crashed", ["Fatal Python error: Segmentation fault"], "crashed in compiled code: Segmentation fault", {}),
    ("crashed", ["Subprocess scheduler_0 (pid=7) crashed with exit code -11."], "crashed in compiled code", {}),
    ("nccl_collective_timeout", [WATCHDOG], "(ALLREDUCE) did not end", {"operation": "ALLREDUCE"}),
    ("nccl_collective_timeout", [WATCHDOG, f"torch.distributed.DistBackendError: {WATCHDOG}"], "(ALLREDUCE) did not end", {}),
    ("watchdog_timeout", ["Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)"], "more than 300 s", {"timeout_s": 300}),
    ("watchdog_timeout", ["Watchdog timeout (self.watchdog_timeout=300)"], "more than 300 s", {}),
    ("unit_start_timeout", ["x.service: start operation timed out. Terminating."], "TimeoutStartSec=", {}),
    ("stopped", ["SIGTERM received. signum=None frame=None. Draining", "x.service: Main process exited, code=killed, status=9/KILL"], "told to stop", {}),
    ("killed", ["Subprocess scheduler_0 (pid=7) crashed with exit code -9."], "killed from outside", {}),
    ("killed", ["sglang-main.service: Deactivated successfully."], "without a word", {}),
    ("start_limit_hit", ["x.service: Start request repeated too quickly."], "gave up after repeated crashes", {}),
]
STALLED = [
    ("rendezvous_hang_suspected", ["[2026-02-03 09:15:42 TP0] Init parallel begin."], "look for each other", {"last_phase": "distributed"}),
    ("warm_up_hang_suspected", ["INFO:     Uvicorn running on http://127.0.0.1:31000 (Press CTRL+C)"], "own warm-up", {"url": "http://127.0.0.1:31000"}),
    ("nccl_hang_suspected", ["Init torch distributed begin.", "sglang is using nccl==2.27.5"], "set up their communication", {"last_phase": "distributed"}),
    (
        "probe_unauthorized",
        ["The server is fired up", 'INFO:     127.0.0.1:4 - "GET /health HTTP/1.1" 401 Unauthorized'],
        "probe of /health",
        {"path": "/health"},
    ),
]
NEAR = [
    # Lines close to a row that must not lead to it.
    ("unknown_argument", "INFO: error: none; arguments: --x"),
    ("context_too_long", "Warning: User-specified context_length (99999) is greater than the derived context_length (2048)."),
    ("oom_killer", "kernel: Out of memory: Killed process 815 (postgres) total-vm:1kB"),
    ("killed", "kernel: Out of memory: Killed process 815 (postgres) total-vm:1kB"),
    ("driver_missing", "Ignore import error when loading x: ImportError: libcuda.so.1: cannot open shared object file"),
    ("cuda_home_malformed", "PATH=/usr/bin:/usr/local/cuda/bin/nvcc-wrapper"),
    ("ninja_missing", "FileNotFoundError: [Errno 2] No such file or directory: '/models/ninja-7b/config.json'"),
    ("nvcc_missing", "nvcc: NVIDIA (R) Cuda compiler driver"),
    ("python_headers_missing", "main.c:5:10: fatal error: cuda.h: No such file or directory"),
    ("c_compiler_missing", "FileNotFoundError: [Errno 2] No such file or directory: '/models/gcc.json'"),
    ("libnuma_missing", "loaded /usr/lib/libnuma.so.1"),
    ("nccl_library_mismatch", "ImportError: /x/ops.so: undefined symbol: _ZN3c10ncclish"),
    ("fp8_unsupported_arch", "The supported fp8 dtypes are ('fp8e4nv', 'fp8e5')"),
    ("shm_too_small", "NCCL INFO Allocated shareable buffer /dev/shm/nccl-x"),
    ("disk_full", "UserWarning: Not enough free disk space to download the file. The expected file size is: 9 MB."),
    ("cache_not_writable", "PermissionError: [Errno 13] Permission denied: '/models/a'"),
    ("port_in_use", "port 30000 is in use. Waiting for 5 seconds for it to be available."),
    ("proxy_intercepts_localhost", 'http://192.0.2.1:3128 "GET http://huggingface.co:80/x HTTP/1.1" 200 0'),
    ("hf_unreachable", "'(MaxRetryError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded\"))' thrown while requesting HEAD"),
    ("no_accelerator", "Automatically selected accelerator (CUDA)"),
    ("gpu_busy", "The memory capacity is unbalanced. Some GPUs may be occupied by other processes. min_per_gpu_memory=3.5"),
    ("kv_pool_too_small", "Not enough memory for the optional cache, skipping it"),
    ("cuda_graph_oom", "Exception: Capture cuda graph failed: invalid argument"),
    ("gpu_memory", "Prefill out of memory. Try to lower your batch size."),
    ("nccl_p2p", "Setup Custom allreduce failed with CUDART error: peer access is not supported between these two devices."),
    ("heads_tp", "assert self.num_tokens % page_size == 0"),
    ("module_missing", "Ignore import error when loading x: No module named 'torchcodec'"),
    ("nccl_error", "sglang is using nccl==2.27.5"),
    ("watchdog_timeout", "Detokenizer watchdog timeout (self.watchdog_timeout=300, self.soft=True)"),
    ("arguments_refused", "ValueError: --enable-a and --enable-b exclude each other"),
    ("weights_mismatch", "KeyError: 'model.layers.0.mlp.experts.w2_weight'"),
    ("tokenizer_missing", "IndexError: index is out of bounds for dimension with size 0"),
    ("address_not_local", "connect: cannot assign requested address"),
    ("compiler_killed", "Killed"),
    ("disk_error", "OSError: [Errno 53] Input/output error"),
    ("package_too_old", "flashinfer is installed with version 0.6.2"),
    ("cuda_headers_missing", "fatal error: cudd/cudd.h: No such file or directory"),
    ("kernel_build_failed", "subprocess.CalledProcessError: Command '['nvidia-smi']' returned non-zero exit status 9."),
    ("rdma_failed", "h:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE"),
    ("model_incomplete", "OSError: /x references 2 files"),
    ("crashed", "Subprocess scheduler_0 (pid=7) crashed with exit code -15. Triggering SIGQUIT"),
    ("killed", "process exit code -99"),
    ("killed", "Deactivated successfully"),
]


CAUGHT = [
    # Errors that the engine logs and goes on.
    ("address_family_denied", "[W socket.cpp:697] [c10d] The client socket cannot be initialized (errno: 97 - Address family not supported by protocol)."),
    ("cache_read_only", "load snapshot writer init failed: [Errno 30] Read-only file system: '/dev/shm/x'"),
    ("file_size_limit", "load snapshot writer init failed: [Errno 27] File too large"),
    ("disk_full", "could not write the cache: [Errno 28] No space left on device"),
    ("too_many_open_files", "psutil.virtual_memory() failed ([Errno 24] Too many open files: '/proc/meminfo'); using default ZMQ buffer size"),
]


def told_by(row):
    """Groups that the deciding pattern, the details and the facts can give."""
    patterns = [row.pattern, *row.details, *([row.collect] if row.collect else [])]
    return {re.sub(r"_\d+$", "", name) for pattern in patterns for name in pattern.groupindex} | set(row.facts)


DERIVED = {"fraction", "flag", "directory"}


@pytest.mark.parametrize("code, lines, cause, values", SAMPLES, ids=[f"{code}-{number}" for number, (code, *rest) in enumerate(SAMPLES)])
def test_what_lines_mean(code, lines, cause, values):
    found = diagnose(lines)
    assert found.code == code and cause in found.cause
    assert {name: found.captured[name] for name in values} == values
    assert "?" not in found.sentence and "{" not in found.sentence.replace("{y}", "")
    assert found.hint and found.evidence


@pytest.mark.parametrize("code, lines, cause, values", STALLED, ids=[code for code, *rest in STALLED])
def test_what_keeps_a_start_from_going_on(code, lines, cause, values):
    found = diagnose_stall(lines)
    assert found.code == code and cause in found.cause and found.certainty == "suspected"
    assert {name: found.captured[name] for name in values} == values
    assert diagnose(lines, "exit-code").code == "unknown", "a process that ended did not hang"


@pytest.mark.parametrize("code, line", NEAR, ids=[code for code, line in NEAR])
def test_what_lines_do_not_mean(code, line):
    assert code in {row.code for row in ALL}
    assert diagnose([line]).code != code


@pytest.mark.parametrize("code, line", CAUGHT, ids=[code for code, line in CAUGHT])
def test_an_error_that_was_caught_is_no_cause_beside_another(code, line):
    """Alone it is a suspicion."""
    assert diagnose([line, "LookupError: what it was"]).code == "exception"
    assert diagnose([line, "ValueError: handled", f"OSError: {line[line.index('[Errno') :]}"] if "[Errno" in line else [line]).code == code
    assert (diagnose([line]).code, diagnose([line]).certainty) == (code, "suspected")


def test_every_row_has_a_sample():
    elsewhere = {"nccl_hang_p2p_suspected", "custom_all_reduce_off", "memory_limit_hit"}
    assert {row.code for row in ALL} == {code for code, *rest in (*SAMPLES, *STALLED)} | elsewhere


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.code)
def test_a_row_is_whole(row):
    assert re.fullmatch(r"[a-z][a-z0-9_]*", row.code)
    assert row.where in ("release", "host", "") and row.certainty in ("certain", "suspected")
    assert row.cause[0].islower() or row.cause[0] in "C{/G" or row.cause.startswith("NCCL"), "it follows a colon"
    assert not row.cause.endswith(".") and not row.hint.endswith(".")
    assert set(re.findall(r"\{(\w+)\}", row.cause + row.hint)) <= told_by(row)
    assert set(re.findall(r"\{(\w+)\}", row.remedy)) <= told_by(row) | (DERIVED if row.derive else set())
    assert all(re.fullmatch(r"\w+", name) for name in row.implicated)


def test_a_code_lies_in_one_place():
    """What decides whether a release is tried again must not depend on the line that told it."""
    places = {}
    for row in ALL:
        places.setdefault(row.code, set()).add(row.where)
    assert all(len(where) == 1 for where in places.values())


def test_the_memory_of_the_kv_pool_is_never_lowered():
    """L01"""
    assert all("lower" not in row.hint and "decrease" not in row.hint for row in ALL if row.code == "kv_pool_too_small")


@pytest.mark.parametrize("row", [row for row in ALL if row.remedy], ids=lambda row: row.code)
def test_a_remedy_is_a_line_of_the_inventory(row):
    line = yaml.safe_load(re.sub(r"\{(\w+)\}", "x1", row.remedy))
    ((variable, value),) = line.items()
    assert variable in yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    named = value if isinstance(value, dict) else {variable: value}
    assert {"sglang_server_flags", "sglang_server_env"} >= {variable} or variable in row.implicated
    assert variable == "sglang_server_unit_options" or all(name == "x1" or name in row.implicated for name in named)


def test_every_remark_is_no_cause():
    line = "Setup Custom allreduce failed with CUDART error: peer access is not supported between these two devices."
    assert [found.code for found in remarks([line])] == ["custom_all_reduce_off"]
    assert (remarks([]), diagnose([line]).code) == ([], "unknown")


@pytest.mark.parametrize(
    "before, line",
    [
        pytest.param("driver_too_old", "no_accelerator", id="L11"),
        pytest.param("cuda_home_malformed", "nvcc_missing", id="L07"),
        pytest.param("shm_too_small", "disk_full", id="L05"),
        pytest.param("libnuma_missing", "kernels_not_loadable", id="libnuma"),
        pytest.param("gpu_busy", "kv_pool_too_small", id="busy"),
        pytest.param("kv_pool_too_small", "cuda_graph_oom", id="L01"),
        pytest.param("cuda_graph_oom", "gpu_memory", id="L02"),
        pytest.param("tokenizer_missing", "model_missing", id="tokenizer"),
    ],
)
def test_a_cause_stands_before_its_symptom(before, line):
    codes = [row.code for row in table.ROWS]
    assert max(i for i, code in enumerate(codes) if code == before) < codes.index(line)


def test_a_cpu_server_does_not_mind_an_old_driver():
    lines = ["server_args=ServerArgs(device='cpu')", "UserWarning: The NVIDIA driver on your system is too old (found version 11040).", "KeyError: 'x'"]
    assert diagnose(lines).code == "exception"


def test_conversions():
    assert {name: table.CONVERT[name]("12020") for name in ("driver_cuda", "bytes")} == {"driver_cuda": "12.2", "bytes": 12020}
    assert {name for name in table.CONVERT if not any(name in told_by(row) for row in ALL)} == set()
