# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""What was last deployed to each host, kept beside the inventory: ``<deployed_dir>/<host>.json``.

What is to be deployed is the inventory against this, never against another commit: of three merges during one deployment CI may drop two.
"""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

from ansible_collections.llmops.inference.plugins.plugin_utils._record_files import host_folder

FORMAT = 1
KIND = "deployed"


class DeployedError(ValueError):
    """A file is damaged; the message is for the operator."""


def path_of(deployed_dir: Path, host: str) -> Path:
    """Returns the file of a host.

    Raises:
        RecordFileError: the host's name is no name of a file.
    """
    return host_folder(deployed_dir, host).with_name(f"{host}.json")


def read(deployed_dir: Path, host: str) -> dict[str, t.Any]:
    """Returns what was last deployed to a host; empty where nothing was.

    Raises:
        DeployedError: the file is damaged.
        RecordFileError: as :func:`path_of`.
        OSError: it cannot be read.
    """
    path = path_of(deployed_dir, host)
    if not path.is_file():
        return {}
    try:
        found: dict[str, t.Any] = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DeployedError(f"{path} is damaged: {error}; without it the host counts as never deployed") from None
    if not _whole(found):
        raise DeployedError(f"{path} does not say what was deployed (format {FORMAT}); without it the host counts as never deployed")
    return found


def _whole(found: t.Any) -> bool:
    return (
        isinstance(found, dict)
        and (found.get("format"), found.get("kind")) == (FORMAT, KIND)
        and isinstance(found.get("release"), str)
        and found["release"] != ""
        and isinstance(found.get("secrets"), (dict, type(None)))
    )


def document(host: str, release: str, action: str, **more: t.Any) -> dict[str, t.Any]:
    """Returns what is written of a deployment.

    Args:
        host: name of the host.
        release: id of the release that serves.
        action: what sglang_release did.
        more: ``secrets`` (digests of the ciphertexts by name) and ``boot`` (whether it starts with the machine), None where they were not looked at;
            ``commit`` and ``dirty`` of the inventory, ``at`` (UTC), ``by`` (user and controller).
    """
    return {"format": FORMAT, "kind": KIND, "host": host, "release": release, "action": action, **more}


def reason(rendered: t.Mapping[str, t.Any], last: t.Mapping[str, t.Any]) -> str:
    """Returns why a host is to be deployed; empty when it has what the inventory asks for.

    Args:
        rendered: the host's document, see ``_rendered``.
        last: of :func:`read`.
    """
    if rendered["problems"]:
        return f"its release could not be rendered here: {rendered['problems'][0]}"
    release = rendered["release"]["id"]
    if not last:
        return f"nothing was deployed to it yet: {release}"
    if last["release"] != release:
        return f"{last['release']} -> {release}"
    if last.get("boot") not in (None, rendered["boot"]):
        return "it is to start with the machine" if rendered["boot"] else "it is no longer to start with the machine"
    return _about_secrets(rendered["secrets"], last.get("secrets"))


def _about_secrets(asked: t.Mapping[str, str], last: t.Mapping[str, str] | None) -> str:
    if last is None:
        return "its secrets were not compared when it was deployed" if asked else ""
    changed = sorted(name for name in {*last, *asked} if last.get(name) != asked.get(name))
    return f"a secret changed: {', '.join(changed)}" if changed else ""
