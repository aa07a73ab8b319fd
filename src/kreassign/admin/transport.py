"""Frames to a broker and back over TCP, with TLS and SASL.

A connection carries one request at a time and blocks its thread, which buys the one thing that matters here: after
a failure we know whether the request can have reached the broker. A frame that was not handed over whole can never
be carried out (`Unreachable`); one that was, may have been (`OutcomeUnknown`).

A SASL session that ends (KIP-368) is renewed before anything more is sent on it, however long the connection was idle.
"""

from __future__ import annotations

import select
import socket
import ssl
from contextlib import suppress
from typing import Protocol

from kreassign.admin.sasl import Login
from kreassign.admin.settings import Address, ClientSettings
from kreassign.admin.tls import advice_on_alert, distrust, tls_context
from kreassign.clock import Clock, SystemClock
from kreassign.errors import OutcomeUnknown, ProtocolViolation, Unauthenticated, Unreachable
from kreassign.wire.frame import PREFIX_BYTES, frame_length

_CHUNK_BYTES = 1 << 20
# Kafka's own client renews a session after 85 to 95 % of its lifetime: answers take time, and clocks drift.
_USED_OF_A_SESSION = 0.85
# A broker takes a login on the same connection only so long after the last (KafkaChannel.MIN_REAUTH_INTERVAL…).
_BETWEEN_LOGINS_S = 1.0


class Connection(Protocol):
    """A way to one broker. Not safe for use by two threads at once."""

    def exchange(self, frame: bytes, timeout_s: float) -> bytes:
        """Send a frame and return the payload of the answer.

        Raises `Unreachable` when the frame cannot have arrived whole, `OutcomeUnknown` when it can.
        """
        ...

    def is_usable(self) -> bool:
        """Whether the broker still holds the other end, as far as can be told without asking it."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Transport(Protocol):
    """Opens connections: over TCP here, in-process in tests of the twin."""

    def connect(self, address: Address, timeout_s: float) -> Connection:
        """Open a connection, authenticated if the settings say so; `Unreachable` or `Unauthenticated` if not."""
        ...


class TcpTransport:
    """Kafka's own transport."""

    def __init__(self, settings: ClientSettings, clock: Clock | None = None) -> None:
        self._settings = settings
        self._clock = clock or SystemClock()
        self._tls = tls_context(settings.tls) if settings.security_protocol.uses_tls else None
        self._login = Login(settings.sasl, settings, self._clock) if settings.sasl is not None else None

    def connect(self, address: Address, timeout_s: float) -> Connection:
        """Open a connection; each step may take so many seconds, but no more than the settings give it."""
        timeout_s = min(timeout_s, self._settings.connect_timeout_ms / 1000)
        connection = TcpConnection(self._secured(_open(address, timeout_s), address), address, self._clock)
        if self._login is None:
            return connection
        return AuthenticatedConnection(connection, self._login, address, self._clock, timeout_s)

    def _secured(self, plain: socket.socket, address: Address) -> socket.socket:
        if self._tls is None:
            return plain
        try:
            return self._tls.wrap_socket(plain, server_hostname=address.host)
        except ssl.SSLCertVerificationError as error:
            raise Unauthenticated(distrust(address, error)) from None
        except ssl.SSLError as error:
            reason = _reason(error)
            raise Unauthenticated(f"no TLS connection with {address}: {reason}{advice_on_alert(reason)}") from None
        except OSError as error:
            raise Unreachable(f"no TLS connection with {address}: {_reason(error)}") from error


class TcpConnection:
    """One socket."""

    def __init__(self, opened: socket.socket, address: Address, clock: Clock) -> None:
        self._socket = opened
        self._address = address
        self._clock = clock

    def exchange(self, frame: bytes, timeout_s: float) -> bytes:
        """Send a frame and wait for the answer."""
        deadline = self._clock.monotonic_s() + timeout_s
        try:
            self._socket.settimeout(max(timeout_s, 0.001))
            self._socket.sendall(frame)
        except OSError as error:
            refusal = self._refusal(error)
            self.close()
            raise refusal or Unreachable(f"could not send to {self._address}: {_reason(error)}") from error
        try:
            return self._receive(frame_length(self._receive(PREFIX_BYTES, deadline)), deadline)
        except OSError as error:
            refusal = self._refusal(error)
            self.close()
            raise refusal or OutcomeUnknown(
                f"{self._address} did not answer within {timeout_s:.1f} s"
                if isinstance(error, TimeoutError)
                else f"the connection to {self._address} broke before the answer came: {_reason(error)}"
            ) from error
        except ProtocolViolation:
            self.close()
            raise

    def _refusal(self, error: OSError) -> Unauthenticated | None:
        """The alert behind a broken TLS connection, if there is one.

        From TLS 1.3 on a client that the broker does not believe hears of it only after the handshake; when sending
        fails, the alert is still to be read.
        """
        if isinstance(self._socket, ssl.SSLSocket) and not isinstance(error, TimeoutError) and not _is_alert(error):
            try:
                self._socket.recv(1)
            except OSError as said:
                error = said
        if _is_alert(error):
            reason = _reason(error)
            return Unauthenticated(f"{self._address} refused the TLS connection: {reason}{advice_on_alert(reason)}")
        return None

    def _receive(self, size: int, deadline: float) -> bytes:
        received = bytearray()
        while len(received) < size:
            remaining = deadline - self._clock.monotonic_s()
            if remaining <= 0:
                raise TimeoutError("timed out")
            self._socket.settimeout(remaining)
            chunk = self._socket.recv(min(size - len(received), _CHUNK_BYTES))
            if not chunk:
                raise ConnectionResetError("closed by the broker")
            received += chunk
        return bytes(received)

    def is_usable(self) -> bool:
        """Whether the socket is open and silent; an idle connection with something to read is one being closed."""
        if self._socket.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        """Close the connection; an exchange that another thread waits for ends as well."""
        with suppress(OSError):  # A connection that is gone already cannot be shut down.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class AuthenticatedConnection:
    """A connection on which the client is logged in, and logs in again before its session ends."""

    def __init__(
        self, connection: TcpConnection, login: Login, address: Address, clock: Clock, timeout_s: float
    ) -> None:
        self._connection = connection
        self._login = login
        self._address = address
        self._clock = clock
        self._renew_at_s: float | None = None
        self._logged_in_s = clock.monotonic_s()
        self._log_in(timeout_s)

    def exchange(self, frame: bytes, timeout_s: float) -> bytes:
        """Send a frame and wait for the answer; what cannot log in again sends nothing."""
        deadline = self._clock.monotonic_s() + timeout_s
        if self._is_due(self._clock.monotonic_s()):
            self._log_in(timeout_s)
        remaining_s = deadline - self._clock.monotonic_s()
        if remaining_s <= 0:
            raise Unreachable("no time is left after the login to ask the broker")
        return self._connection.exchange(frame, remaining_s)

    def is_usable(self) -> bool:
        """Whether the socket is open and silent. A session that has ended meanwhile does not matter: it is renewed.

        One that ends so soon that it cannot be, as that of a token in its last second, needs a new connection.
        """
        now_s = self._clock.monotonic_s()
        is_too_short = self._is_due(now_s) and now_s < self._logged_in_s + _BETWEEN_LOGINS_S
        return not is_too_short and self._connection.is_usable()

    def _is_due(self, now_s: float) -> bool:
        return self._renew_at_s is not None and now_s >= self._renew_at_s

    def close(self) -> None:
        """Close the connection; an exchange that another thread waits for ends as well."""
        self._connection.close()

    def _log_in(self, timeout_s: float) -> None:
        # Counted from before the broker does, so that its clock never is ahead of ours.
        began_s = self._clock.monotonic_s()
        try:
            lifetime_s = self._login.log_in(self._connection.exchange, self._address, timeout_s)
        except BaseException:
            self._connection.close()
            raise
        self._logged_in_s = self._clock.monotonic_s()
        self._renew_at_s = None if lifetime_s is None else began_s + lifetime_s * _USED_OF_A_SESSION


def _open(address: Address, timeout_s: float) -> socket.socket:
    try:
        opened = socket.create_connection((address.host, address.port), timeout=max(timeout_s, 0.001))
    except socket.gaierror as error:
        raise Unreachable(f"the host name of {address} does not resolve: {error.strerror}") from error
    except UnicodeError as error:
        raise Unreachable(f"the host name of {address} cannot be one: {error}") from error
    except OSError as error:
        raise Unreachable(f"could not connect to {address}: {_reason(error)}") from error
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def _is_alert(error: OSError) -> bool:
    return isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or "")


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return (error.strerror or str(error) or type(error).__name__).lower()
