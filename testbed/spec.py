"""Specification of a testbed cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Literal

from testbed.releases import DEFAULT

FIRST_CONTROLLER_ID = 100


class Security(Enum):
    """Listeners of the brokers, and if they ask for permission."""

    PLAINTEXT = "plaintext"
    SECURE = "secure"


class Listener(StrEnum):
    """A listener of a broker; the name is also Kafka's `security.protocol`, but for those behind a proxy."""

    PLAINTEXT = "PLAINTEXT"
    PROXIED = "PROXIED"
    LINK = "LINK"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SSL = "SSL"
    SASL_SSL = "SASL_SSL"


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A cluster to start.

    Brokers get the ids 0, 1, 2 …, controllers 100, 101, 102; racks are dealt out in turn. `broker_config` wins over
    the settings that the testbed chooses; controllers get it too. With `Security.SECURE` every broker also listens
    with SASL and TLS and asks Kafka's standard authorizer; the PLAINTEXT listener then belongs to a super user. If
    `is_proxied`, every broker also has a listener in plain text that clients reach through the cluster's proxy; if
    `has_links`, brokers reach each other through proxies, one before each broker. If `is_tiered`, topics may have their
    older segments in remote storage (KIP-405): a folder beside those of the brokers.
    """

    version: str = DEFAULT
    brokers: int = 3
    controllers: int = 1
    mode: Literal["kraft", "zookeeper"] = "kraft"
    racks: tuple[str, ...] = ("a", "b", "c")
    log_dirs: int = 2
    security: Security = Security.PLAINTEXT
    is_proxied: bool = False
    has_links: bool = False
    is_tiered: bool = False
    broker_config: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.brokers < 1 or self.log_dirs < 1:
            raise ValueError("a cluster needs at least one broker and one log dir per broker")
        if self.mode == "kraft" and not 1 <= self.controllers <= 9:
            raise ValueError(f"a KRaft cluster has 1 to 9 controllers, not {self.controllers}")
        if self.mode == "zookeeper" and self.security is Security.SECURE:
            raise ValueError("the testbed secures KRaft clusters only")
        if self.mode == "zookeeper" and self.is_tiered:
            raise ValueError("the testbed gives remote storage to KRaft clusters only")
        if self.mode == "zookeeper" and (self.is_proxied or self.has_links):
            raise ValueError("the testbed puts a proxy before the brokers of KRaft clusters only")
        if self.mode == "zookeeper" and not self.version.startswith(("2.", "3.")):
            raise ValueError(f"Kafka {self.version} has no ZooKeeper mode; 3.9.1 is the last line that has")

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The listeners that every broker has."""
        secure = (Listener.SASL_PLAINTEXT, Listener.SSL, Listener.SASL_SSL) if self.security is Security.SECURE else ()
        return (Listener.PLAINTEXT, *secure, *self.proxied)

    @property
    def proxied(self) -> tuple[Listener, ...]:
        """Brokers that are reached through a proxy."""
        wanted = {Listener.PROXIED: self.is_proxied, Listener.LINK: self.has_links}
        return tuple(listener for listener, is_wanted in wanted.items() if is_wanted)

    def rack(self, broker_id: int) -> str | None:
        """The rack of a broker, None if the cluster has no racks."""
        return self.racks[broker_id % len(self.racks)] if self.racks else None
