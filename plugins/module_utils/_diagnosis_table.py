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

from ansible_collections.llmops.inference.plugins.module_utils import _diagnosis_figures as figures
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis_types import HOST, RELEASE, Row

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

_AVAILABLE = r"avail mem=(?P<avail_mem_gb>\d+\.\d+) GB"
_OUT_OF_MEMORY = (
    r"CUDA out of memory|CUDA error: out of memory|torch\.(?:cuda\.)?OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED|Cuda failure (?:\d+ )?'out of memory'"
)
# First of the target model, then of a draft; each rank writes one.
_LOADED = r"Load weight end\..*avail mem=(?P<after_gb>\d+\.\d+) GB, mem usage=(?P<used_gb>-?\d+\.\d+) GB"
_FRACTION = r"\bmem_fraction_static['\"]?[=:] ?(?P<mem_fraction_static>0?\.\d+)"
_DEVICE = r"\bdevice['\"]?[=:] ?['\"](?P<device>\w+)"
_TP = r"\btp_size['\"]?[=:] ?(?P<tp_size>\d+)"
_CAPTURE = r"Capture .*graph"
_NO_NVML = "reboot, or unload and load the nvidia modules; in a container install the userspace of the host's driver; hold the driver packages"
_HOST_MEMORY = "mem_fraction_static hicache_size sglang_server_unit_options"
_MORE_MEMORY = (
    "give the host more memory or swap, lower what else runs there or the server's share (on CPUs mem_fraction_static), raise MemoryMax= if one is set"
)
_GRAPH_FLAGS = "mem_fraction_static cuda_graph_max_bs cuda_graph_max_bs_decode cuda_graph_bs disable_cuda_graph"


def _row(code: str, where: str, pattern: str, cause: str, hint: str, implicated: str = "", **more: t.Any) -> Row:  # noqa: PLR0917
    """Returns a row; patterns come as text."""
    for name in ("collect", "unless", "also", "frames", "until"):
        if name in more:
            more[name] = re.compile(more[name])
    more["details"] = tuple(re.compile(text) for text in more.get("details", ()))
    if "during" in more:
        begin, end = more["during"]
        more["during"] = (re.compile(begin, re.IGNORECASE), re.compile(end, re.IGNORECASE))
    return Row(code, where, re.compile(pattern), cause, hint, tuple(implicated.split()), **more)


def _holds_much(values: t.Mapping[str, t.Any]) -> bool:
    """A desktop's few hundred MiB do not make a GPU busy."""
    return bool(values["held_gb"] >= values["total_gb"] / 10)


KERNEL: tuple[Row, ...] = (
    _row(
        "memory_limit_hit",
        RELEASE,
        r"oom-kill:constraint=CONSTRAINT_MEMCG,.*\boom_memcg=(?P<group>[^,]+\.service),task_memcg=(?P=group)(?:/[^,]*)?,task=(?P<name>[^,]*),pid=(?P<pid>\d+)",
        "the unit's own memory limit was reached: the kernel ended its process {pid} ({name})",
        "raise MemoryMax= in sglang_server_unit_options, or lower the server's share (on CPUs mem_fraction_static; hicache_size)",
        _HOST_MEMORY,
    ),
    _row(
        "oom_killer",
        HOST,
        r"Killed process (?P<pid>\d+)[^(]*\((?P<name>[^)]*)\)(?:.*\banon-rss:(?P<resident_kb>\d+)kB)?|\btask=(?P<name_2>[^,]*),pid=(?P<pid_2>\d+)",
        "the kernel's OOM killer ended the server's process {pid} ({name})[, which held {resident_kb} kB]: the host's memory ran out",
        _MORE_MEMORY,
        _HOST_MEMORY,
    ),
)
_ARGUMENTS = (
    _row(
        "unknown_argument",
        RELEASE,
        r"error: unrecognized arguments: (?P<arguments>.*)",
        "this engine does not know the arguments {arguments}",
        "take them out of the inventory or install the engine that has them",
        "sglang_server_flags sglang_server_extra_args",
        derive=figures.single_flag,
        remedy="sglang_server_flags: {{flag}: null}",
    ),
    _row(
        "bad_argument",
        RELEASE,
        r"error: (?P<message>(?:argument|ambiguous option).*)",
        "the engine refused an argument: {message}",
        "correct the flag in the inventory",
        "sglang_server_flags",
    ),
    _row(
        "context_too_long",
        RELEASE,
        r"Error: (?:Warning: )?User-specified context_length \((?P<context_length>\d+)\) is greater than the derived context_length \((?P<maximum>\d+)\)",
        "context_length {context_length} is more than the model's own {maximum}",
        "set context_length to at most {maximum}; SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 allows more, with wrong answers beyond it unless RoPE is scaled",
        "context_length SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
        remedy="sglang_server_flags: {context_length: {maximum}}",
    ),
    _row(
        "encoder_urls",
        RELEASE,
        r"requires at least one encoder urls",
        "language_only needs encoder_urls: it belongs to encoder disaggregation",
        "take language_only away; to skip the vision part of a model use language_model_only where the engine has it",
        "language_only encoder_urls",
        remedy="sglang_server_flags: {language_only: null}",
    ),
    _row(
        "language_only_text_model",
        RELEASE,
        r"Model type (?P<architecture>\w+) is not supported for encoder disaggregation",
        "language_only is for models with an encoder, {architecture} has none",
        "take language_only away",
        "language_only encoder_only",
        details=(r"\b(?P<flag>language_only|encoder_only)['\"]?[=:] ?[Tt]rue",),
        remedy="sglang_server_flags: {{flag}: null}",
    ),
    _row(
        "tp_nodes",
        RELEASE,
        r"tp_size must be divisible by number of nodes",
        "tp_size[ {tp_size}] does not divide over the nodes",
        "make tp_size a multiple of nnodes: it counts the GPUs of all nodes",
        "tp_size nnodes",
        details=(_TP,),
    ),
    _row(
        "cpu_ranks",
        RELEASE,
        r"SGLANG_CPU_OMP_THREADS_BIND is not set.*?= (?P<ranks>\d+)\) should be smaller",
        "on CPUs the {ranks} ranks are more than the machine has NUMA nodes",
        "lower tp_size, or set SGLANG_CPU_OMP_THREADS_BIND",
        "tp_size dp_size pp_size SGLANG_CPU_OMP_THREADS_BIND",
    ),
)
_UNIT = (
    _row(
        "unit_step_failed",
        HOST,
        r"Failed at step (?P<step>\w+) spawning (?P<program>\S+): (?P<reason>.*)",
        "systemd could not start {program}: step {step} failed: {reason}[ ({detail})]",
        "NAMESPACE: a path of ReadWritePaths= or the like is missing; EXEC: the program is missing or not executable; USER, GROUP: create the account; "
        "CREDENTIALS: a file of LoadCredential= is missing",
        "sglang_server_unit_options sglang_server_user sglang_server_engine",
        details=(r"(?P<detail>(?:Failed to (?:set up|determine) [\w ]+|Changing to the requested working directory failed): .*)",),
    ),
    _row(
        "unit_not_startable",
        HOST,
        r"Failed to load environment files: (?P<reason>.*)|Failed to run '(?P<task>[\w-]+)' task: (?P<reason_2>.*)|has a bad unit file setting",
        "systemd could not start the unit[: {reason}]",
        "a file that the unit names is missing or wrong: `systemctl cat` and `systemd-analyze verify` show which; deploy again",
        "sglang_server_unit_options",
    ),
    _row(
        "oom_killer",
        HOST,
        r"killed by the OOM killer|systemd-oomd killed \d+ process|Failed with result 'oom-kill'|Result=oom-kill",
        "the kernel's OOM killer ended the server: its memory limit was reached or the host's memory ran out",
        _MORE_MEMORY,
        _HOST_MEMORY,
    ),
)
_DRIVER = (
    _row(
        "driver_library_mismatch",
        HOST,
        r"[Dd]river/library version mismatch|NVRM: API mismatch: the client has (?:the )?version (?P<library_2>[\d.]+\d)"
        r"|Error 803\b|system has unsupported display driver / cuda driver combination",
        "the NVIDIA userspace[ {library}] is not of the loaded kernel module's version[ {kernel_module}]",
        _NO_NVML,
        "cuda_driver_version",
        details=(
            r"NVML library version: (?P<library>[\d.]+)",
            r"NVRM version: .*Kernel Module.*?\s(?P<kernel_module>\d+\.\d+(?:\.\d+)?)\b",
            r"this kernel module has (?:the )?version (?P<kernel_module>[\d.]+\d)",
        ),
    ),
    _row(
        "fabricmanager_version_mismatch",
        HOST,
        r"driver interface version (?P<fm>[\d.]+\d) do(?:es)?n't match with driver version (?P<driver>[\d.]+\d)",
        "the fabric manager is of version {fm}, the driver of {driver}",
        "install the fabric manager of exactly {driver}",
    ),
    _row(
        "cuda_forward_compat_unsupported",
        HOST,
        r"Error 804\b|forward compatibility was attempted on non supported HW",
        "a newer libcuda than the driver's was loaded (error 804); this GPU does not take CUDA's forward compatibility",
        "remove cuda-compat from LD_LIBRARY_PATH and /etc/ld.so.conf.d, or upgrade the driver",
        "LD_LIBRARY_PATH",
    ),
    _row(
        "system_not_initialized",
        HOST,
        r"Error 802\b|system not yet initialized",
        "the NVSwitch fabric is not initialised (error 802)",
        "start nvidia-fabricmanager, of exactly the driver's version; after its start `nvidia-smi -q` says Fabric State: Completed",
    ),
    _row(
        "driver_too_old",
        HOST,
        r"NVIDIA driver on your system is too old(?: \(found version (?P<driver_cuda>\d+)\))?|CUDA driver version is insufficient"
        r"|PTX was compiled with an unsupported toolchain",
        "the NVIDIA driver is older than the engine's CUDA needs[: it goes up to CUDA {driver_cuda}]",
        "install a newer driver or an engine built for this one[ (CUDA {driver_cuda} or older)]",
        "sglang_server_engine",
        unless=r"\bdevice['\"]?[=:] ?['\"]cpu",
    ),
    _row(
        "cuda_unknown_error",
        HOST,
        r"CUDA unknown error",
        "CUDA cannot be initialised, most often since /dev/nvidia-uvm is missing or may not be opened",
        "look at /dev/nvidia*: `nvidia-modprobe -u -c 0`; in a container pass nvidia-uvm on; the unit must not set PrivateDevices=",
        "CUDA_VISIBLE_DEVICES sglang_server_unit_options",
        certainty="suspected",
    ),
    _row(
        "driver_missing",
        HOST,
        r"Error: libcuda\.so(?:\.1)?: cannot open shared object file|Found no NVIDIA driver on your system",
        "the NVIDIA driver's library libcuda.so.1 is not there",
        "install the driver, in a container its userspace, or use the cpu flavour",
    ),
    _row(
        "no_accelerator",
        HOST,
        r"No accelerator \(|No CUDA GPUs are available|no CUDA-capable device is detected",
        "the engine finds no GPU",
        "install the driver and give the service access to the device nodes, or use the cpu flavour",
        "device CUDA_VISIBLE_DEVICES sglang_server_unit_options",
    ),
    _row(
        "gpu_not_there",
        RELEASE,
        r"CUDA error: invalid device ordinal|Duplicate GPU detected ?: rank \d+ and rank \d+ both on CUDA device (?P<pci>\w+)",
        "there are fewer GPUs than ranks[: two of them got GPU {pci}]",
        "lower tp_size or base_gpu_id, or let CUDA_VISIBLE_DEVICES name as many different GPUs as there are ranks",
        "tp_size dp_size pp_size base_gpu_id gpu_id_step CUDA_VISIBLE_DEVICES",
    ),
    _row(
        "gpu_exclusive",
        HOST,
        r"CUDA-capable device\(s\) is/are busy or unavailable|all CUDA-capable devices are busy or unavailable",
        "a GPU lets nobody else in: another process holds it in an exclusive compute mode, or it is being reset",
        "look at `nvidia-smi -q -d COMPUTE`; set the mode to Default (`nvidia-smi -c 0`) or stop the other process",
        "CUDA_VISIBLE_DEVICES base_gpu_id",
    ),
)
_TOOLCHAIN = (
    _row(
        "cuda_home_malformed",
        RELEASE,
        r"(?:^|\s|[\"'])(?P<cuda_home>:/[^\s\"']*?)/bin/nvcc\b|CUDA_HOME=(?P<cuda_home_2>:\S+)",
        "CUDA_HOME has a leading ':' ({cuda_home})",
        "set CUDA_HOME to one directory, without ':', in the unit's environment",
        "CUDA_HOME sglang_server_env",
        derive=figures.clean_cuda_home,
        remedy="sglang_server_env: {CUDA_HOME: {directory}}",
    ),
    _row(
        "ninja_missing",
        HOST,
        r"No such file or directory: '(?:[^']*/)?ninja'|Ninja is required to load C\+\+ extensions|\bninja: (?:command )?not found",
        "kernels are to be compiled and ninja is missing",
        "install ninja into the engine's environment and put its bin directory on the unit's PATH",
        "sglang_server_engine PATH",
    ),
    _row(
        "nvcc_missing",
        HOST,
        r"Could not find nvcc(?: and default cuda_home='(?P<cuda_home>[^']*)')?|No such file or directory: '[^']*\bnvcc'|nvcc: (?:command )?not found"
        r"|CUDA_HOME environment variable is not set",
        "kernels are to be compiled and nvcc is missing[ ({cuda_home})]",
        "install the CUDA toolkit, or set CUDA_HOME to where it is",
        "CUDA_HOME sglang_server_env attention_backend sampling_backend",
    ),
    _row(
        "cuda_toolkit_too_old",
        HOST,
        r"nvcc fatal\s*: Unsupported gpu architecture '(?P<architecture>\w+)'|ptxas fatal\s*: Value '(?P<architecture_2>\w+)' is not defined",
        "the CUDA toolkit does not know this GPU's architecture {architecture}",
        "install a newer CUDA toolkit and let CUDA_HOME name it (TRITON_PTXAS_PATH for Triton)",
        "CUDA_HOME TRITON_PTXAS_PATH TORCH_CUDA_ARCH_LIST",
    ),
    _row(
        "cuda_toolkit_mismatch",
        HOST,
        r"detected CUDA version \((?P<toolkit>[\d.]+)\) mismatches the version that was used to compile\s*PyTorch \((?P<torch_cuda>[\d.]+)\)",
        "the CUDA toolkit is {toolkit}, torch was built for {torch_cuda}",
        "install the toolkit {torch_cuda} and let CUDA_HOME name it",
        "CUDA_HOME",
    ),
    _row(
        "cuda_headers_missing",
        HOST,
        r"fatal error: (?P<header>(?:cuda\w*|cublas\w*|curand\w*|cusparse\w*|cusolver\w*|cudnn\w*|nvrtc|nv/target|cooperative_groups|thrust/\w+|cub/\w+)\.?h?)"
        r": No such file|cannot find -l(?P<library>cuda\w*|nvrtc|cublas\w*)\b",
        "a kernel is to be compiled and a part of the CUDA toolkit is missing[: {header}][: {library}]",
        "install the whole CUDA toolkit (its -dev packages too) and let CUDA_HOME name it",
        "CUDA_HOME",
    ),
    _row(
        "python_headers_missing",
        HOST,
        r"fatal error: Python\.h: No such file or directory",
        "a kernel is to be compiled and Python's headers are missing",
        "install python3-dev for the Python version of the engine's environment (python3.12-dev for 3.12)",
        "sglang_server_engine",
    ),
    _row(
        "compiler_killed",
        HOST,
        r"Killed signal terminated program (?P<program>\w+)|nvcc error\s*: '(?P<program_2>\w+)' died due to signal 9",
        "the compiler ({program}) was killed while a kernel was built: most often the host's memory ran out",
        "give the host more memory, or set MAX_JOBS to a small number in sglang_server_env",
        "MAX_JOBS sglang_server_unit_options",
        certainty="suspected",
    ),
    _row(
        "c_compiler_missing",
        HOST,
        r"Failed to find C compiler|InvalidCxxCompiler|No working C\+\+ compiler found"
        r"|No such file or directory: '(?:[^']*/)?(?:gcc|g\+\+|cc|c\+\+|clang)'|\b(?:gcc|g\+\+|cc): (?:command )?not found",
        "a kernel is to be compiled and there is no C compiler",
        "install gcc and g++ (build-essential), or set CC",
        "CC CXX PATH",
    ),
    _row(
        "libnuma_missing",
        HOST,
        r"libnuma\.so\.1: cannot open shared object file",
        "the engine's kernels need libnuma.so.1, which is missing",
        "install libnuma1 (RedHat: numactl-libs)",
    ),
    _row(
        "nccl_library_mismatch",
        RELEASE,
        r"undefined symbol: (?P<symbol>nccl\w+)",
        "torch finds an NCCL library without {symbol}: not the one it was built with",
        "have one NCCL package only, the one torch asks for: install the engine anew into a clean environment; take foreign paths out of LD_LIBRARY_PATH",
        "sglang_server_engine LD_LIBRARY_PATH LD_PRELOAD",
    ),
    _row(
        "kernels_not_loadable",
        RELEASE,
        r"Could not load any common_ops library",
        "the engine's kernel package (sgl_kernel) cannot be loaded[: {library} is missing]",
        "install the engine built for this CUDA and GPU into a clean environment",
        "sglang_server_engine LD_LIBRARY_PATH",
        details=(r"Error: (?P<library>lib[\w.+-]+\.so[\d.]*): cannot open shared object file",),
    ),
    _row(
        "package_too_old",
        RELEASE,
        r"^Exception: (?P<package>[\w-]+) is installed with version (?P<version>[^,]+), which is less than the minimum required version (?P<needed>[\w.]+\w)"
        r"|^Exception: (?P<package_2>[\w-]+) with minimum required version (?P<needed_2>[\w.]+\w) is not installed",
        "the engine needs {package} {needed}[ and has {version}]",
        "install the engine anew into a clean environment",
        "sglang_server_engine",
    ),
    _row(
        "fp8_unsupported_arch",
        RELEASE,
        r"type fp8e4nv not supported in this architecture",
        "this GPU has no fp8e4nv (FP8 e4m3): Triton needs compute capability 8.9 for it",
        "use another quantisation (AWQ, GPTQ, INT8) or another kv_cache_dtype (auto, fp8_e5m2)",
        "quantization kv_cache_dtype",
    ),
    _row(
        "unsupported_arch",
        RELEASE,
        r"no kernel image is available for execution on the device",
        "the engine holds no kernel for this GPU's compute capability",
        "install an engine (torch, sgl_kernel, flashinfer) built for this compute capability, or choose another attention_backend or sampling_backend",
        "sglang_server_engine attention_backend sampling_backend moe_runner_backend",
    ),
    _row(
        "backend_unsupported_arch",
        RELEASE,
        r"(?<![\w-])(?P<backend>FlashAttention v\d|\w[\w-]*) [Bb]ackend requires (?P<needs>SM ?[>=<\d][^.]*)",
        "the backend {backend} requires {needs}, which this GPU is not",
        "set another attention_backend (flashinfer, triton)",
        "attention_backend prefill_attention_backend decode_attention_backend",
        details=(r"[Pp]lease use [`\'\"]?--attention-backend[ =](?P<instead>\w+)",),
        remedy="sglang_server_flags: {attention_backend: {instead}}",
    ),
    _row(
        "quantization_unsupported_arch",
        RELEASE,
        r"(?:quantization method (?P<method>\w+)|Quantization scheme).*not supported for.*"
        r"Min(?:imum)? capability: (?P<needs>\d+).*Current capability: (?P<has>\d+)",
        "the quantisation[ {method}] needs compute capability {needs}, this GPU has {has}",
        "use a model quantised otherwise (AWQ, GPTQ, INT8 on older GPUs)",
        "quantization sglang_server_model",
    ),
    _row(
        "gpu_too_old",
        RELEASE,
        r"SGLang only supports (?P<needs>sm\d+) and above",
        "the engine needs a GPU of compute capability {needs} or newer",
        "use a newer GPU, or an engine that still knows this one",
        "sglang_server_engine CUDA_VISIBLE_DEVICES",
    ),
    _row(
        "shared_memory_exceeded",
        RELEASE,
        r"out of resource: shared memory, Required: (?P<needs>\d+), Hardware limit: (?P<has>\d+)",
        "a kernel needs {needs} bytes of shared memory per block, this GPU has {has}",
        "set another attention_backend (flashinfer), or an engine that knows this GPU",
        "attention_backend sglang_server_engine",
    ),
)
# Once the ranks have found each other it was slow and no more.
_PROGRESS = r"Init (?:torch distributed|parallel) ends|Load weight begin|The server is fired up"
_NOT_FOUND = (
    r"client socket has (?:timed out after (?:(?P<timeout_s>\d+)s|\d+ms) while trying to connect to|failed to connect to any network address of)"
    r" \(?(?P<peer>[^\s,)]+)"
)
_RENDEZVOUS = (
    _row(
        "address_not_local",
        RELEASE,
        _NOT_FOUND,
        "the ranks cannot reach {peer}, which is to be this host's own address",
        "correct sglang_server_host (`ip -br addr` lists the host's addresses; 0.0.0.0 is all of them), or dist_init_addr",
        "sglang_server_host host dist_init_addr",
        details=(r"\bnnodes['\"]?[=:] ?(?P<nnodes>\d+)",),
        check=lambda values: values.get("nnodes") == 1,
        until=_PROGRESS,
        certainty="suspected",
    ),
    _row(
        "nodes_missing",
        HOST,
        rf"Timed out after (?P<timeout_s_2>\d+) seconds waiting for clients\. (?P<joined>\d+/\d+) clients joined|{_NOT_FOUND}",
        "the ranks did not find each other[ within {timeout_s} s][: only {joined} did][: no answer from {peer}]",
        "start all nodes; check dist_init_addr, nnodes, node_rank and the firewall between the nodes",
        "dist_init_addr nnodes node_rank dist_timeout",
        until=_PROGRESS,
    ),
)
_COMMUNICATION = (
    _row(
        "shm_denied",
        HOST,
        r"NCCL WARN .*shm_open failed ?: Permission denied|Permission denied: '/dev/shm",
        "the service may not use /dev/shm",
        "give it back its mode 1777; the unit must not hide it or make it read-only",
        "sglang_server_unit_options NCCL_SHM_DISABLE",
    ),
    _row(
        "shm_too_small",
        HOST,
        r"failed to extend /dev/shm/nccl-\S+ to (?P<bytes>\d+) bytes|creating shared memory segment (?:/dev/shm/)?nccl-\S+ \(size (?P<bytes_2>\d+)\)"
        r"|insufficient shared memory \(shm\)|No space left on device: '/(?:psm|sem|torch)_",
        "/dev/shm is too small[: NCCL asked for {bytes} bytes]",
        "enlarge /dev/shm: container --shm-size, LXC a larger tmpfs, host `mount -o remount,size=` (not a network fault)",
        "NCCL_SHM_DISABLE",
    ),
    _row(
        "nccl_interface",
        RELEASE,
        r"no socket interface found|Unable to find (?:address for|interface): ?(?P<interface>\S+)|ifname (?P<interface_2>\S+) not found",
        "NCCL or Gloo finds no network interface[ {interface}]",
        "set NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME to an interface of this host (`ip -br addr`), or drop them",
        "NCCL_SOCKET_IFNAME GLOO_SOCKET_IFNAME sglang_server_env",
        remedy="sglang_server_env: {NCCL_SOCKET_IFNAME: null, GLOO_SOCKET_IFNAME: null}",
    ),
    *_RENDEZVOUS,
    _row(
        "nccl_connection",
        HOST,
        r"NCCL WARN .*(?:Connect to (?P<peer>\S+) failed|Call to connect .*failed|Connection refused|Connection timed out|No route to host)",
        "NCCL cannot reach a peer[ {peer}]",
        "open the ports between the nodes; set NCCL_SOCKET_IFNAME to the interface that reaches the others",
        "NCCL_SOCKET_IFNAME dist_init_addr",
    ),
    _row(
        "gloo_connection",
        HOST,
        r"Gloo connectFullMesh failed|\[\S*gloo/transport/tcp/\S+\].*(?:Connect timeout|Connection refused|timed out connecting|no error)",
        "the ranks' Gloo connections cannot be made",
        "set GLOO_SOCKET_IFNAME to an interface that the other nodes reach; the host's name must resolve to such an address",
        "GLOO_SOCKET_IFNAME SGLANG_HOST_IP dist_init_addr",
    ),
    _row(
        "rdma_memory_limit",
        RELEASE,
        r"NCCL WARN .*(?:ibv_reg_mr|ibv_create_\w+).*Cannot allocate memory",
        "the service may not lock enough memory for RDMA",
        "set sglang_server_limit_memlock to infinity",
        "sglang_server_limit_memlock",
        remedy="sglang_server_limit_memlock: infinity",
    ),
    _row(
        "rdma_failed",
        HOST,
        r"NCCL WARN .*(?:NET/IB ?:|ibv_\w+ failed|Call to ibv_\w+)(?P<error>.*)",
        "NCCL's RDMA transfers failed[: {error}]",
        "check NCCL_IB_HCA and NCCL_IB_GID_INDEX, or use sockets (NCCL_IB_DISABLE=1)",
        "NCCL_IB_HCA NCCL_IB_GID_INDEX NCCL_IB_DISABLE",
        certainty="suspected",
    ),
    _row(
        "nccl_p2p",
        HOST,
        r"NCCL WARN .*(?:[Cc]ould not enable P2P|peer access is not supported)",
        "NCCL cannot use peer-to-peer transfers between GPUs",
        "set NCCL_P2P_DISABLE=1; look for ACS or an IOMMU on the host",
        "NCCL_P2P_DISABLE NCCL_P2P_LEVEL disable_custom_all_reduce",
        certainty="suspected",
        remedy="sglang_server_env: {NCCL_P2P_DISABLE: 1}",
    ),
)
_FILES = (
    _row(
        "disk_full",
        HOST,
        r"No space left on device|Disk quota exceeded",
        "the disk is full[: {path} needs {needed_mb} MB and has {free_mb} MB free]",
        "free space, or move HF_HOME to a larger file system",
        "HF_HOME sglang_server_model",
        details=(
            r"expected file size is: (?P<needed_mb>[\d.]+) MB",
            r"target location (?P<path>\S+?)(?:/hub/models--\S+)? only has (?P<free_mb>[\d.]+) MB",
        ),
        raised=True,
    ),
    _row(
        "disk_error",
        HOST,
        r"\[Errno (?:5|116)\] (?P<error>Input/output error|Stale file handle)(?:: '(?P<path>[^']*)')?",
        "a file system failed[ at {path}]: {error}",
        "look at the kernel log and at the mount; mount a network file system anew",
        "sglang_server_model HF_HOME",
        raised=True,
    ),
    _row(
        "cache_not_writable",
        HOST,
        r"PermissionError.*Permission denied: '(?P<path>[^']*(?:cache|\.triton|\.config|inductor)[^']*)'",
        "the service may not write its cache at {path}",
        "set HOME and the cache variables to a writable directory of the service user",
        "HOME HF_HOME TRITON_CACHE_DIR FLASHINFER_WORKSPACE_BASE TORCHINDUCTOR_CACHE_DIR sglang_server_env",
        raised=True,
    ),
    _row(
        "cache_read_only",
        HOST,
        r"\[Errno 30\] Read-only file system: '(?P<path>[^']*)'",
        "the service's sandbox makes {path} read-only",
        "point the cache variables into CacheDirectory, or add the path to ReadWritePaths",
        "HOME HF_HOME TRITON_CACHE_DIR FLASHINFER_WORKSPACE_BASE sglang_server_unit_options",
        raised=True,
    ),
    _row(
        "mdwe",
        RELEASE,
        r"could not create a primitive|failed to map segment from shared object|cannot enable executable stack",
        "generated code could not be made executable[, nor {library}]",
        "MemoryDenyWriteExecute must stay off for this server (MemoryDenyWriteExecute=no), and neither NoExecPaths= nor a noexec mount may cover its engine "
        "and its caches",
        "sglang_server_unit_options",
        details=(r"(?P<library>[^\s/:]{1,100}\.so[\w.]{0,20}): failed to map segment",),
        certainty="suspected",
    ),
    _row(
        "no_temporary_directory",
        HOST,
        r"No usable temporary directory",
        "the service finds no writable temporary directory",
        "keep PrivateTmp on or set TMPDIR; free space in /tmp",
        "TMPDIR sglang_server_unit_options",
        raised=True,
    ),
    _row(
        "too_many_open_files",
        RELEASE,
        r"\[Errno 24\] Too many open files",
        "the service may not open more files",
        "raise sglang_server_limit_nofile",
        "sglang_server_limit_nofile",
        remedy="sglang_server_limit_nofile: 1048576",
        raised=True,
    ),
    _row(
        "file_size_limit",
        RELEASE,
        r"status=25/XFSZ|exit code:? -25\b|\[Errno 27\] File too large",
        "a file grew beyond what the service may write",
        "raise LimitFSIZE= in sglang_server_unit_options",
        "sglang_server_unit_options",
        raised=True,
    ),
    _row(
        "too_many_threads",
        HOST,
        r"can't start new thread|pthread_create failed.*Resource temporarily unavailable|^Resource temporarily unavailable \(src/thread\.cpp",
        "the service may not start more threads",
        "raise TasksMax= of the unit (in a container the pids limit of the host)",
        "sglang_server_unit_options OMP_NUM_THREADS",
    ),
)
_NETWORK = (
    _row(
        "port_in_use",
        HOST,
        r"\[Errno 98\].*?(?:\('[^']*', (?P<port>\d+)\).*)?address already in use|Port is already in use\."
        r"|\b[a-z_]{3,30}_port at (?P<port_4>\d+) is not available in"
        r"|bootstrap_port (?P<port_2>\d+) is already in use"
        r"|port: (?P<port_3>\d+), .*EADDRINUSE",
        "another process holds the server's port[ {port}]",
        "stop that process or set another sglang_server_port (of ranks: dist_init_addr, nccl_port)",
        "sglang_server_port nccl_port dist_init_addr",
    ),
    _row(
        "address_not_local",
        RELEASE,
        r"\[Errno 99\].*?(?:\('(?P<address>[^']*)', \d+\).*)?[Cc]annot assign requested address",
        "the address[ {address}] that the server is to listen on is none of this host's",
        "correct sglang_server_host (`ip -br addr` lists the host's addresses; 0.0.0.0 is all of them), or dist_init_addr",
        "sglang_server_host host dist_init_addr",
    ),
    _row(
        "port_not_allowed",
        RELEASE,
        r"\[Errno 13\] error while attempting to bind on address \('[^']*', (?P<port>\d+)\)",
        "the service may not listen on port {port}: ports below 1024 are for root",
        "set sglang_server_port to 1024 or more, or AmbientCapabilities=CAP_NET_BIND_SERVICE",
        "sglang_server_port port",
    ),
    _row(
        "address_family_denied",
        RELEASE,
        r"Address family not supported by protocol",
        "the service may not open sockets of a kind that it needs",
        "let RestrictAddressFamilies= hold AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK; without IPv6 on the host use IPv4 addresses",
        "sglang_server_unit_options sglang_server_host",
        raised=True,
    ),
    _row(
        "proxy_intercepts_localhost",
        RELEASE,
        r"https?://(?P<proxy>\S+:\d+) \"GET https?://(?:0\.0\.0\.0|127\.0\.0\.1|localhost)",
        "the server's own warm-up request went through the proxy {proxy}",
        "add 127.0.0.1, 0.0.0.0 and localhost to no_proxy and NO_PROXY of the unit",
        "http_proxy https_proxy no_proxy NO_PROXY sglang_server_env",
        collect=r"(?:\"GET https?://\S+ HTTP/1\.[01]\" |<Response \[)(?P<http>\d{3})",
    ),
    _row(
        "router_workers_unhealthy",
        HOST,
        r"Timeout (?P<timeout_s>\d+)s waiting for workers to become healthy",
        "the router gave up after {timeout_s} s: its worker[ {worker}] did not become healthy",
        "diagnose the worker[ at {worker}]; start it before the router; raise the router's worker startup timeout",
        "worker_startup_timeout_secs worker_urls",
        details=(r"Worker (?P<worker>https?://\S+) health check is pending",),
    ),
)
_MODEL = (
    _row(
        "hf_gated",
        RELEASE,
        r"GatedRepoError|Cannot access gated repo|Access to model (?P<repo>\S+) is restricted",
        "the model[ {repo}] is gated and this host may not download it",
        "accept its licence and set HF_TOKEN for the service user (sglang_server_secret_env)",
        "HF_TOKEN sglang_server_secret_env sglang_server_model",
        details=(r"Access to model (?P<repo>\S+) is restricted", r"gated repo for url https?://[^/]+/(?P<repo>[^/\s]+/[^/\s]+)/resolve/"),
    ),
    _row(
        "hf_offline_no_cache",
        RELEASE,
        r"outgoing traffic has been disabled|OfflineModeIsEnabled|Cannot reach \S+: offline mode is enabled",
        "the model is not in the cache and downloads are switched off",
        "download the model before, or unset HF_HUB_OFFLINE; check that HF_HOME of the service user is where it was downloaded to",
        "HF_HUB_OFFLINE HF_HOME sglang_server_model",
    ),
    _row(
        "hf_unreachable",
        HOST,
        r"We couldn't connect to 'https?://"
        r"|^(?:[\w.]+\.)?(?:Connect\w*|Proxy|SSL|MaxRetry|LocalEntryNotFound)(?:Error|Timeout)\b.*(?:huggingface|/resolve/)",
        "the model hub cannot be reached",
        "download the model before and set sglang_server_model to its path, or open the way (https_proxy, DNS)",
        "HF_ENDPOINT https_proxy sglang_server_model",
    ),
    _row(
        "model_not_on_hub",
        RELEASE,
        r"RepositoryNotFoundError|is not a local folder and is not a valid model identifier|RevisionNotFoundError",
        "the model hub has no such model or revision, or hides it without a token",
        "correct sglang_server_model; for a private one set HF_TOKEN",
        "sglang_server_model revision HF_TOKEN",
    ),
    _row(
        "hf_token_refused",
        RELEASE,
        r"Invalid user token|Invalid credentials in Authorization header|Invalid username or password\.",
        "the model hub refuses the token",
        "correct HF_TOKEN of the service user (sglang_server_secret_env)",
        "HF_TOKEN sglang_server_secret_env",
    ),
    _row(
        "model_file_corrupt",
        RELEASE,
        r"SafetensorError.*(?:[Hh]eader|deserializ|incomplete|buffer)|UnpicklingError: invalid load key|PytorchStreamReader failed"
        r"|the config file at '(?P<path>[^']*)' is not a valid JSON file|Consistency check failed: file should be of size",
        "a file of the model[ ({path})] is truncated or is not what it should be",
        "download the model again; check for Git LFS pointer files (small text files in place of weights)",
        "sglang_server_model",
    ),
    _row(
        "model_incomplete",
        RELEASE,
        r"references (?P<count>\d+) shard file\(s\) missing from (?P<path>\S+)"
        r"|Error no file named .* found in directory (?P<path_2>\S+\w)",
        "files of the model are missing[ in {path}][ ({count})]",
        "download the model again, or to its end",
        "sglang_server_model load_format",
    ),
    _row(
        "weights_mismatch",
        RELEASE,
        r"Attempted to load weight \((?P<loaded>[^)]*\))\) into parameter \((?P<wanted>[^)]*\))\)|size mismatch for (?P<name>[\w.]+): copying a param"
        r"|Some weights are not initialized from checkpoints: (?P<name_2>.*)",
        "the weights do not fit the model's configuration[: {name}][: {loaded} for {wanted}]",
        "take config.json and weights from the same revision; check quantization and the draft model, which must be made for this model",
        "sglang_server_model quantization speculative_draft_model_path json_model_override_args load_format",
    ),
    _row(
        "lora_not_loadable",
        RELEASE,
        r"Failed to load LoRA adapter (?P<name>[^\s:]+): (?P<reason>.*)",
        "the LoRA adapter {name} cannot be loaded: {reason}",
        "correct lora_paths; the service's user must be able to read the adapter, and it must be made for this model",
        "lora_paths enable_lora max_lora_rank lora_target_modules",
    ),
    _row(
        "tokenizer_missing",
        RELEASE,
        r"Couldn't instantiate the backend tokenizer|Can't load tokenizer for '(?P<path>[^']*)'|Unable to load vocabulary from file"
        r"|(?:No such file or directory|does not appear to have).*tokenizer",
        "the engine finds no usable tokenizer[ in {path}]",
        "correct tokenizer_path, or complete the model's files (tokenizer.json, tokenizer_config.json)",
        "tokenizer_path sglang_server_model",
        details=(r"tokenizer_path['\"]?[=:] ?['\"](?P<path>[^'\"]+)",),
    ),
    _row(
        "model_missing",
        RELEASE,
        r"Repo id must be in the form .*: '(?P<path>[^']*)'|does not appear to have (?:a file|files) named .*"
        r"|Unrecognized model in (?P<path_5>\S+?)\. Should have a `model_type` key"
        r"|No such file or directory: '(?P<path_2>[^']*)/config\.json'"
        r"|Cannot find any model weights with `(?P<path_3>[^`]*)`|Incorrect path_or_model_id: '(?P<path_4>[^']*)'",
        "there is no model that the service can read[ in {path}]",
        "correct sglang_server_model, or the flag that names this path, or download the model; the service's user must be able to read it",
        "sglang_server_model tokenizer_path speculative_draft_model_path",
    ),
    _row(
        "architecture_unknown",
        RELEASE,
        r"Model architectures (?P<architecture>\[[^\]]*\]) are not supported|Cannot find model module\. '(?P<architecture_3>[^']*)' is not a registered model"
        r"|has model type `(?P<architecture_2>[^`]*)` but Transformers does not recognize this architecture",
        "this engine does not know the model's architecture {architecture}",
        "install a newer engine, or choose a model that it knows",
        "sglang_server_engine sglang_server_model",
    ),
    _row(
        "chat_template_missing",
        RELEASE,
        r"Chat template (?P<path>\S+) is not a built-in template name or a valid chat template file path",
        "there is no chat template {path}",
        "correct chat_template: a file that the service can read, or a name that the engine knows",
        "chat_template",
    ),
    _row(
        "remote_code_needed",
        RELEASE,
        r"requires you to execute (?:custom code|the \w+ file)|contains custom code which must be executed",
        "the model brings its own code, which the engine may not run",
        "set trust_remote_code if you trust it",
        "trust_remote_code",
        remedy="sglang_server_flags: {trust_remote_code: true}",
    ),
    _row(
        "quantization_mismatch",
        RELEASE,
        r"Quantization method specified in the model config \((?P<model>[^)]*)\)|Cannot find the config file for (?P<asked>\w+)",
        "quantization[ {asked}] does not fit the model[, which is quantised as {model}]",
        "take quantization away: the engine reads it from the model",
        "quantization",
        remedy="sglang_server_flags: {quantization: null}",
    ),
    _row(
        "quantized_blocks_tp",
        RELEASE,
        r"(?P<size>\d+) is not divisible by weight quantization block_\w = (?P<block>\d+)",
        "split over tp_size[ {tp_size}] a weight is {size} wide, which its quantisation blocks of {block} do not divide",
        "use a smaller tp_size, for experts ep_size, or a model quantised otherwise",
        "tp_size ep_size quantization",
        details=(_TP,),
    ),
    _row(
        "heads_tp",
        RELEASE,
        r"assert \S*heads % \S*tp_size == 0|assert \S*tp_size % \S*heads == 0|AssertionError: (?P<size>\d+) is not divisible by (?P<parts>\d+)",
        "the model's heads or sizes[ ({size})] do not divide by tp_size[ {tp_size}]",
        "choose a tp_size that divides the model's attention heads",
        "tp_size",
        details=(_TP,),
    ),
)
_MEMORY = (
    _row(
        "gpu_busy",
        HOST,
        r"GPU (?P<gpu>\d+) has a total capac\w+ of (?P<total_gb>[\d.]+) GiB .*?Process (?P<pid>\d+) has (?P<held_gb>[\d.]+) GiB memory in use",
        "GPU {gpu} is busy: process {pid} holds {held_gb} of its {total_gb} GiB",
        "stop that process (`ps {pid}`), or give this server other GPUs",
        "CUDA_VISIBLE_DEVICES base_gpu_id mem_fraction_static",
        also=_OUT_OF_MEMORY,
        check=_holds_much,
    ),
    _row(
        "gpu_busy",
        HOST,
        r"The memory capacity is unbalanced",
        "one of the GPUs has much less free memory than the others[ ({avail_mem_gb} GB)]: another process holds it",
        "look who does (`nvidia-smi`) and stop it, or give this server other GPUs",
        "CUDA_VISIBLE_DEVICES base_gpu_id mem_fraction_static",
        details=(r"unbalanced.*(?:min_per_gpu_memory|pre_model_load_memory|min_available_device_memory)=(?P<avail_mem_gb>\d+\.\d+)",),
        also=rf"Error: The memory capacity is unbalanced|Not enough (?:GPU )?memory|leave no GPU memory|{_OUT_OF_MEMORY}",
        certainty="suspected",
    ),
    _row(
        "kv_pool_too_small",
        RELEASE,
        r"leave no GPU memory for the KV cache under --mem-fraction-static=(?P<mem_fraction_static>\d+\.\d+)\. Raise .*? above (?P<minimum>\d+\.\d+)"
        r"|Not enough memory\. Please try to increase --mem-fraction-static(?:.*mem_fraction_static=(?P<mem_fraction_static_2>\d+\.\d+))?"
        r"|leave no GPU memory for the KV cache",
        "the weights leave no memory for the KV cache[ under mem_fraction_static {mem_fraction_static}][ ({avail_mem_gb} GB left after them)]",
        "raise mem_fraction_static[ above {mem_fraction_static}][ (at least {minimum})], use more GPUs (tp_size), or a smaller or quantised model",
        "mem_fraction_static tp_size context_length quantization kv_cache_dtype",
        details=(_FRACTION, _TP, _DEVICE, rf"Load weight end.*{_AVAILABLE}"),
        collect=_LOADED,
        derive=figures.higher_fraction,
        remedy="sglang_server_flags: {mem_fraction_static: {fraction}}",
    ),
    _row(
        "kv_pool_too_small",
        RELEASE,
        r"AssertionError: max_running_request is zero",
        "the KV cache does not hold one request[: max_total_tokens is {max_total_tokens}]",
        "raise max_total_tokens, or mem_fraction_static",
        "max_total_tokens mem_fraction_static max_running_requests context_length",
        details=(r"\bmax_total_tokens['\"]?[=:] ?(?P<max_total_tokens>\d+)",),
    ),
    _row(
        "state_cache_too_small",
        RELEASE,
        r"Not enough GPU memory for hybrid|state cache is too small to serve any requests",
        "the weights leave no memory for the state cache of the model's linear attention",
        "raise mem_fraction_static, reduce max_running_requests, or use more GPUs (tp_size)",
        "mem_fraction_static max_running_requests max_mamba_cache_size speculative_num_draft_tokens tp_size",
    ),
    _row(
        "cuda_graph_oom",
        RELEASE,
        rf"Capture (?:cuda|CUDA) graph failed:.*(?:out of memory|{_OUT_OF_MEMORY})",
        "memory ran out while CUDA graphs were captured[ ({avail_mem_gb} GB were free before)]",
        "lower mem_fraction_static or the largest captured batch size (cuda_graph_max_bs, newer engines cuda_graph_max_bs_decode)",
        _GRAPH_FLAGS,
        details=(_FRACTION, _TP, _DEVICE, rf"(?:{_CAPTURE} begin|Memory pool end).*{_AVAILABLE}"),
        facts={"phase": "cuda graph capture"},
        collect=_LOADED,
        derive=figures.lower_fraction,
        remedy="sglang_server_flags: {mem_fraction_static: {fraction}}",
    ),
    _row(
        "cuda_graph_oom",
        RELEASE,
        _OUT_OF_MEMORY,
        "memory ran out while CUDA graphs were captured[ ({avail_mem_gb} GB were free before)]",
        "lower mem_fraction_static or the largest captured batch size (cuda_graph_max_bs, newer engines cuda_graph_max_bs_decode)",
        _GRAPH_FLAGS,
        details=(_FRACTION, _TP, _DEVICE, rf"(?:{_CAPTURE} begin|Memory pool end).*{_AVAILABLE}"),
        during=(rf"{_CAPTURE} begin", rf"{_CAPTURE} end|max_total_num_tokens="),
        facts={"phase": "cuda graph capture"},
        collect=_LOADED,
        derive=figures.lower_fraction,
        remedy="sglang_server_flags: {mem_fraction_static: {fraction}}",
    ),
    _row(
        "batch_out_of_memory",
        RELEASE,
        r"(?P<phase>Prefill|Decode) out of memory\. Try to lower your batch size",
        "{phase} found no room in the KV cache",
        "lower max_running_requests or chunked_prefill_size",
        "max_running_requests chunked_prefill_size max_total_tokens mem_fraction_static",
    ),
    _row(
        "gpu_memory",
        RELEASE,
        _OUT_OF_MEMORY,
        "GPU memory ran out[ ({avail_mem_gb} GB were free at last)]",
        "lower mem_fraction_static, free the GPU, or use more GPUs",
        "mem_fraction_static tp_size chunked_prefill_size max_running_requests quantization",
        details=(_AVAILABLE,),
    ),
    _row(
        "host_cache_too_large",
        RELEASE,
        r"Not enough host memory (?:available|for \S.*?)\. ?Requesting (?P<needed_gb>[\d.]+\d) GB but only have (?P<free_gb>[\d.]+\d) GB free"
        r"|No host memory is left for HiCache",
        "the host's memory does not hold the hierarchical cache[: {needed_gb} GB wanted, {free_gb} GB free]",
        "lower hicache_size or hicache_ratio (each rank takes as much), or give the host more memory",
        "hicache_size hicache_ratio enable_hierarchical_cache",
    ),
    _row(
        "host_memory",
        HOST,
        r"can't allocate memory: you tried to allocate|\[Errno 12\] Cannot allocate memory|Pinned host memory allocation of"
        r"|^(?:numpy\S*\.)?_?(?:Array)?MemoryError\b",
        "the host's memory ran out",
        "give the host more memory, or lower what else runs there",
        "hicache_size hicache_ratio cpu_offload_gb mem_fraction_static",
    ),
    _row(
        "custom_all_reduce_failed",
        RELEASE,
        r"Capture (?:cuda|CUDA) graph failed: (?P<reason>.+)",
        "CUDA graphs could not be captured: the engine's own all-reduce failed ({reason})",
        "set disable_custom_all_reduce: all-reduce then goes through NCCL, which is a little slower",
        "disable_custom_all_reduce",
        also=r"^File \".*/custom_all_reduce\w*\.py\"",
        certainty="suspected",
        remedy="sglang_server_flags: {disable_custom_all_reduce: true}",
    ),
    _row(
        "graph_capture_failed",
        RELEASE,
        r"Capture (?:cuda|CUDA) graph failed: (?P<reason>.+)|Fail when using backend: (?P<backend>\S+) for prefill runner",
        "CUDA graphs could not be captured[ with the backend {backend} for prefill][: {reason}]",
        "read the lines before it; another backend or no graphs for that phase (cuda_graph_backend_prefill, cuda_graph_backend_decode) avoids it",
        "cuda_graph_backend_prefill cuda_graph_backend_decode disable_cuda_graph",
    ),
)
ROWS: tuple[Row, ...] = (*_ARGUMENTS, *_UNIT, *_DRIVER, *_TOOLCHAIN, *_COMMUNICATION, *_FILES, *_NETWORK, *_MODEL, *_MEMORY)

_ARGUMENT_CODE = r"/(?:server_args|server_args_config_parser|launch_server|arg_groups/\w+|configs/model_config)\.py\", line \d+, in \S+$"
_MODEL_CODE = r"/(?:transformers|tokenizers|huggingface_hub|hf_transformers|model_loader)/[\w/]+\.py\", line \d+, in \S+$"
EXCEPTIONS: tuple[Row, ...] = (
    _row(
        "arguments_refused",
        RELEASE,
        r"^(?:\w+\.)*(?:ValueError|AssertionError|NotImplementedError|RuntimeError|JSONDecodeError): (?P<message>.+)",
        "the engine refused its arguments: {message}",
        "correct the flags in the inventory; what the engine makes of them shows the preflight",
        "sglang_server_flags",
        frames=_ARGUMENT_CODE,
    ),
    _row(
        "model_file_corrupt",
        RELEASE,
        r"JSONDecodeError: (?P<reason>.+)",
        "a JSON file of the model is truncated or is not what it should be ({reason})",
        "download the model again; check for Git LFS pointer files (small text files in place of weights)",
        "sglang_server_model tokenizer_path",
        frames=_MODEL_CODE,
        certainty="suspected",
    ),
    _row(
        "heads_tp",
        RELEASE,
        r"start \(\d+\) \+ length \(\d+\) exceeds dimension size \((?P<size>\d+)\)",
        "the model's heads or sizes[ ({size})] do not divide by tp_size[ {tp_size}]",
        "choose a tp_size that divides the model's attention heads",
        "tp_size sglang_server_model",
        details=(_TP,),
        frames=r"\bweight_loader\w*$",
        certainty="suspected",
    ),
    _row(
        "weights_mismatch",
        RELEASE,
        r"^KeyError: '(?P<name>(?:model|layers|lm_head|language_model|visual|transformer|backbone|mtp)\.[\w.]+)'",
        "the weights do not fit the model's configuration: {name}",
        "take config.json and weights from the same revision; check quantization and the draft model, which must be made for this model",
        "sglang_server_model quantization speculative_draft_model_path json_model_override_args load_format",
        certainty="suspected",
    ),
    _row(
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
    _row(
        "kernel_build_failed",
        HOST,
        r"Ninja build failed|Error building extension '(?P<module>[^']*)'"
        r"|CalledProcessError: Command '\[?'?(?:\S*/)?(?P<module_2>gcc|g\+\+|clang|cc|nvcc|ninja)\b",
        "a kernel could not be compiled[: {module}]",
        "read the compiler's lines before it; check compiler, CUDA toolkit and Python headers",
        "sglang_server_engine CUDA_HOME attention_backend",
        certainty="suspected",
    ),
    _row(
        "module_missing",
        RELEASE,
        r"^(?:ModuleNotFoundError|ImportError): No module named '(?P<module>[^']*)'",
        "the engine needs the Python module {module}, which its environment does not have",
        "install the engine anew with what this feature needs, or take the flag away that needs it; the lines before it in the journal show which",
        "sglang_server_engine sglang_server_flags",
    ),
    _row(
        "package_mismatch",
        RELEASE,
        r"^AttributeError: module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)'"
        r"|^ImportError: cannot import name '(?P<name_2>[^']+)' from (?:partially initialized module )?'(?P<module_2>[\w.]+)'",
        "the Python module {module} is not what the engine expects: it has no {name}",
        "install the engine anew into a clean environment; the service must be able to read all of it",
        "sglang_server_engine PYTHONPATH",
        certainty="suspected",
    ),
    _row(
        "library_missing",
        HOST,
        r"^(?:ImportError|OSError): (?P<library>lib[\w.+-]+\.so[\d.]*): cannot open shared object file(?:: (?P<reason>[\w ]+))?",
        "the engine needs the library {library}, which cannot be opened[: {reason}]",
        "install the system package that has it, or the engine built for this CUDA",
        "sglang_server_engine LD_LIBRARY_PATH",
    ),
    _row(
        "library_mismatch",
        RELEASE,
        r"^(?:ImportError|OSError): .*undefined symbol: (?P<symbol>\S+)",
        "a compiled package of the engine was built for another torch or CUDA ({symbol} is missing)",
        "install the engine anew into a clean environment",
        "sglang_server_engine LD_LIBRARY_PATH",
    ),
    _row(
        "tls_not_usable",
        RELEASE,
        r"^(?:ssl\.)?(?:SSLError: (?P<reason>.*)|(?:PermissionError|FileNotFoundError): \[Errno \d+\] (?P<reason_2>[\w ]+)$)",
        "the TLS key or certificate cannot be used: {reason}",
        "let the service user read the files of ssl_keyfile and ssl_certfile; both are PEM, and the key belongs to the certificate",
        "ssl_keyfile ssl_certfile ssl_ca_certs ssl_keyfile_password",
        frames=r"\bcreate_ssl_context$",
    ),
    _row(
        "permission_denied",
        HOST,
        r"^[\w.]+Error: .*?\[Errno (?:1|13)\] [^:]*(?:: '(?P<path>[^']*)')?",
        "the service lacks a permission[: it may not use {path}]",
        "give the service user access, or add the path to the unit's ReadWritePaths; without a path look at SystemCallFilter= and the lines before it",
        "sglang_server_user sglang_server_unit_options",
    ),
    _row(
        "too_many_threads",
        HOST,
        r"^(?:RuntimeError|BlockingIOError|OSError): (?:\[Errno 11\] )?Resource temporarily unavailable",
        "the service may not start more threads",
        "raise TasksMax= and LimitNPROC= of the unit (in a container the pids limit of the host); a low LimitAS= does the same",
        "sglang_server_unit_options OMP_NUM_THREADS",
        certainty="suspected",
    ),
    _row(
        "cuda_fault",
        "",
        r"CUDA error: (?P<error>an illegal (?:memory access|instruction) was encountered|misaligned address|unspecified launch failure"
        r"|device-side assert triggered|uncorrectable (?:ECC|NVLink) error|hardware stack error|the launch timed out and was terminated)",
        "a kernel failed on the GPU: {error}",
        "look for Xid lines in the kernel log (`journalctl -k --grep=NVRM`): with one the GPU is in doubt, without one the engine",
        "sglang_server_engine attention_backend",
        certainty="suspected",
    ),
    _row(
        "nccl_error",
        HOST,
        r"^(?:torch\.distributed\.)?DistBackendError: NCCL error|NCCL error: ",
        "communication between the GPUs failed[: {last_error}]",
        "run once with NCCL_DEBUG=INFO in sglang_server_env and read the lines with NCCL WARN",
        "NCCL_DEBUG sglang_server_env",
        details=(r"NCCL WARN (?P<last_error>.+)",),
        certainty="suspected",
    ),
)

LATE: tuple[Row, ...] = (
    _row(
        "unit_watchdog",
        RELEASE,
        r"Watchdog timeout \(limit (?P<limit>[^)]*)\)|Result=watchdog",
        "systemd's watchdog ended the server[ after {limit}]: the engine does not answer it",
        "take WatchdogSec= out of sglang_server_unit_options",
        "sglang_server_unit_options",
        remedy="sglang_server_unit_options: {WatchdogSec: 0}",
    ),
    _row(
        "system_call_denied",
        RELEASE,
        r"status=31/SYS|exit code:? -31\b|type=1326 .*\bsyscall=(?P<number>\d+)",
        "the unit's SystemCallFilter= does not allow a system call of the engine[ (number {number})]",
        "take SystemCallFilter= out of sglang_server_unit_options, or allow the call (`systemd-analyze syscall-filter`)",
        "sglang_server_unit_options",
    ),
    _row(
        "illegal_instruction",
        HOST,
        r"status=4/ILL|exit code:? -4\b|Illegal instruction",
        "the processor lacks an instruction that the engine was built for",
        "on a virtual machine pass the host's CPU type through; the cpu flavour needs AVX-512 or AMX",
        "sglang_server_engine",
    ),
    _row(
        "bus_error",
        HOST,
        r"status=7/BUS|exit code:? -7\b|Bus error",
        "mapped memory could not be read: /dev/shm or the disk is full, or a file was cut while it was read",
        "look at `df /dev/shm` and at the model's file system",
        "sglang_server_model",
        certainty="suspected",
    ),
    _row(
        "crashed",
        "",
        r"status=(?:11/SEGV|6/ABRT|8/FPE)|exit code:? -(?:6|8|11)\b|Fatal Python error: (?P<what>[\w ]+)|Segmentation fault"
        r"|segfault at .* in (?P<library>[\w.+-]+)\[",
        "the engine crashed in compiled code[: {what}][ ({library})]",
        "the lines before it show where; try another attention_backend, or another engine",
        "sglang_server_engine attention_backend",
        certainty="suspected",
    ),
    _row(
        "nccl_collective_timeout",
        HOST,
        r"Watchdog caught collective operation timeout: WorkNCCL\(.*?OpType=(?P<operation>\w+)",
        "a collective operation ({operation}) did not end: a rank is gone, or transfers between the GPUs hang",
        "look at the other ranks' lines; try NCCL_P2P_DISABLE=1; check ACS and IOMMU on the host",
        "NCCL_P2P_DISABLE disable_custom_all_reduce dist_timeout",
        certainty="suspected",
    ),
    _row(
        "unit_runtime_limit",
        RELEASE,
        r"Service reached runtime time limit",
        "systemd ended the server after its time to run (RuntimeMaxSec=)",
        "take RuntimeMaxSec= out of sglang_server_unit_options",
        "sglang_server_unit_options",
        remedy="sglang_server_unit_options: {RuntimeMaxSec: infinity}",
    ),
    _row(
        "watchdog_timeout",
        "",
        r"[Ww]atchdog timeout \(self\.watchdog_timeout=(?P<timeout_s>\d+)(?!.*soft=True)",
        "the engine's own watchdog ended it: a batch took more than {timeout_s} s",
        "the stacks in the lines before it show where it hung; raise watchdog_timeout if kernels were just being compiled",
        "watchdog_timeout",
        certainty="suspected",
    ),
    _row(
        "unit_start_timeout",
        RELEASE,
        r"start operation timed out|Result=timeout",
        "systemd ended the start after its time limit (TimeoutStartSec=)",
        "raise sglang_server_start_timeout_seconds above the time that the model needs to load",
        "sglang_server_start_timeout_seconds",
    ),
    _row(
        "stopped",
        HOST,
        r"SIGTERM received\.|Received SIGTERM|^Stopping \S+\.service\b|Sent signal (?P<signal>\w+) to .* on client request",
        "the server was told to stop[ ({signal})]",
        "find out who stopped the unit: `journalctl` of systemd and of sudo at that time",
    ),
    _row(
        "oom_killer",
        HOST,
        r"Killed process (?P<pid>\d+)[^(]*\((?P<name>(?:python|sglang|pt_)[^)]*)\)",
        "the kernel's OOM killer ended a process {pid} ({name}) at that time, which may be the server's",
        _MORE_MEMORY,
        _HOST_MEMORY,
        certainty="suspected",
    ),
    _row(
        "killed",
        HOST,
        r"status=9/KILL|exit code:? -9\b",
        "the server was killed from outside: most often the kernel's OOM killer",
        "look at the kernel log; give the host more memory or lower the server's",
        "mem_fraction_static hicache_size",
        certainty="suspected",
    ),
    _row(
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
    *_RENDEZVOUS,
    _row(
        "nccl_hang_p2p_suspected",
        HOST,
        r"NCCL INFO .*Init COMPLETE",
        "it hangs after NCCL was initialised: transfers between the GPUs ({transport}) do not arrive",
        _P2P,
        "NCCL_P2P_DISABLE NCCL_P2P_LEVEL disable_custom_all_reduce",
        details=(r"NCCL INFO Channel .* via (?P<transport>P2P/\S+)",),
        also=r"NCCL INFO Channel .* via P2P/",
        until=_PROGRESS,
        certainty="suspected",
        facts={"last_phase": "nccl init complete"},
        remedy="sglang_server_env: {NCCL_P2P_DISABLE: 1}",
    ),
    _row(
        "nccl_hang_suspected",
        HOST,
        r"sglang is using nccl==|NCCL INFO .*Init COMPLETE",
        "it hangs while the ranks set up their communication",
        f"run once with NCCL_DEBUG=INFO in sglang_server_env; {_P2P}",
        "NCCL_P2P_DISABLE NCCL_DEBUG NCCL_SOCKET_IFNAME dist_init_addr disable_custom_all_reduce",
        until=_PROGRESS,
        certainty="suspected",
        facts={"last_phase": "distributed"},
    ),
    _row(
        "rendezvous_hang_suspected",
        HOST,
        r"Init (?:torch distributed|parallel) begin",
        "it hangs while the ranks look for each other",
        "start all nodes; check dist_init_addr and GLOO_SOCKET_IFNAME, and that TasksMax= and LimitNPROC= of the unit allow hundreds of threads",
        "dist_init_addr nnodes node_rank GLOO_SOCKET_IFNAME sglang_server_unit_options",
        until=_PROGRESS,
        certainty="suspected",
        facts={"last_phase": "distributed"},
    ),
    _row(
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
    _row(
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
    _row(
        "custom_all_reduce_off",
        HOST,
        r"Setup Custom allreduce failed with CUDART error: peer access is not supported",
        "the GPUs cannot reach each other's memory: all-reduce goes through NCCL, which works and is slower",
        "--disable-custom-all-reduce (disable_custom_all_reduce: true) silences it; it is no error",
        "disable_custom_all_reduce",
        remedy="sglang_server_flags: {disable_custom_all_reduce: true}",
    ),
)
