"""`/metrics` of a run on a port of this machine, in a thread of its own: a run never waits for who asks.

It listens on 127.0.0.1 only. A browser that was led here by a name of somebody else (DNS rebinding) names that in the
header Host, and gets nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from kreassign.errors import InputError
from kreassign.monitoring.metrics import CONTENT_TYPE, exposition
from kreassign.monitoring.run_metrics import RunMetrics

LOOPBACK = "127.0.0.1"
PATH = "/metrics"
_NAMES = (LOOPBACK, "localhost")
_SLOWEST_S = 10.0
"""Whoever sends or reads so slowly is left."""

Start = Callable[[str, list[tuple[str, str]]], Any]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def server_bind(self) -> None:
        """Without asking for the name of this machine, which may take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]
        self.setup_environ()

    def handle_error(self, *_: Any) -> None:
        """Whoever goes away in the middle of an answer is none of the run's business."""


class _Handler(WSGIRequestHandler):
    timeout = _SLOWEST_S

    def log_message(self, *args: Any) -> None:
        """Say nothing: the terminal is the run's."""


@contextmanager
def serving_metrics(port: int, runs: Callable[[], Sequence[RunMetrics]]) -> Iterator[str]:
    """Serve the metrics of these runs while the block runs; its address, with the port that was free where it is 0.

    `runs` is called in other threads. Raises InputError where the port cannot be had.
    """
    try:
        server = make_server(LOOPBACK, port, _application(runs), _Server, _Handler)
    except OSError as error:
        raise InputError(
            f"metrics cannot be served on {LOOPBACK}:{port}: {error.strerror}. Specify another --metrics-port, or 0 "
            "for any that is free"
        ) from error
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}{PATH}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _application(runs: Callable[[], Sequence[RunMetrics]]) -> Callable[[dict[str, Any], Start], Iterable[bytes]]:
    def answer(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        status, body = _answered(environ, runs)
        kind = CONTENT_TYPE if status.startswith("200") else "text/plain; charset=utf-8"
        headers = [("Content-Type", kind), ("Content-Length", str(len(body))), ("X-Content-Type-Options", "nosniff")]
        start(status, headers)
        return [body]

    return answer


def _answered(environ: dict[str, Any], runs: Callable[[], Sequence[RunMetrics]]) -> tuple[str, bytes]:
    host = str(environ.get("HTTP_HOST", ""))
    if host.partition(":")[0].lower() not in _NAMES:
        return "421 Misdirected Request", f"ask for http://{LOOPBACK}{PATH} by that name\n".encode()
    if environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
        return "405 Method Not Allowed", b"metrics can be read only\n"
    if environ["PATH_INFO"] != PATH:
        return "404 Not Found", f"metrics are at {PATH}\n".encode()
    return "200 OK", exposition(runs())
