"""Messages of a run to a webhook: their content, signature and delivery, which never delays the run."""

from __future__ import annotations

import hmac
import http.client
import json
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from hashlib import sha256
from http import HTTPStatus
from itertools import count
from types import MappingProxyType
from typing import NamedTuple, Protocol
from urllib.parse import SplitResult, urlsplit

from kreassign.clock import Clock
from kreassign.errors import InputError, machine_reason
from kreassign.model.listeners import http_address, is_readable
from kreassign.model.run import Phase, RunHistory
from kreassign.model.text import printable

# Content and signature of a message. Pure.
#
# A message is sent when a run is held, and when it comes to rest: done, failed, cancelled or paused. It is a JSON
# document, signed as Stripe and others do: `HMAC-SHA256(secret, "<timestamp>.<body>")`, in hexadecimal digits. The
# timestamp is that of the attempt, so that a receiver can refuse replays.

SHOWN = 20
"""Most verdicts and problems in a message; others are only counted."""

SHORTEST_SECRET = 16
SIGNATURE = "Kreassign-Signature"
TIMESTAMP = "Kreassign-Timestamp"
EVENT = "Kreassign-Event"
DELIVERY = "Kreassign-Delivery"


class News(StrEnum):
    """Kind of a message."""

    HELD = "held"
    PAUSED = "paused"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


NEWS_OF_PHASE: Mapping[Phase, News] = MappingProxyType({
    Phase.PAUSED: News.PAUSED,
    Phase.DONE: News.DONE,
    Phase.CANCELLED: News.CANCELLED,
    Phase.FAILED: News.FAILED,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `delivery` is the same in every attempt, so that receivers can detect duplicates."""

    news: str
    delivery: str
    body: bytes

    def headers(self, secret: bytes, at_s: int) -> dict[str, str]:
        """Headers of an attempt at this time, in seconds since the epoch."""
        return {
            "Content-Type": "application/json",
            EVENT: str(self.news),
            DELIVERY: self.delivery,
            TIMESTAMP: str(at_s),
            SIGNATURE: f"v1={signature(secret, at_s, self.body)}",
        }


def message(news: News, run: RunHistory) -> Message:
    """Create a message on a run. Names and sentences from the cluster are made printable."""
    now = run.measured
    delivery = f"{printable(run.run_id)}-{now.at_ms}-{news}"
    problems = (*run.verdicts, *run.problems)
    document = {
        "event": news.value,
        "delivery": delivery,
        "run_id": printable(run.run_id),
        "cluster_id": printable(run.cluster_id),
        "plan_id": run.plan_id,
        "phase": run.state.value,
        "at_ms": now.at_ms,
        "started_ms": run.started_ms,
        "ended_ms": run.ended_ms,
        "moves": {status.value: count for status, count in run.moves_by_state.items()},
        "copied_bytes": now.done_bytes,
        "left_bytes": now.left_bytes,
        "eta": None if now.end is None else asdict(now.end),
        "why_held": None if run.why_held is None else printable(run.why_held),
        "problems": [printable(problem) for problem in problems[:SHOWN]],
        "problem_count": len(problems),
        "open_settings": run.open_settings,
    }
    return Message(news, delivery, json.dumps(document).encode())


def signature(secret: bytes, at_s: int, body: bytes) -> str:
    """Signature that a receiver compares with the header, in constant time."""
    return hmac.new(secret, f"{at_s}.".encode() + body, sha256).hexdigest()


def checked_secret(text: str) -> bytes:
    """Secret without the line end of its file. Raises InputError if it is short enough to guess."""
    secret = text.strip().encode()
    if len(secret) < SHORTEST_SECRET:
        raise InputError(
            f"the secret of the webhook has {len(secret)} bytes; use at least {SHORTEST_SECRET}, for example from "
            "`openssl rand -hex 32`"
        )
    return secret


# Delivery from a thread of its own: its failures do not affect the run.
#
# A message is retried a few times if there is no answer or the error may be temporary, then given up. Redirects and
# proxies are not used: signed content goes to the given address only.

TIMEOUT_S = 10.0
RETRIES_S = (1.0, 5.0, 25.0)
"""Seconds before each further attempt."""

WAITING = 100
"""Most messages in the queue; while a receiver is down, later ones are dropped."""

LAST_S = 20.0
"""Seconds that the command waits at its end for the last messages."""

AGAIN_S = 300.0
"""Seconds between attempts at what is sent until it arrives."""

GRACE_S = 0.2

_PASSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)
_MOST_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Webhook:
    """Address of the receiver, and the secret that signs messages, which is never shown."""

    url: str
    secret: bytes = field(repr=False)

    @property
    def parts(self) -> SplitResult:
        """Parts of the address."""
        return urlsplit(self.url)

    def __str__(self) -> str:
        # Paths and queries of webhooks may be secrets themselves.
        return f"{self.parts.scheme}://{self.parts.netloc}"


def checked_url(text: str, *, may_be_plain: bool = False) -> str:
    """Check the address of a webhook. Raises InputError if it is not a URL, or not encrypted and must be."""
    login, example = "its messages are signed", "https://hooks.example/run"
    parts = http_address(text, "a webhook", example=example, login=login, takes_query=True)
    if is_readable(parts) and not may_be_plain:
        raise InputError(f"http://{parts.hostname} is not encrypted: others could read the messages; use https")
    return text


class _DeliveryError(Exception):
    """A failed attempt; `is_final` if a retry would fail too."""

    def __init__(self, why: str, *, is_final: bool = False) -> None:
        super().__init__(why)
        self.is_final = is_final


class Post(Protocol):
    """Anything that can be sent: a body, the headers of an attempt, and a word for reports."""

    @property
    def news(self) -> str:
        """Kind of the message."""
        ...

    @property
    def body(self) -> bytes:
        """Content of the request."""
        ...

    def headers(self, secret: bytes, at_s: int) -> dict[str, str]:
        """Headers of an attempt at this time, in seconds since the epoch."""
        ...


class _Queued(NamedTuple):
    """A message with its place in the order of all; with a `key` it is sent until it, or a later one, arrives."""

    number: int
    key: str
    message: Post


class Sender:
    """Sends messages one after the other; `undelivered` are those given up, with the reason.

    With `on_loss` each of those is reported at once, from the thread that sends, and not kept. With `again_s` the
    latest one of each key is sent again after this time, and whenever another one arrives.
    """

    def __init__(
        self,
        webhook: Webhook,
        clock: Clock,
        retries_s: tuple[float, ...] = RETRIES_S,
        timeout_s: float = TIMEOUT_S,
        on_loss: Callable[[str], None] | None = None,
        again_s: float | None = None,
    ) -> None:
        self._webhook, self._clock, self._on_loss = webhook, clock, on_loss
        self._retries_s, self._timeout_s, self._again_s = retries_s, timeout_s, again_s
        self._waiting: queue.Queue[_Queued | None] = queue.Queue(WAITING)
        self._numbers, self._kept = count(), dict[str, _Queued]()
        self._is_ending = threading.Event()
        self._noting, self._is_closed = threading.Lock(), False
        self._thread = threading.Thread(target=self._work, name="webhook", daemon=True)
        self.undelivered: list[str] = []

    def start(self) -> None:
        """Start the thread that sends."""
        self._thread.start()

    def send(self, message: Post, key: str = "") -> None:
        """Queue a message; returns at once."""
        queued = _Queued(next(self._numbers), key, message)
        try:
            self._waiting.put_nowait(queued)
        except queue.Full:
            self._keep(queued)
            self._note(message, f"{WAITING} others wait already")

    def close(self, last_s: float) -> None:
        """Wait at most this many seconds for queued messages; accept no more."""
        with suppress(queue.Full):
            self._waiting.put(None, timeout=last_s)
        self._thread.join(last_s)
        self._is_ending.set()
        if self._thread.is_alive():
            self._thread.join(GRACE_S)  # a sender that only waits for its next attempt reports the reason itself
        with self._noting:
            if self._thread.is_alive() and not self.undelivered:
                (self._on_loss or self.undelivered.append)(f"{self._webhook} had not answered after {last_s:.0f} s")
            self._is_closed = True

    def _work(self) -> None:
        while not self._is_ending.is_set():
            try:
                queued = self._waiting.get(timeout=self._again_s if self._kept else None)
            except queue.Empty:
                self._send_again()
                continue
            if queued is None:
                return
            if self._deliver(queued):
                self._send_again()

    def _deliver(self, queued: _Queued) -> bool:
        """Send a message, in several attempts; True if it arrived."""
        for pause_s in (*self._retries_s, None):
            try:
                self._post(queued.message)
            except _DeliveryError as error:
                if pause_s is None or error.is_final or self._is_ending.wait(pause_s):
                    if not error.is_final:
                        self._keep(queued)
                    self._note(queued.message, str(error))
                    return False
            else:
                self._drop(queued)
                return True
        return False

    def _send_again(self) -> None:
        """Send what is kept, the oldest first, until one does not arrive."""
        for queued in sorted(self._kept.values(), key=lambda one: one.number):
            try:
                self._post(queued.message)
            except _DeliveryError as error:
                if not error.is_final:
                    return
                self._note(queued.message, str(error))
            self._drop(queued)

    def _keep(self, queued: _Queued) -> None:
        if self._again_s is None or not queued.key:
            return
        with self._noting:
            before = self._kept.get(queued.key)
            if before is None or before.number < queued.number:
                self._kept[queued.key] = queued
            if len(self._kept) > WAITING:
                del self._kept[min(self._kept.values(), key=lambda one: one.number).key]

    def _drop(self, queued: _Queued) -> None:
        """Forget a message that arrived, or that its receiver refuses, and earlier ones of its key."""
        with self._noting:
            kept = self._kept.get(queued.key)
            if kept is not None and kept.number <= queued.number:
                del self._kept[queued.key]

    def _note(self, message: Post, why: str) -> None:
        with self._noting:
            if not self._is_closed:
                (self._on_loss or self.undelivered.append)(f"{message.news}: {why}")

    def _post(self, message: Post) -> None:
        parts = self._webhook.parts
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        # With a port, http.client does not search the digits of an IPv6 address for one.
        port = parts.port or (http.client.HTTPS_PORT if parts.scheme == "https" else http.client.HTTP_PORT)
        connection = kind(parts.hostname or "", port, timeout=self._timeout_s)
        query = f"?{parts.query}" if parts.query else ""
        headers = message.headers(self._webhook.secret, self._clock.now_ms() // 1000)
        try:
            connection.request("POST", f"{parts.path or '/'}{query}", message.body, headers)
            with connection.getresponse() as answer:
                status = answer.status
                answer.read(_MOST_BYTES)
        except (OSError, http.client.HTTPException, ValueError) as error:
            # ValueError: a host name that is invalid in DNS.
            why = machine_reason(error) or type(error).__name__
            raise _DeliveryError(f"{self._webhook} could not be told: {why}") from None
        finally:
            connection.close()
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            may_pass = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _PASSING
            raise _DeliveryError(f"{self._webhook} answered {status}", is_final=not may_pass)


@contextmanager
def sending(
    webhook: Webhook, clock: Clock, warn: Callable[[str], None], last_s: float = LAST_S
) -> Iterator[Callable[[Message], None]]:
    """Yield a function that queues messages during the block. Warn at its end of undelivered ones."""
    sender = Sender(webhook, clock)
    sender.start()
    try:
        yield sender.send
    finally:
        sender.close(last_s)
        problems = tuple(sender.undelivered)
        if problems:
            warn(f"messages of the run that were not delivered: {len(problems)}; the first: {problems[0]}")
