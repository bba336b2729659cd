# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What lies beside the page of all records: a comparison of two, and pictures. Files are data here: whoever calls writes them."""

from __future__ import annotations

import functools
import re
import typing as t
from dataclasses import dataclass, field

from ansible_collections.llmops.inference.plugins.module_utils._record_compare import compare_records
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_markdown import comparison_report
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_plots import FORMS, NO_PICTURE, comparison_plot, history_plot
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_series import entries, series_of
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_view import Record

if t.TYPE_CHECKING:
    from pathlib import Path

_TOLD = 3


@dataclass
class Files:
    """Files to write, and what became of none.

    Attributes:
        contents: by their path.
        undrawn: by the reason, what has no picture.
    """

    contents: dict[Path, bytes] = field(default_factory=dict)
    undrawn: dict[str, list[str]] = field(default_factory=dict)

    def draw(self, target: Path, picture: t.Callable[[str], bytes]) -> None:
        """Adds a picture in all forms.

        Args:
            target: path without suffix.
            picture: makes it in the form that it is given.
        """
        try:
            drawn = {form: picture(form) for form in FORMS}
        except NO_PICTURE as error:
            self.undrawn.setdefault(str(error), []).append(target.name)
        else:
            self.contents.update((target.with_name(f"{target.name}.{form}"), content) for form, content in drawn.items())

    @property
    def remarks(self) -> list[str]:
        """A sentence for each reason why something has no picture."""
        return [f"there is no picture of {_list(names)}: {reason}" for reason, names in self.undrawn.items()]


def add_comparison(files: Files, target: Path, pair: tuple[Record, Record], history: t.Iterable[Record], plots: bool) -> dict[str, t.Any]:
    """Adds the report of two records; returns what ``compare_records`` says.

    Args:
        files: is added to.
        target: path of the report; the pictures have its name, and their own suffix.
        pair: the record that counts as before, and the other.
        history: further records, which tell how far starts differ.
        plots: whether pictures are wanted.
    """
    comparison = compare_records([pair[0]], [pair[1]], history=history)
    files.contents[target] = comparison_report([pair[0]], [pair[1]], comparison).encode()
    if plots:
        files.draw(target.with_suffix(""), lambda form: comparison_plot(pair, form))
    return comparison


def add_histories(files: Files, folder: Path, records_by_host: t.Mapping[str, t.Mapping[str, Record]]) -> None:
    """Adds a picture of each history that has more than one record.

    Args:
        files: is added to.
        folder: to put them into.
        records_by_host: by the host that they are of and the name of their file.
    """
    names: set[str] = set()
    for (host, instance, workload), own in sorted(series_of(entries(records_by_host, {})).items()):
        if len(own) > 1:
            name = _free("-".join(["history", host, *([] if instance == "main" else [instance]), workload]), names)
            files.draw(folder / name, functools.partial(history_plot, [entry.record for entry in own]))


def _free(text: str, taken: set[str]) -> str:
    """A name that any file system takes, and that no other history has."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", text)
    name, number = plain, 1
    while name in taken:
        number += 1
        name = f"{plain}-{number}"
    taken.add(name)
    return name


def _list(names: t.Sequence[str]) -> str:
    more = [f"{len(names) - _TOLD} more"] if len(names) > _TOLD else []
    return " and ".join(filter(None, [", ".join(names[:_TOLD]), *more]))
