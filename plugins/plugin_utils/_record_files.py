# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""The files of one host's records in an inventory: ``<records_dir>/<host>/<stamp>-<workload>-<release>.json``, reports and pictures beside them, and
``baseline.json``. Read as a whole before anything is written; written whole or not at all.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import tempfile
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils import _baseline
from ansible_collections.llmops.inference.plugins.module_utils._baseline import BaselineError
from ansible_collections.llmops.inference.plugins.plugin_utils._benchmark_view import problem

_RECORD = re.compile(r"\d{8}T\d{6}Z-.+\.json")
_FILE_MODE, _FOLDER_MODE = 0o644, 0o755


class RecordFileError(ValueError):
    """Records that cannot be kept or read; the message is for the operator."""


@dataclass(frozen=True)
class Stored:
    """What is there of one host.

    Attributes:
        folder: of the host; need not exist yet.
        records: by the name of their file, in the order of their names.
        baseline: content of ``baseline.json``, see ``_baseline``.
        baseline_text: the file as it is; empty where there is none.
    """

    folder: Path
    records: dict[str, dict[str, t.Any]]
    baseline: dict[str, t.Any]
    baseline_text: str = ""

    def baseline_of(self, workload: str) -> list[t.Mapping[str, t.Any]]:
        """Returns the records of a workload's baseline; none where it has none.

        Raises:
            RecordFileError: one of them is not there.
        """
        try:
            return _baseline.records_of(self.baseline, workload, self.records)
        except BaselineError as error:
            raise RecordFileError(f"{self.folder / _baseline.FILE}: {error}") from None


def host_folder(records_dir: Path, host: str) -> Path:
    """Returns the directory of a host's records.

    Raises:
        RecordFileError: the host's name is no name of a directory.
    """
    if not host or host.startswith(".") or "/" in host or not host.isprintable():
        raise RecordFileError(f"the records of {host!r} cannot be kept: the name of a host is that of a directory, without / and without . in front; rename it")
    return records_dir / host


def read_host(folder: Path) -> Stored:
    """Returns the records of a host; files of other kinds and hidden ones are passed over.

    Args:
        folder: see :func:`host_folder`.

    Raises:
        RecordFileError: a record or the baseline is damaged.
        OSError: one cannot be read.
    """
    texts = {path.name: path.read_bytes() for path in sorted(folder.glob("*.json")) if not path.name.startswith(".") and path.is_file()}
    text = _text(texts.pop(_baseline.FILE, b""), folder / _baseline.FILE)
    try:
        baseline = _baseline.parse(text, str(folder / _baseline.FILE))
    except BaselineError as error:
        raise RecordFileError(str(error)) from None
    records = {name: record for name, content in texts.items() for record in [_record(content, folder / name)] if record is not None}
    return Stored(folder, records, baseline, text)


def free_name(folder: Path, name: str) -> str:
    """Returns the first of ``name``, ``name-2``, ``name-3``, ... of which the folder has no record."""
    return next(one for one in _names(name) if not (folder / f"{one}.json").exists())


def write_record(folder: Path, name: str, record: t.Mapping[str, t.Any]) -> str:
    """Writes a record under the first free name, see :func:`free_name`; returns the name.

    Args:
        folder: of the host; made where it is not there, the directory above it as well.
        name: of the file without ``.json``.
        record: the whole record.

    Raises:
        OSError: it cannot be written.
    """
    for one in (folder.parent, folder):
        _make_folder(one)
    content = as_text(record).encode()
    return next(one for one in _names(name) if _write_new(folder / f"{one}.json", content))


def write_beside(target: Path, content: bytes) -> None:
    """Writes a file into the folder of a host whole or not at all, over an older one of its name.

    Raises:
        OSError: it cannot be written.
    """
    handle, hidden = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    _finish(handle, Path(hidden), target, content)


def write_changed(contents: t.Mapping[Path, bytes], check_mode: bool) -> list[Path]:
    """Writes the files whose content is another than before, each whole or not at all; returns their paths, in check mode without writing.

    Args:
        contents: by path; missing directories are made.
        check_mode: whether nothing is written.

    Raises:
        OSError: a file cannot be read or written.
    """
    changed = [path for path, content in contents.items() if not path.exists() or path.read_bytes() != content]
    for path in [] if check_mode else changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_beside(path, contents[path])
    return changed


def as_text(content: t.Mapping[str, t.Any]) -> str:
    """Returns a file's text: one value a line, so that a difference of two is readable."""
    return json.dumps(content, sort_keys=True, indent=1, allow_nan=False) + "\n"


def _names(name: str) -> t.Iterator[str]:
    return (name if number == 1 else f"{name}-{number}" for number in itertools.count(1))


def _record(content: bytes, path: Path) -> dict[str, t.Any] | None:
    """A record; None for a file of another kind.

    Raises:
        RecordFileError: it is damaged.
    """
    own = _RECORD.fullmatch(path.name)
    try:
        if not own and not isinstance(json.loads(content), dict):
            return None
    except (RecursionError, ValueError):
        return None
    try:
        found = _baseline.parse_record(_text(content, path), str(path))
    except BaselineError as error:
        raise RecordFileError(str(error)) from None
    except RecursionError:
        raise RecordFileError(f"{path} is damaged: it is nested too deep for a record; restore it from git") from None
    wrong = problem(found) if found is not None else ""
    if wrong:
        raise RecordFileError(f"{path} is damaged: {wrong}; restore it from git")
    return found


def _text(content: bytes, path: Path) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise RecordFileError(f"{path} is damaged: {error}; restore it from git") from None


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir()
    except FileExistsError:
        return
    folder.chmod(_FOLDER_MODE)


def _write_new(target: Path, content: bytes) -> bool:
    """Writes a file whole or not at all; False where there is one of its name, or somebody else writes one.

    Whoever makes the hidden file has the name: a second one sees either that or what became of it.

    Raises:
        OSError: it cannot be written.
    """
    hidden = target.with_name(f".{target.name}.new")
    try:
        handle = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        return False
    if target.exists():
        os.close(handle)
        hidden.unlink()
        return False
    _finish(handle, hidden, target, content)
    return True


def _finish(handle: int, hidden: Path, target: Path, content: bytes) -> None:
    done = False
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        hidden.chmod(_FILE_MODE)
        os.replace(hidden, target)
        done = True
    finally:
        if not done:
            hidden.unlink()
