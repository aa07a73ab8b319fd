"""`/brokers/ids/N`: a live broker and where it listens."""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.model.znodes import paths, text

_VERSION = 5
_LISTENER = "PLAINTEXT"
_NO_PORT = -1


@dataclass(frozen=True, slots=True)
class BrokerZnode:
    """A registered broker. Without a plain-text listener `host` is empty and `port` is -1, as Kafka writes them."""

    id: int
    host: str
    port: int
    rack: str | None = None
    endpoints: tuple[str, ...] = ()


def parse_broker(broker_id: int, content: bytes) -> BrokerZnode:
    """Read versions 1 to 5; raises `DamagedZnode`."""
    path = paths.broker_path(broker_id)
    fields = text.decode(path, content)
    rack, endpoints = fields.get("rack"), fields.get("endpoints", [])
    return BrokerZnode(
        broker_id,
        text.string(path, fields.get("host") or ""),
        text.integer(path, fields.get("port", _NO_PORT)),
        None if rack is None else text.string(path, rack),
        tuple(text.string(path, endpoint) for endpoint in endpoints),
    )


def format_broker(znode: BrokerZnode, registered_ms: int) -> bytes:
    """Write version 5 for a broker with one plain-text listener; the rack is left out where there is none."""
    rack = {} if znode.rack is None else {"rack": znode.rack}
    return text.encode({
        "features": {},
        "listener_security_protocol_map": {_LISTENER: _LISTENER},
        "endpoints": znode.endpoints or (f"{_LISTENER}://{znode.host}:{znode.port}",),
        "jmx_port": _NO_PORT,
        **rack,
        "port": znode.port,
        "host": znode.host,
        "version": _VERSION,
        "timestamp": str(registered_ms),
    })  # fmt: skip
