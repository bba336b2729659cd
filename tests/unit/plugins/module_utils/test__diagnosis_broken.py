# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the diagnosis makes of a real engine (0.5.23, cpu) that was really broken on a host with systemd: ``tests/engines/broken.py`` recorded the journals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis import diagnose, diagnose_hopeless, diagnose_stall
from ansible_collections.llmops.inference.plugins.module_utils._diagnosis_kernel import Run
from ansible_collections.llmops.inference.tests.engines.broken import BREAKAGES, UNIT

CASES = ("F08", "F10", "L01", "L16", "L17", "N03", "N08", "U04", "U05", "U06")
FIXTURES = Path(__file__).parents[2] / "fixtures" / "broken"
ENDS = json.loads((FIXTURES / "ends.json").read_text())
FLAGS = "sglang_server_flags: {%s}"
UNIT_OPTIONS = "sglang_server_unit_options: {%s}"
# name, code, where, certainty, what the cause or the hint says, line of the inventory
BROKEN = [
    # The model.
    ("model_missing", "model_missing", "release", "certain", "can read in /srv/models/none", ""),
    ("model_empty", "model_missing", "release", "certain", "can read in /var/lib/broken/model", ""),
    ("model_unreadable", "model_missing", "release", "certain", "the service's user must be able to read it", ""),
    ("config_truncated", "model_file_corrupt", "release", "certain", "(/var/lib/broken/model/config.json)", ""),
    ("config_not_json", "model_file_corrupt", "release", "certain", "(/var/lib/broken/model/config.json)", ""),
    ("config_without_architecture", "exception", "release", "suspected", "TypeError: 'NoneType' object is not subscriptable", ""),
    ("architecture_unknown", "architecture_unknown", "release", "certain", "architecture Foo9ForCausalLM", ""),
    ("model_type_unknown", "architecture_unknown", "release", "certain", "architecture foo9", ""),
    ("weights_truncated", "model_file_corrupt", "release", "certain", "download the model again", ""),
    ("weights_pointer", "model_file_corrupt", "release", "certain", "Git LFS pointer", ""),
    ("weights_missing", "model_missing", "release", "certain", "/var/lib/broken/model", ""),
    ("weights_of_another_shape", "weights_mismatch", "release", "suspected", "size of tensor a (96) must match the size of tensor b (64)", ""),
    ("tokenizer_missing", "tokenizer_missing", "release", "suspected", "no usable tokenizer in /var/lib/broken/model", ""),
    ("tokenizer_truncated", "model_file_corrupt", "release", "suspected", "a JSON file of the model is truncated", ""),
    ("remote_code", "remote_code_needed", "release", "certain", "brings its own code", FLAGS % "trust_remote_code: true"),
    ("template_missing", "chat_template_missing", "release", "certain", "no chat template /srv/none.jinja", ""),
    ("lora_missing", "lora_not_loadable", "release", "certain", "LoRA adapter a cannot be loaded", ""),
    ("draft_missing", "model_missing", "release", "certain", "can read in /srv/none", ""),
    # Arguments.
    ("argument_unknown", "unknown_argument", "release", "certain", "does not know the arguments --enable-nothing 3", FLAGS % "enable_nothing: null"),
    ("argument_choice", "bad_argument", "release", "certain", "argument --kv-cache-dtype: invalid choice: 'int7'", ""),
    ("argument_combination", "arguments_refused", "release", "certain", "enable-hierarchical-cache and disable-radix-cache are mutually exclusive", ""),
    ("argument_json", "arguments_refused", "release", "certain", "Expecting property name enclosed in double quotes", ""),
    ("context_too_long", "context_too_long", "release", "certain", "99999 is more than the model's own 4096", FLAGS % "context_length: 4096"),
    ("quantization", "quantization_mismatch", "release", "certain", "quantization awq does not fit", FLAGS % "quantization: null"),
    ("tp_more_than_numa", "cpu_ranks", "release", "certain", "the 3 ranks are more than the machine has NUMA nodes", ""),
    ("heads_tp", "heads_tp", "release", "suspected", "sizes (32) do not divide by tp_size 3", ""),
    ("kv_pool_too_small", "kv_pool_too_small", "release", "certain", "under mem_fraction_static 0.001", ""),
    ("max_total_tokens", "kv_pool_too_small", "release", "certain", "max_total_tokens is 1", ""),
    # The network.
    ("port_taken", "port_in_use", "host", "certain", "another process holds the server's port 31000", ""),
    ("port_privileged", "port_not_allowed", "release", "certain", "may not listen on port 80", ""),
    ("tls_key_unreadable", "tls_not_usable", "release", "certain", "Permission denied", ""),
    ("tls_no_certificate", "tls_not_usable", "release", "certain", "[SSL]", ""),
    ("peer_missing", "nodes_missing", "host", "certain", "within 21 s: only 1/2 did", ""),
    # Disk, memory, limits.
    ("disk_full", "bus_error", "host", "suspected", "the disk is full", ""),
    ("cache_full", "disk_full", "host", "certain", "the disk is full", ""),
    ("shm_full", "bus_error", "host", "suspected", "/dev/shm", ""),
    ("temporary_none", "no_temporary_directory", "host", "certain", "no writable temporary directory", ""),
    ("cache_not_writable", "cache_not_writable", "host", "certain", "its cache at /var/lib/broken/cache/modules", ""),
    ("cache_read_only", "cache_read_only", "host", "certain", "makes /srv/cache read-only", ""),
    ("memory_limit", "memory_limit_hit", "release", "suspected", "the unit's own memory limit was reached", ""),
    ("address_space", "too_many_threads", "host", "suspected", "a low LimitAS= does the same", ""),
    ("file_size", "file_size_limit", "release", "certain", "LimitFSIZE=", ""),
    ("open_files", "too_many_open_files", "release", "certain", "may not open more files", "sglang_server_limit_nofile: 1048576"),
    ("processes", "too_many_threads", "host", "certain", "may not start more threads", ""),
    # The sandbox and the unit.
    ("unix_sockets_denied", "address_family_denied", "release", "certain", "AF_UNIX", ""),
    ("netlink_denied", "address_family_denied", "release", "certain", "AF_NETLINK", ""),
    ("system_call_killed", "system_call_denied", "release", "certain", "SystemCallFilter=", ""),
    ("system_call_refused", "permission_denied", "host", "certain", "SystemCallFilter=", ""),
    ("memory_not_executable", "mdwe", "release", "suspected", "MemoryDenyWriteExecute=no", ""),
    ("engine_not_executable", "mdwe", "release", "suspected", "NoExecPaths=", ""),
    ("program_missing", "unit_step_failed", "host", "certain", "step EXEC failed: No such file or directory", ""),
    ("user_missing", "unit_step_failed", "host", "certain", "step USER failed: No such process", ""),
    ("path_missing", "unit_step_failed", "host", "certain", "mount namespacing: /nonexistent: No such file", ""),
    ("directory_missing", "unit_step_failed", "host", "certain", "working directory failed", ""),
    ("environment_missing", "unit_not_startable", "host", "certain", "No such file or directory", ""),
    ("credential_missing", "unit_step_failed", "host", "certain", "Failed to set up credentials", ""),
    ("library_missing", "library_missing", "host", "certain", "the library libstdc++.so.6", ""),
    ("library_forbidden", "library_missing", "host", "certain", "the library libstdc++.so.6", ""),
    ("module_hidden", "package_mismatch", "release", "suspected", "module msgspec is not what the engine expects", ""),
    # What ended it.
    ("scheduler_killed", "killed", "host", "suspected", "killed from outside", ""),
    ("scheduler_crashed", "crashed", "", "suspected", "Segmentation fault", ""),
    ("main_killed", "stopped", "host", "certain", "told to stop (SIGKILL)", ""),
    ("main_killed_by_hand", "killed", "host", "suspected", "without a word", ""),
    ("stopped", "stopped", "host", "certain", "told to stop", ""),
    ("nothing", "stopped", "host", "certain", "told to stop", ""),
    ("watchdog_of_systemd", "unit_watchdog", "release", "certain", "after 15s", UNIT_OPTIONS % "WatchdogSec: 0"),
    ("start_timeout", "unit_start_timeout", "release", "certain", "raise sglang_server_start_timeout_seconds", ""),
    ("runtime_limit", "unit_runtime_limit", "release", "certain", "RuntimeMaxSec=", UNIT_OPTIONS % "RuntimeMaxSec: infinity"),
    ("start_limit", "unknown_argument", "release", "certain", "does not know the arguments --enable-nothing", FLAGS % "enable_nothing: null"),
]
# Those that did not end: what keeps them, if the journal shows it.
STALLED = {
    "address_not_local": "address_not_local",
    "proxy": "warm_up_hang_suspected",
    "scheduler_frozen": None,
    "threads": "rendezvous_hang_suspected",
}
# Those that serve all the same.
HARMLESS = ("temporary_read_only",)


def lines_of(name):
    return (FIXTURES / f"{name}.log").read_text().splitlines()


def kernel_of(name):
    path = FIXTURES / f"{name}.kernel.log"
    return path.read_text().splitlines() if path.exists() else []


def found_in(name):
    return diagnose(lines_of(name), ENDS[name]["result"], kernel_of(name), Run(control_group=f"/system.slice/{UNIT}"))


@pytest.mark.parametrize("name, code, where, certainty, words, remedy", BROKEN, ids=[row[0] for row in BROKEN])
def test_a_start_that_failed(name, code, where, certainty, words, remedy):
    found = found_in(name)
    assert (found.code, found.where, found.certainty, found.remedy) == (code, where, certainty, remedy)
    assert words in found.sentence and found.evidence
    assert ENDS[name]["ended"] == "by itself"


@pytest.mark.parametrize("name, code", STALLED.items())
def test_a_start_that_stalled(name, code):
    found = diagnose_stall(lines_of(name))
    assert (found.code if found else None) == code
    assert ENDS[name]["ended"] == "stalled"


@pytest.mark.parametrize("name", HARMLESS)
def test_a_start_that_went_well_has_no_certain_cause_in_it(name):
    assert found_in(name).certainty != "certain" and diagnose_stall(lines_of(name)) is None
    assert ENDS[name]["ended"] == "ready"


def test_a_process_that_lives_on_is_given_up():
    """It took two minutes to end by itself."""
    given_up = {name: found.code for name in ENDS for found in [diagnose_hopeless(lines_of(name))] if found}
    assert given_up == {"port_taken": "port_in_use", "port_privileged": "port_not_allowed"}
    assert all(ENDS[name]["seconds"] > 120 for name in given_up)


def test_every_breakage_is_recorded_and_has_an_answer():
    answered = [*(row[0] for row in BROKEN), *STALLED, *HARMLESS]
    assert sorted(answered) == sorted(ENDS) == sorted(BREAKAGES)
    assert {path.name.split(".")[0] for path in FIXTURES.glob("*.log")} == set(ENDS)


def test_the_recorded_journals_name_no_machine():
    texts = "".join(path.read_text() for path in FIXTURES.iterdir())
    assert "llmops-broken" not in texts and "libpod-0" in texts
