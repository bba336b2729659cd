# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Rows of the table of causes that lie around the engine: kernel, unit, driver, toolchain, communication, disk and permissions, network.

How a row reads: ``_diagnosis_types``. In which order the groups are asked: ``_diagnosis_table``.
"""

from __future__ import annotations

from ansible_collections.llmops.inference.plugins.module_utils import _diagnosis_figures as figures
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis_types import HOST, RELEASE, Row, row

# What takes of the host's memory, and what to do when there is too little.
HOST_MEMORY = "mem_fraction_static hicache_size sglang_server_unit_options"
MORE_MEMORY = (
    "give the host more memory or swap, lower what else runs there or the server's share (on CPUs mem_fraction_static), raise MemoryMax= if one is set"
)
_NO_NVML = "reboot, or unload and load the nvidia modules; in a container install the userspace of the host's driver; hold the driver packages"

KERNEL: tuple[Row, ...] = (
    row(
        "memory_limit_hit",
        RELEASE,
        r"oom-kill:constraint=CONSTRAINT_MEMCG,.*\boom_memcg=(?P<group>[^,]+\.service),task_memcg=(?P=group)(?:/[^,]*)?,task=(?P<name>[^,]*),pid=(?P<pid>\d+)",
        "the unit's own memory limit was reached: the kernel ended its process {pid} ({name})",
        "raise MemoryMax= in sglang_server_unit_options, or lower the server's share (on CPUs mem_fraction_static; hicache_size)",
        HOST_MEMORY,
    ),
    row(
        "oom_killer",
        HOST,
        r"Killed process (?P<pid>\d+)[^(]*\((?P<name>[^)]*)\)(?:.*\banon-rss:(?P<resident_kb>\d+)kB)?|\btask=(?P<name_2>[^,]*),pid=(?P<pid_2>\d+)",
        "the kernel's OOM killer ended the server's process {pid} ({name})[, which held {resident_kb} kB]: the host's memory ran out",
        MORE_MEMORY,
        HOST_MEMORY,
    ),
)
UNIT: tuple[Row, ...] = (
    row(
        "unit_step_failed",
        HOST,
        r"Failed at step (?P<step>\w+) spawning (?P<program>\S+): (?P<reason>.*)",
        "systemd could not start {program}: step {step} failed: {reason}[ ({detail})]",
        "NAMESPACE: a path of ReadWritePaths= or the like is missing; EXEC: the program is missing or not executable; USER, GROUP: create the account; "
        "CREDENTIALS: a file of LoadCredential= is missing",
        "sglang_server_unit_options sglang_server_user sglang_server_engine",
        details=(r"(?P<detail>(?:Failed to (?:set up|determine) [\w ]+|Changing to the requested working directory failed): .*)",),
    ),
    row(
        "unit_not_startable",
        HOST,
        r"Failed to load environment files: (?P<reason>.*)|Failed to run '(?P<task>[\w-]+)' task: (?P<reason_2>.*)|has a bad unit file setting",
        "systemd could not start the unit[: {reason}]",
        "a file that the unit names is missing or wrong: `systemctl cat` and `systemd-analyze verify` show which; deploy again",
        "sglang_server_unit_options",
    ),
    row(
        "oom_killer",
        HOST,
        r"killed by the OOM killer|systemd-oomd killed \d+ process|Failed with result 'oom-kill'|Result=oom-kill",
        "the kernel's OOM killer ended the server: its memory limit was reached or the host's memory ran out",
        MORE_MEMORY,
        HOST_MEMORY,
    ),
)
DRIVER: tuple[Row, ...] = (
    row(
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
    row(
        "fabricmanager_version_mismatch",
        HOST,
        r"driver interface version (?P<fm>[\d.]+\d) do(?:es)?n't match with driver version (?P<driver>[\d.]+\d)",
        "the fabric manager is of version {fm}, the driver of {driver}",
        "install the fabric manager of exactly {driver}",
    ),
    row(
        "cuda_forward_compat_unsupported",
        HOST,
        r"Error 804\b|forward compatibility was attempted on non supported HW",
        "a newer libcuda than the driver's was loaded (error 804); this GPU does not take CUDA's forward compatibility",
        "remove cuda-compat from LD_LIBRARY_PATH and /etc/ld.so.conf.d, or upgrade the driver",
        "LD_LIBRARY_PATH",
    ),
    row(
        "system_not_initialized",
        HOST,
        r"Error 802\b|system not yet initialized",
        "the NVSwitch fabric is not initialised (error 802)",
        "start nvidia-fabricmanager, of exactly the driver's version; after its start `nvidia-smi -q` says Fabric State: Completed",
    ),
    row(
        "driver_too_old",
        HOST,
        r"NVIDIA driver on your system is too old(?: \(found version (?P<driver_cuda>\d+)\))?|CUDA driver version is insufficient"
        r"|PTX was compiled with an unsupported toolchain",
        "the NVIDIA driver is older than the engine's CUDA needs[: it goes up to CUDA {driver_cuda}]",
        "install a newer driver or an engine built for this one[ (CUDA {driver_cuda} or older)]",
        "sglang_server_engine",
        unless=r"\bdevice['\"]?[=:] ?['\"]cpu",
    ),
    row(
        "cuda_unknown_error",
        HOST,
        r"CUDA unknown error",
        "CUDA cannot be initialised, most often since /dev/nvidia-uvm is missing or may not be opened",
        "look at /dev/nvidia*: `nvidia-modprobe -u -c 0`; in a container pass nvidia-uvm on; the unit must not set PrivateDevices=",
        "CUDA_VISIBLE_DEVICES sglang_server_unit_options",
        certainty="suspected",
    ),
    row(
        "driver_missing",
        HOST,
        r"Error: libcuda\.so(?:\.1)?: cannot open shared object file|Found no NVIDIA driver on your system",
        "the NVIDIA driver's library libcuda.so.1 is not there",
        "install the driver, in a container its userspace, or use the cpu flavour",
    ),
    row(
        "no_accelerator",
        HOST,
        r"No accelerator \(|No CUDA GPUs are available|no CUDA-capable device is detected",
        "the engine finds no GPU",
        "install the driver and give the service access to the device nodes, or use the cpu flavour",
        "device CUDA_VISIBLE_DEVICES sglang_server_unit_options",
    ),
    row(
        "gpu_not_there",
        RELEASE,
        r"CUDA error: invalid device ordinal|Duplicate GPU detected ?: rank \d+ and rank \d+ both on CUDA device (?P<pci>\w+)",
        "there are fewer GPUs than ranks[: two of them got GPU {pci}]",
        "lower tp_size or base_gpu_id, or let CUDA_VISIBLE_DEVICES name as many different GPUs as there are ranks",
        "tp_size dp_size pp_size base_gpu_id gpu_id_step CUDA_VISIBLE_DEVICES",
    ),
    row(
        "gpu_exclusive",
        HOST,
        r"CUDA-capable device\(s\) is/are busy or unavailable|all CUDA-capable devices are busy or unavailable",
        "a GPU lets nobody else in: another process holds it in an exclusive compute mode, or it is being reset",
        "look at `nvidia-smi -q -d COMPUTE`; set the mode to Default (`nvidia-smi -c 0`) or stop the other process",
        "CUDA_VISIBLE_DEVICES base_gpu_id",
    ),
)
TOOLCHAIN: tuple[Row, ...] = (
    row(
        "cuda_home_malformed",
        RELEASE,
        r"(?:^|\s|[\"'])(?P<cuda_home>:/[^\s\"']*?)/bin/nvcc\b|CUDA_HOME=(?P<cuda_home_2>:\S+)",
        "CUDA_HOME has a leading ':' ({cuda_home})",
        "set CUDA_HOME to one directory, without ':', in the unit's environment",
        "CUDA_HOME sglang_server_env",
        derive=figures.clean_cuda_home,
        remedy="sglang_server_env: {CUDA_HOME: {directory}}",
    ),
    row(
        "ninja_missing",
        HOST,
        r"No such file or directory: '(?:[^']*/)?ninja'|Ninja is required to load C\+\+ extensions|\bninja: (?:command )?not found",
        "kernels are to be compiled and ninja is missing",
        "install ninja into the engine's environment and put its bin directory on the unit's PATH",
        "sglang_server_engine PATH",
    ),
    row(
        "nvcc_missing",
        HOST,
        r"Could not find nvcc(?: and default cuda_home='(?P<cuda_home>[^']*)')?|No such file or directory: '[^']*\bnvcc'|nvcc: (?:command )?not found"
        r"|CUDA_HOME environment variable is not set",
        "kernels are to be compiled and nvcc is missing[ ({cuda_home})]",
        "install the CUDA toolkit, or set CUDA_HOME to where it is",
        "CUDA_HOME sglang_server_env attention_backend sampling_backend",
    ),
    row(
        "cuda_toolkit_too_old",
        HOST,
        r"nvcc fatal\s*: Unsupported gpu architecture '(?P<architecture>\w+)'|ptxas fatal\s*: Value '(?P<architecture_2>\w+)' is not defined",
        "the CUDA toolkit does not know this GPU's architecture {architecture}",
        "install a newer CUDA toolkit and let CUDA_HOME name it (TRITON_PTXAS_PATH for Triton)",
        "CUDA_HOME TRITON_PTXAS_PATH TORCH_CUDA_ARCH_LIST",
    ),
    row(
        "cuda_toolkit_mismatch",
        HOST,
        r"detected CUDA version \((?P<toolkit>[\d.]+)\) mismatches the version that was used to compile\s*PyTorch \((?P<torch_cuda>[\d.]+)\)",
        "the CUDA toolkit is {toolkit}, torch was built for {torch_cuda}",
        "install the toolkit {torch_cuda} and let CUDA_HOME name it",
        "CUDA_HOME",
    ),
    row(
        "cuda_headers_missing",
        HOST,
        r"fatal error: (?P<header>(?:cuda\w*|cublas\w*|curand\w*|cusparse\w*|cusolver\w*|cudnn\w*|nvrtc|nv/target|cooperative_groups|thrust/\w+|cub/\w+)\.?h?)"
        r": No such file|cannot find -l(?P<library>cuda\w*|nvrtc|cublas\w*)\b",
        "a kernel is to be compiled and a part of the CUDA toolkit is missing[: {header}][: {library}]",
        "install the whole CUDA toolkit (its -dev packages too) and let CUDA_HOME name it",
        "CUDA_HOME",
    ),
    row(
        "python_headers_missing",
        HOST,
        r"fatal error: Python\.h: No such file or directory",
        "a kernel is to be compiled and Python's headers are missing",
        "install python3-dev for the Python version of the engine's environment (python3.12-dev for 3.12)",
        "sglang_server_engine",
    ),
    row(
        "compiler_killed",
        HOST,
        r"Killed signal terminated program (?P<program>\w+)|nvcc error\s*: '(?P<program_2>\w+)' died due to signal 9",
        "the compiler ({program}) was killed while a kernel was built: most often the host's memory ran out",
        "give the host more memory, or set MAX_JOBS to a small number in sglang_server_env",
        "MAX_JOBS sglang_server_unit_options",
        certainty="suspected",
    ),
    row(
        "c_compiler_missing",
        HOST,
        r"Failed to find C compiler|InvalidCxxCompiler|No working C\+\+ compiler found"
        r"|No such file or directory: '(?:[^']*/)?(?:gcc|g\+\+|cc|c\+\+|clang)'|\b(?:gcc|g\+\+|cc): (?:command )?not found",
        "a kernel is to be compiled and there is no C compiler",
        "install gcc and g++ (build-essential), or set CC",
        "CC CXX PATH",
    ),
    row(
        "libnuma_missing",
        HOST,
        r"libnuma\.so\.1: cannot open shared object file",
        "the engine's kernels need libnuma.so.1, which is missing",
        "install libnuma1 (RedHat: numactl-libs)",
    ),
    row(
        "nccl_library_mismatch",
        RELEASE,
        r"undefined symbol: (?P<symbol>nccl\w+)",
        "torch finds an NCCL library without {symbol}: not the one it was built with",
        "have one NCCL package only, the one torch asks for: install the engine anew into a clean environment; take foreign paths out of LD_LIBRARY_PATH",
        "sglang_server_engine LD_LIBRARY_PATH LD_PRELOAD",
    ),
    row(
        "kernels_not_loadable",
        RELEASE,
        r"Could not load any common_ops library",
        "the engine's kernel package (sgl_kernel) cannot be loaded[: {library} is missing]",
        "install the engine built for this CUDA and GPU into a clean environment",
        "sglang_server_engine LD_LIBRARY_PATH",
        details=(r"Error: (?P<library>lib[\w.+-]+\.so[\d.]*): cannot open shared object file",),
    ),
    row(
        "package_too_old",
        RELEASE,
        r"^Exception: (?P<package>[\w-]+) is installed with version (?P<version>[^,]+), which is less than the minimum required version (?P<needed>[\w.]+\w)"
        r"|^Exception: (?P<package_2>[\w-]+) with minimum required version (?P<needed_2>[\w.]+\w) is not installed",
        "the engine needs {package} {needed}[ and has {version}]",
        "install the engine anew into a clean environment",
        "sglang_server_engine",
    ),
    row(
        "fp8_unsupported_arch",
        RELEASE,
        r"type fp8e4nv not supported in this architecture",
        "this GPU has no fp8e4nv (FP8 e4m3): Triton needs compute capability 8.9 for it",
        "use another quantisation (AWQ, GPTQ, INT8) or another kv_cache_dtype (auto, fp8_e5m2)",
        "quantization kv_cache_dtype",
    ),
    row(
        "unsupported_arch",
        RELEASE,
        r"no kernel image is available for execution on the device",
        "the engine holds no kernel for this GPU's compute capability",
        "install an engine (torch, sgl_kernel, flashinfer) built for this compute capability, or choose another attention_backend or sampling_backend",
        "sglang_server_engine attention_backend sampling_backend moe_runner_backend",
    ),
    row(
        "backend_unsupported_arch",
        RELEASE,
        r"(?<![\w-])(?P<backend>FlashAttention v\d|\w[\w-]*) [Bb]ackend requires (?P<needs>SM ?[>=<\d][^.]*)",
        "the backend {backend} requires {needs}, which this GPU is not",
        "set another attention_backend (flashinfer, triton)",
        "attention_backend prefill_attention_backend decode_attention_backend",
        details=(r"[Pp]lease use [`\'\"]?--attention-backend[ =](?P<instead>\w+)",),
        remedy="sglang_server_flags: {attention_backend: {instead}}",
    ),
    row(
        "quantization_unsupported_arch",
        RELEASE,
        r"(?:quantization method (?P<method>\w+)|Quantization scheme).*not supported for.*"
        r"Min(?:imum)? capability: (?P<needs>\d+).*Current capability: (?P<has>\d+)",
        "the quantisation[ {method}] needs compute capability {needs}, this GPU has {has}",
        "use a model quantised otherwise (AWQ, GPTQ, INT8 on older GPUs)",
        "quantization sglang_server_model",
    ),
    row(
        "gpu_too_old",
        RELEASE,
        r"SGLang only supports (?P<needs>sm\d+) and above",
        "the engine needs a GPU of compute capability {needs} or newer",
        "use a newer GPU, or an engine that still knows this one",
        "sglang_server_engine CUDA_VISIBLE_DEVICES",
    ),
    row(
        "shared_memory_exceeded",
        RELEASE,
        r"out of resource: shared memory, Required: (?P<needs>\d+), Hardware limit: (?P<has>\d+)",
        "a kernel needs {needs} bytes of shared memory per block, this GPU has {has}",
        "set another attention_backend (flashinfer), or an engine that knows this GPU",
        "attention_backend sglang_server_engine",
    ),
)
# Once the ranks have found each other it was slow and no more.
PROGRESS = r"Init (?:torch distributed|parallel) ends|Load weight begin|The server is fired up"
_NOT_FOUND = (
    r"client socket has (?:timed out after (?:(?P<timeout_s>\d+)s|\d+ms) while trying to connect to|failed to connect to any network address of)"
    r" \(?(?P<peer>[^\s,)]+)"
)
RENDEZVOUS: tuple[Row, ...] = (
    row(
        "address_not_local",
        RELEASE,
        _NOT_FOUND,
        "the ranks cannot reach {peer}, which is to be this host's own address",
        "correct sglang_server_host (`ip -br addr` lists the host's addresses; 0.0.0.0 is all of them), or dist_init_addr",
        "sglang_server_host host dist_init_addr",
        details=(r"\bnnodes['\"]?[=:] ?(?P<nnodes>\d+)",),
        check=lambda values: values.get("nnodes") == 1,
        until=PROGRESS,
        certainty="suspected",
    ),
    row(
        "nodes_missing",
        HOST,
        rf"Timed out after (?P<timeout_s_2>\d+) seconds waiting for clients\. (?P<joined>\d+/\d+) clients joined|{_NOT_FOUND}",
        "the ranks did not find each other[ within {timeout_s} s][: only {joined} did][: no answer from {peer}]",
        "start all nodes; check dist_init_addr, nnodes, node_rank and the firewall between the nodes",
        "dist_init_addr nnodes node_rank dist_timeout",
        until=PROGRESS,
    ),
)
COMMUNICATION: tuple[Row, ...] = (
    row(
        "shm_denied",
        HOST,
        r"NCCL WARN .*shm_open failed ?: Permission denied|Permission denied: '/dev/shm",
        "the service may not use /dev/shm",
        "give it back its mode 1777; the unit must not hide it or make it read-only",
        "sglang_server_unit_options NCCL_SHM_DISABLE",
    ),
    row(
        "shm_too_small",
        HOST,
        r"failed to extend /dev/shm/nccl-\S+ to (?P<bytes>\d+) bytes|creating shared memory segment (?:/dev/shm/)?nccl-\S+ \(size (?P<bytes_2>\d+)\)"
        r"|insufficient shared memory \(shm\)|No space left on device: '/(?:psm|sem|torch)_",
        "/dev/shm is too small[: NCCL asked for {bytes} bytes]",
        "enlarge /dev/shm: container --shm-size, LXC a larger tmpfs, host `mount -o remount,size=` (not a network fault)",
        "NCCL_SHM_DISABLE",
    ),
    row(
        "nccl_interface",
        RELEASE,
        r"no socket interface found|Unable to find (?:address for|interface): ?(?P<interface>\S+)|ifname (?P<interface_2>\S+) not found",
        "NCCL or Gloo finds no network interface[ {interface}]",
        "set NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME to an interface of this host (`ip -br addr`), or drop them",
        "NCCL_SOCKET_IFNAME GLOO_SOCKET_IFNAME sglang_server_env",
        remedy="sglang_server_env: {NCCL_SOCKET_IFNAME: null, GLOO_SOCKET_IFNAME: null}",
    ),
    *RENDEZVOUS,
    row(
        "nccl_connection",
        HOST,
        r"NCCL WARN .*(?:Connect to (?P<peer>\S+) failed|Call to connect .*failed|Connection refused|Connection timed out|No route to host)",
        "NCCL cannot reach a peer[ {peer}]",
        "open the ports between the nodes; set NCCL_SOCKET_IFNAME to the interface that reaches the others",
        "NCCL_SOCKET_IFNAME dist_init_addr",
    ),
    row(
        "gloo_connection",
        HOST,
        r"Gloo connectFullMesh failed|\[\S*gloo/transport/tcp/\S+\].*(?:Connect timeout|Connection refused|timed out connecting|no error)",
        "the ranks' Gloo connections cannot be made",
        "set GLOO_SOCKET_IFNAME to an interface that the other nodes reach; the host's name must resolve to such an address",
        "GLOO_SOCKET_IFNAME SGLANG_HOST_IP dist_init_addr",
    ),
    row(
        "rdma_memory_limit",
        RELEASE,
        r"NCCL WARN .*(?:ibv_reg_mr|ibv_create_\w+).*Cannot allocate memory",
        "the service may not lock enough memory for RDMA",
        "set sglang_server_limit_memlock to infinity",
        "sglang_server_limit_memlock",
        remedy="sglang_server_limit_memlock: infinity",
    ),
    row(
        "rdma_failed",
        HOST,
        r"NCCL WARN .*(?:NET/IB ?:|ibv_\w+ failed|Call to ibv_\w+)(?P<error>.*)",
        "NCCL's RDMA transfers failed[: {error}]",
        "check NCCL_IB_HCA and NCCL_IB_GID_INDEX, or use sockets (NCCL_IB_DISABLE=1)",
        "NCCL_IB_HCA NCCL_IB_GID_INDEX NCCL_IB_DISABLE",
        certainty="suspected",
    ),
    row(
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
FILES: tuple[Row, ...] = (
    row(
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
    row(
        "disk_error",
        HOST,
        r"\[Errno (?:5|116)\] (?P<error>Input/output error|Stale file handle)(?:: '(?P<path>[^']*)')?",
        "a file system failed[ at {path}]: {error}",
        "look at the kernel log and at the mount; mount a network file system anew",
        "sglang_server_model HF_HOME",
        raised=True,
    ),
    row(
        "cache_not_writable",
        HOST,
        r"PermissionError.*Permission denied: '(?P<path>[^']*(?:cache|\.triton|\.config|inductor)[^']*)'",
        "the service may not write its cache at {path}",
        "set HOME and the cache variables to a writable directory of the service user",
        "HOME HF_HOME TRITON_CACHE_DIR FLASHINFER_WORKSPACE_BASE TORCHINDUCTOR_CACHE_DIR sglang_server_env",
        raised=True,
    ),
    row(
        "cache_read_only",
        HOST,
        r"\[Errno 30\] Read-only file system: '(?P<path>[^']*)'",
        "the service's sandbox makes {path} read-only",
        "point the cache variables into CacheDirectory, or add the path to ReadWritePaths",
        "HOME HF_HOME TRITON_CACHE_DIR FLASHINFER_WORKSPACE_BASE sglang_server_unit_options",
        raised=True,
    ),
    row(
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
    row(
        "no_temporary_directory",
        HOST,
        r"No usable temporary directory",
        "the service finds no writable temporary directory",
        "keep PrivateTmp on or set TMPDIR; free space in /tmp",
        "TMPDIR sglang_server_unit_options",
        raised=True,
    ),
    row(
        "too_many_open_files",
        RELEASE,
        r"\[Errno 24\] Too many open files",
        "the service may not open more files",
        "raise sglang_server_limit_nofile",
        "sglang_server_limit_nofile",
        remedy="sglang_server_limit_nofile: 1048576",
        raised=True,
    ),
    row(
        "file_size_limit",
        RELEASE,
        r"status=25/XFSZ|exit code:? -25\b|\[Errno 27\] File too large",
        "a file grew beyond what the service may write",
        "raise LimitFSIZE= in sglang_server_unit_options",
        "sglang_server_unit_options",
        raised=True,
    ),
    row(
        "too_many_threads",
        HOST,
        r"can't start new thread|pthread_create failed.*Resource temporarily unavailable|^Resource temporarily unavailable \(src/thread\.cpp",
        "the service may not start more threads",
        "raise TasksMax= of the unit (in a container the pids limit of the host)",
        "sglang_server_unit_options OMP_NUM_THREADS",
    ),
)
NETWORK: tuple[Row, ...] = (
    row(
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
    row(
        "address_not_local",
        RELEASE,
        r"\[Errno 99\].*?(?:\('(?P<address>[^']*)', \d+\).*)?[Cc]annot assign requested address",
        "the address[ {address}] that the server is to listen on is none of this host's",
        "correct sglang_server_host (`ip -br addr` lists the host's addresses; 0.0.0.0 is all of them), or dist_init_addr",
        "sglang_server_host host dist_init_addr",
    ),
    row(
        "port_not_allowed",
        RELEASE,
        r"\[Errno 13\] error while attempting to bind on address \('[^']*', (?P<port>\d+)\)",
        "the service may not listen on port {port}: ports below 1024 are for root",
        "set sglang_server_port to 1024 or more, or AmbientCapabilities=CAP_NET_BIND_SERVICE",
        "sglang_server_port port",
    ),
    row(
        "address_family_denied",
        RELEASE,
        r"Address family not supported by protocol",
        "the service may not open sockets of a kind that it needs",
        "let RestrictAddressFamilies= hold AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK; without IPv6 on the host use IPv4 addresses",
        "sglang_server_unit_options sglang_server_host",
        raised=True,
    ),
    row(
        "proxy_intercepts_localhost",
        RELEASE,
        r"https?://(?P<proxy>\S+:\d+) \"GET https?://(?:0\.0\.0\.0|127\.0\.0\.1|localhost)",
        "the server's own warm-up request went through the proxy {proxy}",
        "add 127.0.0.1, 0.0.0.0 and localhost to no_proxy and NO_PROXY of the unit",
        "http_proxy https_proxy no_proxy NO_PROXY sglang_server_env",
        collect=r"(?:\"GET https?://\S+ HTTP/1\.[01]\" |<Response \[)(?P<http>\d{3})",
    ),
    row(
        "router_workers_unhealthy",
        HOST,
        r"Timeout (?P<timeout_s>\d+)s waiting for workers to become healthy",
        "the router gave up after {timeout_s} s: its worker[ {worker}] did not become healthy",
        "diagnose the worker[ at {worker}]; start it before the router; raise the router's worker startup timeout",
        "worker_startup_timeout_secs worker_urls",
        details=(r"Worker (?P<worker>https?://\S+) health check is pending",),
    ),
)
