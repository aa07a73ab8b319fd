"""Messages to bytes and back, headers included: both ends of the conversation."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kreassign.errors import ProtocolViolation
from kreassign.wire.api import API_VERSIONS, Api, Message
from kreassign.wire.strictness import fault_of

# All that kafka-python's decoder raises on bytes that make no sense; some of it is assertions. A length that was
# sent as a huge number may also ask for more memory than there is.
SENSELESS = (ValueError, IndexError, KeyError, TypeError, struct.error, AssertionError, OverflowError, MemoryError)
_HEAD = struct.Struct(">hhi")
_NUMBER_BYTES = 4


def encode_request(version: int, request: Message, correlation_id: int, client_id: str) -> bytes:
    """A whole frame: length, header (v2 for flexible versions, else v1) and body of this version."""
    request.API_VERSION = version
    request.with_header(correlation_id=correlation_id, client_id=client_id)
    encoded: bytes = request.encode(header=True, framed=True)
    return encoded


def decode_response(api: Api, version: int, payload: bytes, correlation_id: int) -> Message:
    """The response in a frame's payload; `ProtocolViolation` when it does not answer `correlation_id`."""
    answered = int.from_bytes(payload[:_NUMBER_BYTES], "big", signed=True)
    # Looked at first: the answer to another API would be read as nonsense, which tells nobody what went wrong.
    if len(payload) >= _NUMBER_BYTES and answered != correlation_id:
        raise ProtocolViolation(f"expected the answer to request {correlation_id} of {api} but got that to {answered}")
    try:
        return api.response.decode(payload, version=version, header=True)
    except SENSELESS as error:
        raise ProtocolViolation(f"cannot read the answer to {api} version {version}: {error}") from error


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The first fields of every request; they have the same place whatever the API and its version."""

    api_key: int
    version: int
    correlation_id: int


def request_head(payload: bytes) -> RequestHead:
    """What a frame's payload asks for; `ProtocolViolation` when it is too short to be a request."""
    if len(payload) < _HEAD.size:
        raise ProtocolViolation(f"a request of {len(payload)} bytes has no header")
    return RequestHead(*_HEAD.unpack_from(payload))


@dataclass(frozen=True, slots=True)
class Received:
    """A request as a broker sees it. `client_id` is None where the client gave none."""

    api: Api
    version: int
    correlation_id: int
    client_id: str | None
    message: Message


def decode_request(api: Api, payload: bytes) -> Received:
    """The request in a frame's payload, which `request_head` said to be of this API; `ProtocolViolation` if not."""
    head = request_head(payload)
    try:
        message = api.request.decode(payload, version=head.version, header=True)
    except SENSELESS as error:
        raise ProtocolViolation(f"cannot read a request of {api} version {head.version}: {error}") from error
    if (fault := fault_of(api, head.version, message)) is not None:
        raise ProtocolViolation(f"a request of {api} version {head.version} has {fault}")
    return Received(api, head.version, head.correlation_id, message.header.client_id, message)


def encode_response(version: int, response: Message, correlation_id: int) -> bytes:
    """A whole frame: length, header (v1 for flexible versions, else v0) and body of this version.

    `ProtocolViolation` where a field does not fit, such as a text about a name that is itself as long as can be.
    """
    response.API_VERSION = version
    response.with_header(correlation_id=correlation_id)
    try:
        encoded: bytes = response.encode(header=True, framed=True)
    except (struct.error, OverflowError) as error:
        raise ProtocolViolation(f"an answer in version {version} cannot be written: {error}") from error
    return encoded


def encode_unsupported_version(correlation_id: int, error_code: int, offered: tuple[int, int]) -> bytes:
    """The answer to a version of ApiVersions that nobody here knows: version 0, with this API's range (KIP-511)."""
    known = API_VERSIONS.response.ApiVersion(api_key=API_VERSIONS.key, min_version=offered[0], max_version=offered[1])
    return encode_response(0, API_VERSIONS.response(error_code=error_code, api_keys=[known]), correlation_id)
