"""The values that make up what a controller sends to brokers."""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.wire.api import Message
from kreassign.wire.control import APIS, LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, ControlApi, decode_body


@dataclass(frozen=True, slots=True)
class Sender:
    """A controller in its term of office."""

    controller_id: int
    controller_epoch: int


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """A broker that is told things: where it listens, in plain text, and as which of its registrations."""

    broker_id: int
    host: str
    port: int
    rack: str | None = None
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True)
class ControlVersions:
    """In which versions a controller speaks; it follows from the version between brokers that it is set to.

    Only what a controller of Kafka 2.6 or later uses, where requests are grouped by topic and LeaderAndIsr has the
    lists of a move. Kafka 3.4 to 3.9 send the last version of each.
    """

    leader_and_isr: int = LEADER_AND_ISR.max_version
    stop_replica: int = STOP_REPLICA.max_version
    update_metadata: int = UPDATE_METADATA.max_version

    def __post_init__(self) -> None:
        for api, version, first in (
            (LEADER_AND_ISR, self.leader_and_isr, 3),
            (STOP_REPLICA, self.stop_replica, 3),
            (UPDATE_METADATA, self.update_metadata, 5),
        ):
            if not first <= version <= api.max_version:
                raise ValueError(f"{api} is sent in versions {first} to {api.max_version}, not {version}")


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """A request to one broker, as bytes: the body without its header."""

    broker_id: int
    api_key: int
    version: int
    body: bytes

    @property
    def api(self) -> ControlApi:
        """Which of the three requests it is."""
        return APIS[self.api_key]

    def decode(self) -> Message:
        """The message in the body; raises `ProtocolViolation`."""
        return decode_body(self.api, self.version, self.body)
