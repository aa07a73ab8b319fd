"""Requests of the controller to brokers in ZooKeeper mode: LeaderAndIsr, StopReplica, UpdateMetadata.

The last Kafka that sends them is 3.9. Only controllers and brokers speak them, so they are no part of `api`. The
definitions in `messages/` have every version, and a body has the JSON form of Kafka's own request log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kreassign.errors import ProtocolViolation
from kreassign.model.topic_changes import short_id
from kreassign.wire.api import Message, own_message
from kreassign.wire.codec import SENSELESS

# The field has a longer name in the definitions than in Kafka, since kafka-python's classes have a `type` already.
_NAMES = {"request_type": "type"}

Json = dict[str, Any]
"""A message as a JSON object."""


@dataclass(frozen=True, slots=True)
class ControlApi:
    """A request of the controller: its number, its name in Kafka's documents, and its last version (the first is 0)."""

    key: int
    name: str
    request: type[Any]
    max_version: int

    def __str__(self) -> str:
        return f"{self.name} (API {self.key})"


def _api(key: int, name: str) -> ControlApi:
    request = own_message(f"{name}Request")
    assert key == request.API_KEY
    return ControlApi(key, name, request, request.max_version)


LEADER_AND_ISR = _api(4, "LeaderAndIsr")
STOP_REPLICA = _api(5, "StopReplica")
UPDATE_METADATA = _api(6, "UpdateMetadata")

APIS = {known.key: known for known in (LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA)}


def encode_body(version: int, request: Message) -> bytes:
    """Encode the body of a request in this version, without a header."""
    return bytes(request.encode(version=version))


def decode_body(api: ControlApi, version: int, body: bytes) -> Message:
    """Decode the request in a body; `ProtocolViolation` if it is malformed, or has trailing bytes."""
    try:
        message = api.request.decode(body, version=version)
        message.with_header()  # without a header, kafka-python does not encode again what it has decoded
        is_whole = encode_body(version, message) == body
    except SENSELESS as error:
        raise ProtocolViolation(f"cannot read a request of {api} version {version}: {error}") from error
    if not is_whole:
        raise ProtocolViolation(f"a request of {api} version {version} has more than its fields")
    return message


def as_json(message: Message) -> Json:
    """A decoded request in the names and values of Kafka's request log."""
    shown = _shown(message.to_dict())
    assert isinstance(shown, dict)
    return shown


def _shown(value: object) -> object:
    if isinstance(value, dict):
        return {_camel(name): short_id(one) if name == "topic_id" else _shown(one) for name, one in value.items()}
    return [_shown(one) for one in value] if isinstance(value, list) else value


def _camel(name: str) -> str:
    first, *others = _NAMES.get(name, name).split("_")
    return first + "".join(word.capitalize() for word in others)
