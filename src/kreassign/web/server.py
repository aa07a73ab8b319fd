"""Serving the page with uvicorn, in this thread, until a signal ends it."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable

import uvicorn

from kreassign.errors import InputError
from kreassign.web.app import make_app
from kreassign.web.settings import WebSettings
from kreassign.web.streams import MOST_STREAMS, Streams

LAST_S = 2
"""So long open answers may take once the end was asked for: streams would never end."""

MOST_CONNECTIONS = MOST_STREAMS + 100
"""Streams leave room for whoever asks for a page."""

SILENCE_S = 30


def serve(settings: WebSettings, announce: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM. `announce` gets the address. Raises InputError where that cannot be had."""
    made = server(settings)
    with listening(settings) as listener:
        announce(settings.address(listener.getsockname()[1]))
        made.run([listener])


def listening(settings: WebSettings) -> socket.socket:
    """A socket at the address of the settings. Raises InputError."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family)
    except OSError as error:
        raise InputError(
            f"the page cannot be served on {settings.host}:{settings.port}: {error.strerror}. Specify another --listen"
        ) from error


def server(settings: WebSettings, streams: Streams | None = None) -> uvicorn.Server:
    """The server; what it is told about clients by headers it does not believe."""
    tls, streams = settings.tls, streams or Streams()
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    try:
        config = uvicorn.Config(
            make_app(settings, streams=streams), log_config=None, access_log=False, lifespan="off", ws="none",
            http="h11",
            loop="asyncio", server_header=False, proxy_headers=False, limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=SILENCE_S, timeout_graceful_shutdown=LAST_S, h11_max_incomplete_event_size=16_384,
            ssl_certfile=None if tls is None else tls.certificate, ssl_keyfile=None if tls is None else tls.key,
        )  # fmt: skip
        config.load()
    except OSError as error:  # that is what the ssl module raises, too
        files = "" if tls is None else f" ({tls.certificate}, {tls.key})"
        raise InputError(f"the certificate or its key cannot be used{files}: {error}") from error
    made = uvicorn.Server(config)
    streams.is_ending = lambda: made.should_exit
    return made
