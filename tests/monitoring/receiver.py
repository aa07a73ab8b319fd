"""A receiver of webhooks on a port of this machine, which answers as it is told to."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(slots=True)
class Receiver:
    """Headers and bodies that arrived, in order. `answers` are statuses for the first ones; later ones get 204."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)
    keeps_silent: bool = False


@contextmanager
def receiving(answers: Sequence[int] = (), *, keeps_silent: bool = False) -> Iterator[Receiver]:
    """A receiver while the block runs; one that `keeps_silent` answers nothing before the end of the block."""
    found = Receiver(answers=list(answers), keeps_silent=keeps_silent)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.got.append((dict(self.headers.items()), body))
            found.arrived.set()
            if found.keeps_silent:
                found.release.wait(60)
            self.send_response(found.answers.pop(0) if found.answers else 204)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}/hook?of=kafka"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield found
    finally:
        found.release.set()
        server.shutdown()
        server.server_close()
        thread.join()
