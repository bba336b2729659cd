# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""Keeps secrets out of what is stored or shown. The engine itself prints its API keys (``server_args=`` line, ``/server_info``)."""

from __future__ import annotations

import re
import typing as t

MASK = "********"
_NAME = r"(?:[a-z_-]*(?:api[_-]key|password|secret)|hf_token)"
_PATTERNS = (
    re.compile(r"((?:api[_-]key|password|secret|hf_token)['\"]?\s*[=:,\s]\s*)(['\"])((?:\\.|(?!\2).)*)(\2)", re.IGNORECASE),
    re.compile(rf"((?<![\w-])--{_NAME}[= ])()([^\s'\"]+)()", re.IGNORECASE),
    re.compile(r"(Bearer )()([A-Za-z0-9._~+/=-]+)()"),
    re.compile(r"()()(hf_[A-Za-z0-9]{8,})()"),
    # user:password@ of a URL (RFC 3986, 3.2.1); one that is unquoted may hold an @.
    re.compile(r"(://[^\s/:@\"]{0,256}:)()([^\s/\"]{1,256})(@)"),
)
_ENVIRONMENT_SECRET = re.compile(r"(^|_)(TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(_|$)", re.IGNORECASE)


def is_secret_variable(name: str) -> bool:
    """True for an environment variable whose name says that its value is a secret (``HF_TOKEN``, ``AWS_SECRET_ACCESS_KEY``)."""
    return bool(_ENVIRONMENT_SECRET.search(name)) and not name.upper().endswith(("_PATH", "_FILE", "_DIR"))


def holds_password(value: str) -> bool:
    """True for a value with a URL that has a password (``http://user:password@proxy:3128``)."""
    return bool(_PATTERNS[-1].search(value))


def redact(text: str, secrets: t.Iterable[str] = ()) -> str:
    """Returns the text with known secrets, and whatever looks like one, masked.

    Args:
        text: any text, for example a line of the journal.
        secrets: values to mask wherever they stand; values under four characters are left to the patterns.
    """
    for secret in sorted((value for value in secrets if len(value) >= 4), key=len, reverse=True):
        text = text.replace(secret, MASK)
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\g<1>\g<2>{MASK}\g<4>", text)
    return text


def redact_data(value: t.Any, secrets: t.Iterable[str] = ()) -> t.Any:
    """Returns a copy of JSON-like data: secret fields masked by name, all strings by :func:`redact`."""
    secrets = tuple(secrets)
    if isinstance(value, t.Mapping):
        return {key: MASK if re.fullmatch(_NAME, str(key), re.IGNORECASE) and inner else redact_data(inner, secrets) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact_data(inner, secrets) for inner in value]
    return redact(value, secrets) if isinstance(value, str) else value


def redact_environment(environment: t.Mapping[str, t.Any]) -> dict[str, str]:
    """Returns environment variables as text: the secret ones masked by their names, all others by :func:`redact`."""
    return {name: MASK if is_secret_variable(name) else redact(str(value)) for name, value in environment.items()}
