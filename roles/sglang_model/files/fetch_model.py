#!/usr/bin/env python
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Downloads one model of a hub at a pinned commit with huggingface_hub: disk checked before, sizes and SHA-256 after, marker written last.

Interrupted downloads resume. Exits with status 1 and one sentence on standard error when the model cannot be had whole.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import typing as t
from pathlib import Path

from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

MARKER = ".llmops-model.json"
_CHUNK = 1 << 24


class FetchError(RuntimeError):
    """The model cannot be had; the message is for the operator."""


def sha256(path: Path) -> str:
    """Returns the hexadecimal SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def check_disk(files: t.Sequence[t.Any], directory: Path) -> None:
    """Refuses when what is still missing does not fit, with a tenth to spare."""
    missing = sum(file.size or 0 for file in files if not (directory / file.rfilename).exists())
    free = shutil.disk_usage(directory).free
    if missing * 1.1 > free:
        raise FetchError(f"the model needs {missing / 1e9:.1f} GB more and {free / 1e9:.1f} GB are free below {directory}")


def verify(files: t.Sequence[t.Any], directory: Path) -> None:
    """Compares every file with what the hub says of this commit; a wrong file is removed, so that the next run fetches it again."""
    for file in files:
        path = directory / file.rfilename
        if file.size is not None and path.stat().st_size != file.size:
            path.unlink()
            raise FetchError(f"{file.rfilename} was truncated: not {file.size} bytes; run again to fetch it anew")
        if file.lfs is not None and sha256(path) != file.lfs.sha256:
            path.unlink()
            raise FetchError(f"{file.rfilename} does not have the SHA-256 that the hub names; run again to fetch it anew")


def fetch(repository: str, revision: str, directory: Path) -> dict[str, t.Any]:
    """Downloads and verifies; returns what the marker holds."""
    info = HfApi().model_info(repository, revision=revision, files_metadata=True)
    files = list(info.siblings or [])
    check_disk(files, directory)
    snapshot_download(repository, revision=revision, local_dir=directory)
    verify(files, directory)
    # What resuming needs; its locks are writable for everybody.
    shutil.rmtree(directory / ".cache", ignore_errors=True)
    return {"repository": repository, "revision": info.sha, "files": {file.rfilename: file.size for file in files}}


def explain(error: Exception, repository: str) -> str:
    """Returns one sentence for an error."""
    if isinstance(error, FetchError):
        return str(error)
    if isinstance(error, GatedRepoError):
        return f"{repository} is gated: accept its licence on the hub and set sglang_model_hub_token"
    if isinstance(error, RevisionNotFoundError):
        return f"{repository} has no such revision: correct sglang_model_revision"
    if isinstance(error, RepositoryNotFoundError):
        return f"{repository} does not exist, or sglang_model_hub_token may not read it"
    return f"{type(error).__name__}: {error}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repository", required=True)
    parser.add_argument("--revision", required=True)
    parser.add_argument("--directory", required=True, type=Path)
    options = parser.parse_args()
    os.umask(0o022)
    try:
        document = fetch(options.repository, options.revision, options.directory)
    # Errors of the transport (httpx) share no type with those of the hub.
    except Exception as error:
        print(explain(error, options.repository), file=sys.stderr)
        return 1
    (options.directory / MARKER).write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
