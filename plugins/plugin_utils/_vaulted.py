# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Lets an inventory be read without the vault's password: a word that tells one ciphertext from another stands for each encrypted value.

Of a file that is encrypted as a whole the names are not visible. Those that other files refer to are taken for its own, if they begin with ``vault_``, which is
the usual way to name them (https://docs.ansible.com/ansible/latest/tips_tricks/ansible_tips_tricks.html#keep-vaulted-variables-safely-visible), and if neither
a file beside it defines them nor any file as a single encrypted value. Which of several such files has a value cannot be seen: its word is made of all those
that Ansible reads for the host.
"""

from __future__ import annotations

import hashlib
import re
import typing as t
from pathlib import Path

HEADER = "$ANSIBLE_VAULT;"
_WORD = re.compile(r"vaulted-[0-9a-f]{8}")
_BODY = r"(?:\$ANSIBLE_VAULT;\S+|[0-9a-fA-F]+)"
_BLOCK = re.compile(rf"!vault(?:-encrypted)?[ \t]*[|>][-+0-9]*[ \t]*(?:#.*)?\n((?:[ \t]*\n)*(?:[ \t]+{_BODY}[ \t]*(?:\n|\Z))+)")
_QUOTED = re.compile(r"!vault(?:-encrypted)?[ \t]+([\"'])(\$ANSIBLE_VAULT;[^\"']+)\1")
_NAME = re.compile(r"\bvault_\w+")
_DEFINED = re.compile(r"^[\"']?(vault_\w+)[\"']?[ \t]*:", re.MULTILINE)
_ENCRYPTED = re.compile(r"^[\"']?(vault_\w+)[\"']?[ \t]*:[ \t]*!vault", re.MULTILINE)
# Of a file that is encrypted as a whole: one with one of these has variables, any other is content that something looks up.
_SUFFIXES = (".yml", ".yaml", ".json", "")
_READ = (*_SUFFIXES, ".j2", ".ini", ".cfg")
_VARIABLE = "__llmops_vaulted_"
_JOINT = (
    f"\"vaulted-{{{{ query('ansible.builtin.vars', *(query('ansible.builtin.varnames', '^{_VARIABLE}') | sort)) | join | ansible.builtin.hash('sha256')"
    " | ansible.builtin.regex_replace('^(.{8}).*', '\\\\1') }}\""
)
# No file of variables is that large; records and pictures are.
_LARGEST_BYTES = 1_000_000


def described(value: t.Any) -> str:
    """Returns where a secret comes from, without telling anything of it that the repository does not show."""
    words = " ".join(word[-8:] for word in _WORD.findall(str(value)))
    if not words:
        return "plain text"
    return f"vaulted {words}" if is_placeholder(value) else f"vaulted {words} with other text"


def is_placeholder(value: t.Any) -> bool:
    """True for the word of one encrypted value, and nothing else around it."""
    return bool(_WORD.fullmatch(str(value)))


def placeholder(ciphertext: str) -> str:
    """Returns the word for an encrypted value."""
    return f"vaulted-{hashlib.sha256(''.join(ciphertext.split()).encode()).hexdigest()[:8]}"


def replace_values(text: str) -> str:
    """Returns YAML text with a word in the place of each encrypted value."""
    text = _BLOCK.sub(lambda found: f'"{placeholder(found[1])}"\n', text)
    # In double quotes a line's end is written as one.
    return _QUOTED.sub(lambda found: f'"{placeholder(found[2].replace(chr(92) + "n", " "))}"', text)


def hide(folder: Path) -> list[Path]:
    """Replaces what is encrypted in all files below a directory, for a copy that is read and thrown away.

    Returns:
        The files that were encrypted as a whole, relative to the directory.

    Raises:
        OSError: a file cannot be read or written.
    """
    paths = [path for path in sorted(folder.rglob("*")) if not path.is_symlink() and path.is_file()]
    whole = [path for path in paths if _begins_encrypted(path)]
    texts = {path: _text(path) for path in paths if path.suffix in _READ and path not in whole}
    for path, text in texts.items():
        hidden = replace_values(text)
        if hidden != text:
            path.write_text(hidden, encoding="utf-8")
    for path in whole:
        word = placeholder(path.read_text(encoding="utf-8", errors="replace"))
        text = _stand_in(word, _names(path, texts)) if path.suffix in _SUFFIXES else word
        path.write_text(text, encoding="utf-8")
    return [path.relative_to(folder) for path in whole]


def _names(encrypted: Path, texts: t.Mapping[Path, str]) -> list[str]:
    """Names that a file may define which is encrypted as a whole."""
    named = {name for text in texts.values() for name in _NAME.findall(text)}
    single = {name for text in texts.values() for name in _ENCRYPTED.findall(text)}
    beside = {name for path, text in texts.items() if _place(path) == _place(encrypted) for name in _DEFINED.findall(text)}
    return sorted(named - single - beside)


def _place(path: Path) -> Path:
    """What a file has in common with those that define variables of the same group or host."""
    return path.parent if path.parent.parent.name in ("group_vars", "host_vars") else path.with_suffix("")


def _stand_in(word: str, names: t.Iterable[str]) -> str:
    """The text of a file of variables that cannot be read."""
    own = f"{_VARIABLE}{word[-8:]}: {word}\n"
    return own + "".join(f"{name}: {_JOINT}\n" for name in names)


def _begins_encrypted(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(HEADER)) == HEADER.encode()


def _text(path: Path) -> str:
    """The text of a file; empty for one that is none, or too large to be one of variables."""
    if path.stat().st_size > _LARGEST_BYTES:
        return ""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""
