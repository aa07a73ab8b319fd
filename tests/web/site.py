"""The page on a port of this machine, as uvicorn serves it, and what answers look like."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kreassign.web.operations import Streams
from kreassign.web.server import listening, server
from kreassign.web.settings import PageToken, WebSettings
from testbed.waiting import wait_until

TOKEN = "correct-horse-battery-staple-42"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def document(self) -> Any:
        return json.loads(self.text)


@dataclass(frozen=True, slots=True)
class Site:
    """A page that is served. `ask` sends one request, with just the headers that are given besides Host."""

    port: int
    name: str = "127.0.0.1"
    trust: ssl.SSLContext | None = None
    streams: Streams = field(default_factory=Streams)

    @property
    def host(self) -> str:
        return f"{self.name}:{self.port}"

    @property
    def address(self) -> str:
        """Address for browsers."""
        return f"http://{self.host}/"

    def connection(self) -> http.client.HTTPConnection:
        if self.trust is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=self.trust)

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Answer:
        connection = self.connection()
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            given = {"host": self.host} | {name.replace("_", "-"): value for name, value in headers.items()}
            if body is not None:
                given["content-length"] = str(len(body))
            for name, value in given.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            with connection.getresponse() as answer:
                found = {name.lower(): value for name, value in answer.getheaders()}
                return Answer(answer.status, found, answer.read().decode())
        finally:
            connection.close()

    def post(self, path: str, content: object = None, token: str | None = TOKEN, **headers: str) -> Answer:
        """A call that changes something, as a program makes it."""
        given = {"content_type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
        return self.ask(f"/api/v1{path}", "POST", json.dumps(content or {}).encode(), **{**given, **headers})


def with_control(state_dir: Path, plans: Path | None = None) -> WebSettings:
    return WebSettings(state_dir, port=0, plans=plans, token=PageToken(TOKEN), allows_control=True)


@contextmanager
def serving_page(settings: WebSettings, name: str = "127.0.0.1", trust: ssl.SSLContext | None = None) -> Iterator[Site]:
    """The page while the block runs; with TLS, what its certificate is to be trusted by."""
    with listening(settings) as listener:
        streams = Streams()
        made = server(settings, streams)
        thread = threading.Thread(target=made.run, args=([listener],))
        thread.start()
        try:
            wait_until(lambda: made.started, what="the page")
            yield Site(listener.getsockname()[1], name, trust, streams)
        finally:
            made.should_exit = True
            thread.join()
