# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What the gate on a host needs of the controller: its settings, and the records that a change is judged by."""

from __future__ import annotations

import typing as t
from dataclasses import asdict
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._gate import GateError, read_settings
from ansible_collections.llmops.inference.plugins.module_utils._workload import SHIPPED
from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import RecordFileError, host_folder, read_host

# Whatever of the host's past tells how far its starts differ is small; a record is not, and all of them travel.
_NOT_OF_THE_PAST = ("vitals", "effective", "silent_changes", "flags", "verdict")
_NOT_OF_A_POINT = ("itl_histogram_ms", "summary")
_NOT_OF_A_REPETITION = ("errors", "gpus", "server")


class GateInputError(ValueError):
    """The gate cannot be set up; the message is for the operator."""


def gate_inputs(records_dir: Path, host: str, settings: t.Any) -> dict[str, t.Any]:
    """Returns the gate's ``settings`` (all of them, plain), ``baseline`` and ``history`` (whole records, and reduced ones without the baseline's).

    Args:
        records_dir: directory of the inventory's records; need not exist.
        host: name of the host in the inventory.
        settings: what ``sglang_server_gate`` holds.

    Raises:
        GateInputError: a setting has no meaning, or a record or the baseline is damaged.
        OSError: a file cannot be read.
    """
    try:
        read = read_settings(settings, workloads=SHIPPED)
        stored = read_host(host_folder(records_dir, host))
        baseline = stored.baseline_of(read.workload)
    except (GateError, RecordFileError) as error:
        raise GateInputError(str(error)) from None
    # A baseline's starts speak for themselves, and those of another workload do not count.
    any_workload, apart = "workload" in read.ignore_conditions, {id(record) for record in baseline}
    others = [record for record in stored.records.values() if id(record) not in apart]
    history = [_reduced(record) for record in others if any_workload or record["workload"]["name"] == read.workload]
    return {"settings": {**asdict(read), "ignore_conditions": list(read.ignore_conditions)}, "baseline": baseline, "history": history}


def _reduced(record: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    starts = [{**start, "points": [_point(point) for point in start["points"]]} for start in record["starts"]]
    return {**_without(record, _NOT_OF_THE_PAST), "starts": starts}


def _point(point: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    return {**_without(point, _NOT_OF_A_POINT), "repetitions": [_without(repetition, _NOT_OF_A_REPETITION) for repetition in point["repetitions"]]}


def _without(data: t.Mapping[str, t.Any], names: t.Sequence[str]) -> dict[str, t.Any]:
    return {name: value for name, value in data.items() if name not in names}
