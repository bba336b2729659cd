# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Releases of one server: what was proven together, under an id that hashes meaning and not bytes.

Layout below the store of an instance (root only, never below a directory that the unit owns)::

    releases/<id>/  release.json  unit.service  environment  state.json  [preflight.json  vitals.json  benchmark.json]
    good            link to the release that /etc holds
    secrets/        secrets.yaml  environment  mac  key      never part of a release, never rolled back
    lock            who holds it, as JSON

``state.json`` is written before the step that it names: staged, starting, ready, good; or failed, with the diagnosis.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import json
import os
import secrets as random_source
import shutil
import time
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.llmops.inference.plugins.module_utils._systemd import environment_file, meaning, parse_unit

FORMAT = 1
PLACEHOLDER = "@RELEASE@"


class StoreError(RuntimeError):
    """The store of releases cannot do what was asked; the message is for the operator."""


class StoreBusy(StoreError):
    """Another job holds the lock of this instance.

    Args:
        holder: what that job wrote about itself: purpose, release, since, by, pid; empty where it could not be read.
    """

    def __init__(self, holder: t.Mapping[str, t.Any]) -> None:
        self.holder = dict(holder)
        who = f", by {holder['by']}" if holder.get("by") else ""
        super().__init__(
            f"another run holds the lock of this server: {holder.get('purpose') or 'unknown'}, since {holder.get('since') or 'unknown'}{who}; "
            "wait for it to end"
        )


@dataclass(frozen=True)
class Candidate:
    """A release as the inventory asks for it.

    Attributes:
        unit: text of the unit, with ``@RELEASE@`` where the release's directory goes.
        argv: arguments of the server, secrets excluded.
        environment: environment variables that are no secrets.
        engine: identity of the engine (version, flavour, lock).
        model: identity of the model (name, revision).
        secret_names: names of the secrets handed over beside the release.
        probe: where and as what the server answers (host, port, tls, ca_path, model_name), kept so that a later rollback can prove it.
        preflight: what the engine was expected to make of it; told, not part of the id.
    """

    unit: str
    argv: tuple[str, ...]
    environment: t.Mapping[str, str] = field(default_factory=dict)
    engine: t.Mapping[str, str] = field(default_factory=dict)
    model: t.Mapping[str, str] = field(default_factory=dict)
    secret_names: tuple[str, ...] = ()
    probe: t.Mapping[str, t.Any] = field(default_factory=dict)
    preflight: t.Mapping[str, t.Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits of the SHA-256 over the meaning; comments and layout of the unit do not count."""
        document = {
            "format": FORMAT,
            "unit": meaning(parse_unit(self.unit)),
            "argv": list(self.argv),
            "environment": dict(self.environment),
            "engine": dict(self.engine),
            "model": dict(self.model),
            "secrets": sorted(self.secret_names),
        }
        return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:12]

    def document(self) -> dict[str, t.Any]:
        """Returns what ``release.json`` holds."""
        return {
            "format": FORMAT,
            "id": self.id,
            "argv": list(self.argv),
            "environment": dict(self.environment),
            "engine": dict(self.engine),
            "model": dict(self.model),
            "secrets": sorted(self.secret_names),
            "probe": dict(self.probe),
        }


def write_atomically(path: Path, text: str, mode: int = 0o600) -> None:
    """Writes a file so that a reader sees the old or the new one, whole, whatever dies."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w") as stream:
        os.fchmod(stream.fileno(), mode)
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(scratch, path)


def _previous(history: t.Sequence[dict[str, t.Any]]) -> dict[str, t.Any] | None:
    """The release that was good before the good one."""
    return next((one for one in history if one["state"] == "good" and not one["good"]), None)


def _take(stream: t.TextIO, how: int = fcntl.LOCK_EX) -> None:
    """Locks the open file, or says who has it locked."""
    try:
        fcntl.flock(stream, how | fcntl.LOCK_NB)
    except OSError:
        stream.seek(0)
        raise StoreBusy(_holder(stream.read())) from None


def _holder(text: str) -> dict[str, t.Any]:
    """What the lock's file says; empty while its holder is still writing it."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


class Store:
    """The releases of one instance.

    Args:
        path: directory of the instance.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.releases = path / "releases"

    def prepare(self) -> None:
        """Makes the directories, root only.

        Raises:
            StoreError: something else has the name of one.
        """
        for folder in (self.path, self.releases, self.path / "secrets"):
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except (FileExistsError, NotADirectoryError):
                raise StoreError(f"{folder} is no directory, so the store of releases cannot be used: move away what has its name") from None
            folder.chmod(0o700)

    @contextlib.contextmanager
    def locked(self, purpose: str, release: str = "", by: str = "") -> t.Iterator[None]:
        """Holds the instance's lock.

        Args:
            purpose: what for, in words.
            release: id of the release it is about.
            by: who asked for it (user and controller).

        Raises:
            StoreBusy: another job holds it.
            StoreError: the store cannot be used.
        """
        self.prepare()
        with open(self.path / "lock", "a+") as stream:
            _take(stream)
            holder = {"purpose": purpose, "release": release, "since": time.strftime("%Y-%m-%d %H:%M:%S"), "by": by, "pid": os.getpid()}
            stream.truncate(0)
            stream.write(json.dumps(holder))
            stream.flush()
            yield

    def free(self) -> None:
        """Does nothing when nobody holds the lock.

        Raises:
            StoreBusy: a job holds it.
        """
        path = self.path / "lock"
        if path.exists():
            with open(path) as stream:
                _take(stream, fcntl.LOCK_SH)

    @property
    def good(self) -> str:
        """Id of the release that /etc holds, or an empty string."""
        link = self.path / "good"
        return os.path.basename(os.readlink(link)) if link.is_symlink() else ""

    def directory(self, release: str) -> Path:
        """Directory of a release."""
        return self.releases / release

    def unit_text(self, release: str) -> str:
        """The unit of a release as it stands in /etc when the release is good; empty when it is not known."""
        path = self.directory(release) / "unit.service"
        return path.read_text() if release and path.exists() else ""

    def environment_text(self, release: str) -> str | None:
        """What the unit of a release reads as its environment; None when it is not there."""
        path = self.directory(release) / "environment"
        return path.read_text() if path.exists() else None

    def candidate(self, release: str) -> Candidate:
        """Returns a stored release as a candidate; its id is the same.

        Raises:
            StoreError: the store does not have it whole.
        """
        document, unit = self.read(release, "release"), self.unit_text(release)
        if not document or not unit:
            raise StoreError(f"release {release} is not whole in {self.releases}: it cannot be gone back to")
        found = Candidate(
            unit.replace(str(self.directory(release)), PLACEHOLDER),
            tuple(document["argv"]),
            document["environment"],
            document["engine"],
            document["model"],
            tuple(document["secrets"]),
            document["probe"],
            self.read(release, "preflight"),
        )
        if found.id != release:
            raise StoreError(f"release {release} is not what it was: its files in {self.releases} now make {found.id}; it cannot be gone back to")
        return found

    def find(self, name: str) -> str:
        """Returns the id of a release.

        Args:
            name: ``good``, ``previous`` (the last one that was good before), or the beginning of an id.

        Raises:
            StoreError: there is none, or there are several.
        """
        known = self.history()
        ids = [one["release"] for one in known]
        if name == "good":
            found = [self.good] if self.good else []
        elif name == "previous":
            found = [one["release"] for one in [_previous(known)] if one]
        else:
            found = [one for one in ids if name and one.startswith(name)]
        if len(found) != 1:
            what = "no release" if not found else "several releases"
            raise StoreError(f"there {'is' if not found else 'are'} {what} {name!r} of this server here: {', '.join(ids) or 'none at all'}")
        return found[0]

    def history(self) -> list[dict[str, t.Any]]:
        """Returns the releases on this host: the good one, the one that was good before it, then the others from new to old.

        Each has: release, state, good (whether /etc holds it), since (wall-clock seconds of its state, 0 when not known), cause (of a failure).
        """
        if not self.releases.is_dir():
            return []
        found = []
        for folder in self.releases.iterdir():
            state = self._state(folder.name)
            found.append(
                {
                    "release": folder.name,
                    "state": state.get("state", "unknown"),
                    "good": folder.name == self.good,
                    "since": state.get("since", 0.0),
                    "cause": state.get("diagnosis", {}).get("cause", ""),
                }
            )
        found.sort(key=lambda one: (not one["good"], -one["since"], one["release"]))
        return sorted(found, key=lambda one: (not one["good"], one is not _previous(found)))

    def _state(self, release: str) -> dict[str, t.Any]:
        """State of a release; ``damaged`` where its document is."""
        try:
            return self.read(release, "state")
        except StoreError:
            return {"state": "damaged"}

    def stage(self, candidate: Candidate) -> Path:
        """Writes a candidate's files and returns its directory."""
        folder = self.directory(candidate.id)
        folder.mkdir(mode=0o700, exist_ok=True)
        write_atomically(folder / "unit.service", candidate.unit.replace(PLACEHOLDER, str(folder)))
        write_atomically(folder / "environment", environment_file(candidate.environment))
        self.write(candidate.id, "release", candidate.document())
        if candidate.preflight:
            self.write(candidate.id, "preflight", candidate.preflight)
        return folder

    def write(self, release: str, name: str, document: t.Mapping[str, t.Any]) -> None:
        """Writes ``<name>.json`` of a release."""
        write_atomically(self.directory(release) / f"{name}.json", json.dumps(document, indent=1, sort_keys=True) + "\n")

    def read(self, release: str, name: str) -> dict[str, t.Any]:
        """Reads ``<name>.json`` of a release; empty when there is none.

        Raises:
            StoreError: it is no JSON object.
        """
        path = self.directory(release) / f"{name}.json"
        if not release or not path.exists():
            return {}
        try:
            document = json.loads(path.read_text())
        except ValueError as error:
            raise StoreError(f"{path} is damaged ({error}); remove {path.parent} if that release is not needed") from None
        if not isinstance(document, dict):
            raise StoreError(f"{path} is damaged (no JSON object); remove {path.parent} if that release is not needed")
        return document

    def mark_good(self, release: str) -> None:
        """Makes a release the good one."""
        scratch = self.path / ".good"
        if scratch.is_symlink():
            scratch.unlink()
        scratch.symlink_to(Path("releases") / release)
        os.replace(scratch, self.path / "good")

    def prune(self, keep: int, spare: str = "") -> list[str]:
        """Removes releases beyond ``keep``, the last of :meth:`history`, and returns their ids; never the good one, nor ``spare``."""
        doomed = [one["release"] for one in self.history()[max(1, keep) :] if not one["good"] and one["release"] != spare]
        for release in doomed:
            shutil.rmtree(self.directory(release))
        return doomed

    def secrets_mac(self, flags: t.Mapping[str, t.Any], environment: t.Mapping[str, str]) -> str:
        """Returns a keyed digest of the secrets; the key never leaves this host, so the digest says nothing elsewhere."""
        key_path = self.path / "secrets" / "key"
        if not key_path.exists():
            write_atomically(key_path, random_source.token_hex(32))
        text = json.dumps([dict(flags), dict(environment)], sort_keys=True)
        return hmac.new(key_path.read_text().encode(), text.encode(), hashlib.sha256).hexdigest()

    def secrets_current(self, mac: str) -> bool:
        """True when the running server got exactly these secrets."""
        path = self.path / "secrets" / "mac"
        return path.exists() and hmac.compare_digest(path.read_text(), mac)

    def write_secrets(self, flags: t.Mapping[str, t.Any], environment: t.Mapping[str, str]) -> None:
        """Writes the secrets: flags as the engine's ``--config`` file (JSON is YAML), variables as an environment file."""
        folder = self.path / "secrets"
        document = {name.replace("_", "-"): value for name, value in flags.items()}
        write_atomically(folder / "secrets.yaml", json.dumps(document, indent=1) + "\n")
        write_atomically(folder / "environment", environment_file(environment))

    def confirm_secrets(self, mac: str) -> None:
        """Notes that a server was started with the secrets of this digest."""
        write_atomically(self.path / "secrets" / "mac", mac)
