"""Connections to nodes: frames over TCP with TLS and SASL, API versions, and the check of the cluster id.

A connection carries one request at a time and blocks its thread, so that after a failure it is known whether the
request can have reached the broker. A frame that was not handed over whole can never
be executed (`Unreachable`); a whole one may have been (`OutcomeUnknown`).

A SASL session that ends (KIP-368) is renewed before the next request on it, however long the connection was
idle.
"""

from __future__ import annotations

import select
import socket
import ssl
from contextlib import suppress
from threading import Lock
from typing import Protocol, TypeVar

from kreassign import __version__
from kreassign.admin.call import Call, reading_answer, rejection
from kreassign.admin.sasl import Login
from kreassign.admin.settings import Address, ClientSettings
from kreassign.admin.tls import NoTls, advice_on_failure, distrust, tls_context
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import InputError, OutcomeUnknown, ProtocolViolation, Rejected, Unreachable, Unsupported
from kreassign.model import Cluster
from kreassign.model.error_codes import NONE, REBOOTSTRAP_REQUIRED, UNSUPPORTED_VERSION
from kreassign.wire import api
from kreassign.wire.codec import PREFIX_BYTES, decode_response, encode_request, frame_length, refuse_overlong

_CHUNK_BYTES = 1 << 20
# Kafka's own client renews a session after 85 to 95 % of its lifetime: answers take time, and clocks drift.
_USED_OF_A_SESSION = 0.85
# A broker accepts another login on a connection only this long after the last (KafkaChannel.MIN_REAUTH_INTERVAL…).
_BETWEEN_LOGINS_S = 1.0


class NoHost(Unreachable):
    """The host name does not resolve, and another try soon would not change that."""


class Connection(Protocol):
    """A connection to one broker. Not safe for use by two threads at once."""

    def exchange(self, frame: bytes, timeout_s: float) -> bytes:
        """Send a frame and return the payload of the answer.

        Raises `Unreachable` if the frame cannot have arrived whole, `OutcomeUnknown` if it can.
        """

    def is_usable(self) -> bool:
        """True if the broker still holds the other end, as far as is visible without a request."""

    def close(self) -> None:
        """Close the connection."""


class Transport(Protocol):
    """Opens connections: over TCP here, in-process in tests of the twin."""

    @property
    def takes_turns(self) -> bool:
        """True if only one connection exchanges at a time, so that threads would but wait for each other."""

    def connect(self, address: Address, timeout_s: float) -> Connection:
        """Open a connection, authenticated if the settings require it. Raises `Unreachable` or `Unauthenticated`."""


class TcpTransport:
    """Kafka's own transport: TCP, with TLS and SASL by the settings."""

    takes_turns = False

    def __init__(self, settings: ClientSettings, clock: Clock | None = None) -> None:
        self._settings = settings
        self._clock = clock or SYSTEM_CLOCK
        self._tls = tls_context(settings.tls) if settings.security_protocol.uses_tls else None
        self._login = Login(settings.sasl, settings, self._clock) if settings.sasl is not None else None

    def connect(self, address: Address, timeout_s: float) -> Connection:
        """Open a connection; each step is limited by `timeout_s`, and by the timeout of the settings."""
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
            raise NoTls(distrust(address, error)) from None
        except ssl.SSLError as error:
            reason = _reason(error)
            raise NoTls(f"no TLS connection with {address}: {reason}{advice_on_failure(reason)}") from None
        except OSError as error:
            reason = _reason(error)
            raise Unreachable(f"no TLS connection with {address}: {reason}{advice_on_failure(reason)}") from error


class TcpConnection:
    """A connection over one socket."""

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

    def _refusal(self, error: OSError) -> NoTls | None:
        """The alert behind a broken TLS connection, if any.

        From TLS 1.3 on a client that the broker does not trust learns this only after the handshake; when sending
        fails, the alert can still be read.
        """
        if isinstance(self._socket, ssl.SSLSocket) and not isinstance(error, TimeoutError) and not _is_alert(error):
            try:
                self._socket.recv(1)
            except OSError as said:
                error = said
        if _is_alert(error):
            reason = _reason(error)
            return NoTls(f"{self._address} refused the TLS connection: {reason}{advice_on_failure(reason)}")
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
        """True if the socket is open and silent; an idle connection with data to read is being closed."""
        if self._socket.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        """Close the connection; an exchange that another thread waits for ends as well."""
        with suppress(OSError):  # A connection that is gone cannot be shut down.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class AuthenticatedConnection:
    """A connection with a logged-in client, which logs in again before its session ends."""

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
        """Send a frame and wait for the answer; nothing is sent if the new login fails."""
        deadline = self._clock.monotonic_s() + timeout_s
        if self._is_due(self._clock.monotonic_s()):
            self._log_in(timeout_s)
        remaining_s = deadline - self._clock.monotonic_s()
        if remaining_s <= 0:
            raise Unreachable("no time is left after the login to ask the broker")
        return self._connection.exchange(frame, remaining_s)

    def is_usable(self) -> bool:
        """True if the socket is open and silent. An expired session does not matter: it is renewed.

        A session that ends too soon for that, as with a token in its last second, needs a new connection.
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
        # Start before the broker counts, so that its session never ends earlier than expected here.
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
        kind = Unreachable if error.errno == socket.EAI_AGAIN else NoHost
        raise kind(f"the host name of {address} does not resolve: {error.strerror}") from error
    except UnicodeError as error:
        parts = "a part between its dots is empty or longer than 63 characters"
        raise NoHost(f"the host name of {address} cannot be one: {parts}") from error
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


# Bind a client to the first cluster that answers.
#
# Addresses get reused: a Kubernetes service, a reinstalled host, a tunnel. Decisions for one cluster must not
# be sent to another, so every new connection must report its cluster id before its first call.


class ClusterIdentity:
    """The cluster id of a client, once known. Safe for use by several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._cluster_id = ""
        self.is_compared_by_brokers = False
        """True once a broker offered to compare the cluster and the node that a client means (KIP-1242, Kafka 4.4)."""

    @property
    def cluster_id(self) -> str:
        """The cluster id; empty before a node has reported it."""
        return self._cluster_id

    def check(self, address: Address, cluster_id: str) -> None:
        """Keep the first id, and compare later ones with it. A node without an id is trusted.

        Raises Unreachable for another cluster: nothing was sent to it, and the address may return to the right one.
        """
        with self._lock:
            self._cluster_id = self._cluster_id or cluster_id
            if cluster_id in {"", self._cluster_id}:
                return
            raise Unreachable(
                f"{address} belongs to cluster {cluster_id}, not to {self._cluster_id} as expected; nothing was sent "
                "to it. Check where this address leads"
            )

    def expect(self, cluster_id: str) -> None:
        """Accept this cluster only. Raises InputError if the client already uses another one."""
        with self._lock:
            self._cluster_id = self._cluster_id or cluster_id
            if cluster_id not in {"", self._cluster_id}:
                raise InputError(f"the client is one of cluster {self._cluster_id}, not of {cluster_id}")


# A link to one node, with the API versions it offers; opened on first use and again after it broke.
#
# Before the first call on a new connection the node must report its cluster id, once the client knows the right
# one. Brokers of Kafka 4.4 also compare the node that a call is for with themselves (KIP-1242), so that an address that
# leads to another broker of the same cluster is refused, too.

Answer = TypeVar("Answer")
Versions = dict[int, tuple[int, int]]


# The broker gets a little less time than this client waits, so that its timeout errors per partition still arrive.
_BROKERS_SHARE = 0.9
_LONGEST_WAY_BACK_S = 2.0
_WITHOUT_NODE = 3
"""The version of ApiVersions that names neither cluster nor node; Kafka 3.7 does not know 4."""


class Link:
    """A link to one address. Calls from several threads wait for each other: one request is in flight at a time."""

    def __init__(
        self,
        address: Address,
        transport: Transport,
        client_id: str,
        clock: Clock,
        identity: ClusterIdentity,
        ask_identity: Call[Cluster],
    ) -> None:
        self.address = address
        self._transport = transport
        self._client_id = client_id
        self._clock = clock
        self._identity = identity
        self._ask_identity = ask_identity
        self._lock = Lock()
        self._connection: Connection | None = None
        self._closings = 0
        self.node_id: int | None = None
        """The node that the next call is for; None if any node will do."""
        self._asked_for: int | None = None
        """The node for which the open connection asked. One that was opened for any node is not opened again."""
        self.was_reached = False
        """True once a connection was open, logged in and ready for calls."""
        self._versions: Versions = {}
        self._correlation_id = 0

    def exchange(self, call: Call[Answer], timeout_s: float, connect_s: float | None = None) -> api.Message:
        """Send a call in the highest version that both ends speak and return the raw response.

        Each step of connecting takes at most `connect_s`, if given.

        Raises `Unreachable`, `Unauthenticated` or `Unsupported` when nothing was sent, `OutcomeUnknown` when the
        request may have been executed.
        """
        deadline = self._clock.monotonic_s() + timeout_s
        if not self._lock.acquire(timeout=max(0.0, timeout_s)):
            raise Unreachable(f"{self.address} is still busy with another call")
        try:
            return self._send(self._connected(deadline, connect_s), call, deadline)
        except ProtocolViolation as error:
            raise ProtocolViolation(f"{self.address}: {error.message}", item=error.item, api=error.api) from error
        finally:
            self._lock.release()

    @property
    def is_busy(self) -> bool:
        """True while a call is in flight, so that another one would have to wait."""
        return self._lock.locked()

    @property
    def is_open(self) -> bool:
        """True with a connection that has not failed yet."""
        connection = self._connection
        return connection is not None and connection.is_usable()

    def close(self) -> None:
        """Close the connection; the next call opens another. Takes no lock: it also ends a call of another thread."""
        self._closings += 1  # before it looks: a connection that is being opened looks afterwards
        if self._connection is not None:
            self._connection.close()

    def _remaining_s(self, deadline: float) -> float:
        remaining = deadline - self._clock.monotonic_s()
        if remaining <= 0:
            raise Unreachable(f"{self.address} could not be asked in time")
        return remaining

    def _connected(self, deadline: float, connect_s: float | None) -> Connection:
        is_meant = self.node_id is None or self._asked_for in {None, self.node_id}
        if self._connection is not None and self._connection.is_usable() and is_meant:
            return self._connection
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        remaining_s, closings = self._remaining_s(deadline), self._closings
        connection = self._connection = self._transport.connect(
            self.address, min(remaining_s, connect_s or remaining_s)
        )
        if self._closings > closings:
            connection.close()
            raise Unreachable(f"the connection to {self.address} was closed while it was opened")
        try:
            self._versions = self._offered_versions(connection, deadline)
            if self._identity.cluster_id:
                self._identity.check(self.address, self._cluster_id(connection, deadline))
        except OutcomeUnknown as error:
            connection.close()
            raise Unreachable(str(error)) from error
        except BaseException:
            connection.close()
            raise
        self.was_reached = True
        return connection

    def _offered_versions(self, connection: Connection, deadline: float) -> Versions:
        node_id = self.node_id if self._identity.cluster_id and self._identity.is_compared_by_brokers else None
        for version in (_WITHOUT_NODE if node_id is None else api.API_VERSIONS.max_version, 0):
            request = api.API_VERSIONS.request(client_software_name="kreassign", client_software_version=__version__)
            if version > _WITHOUT_NODE:
                request.cluster_id, request.node_id = self._identity.cluster_id, node_id
            response = self._ask(connection, api.API_VERSIONS, version, request, self._remaining_s(deadline))
            # A broker that does not know our version answers in version 0 (KIP-511); ask again in that version.
            if response.error_code != UNSUPPORTED_VERSION:
                break
        if response.error_code == REBOOTSTRAP_REQUIRED:
            raise Unreachable(
                f"{self.address} is not broker {node_id} of cluster {self._identity.cluster_id}, which lists it there; "
                "nothing was sent to it. Check where this address leads"
            )
        if response.error_code != NONE:
            raise rejection(api.API_VERSIONS, response.error_code, None)
        self._asked_for = node_id
        with reading_answer(api.API_VERSIONS):
            versions = {offer.api_key: (offer.min_version, offer.max_version) for offer in response.api_keys}
        if versions.get(api.API_VERSIONS.key, (0, 0))[1] > _WITHOUT_NODE:
            self._identity.is_compared_by_brokers = True
        return versions

    def _cluster_id(self, connection: Connection, deadline: float) -> str:
        response = self._send(connection, self._ask_identity, deadline)
        try:
            with reading_answer(self._ask_identity.api):
                return self._ask_identity.read(response).cluster_id
        except Rejected as error:
            raise Unreachable(f"{self.address} did not say its cluster id: {error}") from error

    def _send(self, connection: Connection, call: Call[Answer], deadline: float) -> api.Message:
        version, remaining_s = self._version_for(call.api), self._remaining_s(deadline)
        brokers_share_s = max(remaining_s * _BROKERS_SHARE, remaining_s - _LONGEST_WAY_BACK_S)
        request = call.build(version, round(brokers_share_s * 1000))
        return self._ask(connection, call.api, version, request, remaining_s)

    def _version_for(self, wanted: api.Api) -> int:
        offered = self._versions.get(wanted.key)
        version = wanted.common_version(offered)
        if version is None and offered is None:
            no_broker = ", as brokers do: a controller listens there; give the address of a broker"
            raise Unsupported(f"{self.address} does not offer {wanted}{no_broker if wanted is api.METADATA else ''}")
        if version is None and offered is not None:
            raise Unsupported(
                f"{self.address} offers {wanted} in versions {offered[0]}-{offered[1]}, "
                f"kreassign speaks {wanted.min_version}-{wanted.max_version}"
            )
        assert version is not None
        return version

    def _ask(
        self, connection: Connection, asked: api.Api, version: int, request: api.Message, timeout_s: float
    ) -> api.Message:
        self._correlation_id = (self._correlation_id + 1) % 2**31
        refuse_overlong(asked, version, request)
        frame = encode_request(version, request, self._correlation_id, self._client_id)
        payload = connection.exchange(frame, timeout_s)
        try:
            return decode_response(asked, version, payload, self._correlation_id)
        except ProtocolViolation:
            connection.close()  # Later data on this connection would be misread too.
            raise
