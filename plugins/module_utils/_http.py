# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# PRIVATE to this collection: no promise of stability outside it.
"""A small HTTP client for the server on this host. It never uses a proxy: proxies that intercept loopback are a known fault (N03)."""

from __future__ import annotations

import http.client
import json
import ssl
import typing as t
import urllib.error
import urllib.request
from dataclasses import dataclass


class ClientError(RuntimeError):
    """The client cannot be made; the message is for the operator."""


@dataclass(frozen=True)
class Reply:
    """What came back. ``status`` is 0 when there was no HTTP answer; ``error`` then says why."""

    status: int
    body: str = ""
    error: str = ""

    def json(self) -> t.Any:
        """Returns the parsed body, or None when it is no JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


def probe_host(bind: str) -> str:
    """Returns the address under which a server bound to ``bind`` answers on its own host."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(bind, bind)


def base_url(bind: str, port: int, tls: bool = False) -> str:
    """Returns the URL of a server bound to ``bind``; IPv6 addresses are bracketed."""
    host = probe_host(bind)
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


class Client:
    """Requests to one server.

    Args:
        url: base URL without a trailing slash.
        api_key: sent as a bearer token when not empty.
        ca_path: CA bundle for https, or None for the system's.

    Raises:
        ClientError: the CA bundle cannot be read.
    """

    def __init__(self, url: str, api_key: str = "", ca_path: str | None = None) -> None:
        self.url = url
        self._headers = {"Content-Type": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if url.startswith("https"):
            try:
                context = ssl.create_default_context(cafile=ca_path)
            except OSError as error:
                raise ClientError(f"the CA bundle {ca_path} cannot be read: {error.strerror or error}") from None
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def request(self, path: str, body: t.Any = None, timeout: float = 5.0) -> Reply:
        """Sends GET, or POST when there is a body. Never raises for what the network or the server does.

        Args:
            path: path with a leading slash.
            body: JSON-serialisable body, or None.
            timeout: seconds for connecting and for each read.
        """
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=self._headers)
        try:
            with self._opener.open(request, timeout=timeout) as answer:
                return Reply(answer.status, answer.read().decode("utf-8", "replace"))
        except urllib.error.HTTPError as error:
            try:
                text = error.read().decode("utf-8", "replace")
            except (OSError, http.client.HTTPException):
                text = ""
            return Reply(error.code, text, str(error.reason))
        except urllib.error.URLError as error:
            return Reply(0, error=str(error.reason))
        except (OSError, http.client.HTTPException) as error:
            return Reply(0, error=str(error) or type(error).__name__)
