"""A TCP proxy between clients and the brokers of a cluster, which spoils what passes when it is told to.

It reads no more of the Kafka protocol than the length of each message and the API key of each request: answers come in
the order of the requests of their connection.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from testbed.ports import HOST
from testbed.waiting import PATIENCE_S

_LENGTH_BYTES = 4
_KEY_END = _LENGTH_BYTES + 2
NO_KEY = -1
Result = TypeVar("Result")


class Deed(Enum):
    """Deeds of the proxy on a request or on its answer."""

    CUT_ANSWER = "half of the answer passes, then the connection is closed"
    LOSE_ANSWER = "the request is carried out, and the connection closed instead of answering"
    LOSE_REQUEST = "the connection is closed and the broker never sees the request"
    DELAY_ANSWER = "the answer passes later"
    SILENCE = "nothing passes, either way, until another interference or none is set"
    SEVER = "all connections are closed, and new ones at once, until another interference or none is set"
    SLOW = "all that passes, either way, passes at a rate, whatever its API"


@dataclass(slots=True)
class Interference:
    """A deed, and the requests that it strikes.

    To those of the API `keys` (None: of all), without the first `spared`, as often as `times` says (None: without an
    end). `strikes` counts them: of messages, where all connections are severed also connections.
    """

    deed: Deed
    keys: frozenset[int] | None = None
    spared: int = 0
    times: int | None = None
    delay_s: float = 10.0
    bytes_per_s: float = 100_000.0
    strikes: int = 0

    def is_to_strike(self, key: int) -> bool:
        """True if the deed strikes this request, which is counted then."""
        if (self.keys is not None and key not in self.keys) or self.strikes == self.times:
            return False
        if self.spared:
            self.spared -= 1
            return False
        self.strikes += 1
        return True


class Proxy:
    """Passes on what clients and brokers say to each other, in a thread of its own."""

    def __init__(self) -> None:
        self._interference: Interference | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._is_audible = self._within(_new_event)
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()
        self._line_free_s = 0.0
        self._instead: Mapping[int, int] = {}
        self.led_elsewhere = 0
        self._is_audible.set()

    def stand_before(self, port: int, at: int) -> None:
        """Listen at port `at` and connect whoever comes to `port`, both on this machine."""

        async def serve() -> asyncio.Server:
            return await asyncio.start_server(self._connected_to(port), HOST, at, reuse_address=True)

        self._servers.append(self._within(serve))

    def interfere(self, interference: Interference | None) -> None:
        """Do this from now on, and nothing else any more."""

        async def change() -> None:
            self._interference = interference
            if interference is not None and interference.deed is Deed.SEVER:
                for connection in self._connections:
                    interference.strikes += 1
                    connection.cancel()
            if interference is not None and interference.deed is Deed.SILENCE:
                self._is_audible.clear()
            else:
                self._is_audible.set()

        self._within(change)

    def lead_to(self, instead: Mapping[int, int]) -> None:
        """Close all connections, and connect who comes for a port from now on to the one that is named instead.

        As a name or an address that belongs to another machine by now. `led_elsewhere` counts those that came.
        """

        async def change() -> None:
            self._instead, self.led_elsewhere = dict(instead), 0
            for connection in self._connections:
                connection.cancel()

        self._within(change)

    def close(self) -> None:
        """Close all connections and leave no thread behind."""

        async def end() -> None:
            for server in self._servers:
                server.close()
            for connection in self._connections:
                connection.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

        self._within(end)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    def _within(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result(PATIENCE_S)

    def _connected_to(self, port: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def connected(client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
            this = asyncio.current_task()
            assert this is not None
            self._connections.add(this)
            try:
                if self._is_struck(Deed.SEVER, NO_KEY):
                    return
                # Closed at once where the broker is down: that nobody listens cannot be shown by a proxy that does.
                # Cancelled where it is severed: asyncio would print a task that ends so.
                with suppress(OSError, asyncio.CancelledError):
                    self.led_elsewhere += port in self._instead
                    broker, to_broker = await asyncio.open_connection(HOST, self._instead.get(port, port))
                    try:
                        await self._pass(client, to_client, broker, to_broker)
                    finally:
                        to_broker.close()
            finally:
                to_client.close()
                self._connections.discard(this)

        return connected

    async def _pass(
        self,
        client: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        broker: asyncio.StreamReader,
        to_broker: asyncio.StreamWriter,
    ) -> None:
        keys: deque[int] = deque()
        ways = [
            asyncio.create_task(self._pass_requests(client, to_broker, keys)),
            asyncio.create_task(self._pass_answers(broker, to_client, keys)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pass_requests(
        self, client: asyncio.StreamReader, to_broker: asyncio.StreamWriter, keys: deque[int]
    ) -> None:
        while message := await _read_message(client):
            key = int.from_bytes(message[_LENGTH_BYTES:_KEY_END], "big")
            await self._until_audible(key)
            if self._is_struck(Deed.LOSE_REQUEST, key):
                return
            keys.append(key)
            await self._take_turn(key, message)
            to_broker.write(message)
            await to_broker.drain()

    async def _pass_answers(
        self, broker: asyncio.StreamReader, to_client: asyncio.StreamWriter, keys: deque[int]
    ) -> None:
        while message := await _read_message(broker):
            key = keys.popleft()
            await self._until_audible(key)
            if self._is_struck(Deed.CUT_ANSWER, key):
                to_client.write(message[: len(message) // 2])
                await to_client.drain()
                return
            if self._is_struck(Deed.LOSE_ANSWER, key):
                return
            if self._interference is not None and self._is_struck(Deed.DELAY_ANSWER, key):
                await asyncio.sleep(self._interference.delay_s)
            await self._take_turn(key, message)
            to_client.write(message)
            await to_client.drain()

    async def _take_turn(self, key: int, message: bytes) -> None:
        """Wait for as long as a slow line has to carry this and what others have waiting before it."""
        now = self._interference
        if now is not None and self._is_struck(Deed.SLOW, key):
            present_s = self._loop.time()
            self._line_free_s = max(self._line_free_s, present_s) + len(message) / now.bytes_per_s
            await asyncio.sleep(self._line_free_s - present_s)

    async def _until_audible(self, key: int) -> None:
        self._is_struck(Deed.SILENCE, key)
        await self._is_audible.wait()

    def _is_struck(self, deed: Deed, key: int) -> bool:
        now = self._interference
        return now is not None and now.deed is deed and now.is_to_strike(key)


async def _new_event() -> asyncio.Event:
    return asyncio.Event()


async def _read_message(stream: asyncio.StreamReader) -> bytes:
    """A message with its length; empty at the end of the stream."""
    try:
        prefix = await stream.readexactly(_LENGTH_BYTES)
        return prefix + await stream.readexactly(int.from_bytes(prefix, "big"))
    except (asyncio.IncompleteReadError, OSError):
        return b""
