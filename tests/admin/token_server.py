"""A token endpoint on this machine that keeps what it was asked, and answers as a test tells it to."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from testbed.waiting import PATIENCE_S


class AskedToken(NamedTuple):
    """A request that arrived."""

    path: str
    headers: Mapping[str, str]
    body: str


class Reply(NamedTuple):
    """Answer of the token endpoint: a status, a body, and further headers."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}


def granted(token: str, **others: object) -> Reply:
    """A token, as RFC 6749, section 5.1 has it."""
    return Reply(200, json.dumps({"access_token": token, "token_type": "bearer", **others}).encode())


def refused(error: str, description: str = "", status: int = 400) -> Reply:
    """An error, as RFC 6749, section 5.2 has it."""
    return Reply(status, json.dumps({"error": error, "error_description": description}).encode())


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that goes away, or does not trust the server, is what some tests are about."""


class TokenServer:
    """Answers by `reply`, or by what it returns; None says nothing until the server ends."""

    def __init__(self, reply: Reply | Callable[[], Reply | None] | None, tls: ssl.SSLContext | None = None) -> None:
        self.reply = reply
        self.asked: list[AskedToken] = []
        self._over = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        if tls is not None:
            # In each thread, so that a client that refuses the certificate leaves the server as it is.
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}/token"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        """Stop answering; whoever waits for an answer gets none."""
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(PATIENCE_S)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            timeout = PATIENCE_S

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                outer.asked.append(AskedToken(self.path, dict(self.headers), body))
                reply = outer.reply() if callable(outer.reply) else outer.reply
                if reply is None:
                    outer._over.wait(PATIENCE_S)
                    return
                self.send_response(reply.status)
                for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, *_: object) -> None:
                return

        return Handler
