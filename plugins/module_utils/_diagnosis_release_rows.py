# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Rows of the table of causes that lie in what was asked for: arguments, the model, GPU memory.

How a row reads: ``_diagnosis_types``. In which order the groups are asked: ``_diagnosis_table``.
"""

from __future__ import annotations

import typing as t

from ansible_collections.llmops.inference.plugins.module_utils import _diagnosis_figures as figures
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis_types import HOST, RELEASE, Row, row

TP = r"\btp_size['\"]?[=:] ?(?P<tp_size>\d+)"
_AVAILABLE = r"avail mem=(?P<avail_mem_gb>\d+\.\d+) GB"
_OUT_OF_MEMORY = (
    r"CUDA out of memory|CUDA error: out of memory|torch\.(?:cuda\.)?OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED|Cuda failure (?:\d+ )?'out of memory'"
)
# First of the target model, then of a draft; each rank writes one.
_LOADED = r"Load weight end\..*avail mem=(?P<after_gb>\d+\.\d+) GB, mem usage=(?P<used_gb>-?\d+\.\d+) GB"
_FRACTION = r"\bmem_fraction_static['\"]?[=:] ?(?P<mem_fraction_static>0?\.\d+)"
_DEVICE = r"\bdevice['\"]?[=:] ?['\"](?P<device>\w+)"
_CAPTURE = r"Capture .*graph"
_GRAPH_FLAGS = "mem_fraction_static cuda_graph_max_bs cuda_graph_max_bs_decode cuda_graph_bs disable_cuda_graph"


def _holds_much(values: t.Mapping[str, t.Any]) -> bool:
    """A desktop's few hundred MiB do not make a GPU busy."""
    return bool(values["held_gb"] >= values["total_gb"] / 10)


ARGUMENTS: tuple[Row, ...] = (
    row(
        "unknown_argument",
        RELEASE,
        r"error: unrecognized arguments: (?P<arguments>.*)",
        "this engine does not know the arguments {arguments}",
        "take them out of the inventory or install the engine that has them",
        "sglang_server_flags sglang_server_extra_args",
        derive=figures.single_flag,
        remedy="sglang_server_flags: {{flag}: null}",
    ),
    row(
        "bad_argument",
        RELEASE,
        r"error: (?P<message>(?:argument|ambiguous option).*)",
        "the engine refused an argument: {message}",
        "correct the flag in the inventory",
        "sglang_server_flags",
    ),
    row(
        "context_too_long",
        RELEASE,
        r"Error: (?:Warning: )?User-specified context_length \((?P<context_length>\d+)\) is greater than the derived context_length \((?P<maximum>\d+)\)",
        "context_length {context_length} is more than the model's own {maximum}",
        "set context_length to at most {maximum}; SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 allows more, with wrong answers beyond it unless RoPE is scaled",
        "context_length SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
        remedy="sglang_server_flags: {context_length: {maximum}}",
    ),
    row(
        "encoder_urls",
        RELEASE,
        r"requires at least one encoder urls",
        "language_only needs encoder_urls: it belongs to encoder disaggregation",
        "take language_only away; to skip the vision part of a model use language_model_only where the engine has it",
        "language_only encoder_urls",
        remedy="sglang_server_flags: {language_only: null}",
    ),
    row(
        "language_only_text_model",
        RELEASE,
        r"Model type (?P<architecture>\w+) is not supported for encoder disaggregation",
        "language_only is for models with an encoder, {architecture} has none",
        "take language_only away",
        "language_only encoder_only",
        details=(r"\b(?P<flag>language_only|encoder_only)['\"]?[=:] ?[Tt]rue",),
        remedy="sglang_server_flags: {{flag}: null}",
    ),
    row(
        "tp_nodes",
        RELEASE,
        r"tp_size must be divisible by number of nodes",
        "tp_size[ {tp_size}] does not divide over the nodes",
        "make tp_size a multiple of nnodes: it counts the GPUs of all nodes",
        "tp_size nnodes",
        details=(TP,),
    ),
    row(
        "cpu_ranks",
        RELEASE,
        r"SGLANG_CPU_OMP_THREADS_BIND is not set.*?= (?P<ranks>\d+)\) should be smaller",
        "on CPUs the {ranks} ranks are more than the machine has NUMA nodes",
        "lower tp_size, or set SGLANG_CPU_OMP_THREADS_BIND",
        "tp_size dp_size pp_size SGLANG_CPU_OMP_THREADS_BIND",
    ),
)
MODEL: tuple[Row, ...] = (
    row(
        "hf_gated",
        RELEASE,
        r"GatedRepoError|Cannot access gated repo|Access to model (?P<repo>\S+) is restricted",
        "the model[ {repo}] is gated and this host may not download it",
        "accept its licence and set HF_TOKEN for the service user (sglang_server_secret_env)",
        "HF_TOKEN sglang_server_secret_env sglang_server_model",
        details=(r"Access to model (?P<repo>\S+) is restricted", r"gated repo for url https?://[^/]+/(?P<repo>[^/\s]+/[^/\s]+)/resolve/"),
    ),
    row(
        "hf_offline_no_cache",
        RELEASE,
        r"outgoing traffic has been disabled|OfflineModeIsEnabled|Cannot reach \S+: offline mode is enabled",
        "the model is not in the cache and downloads are switched off",
        "download the model before, or unset HF_HUB_OFFLINE; check that HF_HOME of the service user is where it was downloaded to",
        "HF_HUB_OFFLINE HF_HOME sglang_server_model",
    ),
    row(
        "hf_unreachable",
        HOST,
        r"We couldn't connect to 'https?://"
        r"|^(?:[\w.]+\.)?(?:Connect\w*|Proxy|SSL|MaxRetry|LocalEntryNotFound)(?:Error|Timeout)\b.*(?:huggingface|/resolve/)",
        "the model hub cannot be reached",
        "download the model before and set sglang_server_model to its path, or open the way (https_proxy, DNS)",
        "HF_ENDPOINT https_proxy sglang_server_model",
    ),
    row(
        "model_not_on_hub",
        RELEASE,
        r"RepositoryNotFoundError|is not a local folder and is not a valid model identifier|RevisionNotFoundError",
        "the model hub has no such model or revision, or hides it without a token",
        "correct sglang_server_model; for a private one set HF_TOKEN",
        "sglang_server_model revision HF_TOKEN",
    ),
    row(
        "hf_token_refused",
        RELEASE,
        r"Invalid user token|Invalid credentials in Authorization header|Invalid username or password\.",
        "the model hub refuses the token",
        "correct HF_TOKEN of the service user (sglang_server_secret_env)",
        "HF_TOKEN sglang_server_secret_env",
    ),
    row(
        "model_file_corrupt",
        RELEASE,
        r"SafetensorError.*(?:[Hh]eader|deserializ|incomplete|buffer)|UnpicklingError: invalid load key|PytorchStreamReader failed"
        r"|the config file at '(?P<path>[^']*)' is not a valid JSON file|Consistency check failed: file should be of size",
        "a file of the model[ ({path})] is truncated or is not what it should be",
        "download the model again; check for Git LFS pointer files (small text files in place of weights)",
        "sglang_server_model",
    ),
    row(
        "model_incomplete",
        RELEASE,
        r"references (?P<count>\d+) shard file\(s\) missing from (?P<path>\S+)"
        r"|Error no file named .* found in directory (?P<path_2>\S+\w)",
        "files of the model are missing[ in {path}][ ({count})]",
        "download the model again, or to its end",
        "sglang_server_model load_format",
    ),
    row(
        "weights_mismatch",
        RELEASE,
        r"Attempted to load weight \((?P<loaded>[^)]*\))\) into parameter \((?P<wanted>[^)]*\))\)|size mismatch for (?P<name>[\w.]+): copying a param"
        r"|Some weights are not initialized from checkpoints: (?P<name_2>.*)",
        "the weights do not fit the model's configuration[: {name}][: {loaded} for {wanted}]",
        "take config.json and weights from the same revision; check quantization and the draft model, which must be made for this model",
        "sglang_server_model quantization speculative_draft_model_path json_model_override_args load_format",
    ),
    row(
        "lora_not_loadable",
        RELEASE,
        r"Failed to load LoRA adapter (?P<name>[^\s:]+): (?P<reason>.*)",
        "the LoRA adapter {name} cannot be loaded: {reason}",
        "correct lora_paths; the service's user must be able to read the adapter, and it must be made for this model",
        "lora_paths enable_lora max_lora_rank lora_target_modules",
    ),
    row(
        "tokenizer_missing",
        RELEASE,
        r"Couldn't instantiate the backend tokenizer|Can't load tokenizer for '(?P<path>[^']*)'|Unable to load vocabulary from file"
        r"|(?:No such file or directory|does not appear to have).*tokenizer",
        "the engine finds no usable tokenizer[ in {path}]",
        "correct tokenizer_path, or complete the model's files (tokenizer.json, tokenizer_config.json)",
        "tokenizer_path sglang_server_model",
        details=(r"tokenizer_path['\"]?[=:] ?['\"](?P<path>[^'\"]+)",),
    ),
    row(
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
    row(
        "architecture_unknown",
        RELEASE,
        r"Model architectures (?P<architecture>\[[^\]]*\]) are not supported|Cannot find model module\. '(?P<architecture_3>[^']*)' is not a registered model"
        r"|has model type `(?P<architecture_2>[^`]*)` but Transformers does not recognize this architecture",
        "this engine does not know the model's architecture {architecture}",
        "install a newer engine, or choose a model that it knows",
        "sglang_server_engine sglang_server_model",
    ),
    row(
        "chat_template_missing",
        RELEASE,
        r"Chat template (?P<path>\S+) is not a built-in template name or a valid chat template file path",
        "there is no chat template {path}",
        "correct chat_template: a file that the service can read, or a name that the engine knows",
        "chat_template",
    ),
    row(
        "remote_code_needed",
        RELEASE,
        r"requires you to execute (?:custom code|the \w+ file)|contains custom code which must be executed",
        "the model brings its own code, which the engine may not run",
        "set trust_remote_code if you trust it",
        "trust_remote_code",
        remedy="sglang_server_flags: {trust_remote_code: true}",
    ),
    row(
        "quantization_mismatch",
        RELEASE,
        r"Quantization method specified in the model config \((?P<model>[^)]*)\)|Cannot find the config file for (?P<asked>\w+)",
        "quantization[ {asked}] does not fit the model[, which is quantised as {model}]",
        "take quantization away: the engine reads it from the model",
        "quantization",
        remedy="sglang_server_flags: {quantization: null}",
    ),
    row(
        "quantized_blocks_tp",
        RELEASE,
        r"(?P<size>\d+) is not divisible by weight quantization block_\w = (?P<block>\d+)",
        "split over tp_size[ {tp_size}] a weight is {size} wide, which its quantisation blocks of {block} do not divide",
        "use a smaller tp_size, for experts ep_size, or a model quantised otherwise",
        "tp_size ep_size quantization",
        details=(TP,),
    ),
    row(
        "heads_tp",
        RELEASE,
        r"assert \S*heads % \S*tp_size == 0|assert \S*tp_size % \S*heads == 0|AssertionError: (?P<size>\d+) is not divisible by (?P<parts>\d+)",
        "the model's heads or sizes[ ({size})] do not divide by tp_size[ {tp_size}]",
        "choose a tp_size that divides the model's attention heads",
        "tp_size",
        details=(TP,),
    ),
)
MEMORY: tuple[Row, ...] = (
    row(
        "gpu_busy",
        HOST,
        r"GPU (?P<gpu>\d+) has a total capac\w+ of (?P<total_gb>[\d.]+) GiB .*?Process (?P<pid>\d+) has (?P<held_gb>[\d.]+) GiB memory in use",
        "GPU {gpu} is busy: process {pid} holds {held_gb} of its {total_gb} GiB",
        "stop that process (`ps {pid}`), or give this server other GPUs",
        "CUDA_VISIBLE_DEVICES base_gpu_id mem_fraction_static",
        also=_OUT_OF_MEMORY,
        check=_holds_much,
    ),
    row(
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
    row(
        "kv_pool_too_small",
        RELEASE,
        r"leave no GPU memory for the KV cache under --mem-fraction-static=(?P<mem_fraction_static>\d+\.\d+)\. Raise .*? above (?P<minimum>\d+\.\d+)"
        r"|Not enough memory\. Please try to increase --mem-fraction-static(?:.*mem_fraction_static=(?P<mem_fraction_static_2>\d+\.\d+))?"
        r"|leave no GPU memory for the KV cache",
        "the weights leave no memory for the KV cache[ under mem_fraction_static {mem_fraction_static}][ ({avail_mem_gb} GB left after them)]",
        "raise mem_fraction_static[ above {mem_fraction_static}][ (at least {minimum})], use more GPUs (tp_size), or a smaller or quantised model",
        "mem_fraction_static tp_size context_length quantization kv_cache_dtype",
        details=(_FRACTION, TP, _DEVICE, rf"Load weight end.*{_AVAILABLE}"),
        collect=_LOADED,
        derive=figures.higher_fraction,
        remedy="sglang_server_flags: {mem_fraction_static: {fraction}}",
    ),
    row(
        "kv_pool_too_small",
        RELEASE,
        r"AssertionError: max_running_request is zero",
        "the KV cache does not hold one request[: max_total_tokens is {max_total_tokens}]",
        "raise max_total_tokens, or mem_fraction_static",
        "max_total_tokens mem_fraction_static max_running_requests context_length",
        details=(r"\bmax_total_tokens['\"]?[=:] ?(?P<max_total_tokens>\d+)",),
    ),
    row(
        "state_cache_too_small",
        RELEASE,
        r"Not enough GPU memory for hybrid|state cache is too small to serve any requests",
        "the weights leave no memory for the state cache of the model's linear attention",
        "raise mem_fraction_static, reduce max_running_requests, or use more GPUs (tp_size)",
        "mem_fraction_static max_running_requests max_mamba_cache_size speculative_num_draft_tokens tp_size",
    ),
    row(
        "cuda_graph_oom",
        RELEASE,
        rf"Capture (?:cuda|CUDA) graph failed:.*(?:out of memory|{_OUT_OF_MEMORY})",
        "memory ran out while CUDA graphs were captured[ ({avail_mem_gb} GB were free before)]",
        "lower mem_fraction_static or the largest captured batch size (cuda_graph_max_bs, newer engines cuda_graph_max_bs_decode)",
        _GRAPH_FLAGS,
        details=(_FRACTION, TP, _DEVICE, rf"(?:{_CAPTURE} begin|Memory pool end).*{_AVAILABLE}"),
        facts={"phase": "cuda graph capture"},
        collect=_LOADED,
        derive=figures.lower_fraction,
        remedy="sglang_server_flags: {mem_fraction_static: {fraction}}",
    ),
    row(
        "cuda_graph_oom",
        RELEASE,
        _OUT_OF_MEMORY,
        "memory ran out while CUDA graphs were captured[ ({avail_mem_gb} GB were free before)]",
        "lower mem_fraction_static or the largest captured batch size (cuda_graph_max_bs, newer engines cuda_graph_max_bs_decode)",
        _GRAPH_FLAGS,
        details=(_FRACTION, TP, _DEVICE, rf"(?:{_CAPTURE} begin|Memory pool end).*{_AVAILABLE}"),
        during=(rf"{_CAPTURE} begin", rf"{_CAPTURE} end|max_total_num_tokens="),
        facts={"phase": "cuda graph capture"},
        collect=_LOADED,
        derive=figures.lower_fraction,
        remedy="sglang_server_flags: {mem_fraction_static: {fraction}}",
    ),
    row(
        "batch_out_of_memory",
        RELEASE,
        r"(?P<phase>Prefill|Decode) out of memory\. Try to lower your batch size",
        "{phase} found no room in the KV cache",
        "lower max_running_requests or chunked_prefill_size",
        "max_running_requests chunked_prefill_size max_total_tokens mem_fraction_static",
    ),
    row(
        "gpu_memory",
        RELEASE,
        _OUT_OF_MEMORY,
        "GPU memory ran out[ ({avail_mem_gb} GB were free at last)]",
        "lower mem_fraction_static, free the GPU, or use more GPUs",
        "mem_fraction_static tp_size chunked_prefill_size max_running_requests quantization",
        details=(_AVAILABLE,),
    ),
    row(
        "host_cache_too_large",
        RELEASE,
        r"Not enough host memory (?:available|for \S.*?)\. ?Requesting (?P<needed_gb>[\d.]+\d) GB but only have (?P<free_gb>[\d.]+\d) GB free"
        r"|No host memory is left for HiCache",
        "the host's memory does not hold the hierarchical cache[: {needed_gb} GB wanted, {free_gb} GB free]",
        "lower hicache_size or hicache_ratio (each rank takes as much), or give the host more memory",
        "hicache_size hicache_ratio enable_hierarchical_cache",
    ),
    row(
        "host_memory",
        HOST,
        r"can't allocate memory: you tried to allocate|\[Errno 12\] Cannot allocate memory|Pinned host memory allocation of"
        r"|^(?:numpy\S*\.)?_?(?:Array)?MemoryError\b",
        "the host's memory ran out",
        "give the host more memory, or lower what else runs there",
        "hicache_size hicache_ratio cpu_offload_gb mem_fraction_static",
    ),
    row(
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
    row(
        "graph_capture_failed",
        RELEASE,
        r"Capture (?:cuda|CUDA) graph failed: (?P<reason>.+)|Fail when using backend: (?P<backend>\S+) for prefill runner",
        "CUDA graphs could not be captured[ with the backend {backend} for prefill][: {reason}]",
        "read the lines before it; another backend or no graphs for that phase (cuda_graph_backend_prefill, cuda_graph_backend_decode) avoids it",
        "cuda_graph_backend_prefill cuda_graph_backend_decode disable_cuda_graph",
    ),
)
