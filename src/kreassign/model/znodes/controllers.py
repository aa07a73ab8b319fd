"""`/controller` (ephemeral: who is in office) and `/controller_epoch` (how often that changed)."""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.errors import DamagedZnode
from kreassign.model.znodes import paths, text

_VERSION = 2
_NO_KRAFT_EPOCH = -1


@dataclass(frozen=True, slots=True)
class ControllerZnode:
    """Which broker is the controller, and since when (ms since 1970)."""

    broker_id: int
    elected_ms: int


def parse_controller(content: bytes) -> ControllerZnode:
    """Read version 1 or 2; raises `DamagedZnode`."""
    path = paths.CONTROLLER
    fields = text.decode(path, content)
    elected = text.string(path, text.field(path, fields, "timestamp"))
    if not (elected.isascii() and elected.isdigit()):
        raise DamagedZnode(path, f"its timestamp {elected!r} is not a number of milliseconds")
    return ControllerZnode(text.integer(path, text.field(path, fields, "brokerid")), int(elected))


def format_controller(znode: ControllerZnode) -> bytes:
    """Write version 2. The time is a text, as Kafka writes it."""
    return text.encode({
        "version": _VERSION,
        "brokerid": znode.broker_id,
        "timestamp": str(znode.elected_ms),
        "kraftControllerEpoch": _NO_KRAFT_EPOCH,
    })  # fmt: skip


def parse_controller_epoch(content: bytes) -> int:
    """Read the epoch: a plain number; raises `DamagedZnode`."""
    if not content.isdigit():
        raise DamagedZnode(paths.CONTROLLER_EPOCH, f"{content!r} is not a number")
    return int(content)


def format_controller_epoch(epoch: int) -> bytes:
    """Write the epoch."""
    return str(epoch).encode()
