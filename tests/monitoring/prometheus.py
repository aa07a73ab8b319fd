"""Prometheus' query API on a port of this machine, which gives golden answers."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs


def success(kind: str, result: object, **more: object) -> str:
    """An answer as Prometheus 3 gives it."""
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}, **more})


def vector(*values: str, **more: object) -> str:
    return success(
        "vector",
        [{"metric": {"n": str(n)}, "value": [1700000000.123, value]} for n, value in enumerate(values)],
        **more,
    )


BAD_QUERY = json.dumps({"status": "error", "errorType": "bad_data", "error": "1:4: parse error: unclosed left brace"})


@dataclass(slots=True)
class Asked:
    """A request as it arrived."""

    path: str
    query: str
    authorization: str | None


@dataclass(slots=True)
class FakePrometheus:
    """Prometheus with given answers that keeps its questions. With `drips` it sends a byte at a time, endlessly."""

    url: str = ""
    status: int = 200
    answer: str = vector("0.1")
    drips: bool = False
    authorization: str | None = None
    asked: list[Asked] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that goes away, or does not trust the server, is what some tests are about."""


@contextmanager
def prometheus(tls: ssl.SSLContext | None = None) -> Iterator[FakePrometheus]:
    """Serve during the block, over TLS where it is given; a set `authorization` is asked for."""
    found = FakePrometheus()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            login = self.headers.get("Authorization")
            found.asked.append(Asked(self.path, form["query"][0], login))
            is_welcome = found.authorization in {None, login}
            body = (found.answer if is_welcome else "Unauthorized").encode()
            self.send_response(found.status if is_welcome else 401)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(body) * (1000 if found.drips else 1)))
            self.end_headers()
            while found.drips and not found.release.wait(0.01):
                self.wfile.write(b" ")
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    found.url = f"{'http' if tls is None else 'https'}://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield found
    finally:
        found.release.set()
        server.shutdown()
        server.server_close()
        thread.join()
