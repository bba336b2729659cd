# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Which two records a person means: by file, or by what the page of all records calls them."""

from __future__ import annotations

import difflib
import json
import os
import typing as t
from pathlib import Path

from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_view import Record, problem, shown

VARIABLE = "sglang_report_compare"
_SUFFIX = ".json"
_TOLD = 5


class ChoiceError(ValueError):
    """What was asked for is no two records; the message is for the operator."""


def choose_two(given: t.Sequence[str], records_by_host: t.Mapping[str, t.Mapping[str, Record]], records_dir: Path) -> tuple[Record, Record]:
    """Returns the record that counts as before, and that which is held against it.

    Args:
        given: two of: path of a record's file, its id as the page shows it (``HOST/NAME``), its name alone, or the beginning of one of these.
        records_by_host: by the host that they are of and the name of their file.
        records_dir: that they were found below, for the words.

    Raises:
        ChoiceError: there are not two, or one of them is no record or several.
    """
    if len(given) != 2:
        raise ChoiceError(
            f"{VARIABLE} takes two records, separated by a comma: the one that counts as before and the other; it has {len(given)}: {_list(given)}"
        )
    first, second = (_choose(text.strip(), records_by_host, records_dir) for text in given)
    if first is second or first == second:
        raise ChoiceError(f"{VARIABLE} names one record twice: {_list(given)}")
    return first, second


def _choose(text: str, records_by_host: t.Mapping[str, t.Mapping[str, Record]], records_dir: Path) -> Record:
    path = Path(os.path.expanduser(text))
    if text.endswith(_SUFFIX) and path.is_file():
        return _read(path)
    ids = {f"{host}/{_bare(name)}": record for host, records in records_by_host.items() for name, record in records.items()}
    wanted = _bare(text)
    exact = [one for one in ids if wanted and wanted in (one, one.partition("/")[2])]
    found = exact or [one for one in ids if wanted and any(name.startswith(wanted) for name in (one, one.partition("/")[2]))]
    if len(found) == 1:
        return ids[found[0]]
    if found:
        raise ChoiceError(f"{VARIABLE} names {shown(text)!r}, which is {len(found)} records: {_list(sorted(found))}; name one of them")
    near = difflib.get_close_matches(wanted, ids, n=1, cutoff=0.0)
    hint = f"the nearest is {shown(near[0])}" if near else "there is no record at all"
    raise ChoiceError(f"{VARIABLE} names {shown(text)!r}, which is neither a record's file nor the id of a record below {records_dir} (HOST/NAME); {hint}")


def _read(path: Path) -> Record:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ChoiceError(f"{VARIABLE} names {path}, which is nested too deep for a record") from None
    except (OSError, ValueError) as error:
        raise ChoiceError(f"{VARIABLE} names {path}, which cannot be read: {error}") from None
    reason = problem(document)
    if reason:
        raise ChoiceError(f"{VARIABLE} names {path}, which cannot be compared: {reason}")
    record: Record = document
    return record


def _bare(name: str) -> str:
    return name[: -len(_SUFFIX)] if name.endswith(_SUFFIX) else name


def _list(texts: t.Sequence[str]) -> str:
    more = [f"and {len(texts) - _TOLD} more"] if len(texts) > _TOLD else []
    return ", ".join([*(shown(text) for text in texts[:_TOLD]), *more]) or "none"
