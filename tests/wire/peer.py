"""The other end of the wire: reads requests and writes responses as a broker does, by the same message classes."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

from kreassign.wire import api
from kreassign.wire.api import Api, Message

APIS = {entry.key: entry for entry in vars(api).values() if isinstance(entry, Api) and entry not in api.KIP_179_APIS}
"""Those of real Kafka."""
EVERY_VERSION = [
    (entry, version) for entry in APIS.values() for version in range(entry.min_version, entry.max_version + 1)
]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as a broker sees it."""

    api: Api
    version: int
    correlation_id: int
    client_id: str
    message: Message


def message(kind: Any, fields: Mapping[str, Any]) -> Message:
    """A message, or a part of one, with these fields. A part may be given as a mapping in the place of its class."""
    return kind(**{name: _part(kind.fields[name], value) for name, value in fields.items()})


def _part(field: Any, value: Any) -> Any:
    if isinstance(value, Mapping) and field.is_struct():
        return message(field.data_class, value)
    if isinstance(value, list) and field.is_struct_array():
        return [message(field.data_class, one) if isinstance(one, Mapping) else one for one in value]
    return value


def read_request(payload: bytes) -> Asked:
    """A request without its length prefix."""
    key, version = struct.unpack(">hh", payload[:4])
    message = APIS[key].request.decode(payload, version=version, header=True)
    return Asked(APIS[key], version, message.header.correlation_id, message.header.client_id, message)


def write_response(asked: Asked, response: Message, *, correlation_id: int | None = None) -> bytes:
    """The answer to a request, length prefix included; `correlation_id` to answer another one."""
    response = copy(response)  # One response may be written by several threads, in several versions.
    response._header = None
    response.API_VERSION = _body_version(asked, response)
    response.with_header(correlation_id=asked.correlation_id if correlation_id is None else correlation_id)
    return bytes(response.encode(header=True, framed=True))


def _body_version(asked: Asked, response: Message) -> int:
    # KIP-511: who does not know the version of an ApiVersions request answers in version 0.
    return 0 if asked.api is api.API_VERSIONS and response.error_code == 35 else asked.version
