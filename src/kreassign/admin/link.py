"""A connection to one node, with the API versions it offers; opened on first use and again after it broke.

Before the first call on a new connection the node has to say its cluster id, once the client knows which it must be.
"""

from __future__ import annotations

from threading import Lock
from typing import TypeVar

from kreassign import __version__
from kreassign.admin.call import Call, reading, rejection
from kreassign.admin.identity import ClusterIdentity
from kreassign.admin.settings import Address
from kreassign.admin.transport import Connection, Transport
from kreassign.clock import Clock
from kreassign.errors import OutcomeUnknown, ProtocolViolation, Rejected, Unreachable, Unsupported
from kreassign.model import Cluster
from kreassign.model.error_codes import NONE, UNSUPPORTED_VERSION
from kreassign.wire import api
from kreassign.wire.codec import decode_response, encode_request

Answer = TypeVar("Answer")
Versions = dict[int, tuple[int, int]]


# The broker has a little less time than this client waits, so that its "timed out" for each partition still arrives.
_BROKERS_SHARE = 0.9
_LONGEST_WAY_BACK_S = 2.0


class Link:
    """The way to one address. Calls from several threads wait for each other: one request is in flight at a time."""

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
        self._versions: Versions = {}
        self._correlation_id = 0

    def exchange(self, call: Call[Answer], timeout_s: float) -> api.Message:
        """Send a call in the highest version that both ends speak and return the raw response.

        Raises `Unreachable`, `Unauthenticated` or `Unsupported` when nothing was sent, `OutcomeUnknown` when the
        request may have been carried out.
        """
        deadline = self._clock.monotonic_s() + timeout_s
        if not self._lock.acquire(timeout=max(0.0, timeout_s)):
            raise Unreachable(f"{self.address} is still busy with another call")
        try:
            return self._send(self._connected(deadline), call, deadline)
        finally:
            self._lock.release()

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way, so that another one would have to wait."""
        return self._lock.locked()

    @property
    def is_open(self) -> bool:
        """Whether a connection stands that did not break yet."""
        connection = self._connection
        return connection is not None and connection.is_usable()

    def close(self) -> None:
        """Close the connection; the next call opens another. Not locked: it also ends a call of another thread."""
        if self._connection is not None:
            self._connection.close()

    def _remaining_s(self, deadline: float) -> float:
        remaining = deadline - self._clock.monotonic_s()
        if remaining <= 0:
            raise Unreachable(f"{self.address} could not be asked in time")
        return remaining

    def _connected(self, deadline: float) -> Connection:
        if self._connection is not None and self._connection.is_usable():
            return self._connection
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        connection = self._transport.connect(self.address, self._remaining_s(deadline))
        try:
            self._versions = self._offered_versions(connection, deadline)
            if self._identity.is_known:
                self._identity.check(self.address, self._cluster_id(connection, deadline))
        except OutcomeUnknown as error:
            connection.close()
            raise Unreachable(str(error)) from error
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _offered_versions(self, connection: Connection, deadline: float) -> Versions:
        for version in (api.API_VERSIONS.max_version, 0):
            request = api.API_VERSIONS.request(client_software_name="kreassign", client_software_version=__version__)
            response = self._ask(connection, api.API_VERSIONS, version, request, self._remaining_s(deadline))
            # A broker that does not know our version answers in version 0 (KIP-511); ask again in that.
            if response.error_code != UNSUPPORTED_VERSION:
                break
        if response.error_code != NONE:
            raise rejection(api.API_VERSIONS, response.error_code, None)
        with reading(api.API_VERSIONS):
            return {offer.api_key: (offer.min_version, offer.max_version) for offer in response.api_keys}

    def _cluster_id(self, connection: Connection, deadline: float) -> str:
        response = self._send(connection, self._ask_identity, deadline)
        try:
            with reading(self._ask_identity.api):
                return self._ask_identity.read(response).cluster_id
        except Rejected as error:
            raise Unreachable(f"{self.address} did not say its cluster id: {error}") from error

    def _send(self, connection: Connection, call: Call[Answer], deadline: float) -> api.Message:
        version, remaining_s = self._version_for(call.api), self._remaining_s(deadline)
        request = call.build(version, _brokers_share_ms(remaining_s))
        return self._ask(connection, call.api, version, request, remaining_s)

    def _version_for(self, wanted: api.Api) -> int:
        offered = self._versions.get(wanted.key)
        version = wanted.common_version(offered)
        if version is None and offered is None:
            raise Unsupported(f"{self.address} does not offer {wanted}")
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
        frame = encode_request(version, request, self._correlation_id, self._client_id)
        payload = connection.exchange(frame, timeout_s)
        try:
            return decode_response(asked, version, payload, self._correlation_id)
        except ProtocolViolation:
            connection.close()  # Whatever comes next on it would be misread too.
            raise


def _brokers_share_ms(remaining_s: float) -> int:
    return round(max(remaining_s * _BROKERS_SHARE, remaining_s - _LONGEST_WAY_BACK_S) * 1000)
