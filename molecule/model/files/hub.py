#!/usr/bin/env python
# Copyright (c) 2026 the llmops.inference authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for a model hub, with the faults a real one won't produce on demand.

Usage: hub.py PORT DIRECTORY TOKEN. Repositories: llmops/tiny (needs the token), llmops/gated (403), llmops/wrong (a digest that does not fit),
anything else 404. What it serves is what huggingface_hub asks for:
/api/models/ID/revision/REV, /api/models/ID/tree/REV and /ID/resolve/REV/FILE.
"""

from __future__ import annotations

import hashlib
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PORT, DIRECTORY, TOKEN = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def siblings(wrong: bool) -> list[dict]:
    """The files of a repository; large ones carry their digest, as on a real hub."""
    found = []
    for path in sorted(DIRECTORY.iterdir()):
        entry: dict = {"rfilename": path.name, "size": path.stat().st_size, "blobId": "0" * 40}
        if path.suffix == ".safetensors":
            entry["lfs"] = {"sha256": "0" * 64 if wrong else digest(path), "size": path.stat().st_size, "pointerSize": 134}
        found.append(entry)
    return found


def tree() -> list[dict]:
    """The same files as the tree listing names them."""
    renamed = {"rfilename": "path", "blobId": "oid"}
    entries = [{renamed.get(key, key): value for key, value in entry.items()} for entry in siblings(False)]
    for entry in entries:
        entry["type"] = "file"
        if "lfs" in entry:
            entry["lfs"]["oid"] = entry["lfs"].pop("sha256")
    return entries


class Hub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def refuse(self, status: int, code: str) -> None:
        self.answer(status, b"{}", X_Error_Code=code, X_Error_Message=code)

    def do_GET(self) -> None:
        parts = self.path.split("?")[0].strip("/").split("/")
        api = parts[:2] == ["api", "models"]
        if len(parts) < (6 if api else 5):
            self.refuse(404, "EntryNotFound")
            return
        name = "/".join(parts[2:4] if api else parts[:2])
        revision = parts[5] if api else parts[3]
        if name == "llmops/gated":
            self.refuse(403, "GatedRepo")
        elif name not in ("llmops/tiny", "llmops/wrong") or self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.refuse(404, "RepoNotFound")
        elif revision != COMMIT:
            self.refuse(404, "RevisionNotFound")
        elif api and parts[4] == "tree":
            self.answer(200, json.dumps(tree()).encode(), Content_Type="application/json")
        elif api:
            document = {"id": name, "modelId": name, "sha": COMMIT, "private": False, "siblings": siblings(name == "llmops/wrong"), "tags": []}
            self.answer(200, json.dumps(document).encode(), Content_Type="application/json")
        else:
            path = DIRECTORY / parts[4]
            etag = digest(path) if path.suffix == ".safetensors" else hashlib.sha1(path.read_bytes()).hexdigest()
            self.answer(200, path.read_bytes(), ETag=f'"{etag}"', X_Repo_Commit=COMMIT, Content_Type="application/octet-stream")

    do_HEAD = do_GET


ThreadingHTTPServer(("127.0.0.1", PORT), Hub).serve_forever()
