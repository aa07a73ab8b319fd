"""A ZooKeeper in memory: the same tree for several candidates, and a controller that can be stopped at any write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kreassign.errors import ControllerMoved, StaleZnode
from kreassign.model.znodes import paths
from kreassign.model.znodes.contents import format_controller
from kreassign.twin.zookeeper.znodes import Create, Delete, Set, Write, Znode


class StoppedError(Exception):
    """The controller was stopped before this write."""


@dataclass
class Tree:
    """Tree that all candidates share."""

    znodes: dict[str, Znode] = field(default_factory=dict)
    transactions: int = 0
    sequence: int = 0
    log: list[tuple[Write, ...]] = field(default_factory=list)

    def commit(self, writes: tuple[Write, ...]) -> None:
        """All or nothing."""
        after = dict(self.znodes)
        self.transactions += 1
        for write in writes:
            self._do(after, write)
        self.znodes = after
        self.log.append(writes)

    def _do(self, znodes: dict[str, Znode], write: Write) -> None:
        match write:
            case Create(path, content):
                parent = path.rpartition("/")[0]
                assert not parent or parent in znodes, f"{parent} is missing for {path}"
                if write.is_sequential:
                    path, self.sequence = f"{path}{self.sequence:010}", self.sequence + 1
                assert path not in znodes, f"{path} is there already"
                znodes[path] = Znode(content, 0, self.transactions)
            case Set(path, content, version):
                if path not in znodes or znodes[path].version != version:
                    raise StaleZnode(path)
                znodes[path] = Znode(content, version + 1, znodes[path].created)
            case Delete(path):
                assert not any(one.startswith(f"{path}/") for one in znodes), f"{path} is not empty"
                del znodes[path]

    def put(self, path: str, content: bytes) -> None:
        """Create or change a znode as an operator does."""
        known = self.znodes.get(path)
        self.commit((Create(path, content) if known is None else Set(path, content, known.version),))


@dataclass
class Candidate:
    """One candidate's view of the tree. With `writes_left` it is stopped once that many writes were made.

    With `writes_until_deposed` another candidate is elected before the next write, and has gone after it.
    """

    tree: Tree
    epoch: int = 0
    writes_left: int | None = None
    writes_until_deposed: int | None = None
    session_ended: bool = False
    controller: Znode | None = None
    on_news: Callable[[], None] = lambda: None

    def get(self, path: str) -> Znode | None:
        return self.tree.znodes.get(path)

    def children(self, path: str) -> tuple[str, ...]:
        below = (one.removeprefix(f"{path}/") for one in self.tree.znodes if one.startswith(f"{path}/"))
        return tuple(sorted(one for one in below if "/" not in one))

    def elect(self, broker_id: int, now_ms: int) -> int | None:
        if paths.CONTROLLER in self.tree.znodes:
            return None
        known = self.get(paths.CONTROLLER_EPOCH)
        self.epoch = 1 if known is None else int(known.content) + 1
        epoch = str(self.epoch).encode()
        written = Create(paths.CONTROLLER_EPOCH, epoch) if known is None else None
        changed = written or Set(paths.CONTROLLER_EPOCH, epoch, known.version if known else 0)
        self.tree.commit((Create(paths.CONTROLLER, format_controller(broker_id, now_ms)), changed))
        self.controller = self.get(paths.CONTROLLER)
        return self.epoch

    def resign(self) -> None:
        if self.controller is not None and self.get(paths.CONTROLLER) == self.controller:
            del self.tree.znodes[paths.CONTROLLER]

    def write(self, writes: tuple[Write, ...]) -> None:
        if self.writes_left is not None:
            if self.writes_left == 0:
                raise StoppedError
            self.writes_left -= 1
        if self.writes_until_deposed is not None:
            if self.writes_until_deposed == 0:
                self._give_way()
            else:
                self.writes_until_deposed -= 1
        known = self.get(paths.CONTROLLER_EPOCH)
        if known is None or int(known.content) != self.epoch:
            raise ControllerMoved("another controller is in office")
        self.tree.commit(writes)

    def _give_way(self) -> None:
        self.writes_until_deposed = None
        self.resign()
        stranger = Candidate(self.tree)
        assert stranger.elect(9, 0) is not None
        stranger.resign()

    def watch(self, path: str) -> bool:
        """Tests look when they want."""
        del path
        return True

    def has_new_session(self) -> bool:
        ended, self.session_ended = self.session_ended, False
        return ended
