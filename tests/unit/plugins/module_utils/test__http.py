# Copyright (c) 2026 the llmops.inference authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from ansible_collections.llmops.inference.plugins.module_utils._http import Client, ClientError, Reply, base_url, probe_host


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append((self.command, self.path, dict(self.headers)))
        if self.path == "/slow":
            self.server.release.wait(10)
        if self.path in ("/slow", "/silent"):
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status = int(self.path[1:]) if self.path[1:].isdigit() else 200
        answer = {"/html": b"<html>", "/bytes": b"\xff\xfe", "/echo": body}.get(self.path, b'{"ok": true}')
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer) + (100 if self.path == "/500" else 0)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_GET

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def serving():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.seen, server.release = [], threading.Event()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.release.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(name="server")
def fixture_server():
    with serving() as server:
        yield server


def client(server, **more):
    return Client(f"http://127.0.0.1:{server.server_port}", **more)


@pytest.mark.parametrize("lower", [True, False], ids=["http_proxy", "HTTP_PROXY"])
def test_proxies_of_the_environment_are_ignored(server, monkeypatch, lower):
    """N03"""
    with serving() as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name if lower else name.upper(), f"http://127.0.0.1:{proxy.server_port}")
        monkeypatch.setenv("no_proxy" if lower else "NO_PROXY", "example.org")
        assert client(server).request("/v1/models") == Reply(200, '{"ok": true}')
        assert proxy.seen == []
    assert [path for method, path, headers in server.seen] == ["/v1/models"]


def test_the_key_is_sent_as_a_bearer_token(server):
    """N04"""
    client(server, api_key="k").request("/ready")
    client(server).request("/ready")
    assert [headers.get("Authorization") for method, path, headers in server.seen] == ["Bearer k", None]


def test_get_without_and_post_with_a_body(server):
    assert client(server).request("/html") == Reply(200, "<html>")
    assert client(server).request("/echo", {"text": "ü", "n": [1]}).json() == {"text": "ü", "n": [1]}
    assert client(server).request("/echo", {}).body == "{}"
    assert [(method, path) for method, path, headers in server.seen] == [("GET", "/html"), ("POST", "/echo"), ("POST", "/echo")]
    assert server.seen[1][2]["Content-Type"] == "application/json"


@pytest.mark.parametrize("status, reason", [(401, "Unauthorized"), (404, "Not Found"), (503, "Service Unavailable")])
def test_statuses_are_data(server, status, reason):
    assert client(server).request(f"/{status}") == Reply(status, '{"ok": true}', reason)


def test_an_error_whose_body_breaks_off_is_still_its_status(server):
    assert client(server).request("/500") == Reply(500, "", "Internal Server Error")


def test_bytes_that_are_no_text_are_replaced(server):
    assert client(server).request("/bytes") == Reply(200, "\ufffd\ufffd")


def test_slow_answer_is_no_answer(server):
    assert client(server).request("/slow", timeout=0.1) == Reply(0, error="timed out")


def test_connection_closed_without_an_answer(server):
    assert client(server).request("/silent") == Reply(0, error="Remote end closed connection without response")


def test_nobody_listens():
    with socket.socket() as placeholder:
        placeholder.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{placeholder.getsockname()[1]}"
        assert Client(url).request("/ready") == Reply(0, error="[Errno 111] Connection refused")


def test_tls_to_a_server_without_it(server):
    reply = Client(f"https://127.0.0.1:{server.server_port}").request("/ready", timeout=2)
    assert reply.status == 0
    assert "SSL" in reply.error
    assert server.seen == []


def test_the_certificates_to_trust_are_used():
    with pytest.raises(ClientError, match="the CA bundle /nonexistent/ca.pem cannot be read: No such file or directory"):
        Client("https://127.0.0.1:1", ca_path="/nonexistent/ca.pem")
    assert Client("http://127.0.0.1:1", ca_path="/nonexistent/ca.pem").url == "http://127.0.0.1:1"


@pytest.mark.parametrize("body, value", [('{"a": 1}', {"a": 1}), ("[]", []), ("", None), ("<html>", None)])
def test_json_of_a_reply(body, value):
    assert Reply(200, body).json() == value


def test_json_of_a_number_survives():
    assert json.dumps(Reply(200, "7").json()) == "7"


@pytest.mark.parametrize(
    "bind, host, url",
    [
        ("0.0.0.0", "127.0.0.1", "http://127.0.0.1:30000"),
        ("", "127.0.0.1", "http://127.0.0.1:30000"),
        ("::", "::1", "http://[::1]:30000"),
        ("::1", "::1", "http://[::1]:30000"),
        ("192.0.2.7", "192.0.2.7", "http://192.0.2.7:30000"),
        ("gpu.example.org", "gpu.example.org", "http://gpu.example.org:30000"),
    ],
)
def test_address_of_the_probe(bind, host, url):
    assert probe_host(bind) == host
    assert base_url(bind, 30000) == url
    assert base_url(bind, 30000, tls=True) == url.replace("http:", "https:")
