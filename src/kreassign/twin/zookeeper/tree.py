"""What a controller needs of ZooKeeper: to read znodes, and to write several of them whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Znode(NamedTuple):
    """A znode as it was read. `created` is the transaction that created it, another one each time."""

    content: bytes
    version: int
    created: int


@dataclass(frozen=True, slots=True)
class Create:
    """Create a znode below one that is there. A sequential one gets a number behind its path."""

    path: str
    content: bytes = b""
    is_ephemeral: bool = False
    is_sequential: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """Give a znode other content, if it is of this version."""

    path: str
    content: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a znode that has none below it."""

    path: str


Write = Create | Set | Delete


class Znodes(Protocol):
    """The tree below the chroot of a cluster, seen by one candidate for controller.

    `on_news` is called, from any thread, when something that is waited for may have changed.
    """

    on_news: Callable[[], None]

    def get(self, path: str) -> Znode | None:
        """A znode; None if there is none."""
        ...

    def children(self, path: str) -> tuple[str, ...]:
        """The names below a znode, sorted; none if there is no such znode."""
        ...

    def elect(self, broker_id: int, now_ms: int) -> int | None:
        """Become the controller with the next epoch, and return that; None if there is a controller."""
        ...

    def resign(self) -> None:
        """Stop being the controller, if this candidate is."""
        ...

    def write(self, writes: tuple[Write, ...]) -> None:
        """Write as the controller elected here, all or nothing. Raises `ControllerMoved`, `StaleZnode`."""
        ...

    def watch(self, path: str) -> bool:
        """Call `on_news` once when a znode (of `paths.LISTS`: its children) changes.

        False if it is watched already, so that there is no need to read it.
        """
        ...

    def has_new_session(self) -> bool:
        """Whether, since this was last asked, the session ended with all that hung on it, and another began."""
        ...
