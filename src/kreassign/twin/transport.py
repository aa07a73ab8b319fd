"""The twin as a transport: the bytes of the TCP server without its sockets, in the twin's own time.

Fits the client's `Transport` and `Clock` by shape. A request takes no time; waiting lets the twin's time pass: for a
response that is delayed, or for a frozen node.
"""

from __future__ import annotations

from threading import Lock
from typing import NoReturn

from kreassign.errors import OutcomeUnknown, ProtocolViolation, Unreachable
from kreassign.twin.access import Listener, Node
from kreassign.twin.api.connection import Connection
from kreassign.twin.cluster import Twin
from kreassign.wire.codec import PREFIX_BYTES, frame_length


class TwinTransport:
    """Opens connections to the nodes of a twin, and serves as its clock.

    One connection exchanges at a time, so that time is that of the twin for all of them.
    """

    takes_turns = True

    def __init__(self, twin: Twin, listener: Listener | None = None) -> None:
        self._twin = twin
        self._listener = listener or twin.listener
        self._turn = Lock()
        self._opened = 0

    def connect(self, address: tuple[str, int], timeout_s: float) -> TwinConnection:
        """Open a connection at once; `Unreachable` if no running node has this address."""
        del timeout_s
        host, port = address
        with self._turn:
            node = self._twin.node_at(address, self._listener)
            if node is None or not self._twin.is_running(node.id):
                raise Unreachable(f"could not connect to {host}:{port}: connection refused")
            self._opened += 1
            name = f"{host}:{port}-in-process:{self._opened}-0-{self._opened}"
            return TwinConnection(self._twin, node, name, self._turn)

    # --- the clock --------------------------------------------------------------------------------------------

    def now_ms(self) -> int:
        """The twin's time in milliseconds, plus any jump that a fault added to the client's clock."""
        return self._twin.client_clock.wall_ms(self._twin.now_ms)

    def monotonic_s(self) -> float:
        """The twin's time in seconds, which runs on while the client is suspended."""
        return self._twin.now_ms / 1000

    def sleep(self, seconds: float) -> None:
        """Let so many seconds of the twin's time pass, a millisecond at least, without waiting in real time."""
        with self._turn:
            # With none, whoever sleeps for what is left until a deadline would sleep for ever.
            self._twin.advance(max(1, round(seconds * 1000)) if seconds > 0 else 0)
            _be_suspended(self._twin)


def _be_suspended(twin: Twin) -> None:
    """Let the cluster run on for as long as a fault suspends the client."""
    while suspended_ms := twin.client_clock.take_suspension():
        twin.advance(suspended_ms)


class TwinConnection:
    """A connection to one node."""

    def __init__(self, twin: Twin, node: Node, name: str, turn: Lock) -> None:
        self._twin = twin
        self._node = node
        self._connection = Connection(twin, twin.response_faults, node, name)
        self._turn = turn
        self._start_counts = twin.start_count(node.id)
        self._is_closed = False
        self._unread = b""

    def exchange(self, frame: bytes, timeout_s: float) -> bytes:
        """Send a frame and return the payload of the answer."""
        with self._turn:
            if self._is_closed:
                raise Unreachable(f"the connection to node {self._node.id} is closed")
            _be_suspended(self._twin)
            deadline_ms = self._twin.now_ms + round(timeout_s * 1000)
            self._wait_while_frozen(deadline_ms)
            self._send(frame, deadline_ms)
            return self._next_payload()

    def _send(self, frame: bytes, deadline_ms: int) -> None:
        """Send a frame, and wait until the answer has arrived."""
        self._break_unless_open()
        try:
            reply = self._connection.answer(frame[PREFIX_BYTES:])
        except ProtocolViolation as violation:
            self._is_closed = True
            raise OutcomeUnknown(f"node {self._node.id} closed the connection: {violation}") from violation
        due_ms = self._twin.now_ms + reply.delay_ms
        if due_ms > deadline_ms:
            self._give_up(deadline_ms)
        if reply.delay_ms:
            self._twin.advance_to(due_ms)
            self._break_unless_open()
        self._is_closed = reply.is_last
        self._unread += reply.frame

    def _wait_while_frozen(self, deadline_ms: int) -> None:
        while self._is_open() and self._twin.is_frozen(self._node.id):
            next_ms = self._twin.next_event_ms()
            if next_ms is None or next_ms > deadline_ms:
                self._give_up(deadline_ms)
            else:
                self._twin.advance_to(next_ms)

    def _give_up(self, deadline_ms: int) -> NoReturn:
        self._twin.advance_to(deadline_ms)
        self._is_closed = True
        text = f"node {self._node.id} did not answer in time"
        raise OutcomeUnknown(text) from TimeoutError(text)

    def _break_unless_open(self) -> None:
        if not self._is_open():
            self._is_closed = True
            raise OutcomeUnknown(f"the connection to node {self._node.id} broke before the answer came")

    def _next_payload(self) -> bytes:
        """Cut the first frame off the received bytes; a duplicated answer leaves a frame for the next request."""
        if not self._unread:
            raise OutcomeUnknown(f"node {self._node.id} closed the connection before it answered")
        end = PREFIX_BYTES + frame_length(self._unread[:PREFIX_BYTES])
        payload, self._unread = self._unread[PREFIX_BYTES:end], self._unread[end:]
        return payload

    def is_usable(self) -> bool:
        """True if the node runs, and has not stopped since this connection was opened."""
        return not self._is_closed and self._is_open()

    def close(self) -> None:
        """Close the connection."""
        self._is_closed = True

    def _is_open(self) -> bool:
        return self._twin.is_running(self._node.id) and self._twin.start_count(self._node.id) == self._start_counts
