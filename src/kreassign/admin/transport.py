"""Frames to a broker and back over TCP, with TLS and SASL.

A connection carries one request at a time and blocks its thread, which buys the one thing that matters here: after
a failure we know whether the request can have reached the broker. A frame that was not handed over whole can never
be carried out (`Unreachable`); one that was, may have been (`OutcomeUnknown`).

A SASL session that ends (KIP-368) is renewed before anything more is sent on it, however long the connection was idle.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from kreassign.admin.sasl import log_in
from kreassign.admin.settings import Address, ClientSettings, Sasl, Tls
from kreassign.clock import Clock, SystemClock
from kreassign.errors import InputError, OutcomeUnknown, ProtocolViolation, Unauthenticated, Unreachable
from kreassign.wire.frame import PREFIX_BYTES, frame_length

_CHUNK_BYTES = 1 << 20
# Kafka's own client renews a session after 85 to 95 % of its lifetime: answers take time, and clocks drift.
_USED_OF_A_SESSION = 0.85


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
        self._tls = _tls_context(settings.tls) if settings.security_protocol.uses_tls else None

    def connect(self, address: Address, timeout_s: float) -> Connection:
        """Open a connection; each step may take so many seconds, but no more than the settings give it."""
        timeout_s = min(timeout_s, self._settings.connect_timeout_ms / 1000)
        connection = TcpConnection(self._secured(_open(address, timeout_s), address), address, self._clock)
        if self._settings.sasl is None:
            return connection
        return AuthenticatedConnection(connection, self._settings.sasl, self._settings, self._clock, timeout_s)

    def _secured(self, plain: socket.socket, address: Address) -> socket.socket:
        if self._tls is None:
            return plain
        try:
            return self._tls.wrap_socket(plain, server_hostname=address.host)
        except ssl.SSLCertVerificationError as error:
            reason = error.verify_message or error.reason
            raise Unauthenticated(f"the certificate of {address} is not trusted: {reason}") from None
        except ssl.SSLError as error:
            raise Unauthenticated(f"no TLS connection with {address}: {_reason(error)}") from None
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
            return Unauthenticated(f"{self._address} refused the TLS connection: {_reason(error)}")
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
        self, connection: TcpConnection, sasl: Sasl, settings: ClientSettings, clock: Clock, timeout_s: float
    ) -> None:
        self._connection = connection
        self._sasl = sasl
        self._settings = settings
        self._clock = clock
        self._renew_at_s: float | None = None
        self._log_in(timeout_s)

    def exchange(self, frame: bytes, timeout_s: float) -> bytes:
        """Send a frame and wait for the answer; what cannot log in again sends nothing."""
        deadline = self._clock.monotonic_s() + timeout_s
        if self._renew_at_s is not None and self._clock.monotonic_s() >= self._renew_at_s:
            self._log_in(timeout_s)
        remaining_s = deadline - self._clock.monotonic_s()
        if remaining_s <= 0:
            raise Unreachable("no time is left after the login to ask the broker")
        return self._connection.exchange(frame, remaining_s)

    def is_usable(self) -> bool:
        """Whether the socket is open and silent. A session that has ended meanwhile does not matter: it is renewed."""
        return self._connection.is_usable()

    def close(self) -> None:
        """Close the connection; an exchange that another thread waits for ends as well."""
        self._connection.close()

    def _log_in(self, timeout_s: float) -> None:
        # Counted from before the broker does, so that its clock never is ahead of ours.
        began_s = self._clock.monotonic_s()
        try:
            lifetime_s = log_in(self._connection.exchange, self._sasl, self._settings.client_id, timeout_s)
        except BaseException:
            self._connection.close()
            raise
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


def _tls_context(tls: Tls) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = tls.verifies_host_name
    if tls.trusted_certificates is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = tls.verifies_host_name
        try:
            context.load_verify_locations(cadata=tls.trusted_certificates)
        except (ssl.SSLError, ValueError) as error:
            raise InputError(f"the trust store holds no usable PEM certificate: {error}") from None
    context.minimum_version, context.maximum_version = (
        ssl.TLSVersion[version.replace(".", "_")] for version in (tls.versions[0], tls.versions[-1])
    )
    if tls.certificate_chain is not None and tls.private_key is not None:
        _load_certificate(context, tls)
    return context


def _load_certificate(context: ssl.SSLContext, tls: Tls) -> None:
    """Hand chain and key to OpenSSL, which takes them from a file only: one that nobody else can read, gone at once."""
    assert tls.certificate_chain is not None
    assert tls.private_key is not None
    descriptor, name = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{tls.private_key.reveal()}\n{tls.certificate_chain}\n")
        # An empty password makes OpenSSL fail on an encrypted key instead of asking the terminal.
        password = tls.key_password.reveal() if tls.key_password is not None else ""
        context.load_cert_chain(name, password=password)
    except (ssl.SSLError, ValueError, OSError) as error:
        reason = getattr(error, "reason", None) or "wrong ssl.key.password, or no PEM key and certificate chain"
        raise InputError(f"the key store cannot be used: {reason}") from None
    finally:
        Path(name).unlink()
