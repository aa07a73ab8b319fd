"""Ask what clients feel: Prometheus by HTTP, and a command; in a thread of its own, so that no poll of a run waits.

Each round asks every source of a `ClientGuard`, within bounded times. A run takes the latest readings, at once; when
they are older than `STALE_S`, nothing is known any more.
"""

from __future__ import annotations

import base64
import http.client
import json
import math
import os
import select
import signal
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from urllib.parse import SplitResult, urlencode, urlsplit

from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import InputError, machine_reason
from kreassign.executor.client_guard import (
    ClientAnswer,
    ClientGuard,
    ClientQuery,
    Feeling,
    command_name,
    read_exit_code,
)
from kreassign.model.text import printable, shortened

# What Prometheus answers: exactly one value, or nothing is known. Pure.
#
# https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries

_REFUSALS: Mapping[int, str] = MappingProxyType({
    HTTPStatus.UNAUTHORIZED: "the login is refused",
    HTTPStatus.FORBIDDEN: "the login may not query",
    HTTPStatus.NOT_FOUND: "that address has no query API",
})  # fmt: skip


def read_answer(query: ClientQuery, status: int, body: bytes) -> ClientAnswer:
    """Judge an answer to an instant query; one with warnings may lack data, so it is never good."""
    try:
        document = json.loads(body)
        value, warnings = _value(document), document.get("warnings")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        why = _REFUSALS.get(status, "that is no answer of Prometheus" if status == HTTPStatus.OK else "")
        return query.unknown(f"Prometheus answered {status}{why and f': {why}'}")
    if isinstance(value, str):
        return query.unknown(value)
    reading = query.read(value)
    if warnings and reading.feeling is not Feeling.BAD:
        return query.unknown(f"Prometheus warns that data may be missing: {_shown(warnings)}")
    return reading


def read_series(status: int, body: bytes, label: str) -> dict[str, float]:
    """Values by a label, from an answer to an instant query; without those that are no number.

    Raises InputError for an answer without series, with warnings, or with two series for the same label.
    """
    try:
        document = json.loads(body)
        if document["status"] != "success":
            raise InputError(f"Prometheus refuses the query: {_shown(document['error'])}")
        if document.get("warnings"):
            raise InputError(f"Prometheus warns that data may be missing: {_shown(document['warnings'])}")
        series = [(one["metric"].get(label, ""), float(one["value"][1])) for one in document["data"]["result"]]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"Prometheus answered {status}: {_REFUSALS.get(status, 'these are no series')}") from error
    found = {name: value for name, value in series if not math.isnan(value)}
    if not series or len({name for name, _ in series}) < len(series):
        what = f"{len(series)} series, some with the same label {label}" if series else "no series"
        raise InputError(f"the query yields {what}")
    return found


def _value(document: Mapping[str, object]) -> float | str:
    """The one value of an answer, or why it has none. Raises ValueError, LookupError, TypeError for other documents."""
    if document["status"] != "success":
        return f"Prometheus refuses the query: {_shown(document['error'])}"
    data = document["data"]
    if not isinstance(data, dict):
        raise TypeError
    kind, result = data["resultType"], data["result"]
    if kind == "scalar":
        return float(result[1])
    if kind != "vector":
        return f"the query yields a {_shown(kind)}, not one value"
    if not result:
        return "the query yields no series"
    if len(result) > 1:
        return f"the query yields {len(result)} series, not one: aggregate them, for example with max()"
    return float(result[0]["value"][1])


def _shown(value: object) -> str:
    return shortened(printable(str(value)))


# Asking Prometheus. Redirects and proxies are not used: the login goes to the given address only.

TIMEOUT_S = 5.0
"""Patience with a connection, and with each part of an answer; twice that for an answer as a whole."""

_MOST_BYTES = 1 << 20

ReadFile = Callable[[str], str]
"""Reads a text file. Raises OSError, InputError."""


def login_header(text: str) -> str:
    """Header `Authorization` of a login file: `basic USER:PASSWORD` or `bearer TOKEN`. Raises InputError."""
    kind, _, secret = text.strip().partition(" ")
    secret = secret.strip()
    if secret and "\n" not in secret and secret.isprintable():
        if kind.lower() == "bearer" and secret.isascii():
            return f"Bearer {secret}"
        if kind.lower() == "basic" and ":" in secret:
            return f"Basic {base64.b64encode(secret.encode()).decode()}"
    raise InputError("the login file has one line, `basic USER:PASSWORD` or `bearer TOKEN`")


def check_files(guard: ClientGuard, read_file: ReadFile) -> None:
    """Raise InputError for a login or certificates that cannot be used, naming the file."""
    if guard.login_file is not None:
        text = read_file(guard.login_file)
        try:
            login_header(text)
        except InputError as error:
            raise InputError(f"{guard.login_file}: {error}") from None
    if guard.ca_file is not None:
        try:
            ssl.create_default_context(cafile=guard.ca_file)
        except ssl.SSLError:
            raise InputError(
                f"{guard.ca_file} holds no certificate in PEM form, or a damaged one: specify the file of the "
                "authority that signed the certificate of Prometheus"
            ) from None
        except OSError as error:
            raise InputError(f"cannot read {guard.ca_file}: {machine_reason(error)}") from error


def ask_prometheus(guard: ClientGuard, query: ClientQuery, read_file: ReadFile, clock: Clock) -> ClientAnswer:
    """Ask one query; whatever goes wrong is an unknown reading."""
    try:
        status, body = _asked(guard, query, read_file, clock)
    except InputError as error:
        return query.unknown(str(error))
    return read_answer(query, status, body)


def ask_series(guard: ClientGuard, label: str, read_file: ReadFile, clock: Clock) -> Iterator[dict[str, float]]:
    """Values by a label for each query of a guard, whatever it compares with. Raises InputError."""
    for query in guard.queries:
        yield read_series(*_asked(guard, query, read_file, clock), label)


def _asked(guard: ClientGuard, query: ClientQuery, read_file: ReadFile, clock: Clock) -> tuple[int, bytes]:
    try:
        return _post(guard, query, read_file, clock)
    except (OSError, http.client.HTTPException, InputError, ValueError) as error:
        # ValueError: a host name that is invalid in DNS.
        why = machine_reason(error) or type(error).__name__
        raise InputError(f"Prometheus could not be asked: {_shown(why)}") from error


def _post(guard: ClientGuard, query: ClientQuery, read_file: ReadFile, clock: Clock) -> tuple[int, bytes]:
    parts = urlsplit(guard.url or "")
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    if guard.login_file is not None:
        headers["Authorization"] = login_header(read_file(guard.login_file))
    connection = _connection(parts, guard.ca_file)
    deadline_s = clock.monotonic_s() + 2 * TIMEOUT_S
    try:
        body = urlencode({"query": query.expression, "timeout": f"{TIMEOUT_S:g}s"})
        connection.request("POST", f"{parts.path.rstrip('/')}/api/v1/query", body, headers)
        with connection.getresponse() as answer:
            content = b""
            while (part := answer.read1(_MOST_BYTES)) and len(content) < _MOST_BYTES:
                content += part
                if clock.monotonic_s() > deadline_s:
                    raise TimeoutError(f"it had not answered after {2 * TIMEOUT_S:g} s")
            return answer.status, content
    finally:
        connection.close()


def _connection(parts: SplitResult, ca_file: str | None) -> http.client.HTTPConnection:
    host = parts.hostname or ""
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, parts.port or http.client.HTTP_PORT, timeout=TIMEOUT_S)
    context = ssl.create_default_context(cafile=ca_file)
    return http.client.HTTPSConnection(host, parts.port or http.client.HTTPS_PORT, timeout=TIMEOUT_S, context=context)


# Running a command: without a shell and a terminal, in a session of its own, so that its children end with it.

COMMAND_S = 10.0
"""Time in which a command has to end; then it is killed, and nothing is known."""

_MOST_OUTPUT = 4_096
_CHUNK = 65_536


@dataclass(slots=True)
class Command:
    """A command that is run now and again, by one thread; another one may kill it."""

    words: tuple[str, ...]
    clock: Clock
    limit_s: float = COMMAND_S
    _process: subprocess.Popen[bytes] | None = None

    def ask(self) -> ClientAnswer:
        """Run it to its end; whatever goes wrong is an unknown reading."""
        try:
            self._process = subprocess.Popen(
                self.words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            return self._unknown(f"it could not be started: {_shown(why)}")
        with self._process as process:
            try:
                deadline_s = self.clock.monotonic_s() + self.limit_s
                output = self._output(process, deadline_s)
                code = process.wait(max(0.0, deadline_s - self.clock.monotonic_s()))
            except (TimeoutError, subprocess.TimeoutExpired):
                self.kill()
                return self._unknown(f"it had not ended after {self.limit_s:g} s, and was killed")
        return read_exit_code(self.words, code, printable(output.decode(errors="replace")))

    def _output(self, process: subprocess.Popen[bytes], deadline_s: float) -> bytes:
        """The beginning of its output, all of which is read. Raises TimeoutError."""
        assert process.stdout is not None, "it was started with a pipe"
        output, pipe = b"", process.stdout.fileno()
        while select.select([pipe], [], [], max(0.0, deadline_s - self.clock.monotonic_s()))[0]:
            part = os.read(pipe, _CHUNK)
            if not part:
                return output
            output = (output + part)[:_MOST_OUTPUT]
        raise TimeoutError

    def kill(self) -> None:
        """Kill it, and the processes that it started, if it runs."""
        process = self._process
        if process is not None and process.returncode is None:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)

    def _unknown(self, why: str) -> ClientAnswer:
        return ClientAnswer(command_name(self.words), Feeling.UNKNOWN, why)


# Rounds.

EVERY_S = 15.0
"""Time from one round to the next."""

STALE_S = 60.0
"""Age from which readings say nothing any more: a source is silent, or the machine slept."""

FIRST_S = 10.0
"""How long a run waits for the first round before it begins."""


class ClientSignals:
    """Asks in rounds, in a thread; `read` returns the latest readings at once."""

    def __init__(
        self, guard: ClientGuard, read_file: ReadFile, clock: Clock = SYSTEM_CLOCK, every_s: float = EVERY_S
    ) -> None:
        self._guard, self._read_file, self._clock, self._every_s = guard, read_file, clock, every_s
        self._command = Command(guard.command, clock) if guard.command else None
        self._latest: tuple[float, tuple[ClientAnswer, ...]] = (-math.inf, ())
        self._has_asked, self._is_ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="clients", daemon=True)

    def start(self) -> None:
        """Begin, and wait for the first round, but not for long."""
        self._thread.start()
        self._has_asked.wait(FIRST_S)

    def close(self) -> None:
        """End; a command that runs is killed, a query is left to its time-out."""
        self._is_ending.set()
        if self._command is not None:
            self._command.kill()

    def read(self) -> tuple[ClientAnswer, ...]:
        """Latest readings; unknown ones while there are none, or they are too old."""
        at_s, readings = self._latest
        if self._clock.monotonic_s() - at_s <= STALE_S:
            return readings
        since = f"for {STALE_S:g} s" if readings else "yet"
        return tuple(ClientAnswer(one, Feeling.UNKNOWN, f"it has not answered {since}") for one in self._guard.sources)

    def _work(self) -> None:
        while not self._is_ending.is_set():
            asked_s = self._clock.monotonic_s()
            self._latest = (asked_s, tuple(self._ask()))
            self._has_asked.set()
            self._is_ending.wait(self._every_s)

    def _ask(self) -> Iterator[ClientAnswer]:
        for query in self._guard.queries:
            yield ask_prometheus(self._guard, query, self._read_file, self._clock)
        if self._command is not None:
            yield self._command.ask()


@contextmanager
def asking(guard: ClientGuard, read_file: ReadFile) -> Iterator[Callable[[], tuple[ClientAnswer, ...]]]:
    """Ask during the block; yield a function that returns the latest readings at once."""
    signals = ClientSignals(guard, read_file)
    signals.start()
    try:
        yield signals.read
    finally:
        signals.close()
