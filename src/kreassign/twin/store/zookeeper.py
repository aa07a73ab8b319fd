"""The tree of a twin in a real ZooKeeper, over kazoo.

Every write is one transaction that also checks the version of `/controller_epoch`, so that a controller that has been
followed by another writes nothing. A connection that is lost is waited for; whether a write that was under way then
came through is looked up, not guessed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count

from kazoo.client import KazooClient, KazooState, TransactionRequest
from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError, RolledBackError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import WatchedEvent
from kazoo.retry import KazooRetry

from kreassign.errors import ControllerMoved, StaleZnode, Unreachable
from kreassign.model.znodes import (
    ControllerZnode,
    format_controller,
    format_controller_epoch,
    parse_controller_epoch,
    paths,
)
from kreassign.twin.zookeeper.tree import Create, Delete, Set, Write, Znode

CONNECT_TIMEOUT_S = 15.0
OUTAGE_S = 120.0
"""How long a ZooKeeper that does not answer is waited for."""
SESSION_TIMEOUT_S = 6.0
_NO_EPOCH = 0


class ZooKeeperTree:
    """One candidate's session. Values are those of `kreassign.twin.zookeeper.tree.Znodes`."""

    def __init__(self, client: KazooClient) -> None:
        self.on_news: Callable[[], None] = _nothing
        self._client = client
        self._epoch_version = -1
        self._session_ended = False
        self._watched: set[str] = set()
        client.add_listener(self._listen)

    def get(self, path: str) -> Znode | None:
        """A znode; None if there is none."""
        try:
            content, stat = self._client.retry(self._client.get, path)
        except NoNodeError:
            return None
        return Znode(bytes(content), stat.version, stat.czxid)

    def children(self, path: str) -> tuple[str, ...]:
        """The names below a znode, sorted; none if there is no such znode."""
        try:
            return tuple(sorted(self._client.retry(self._client.get_children, path)))
        except NoNodeError:
            return ()

    def elect(self, broker_id: int, now_ms: int) -> int | None:
        """Become the controller with the next epoch; None if there is a controller."""
        if self.get(paths.CONTROLLER_EPOCH) is None:
            self._make_first_epoch()
        known = self.get(paths.CONTROLLER_EPOCH)
        assert known is not None
        epoch = parse_controller_epoch(known.content) + 1
        controller = format_controller(ControllerZnode(broker_id, now_ms))
        writes = (
            Create(paths.CONTROLLER, controller, is_ephemeral=True),
            Set(paths.CONTROLLER_EPOCH, format_controller_epoch(epoch), known.version),
        )
        self._epoch_version = known.version
        try:
            self._commit(writes)
        except (StaleZnode, ControllerMoved):
            return None
        self._epoch_version = known.version + 1
        return epoch

    def resign(self) -> None:
        """Stop being the controller, if this session is."""
        stat = self._client.retry(self._client.exists, paths.CONTROLLER)
        if stat is not None and stat.ephemeralOwner == self._client.client_id[0]:
            self._client.retry(self._client.delete, paths.CONTROLLER)

    def write(self, writes: tuple[Write, ...]) -> None:
        """Write as the controller elected here, all or nothing. Raises `ControllerMoved`, `StaleZnode`."""
        self._commit(writes)

    def watch(self, path: str) -> bool:
        """Call `on_news` once when a znode changes (a list: its children); False if it is watched already."""
        if path in self._watched:
            return False
        self._watched.add(path)
        look = self._client.get_children if path in paths.LISTS else self._client.exists
        try:
            self._client.retry(look, path, partial(self._hear, path))
        except NoNodeError:
            self._watched.discard(path)
        return True

    def has_new_session(self) -> bool:
        """Whether, since this was last asked, the session ended and another began."""
        ended, self._session_ended = self._session_ended, False
        return ended

    def wait_for_resignation(self, timeout_s: float) -> None:
        """Wait until there is no controller, or for so long: that of a killed twin goes with its session."""
        gone = self._client.handler.event_object()

        def hear(event: WatchedEvent) -> None:
            del event
            gone.set()

        if self._client.exists(paths.CONTROLLER, hear) is not None:
            gone.wait(timeout_s)

    def _make_first_epoch(self) -> None:
        try:
            self._client.retry(self._client.create, paths.CONTROLLER_EPOCH, format_controller_epoch(_NO_EPOCH))
        except NodeExistsError:
            return

    def _commit(self, writes: tuple[Write, ...]) -> None:
        attempts = count()

        def attempt() -> None:
            if next(attempts) and self._is_done(writes[0]):
                return
            self._try(writes)

        self._client.retry(attempt)

    def _try(self, writes: tuple[Write, ...]) -> None:
        transaction = self._client.transaction()
        transaction.check(paths.CONTROLLER_EPOCH, self._epoch_version)
        for write in writes:
            _add(transaction, write)
        guard, *results = transaction.commit()
        if isinstance(guard, BadVersionError | NoNodeError):
            raise ControllerMoved("another controller has been elected; nothing was written")
        for write, result in zip(writes, results, strict=True):
            if isinstance(result, Exception) and not isinstance(result, RolledBackError):
                raise StaleZnode(f"{write.path} is not as it was read ({type(result).__name__}); nothing was written")

    def _is_done(self, first: Write) -> bool:
        """Whether a transaction whose answer was lost came through: then its first write did."""
        found = self.get(first.path)
        match first:
            case Create(content=content):
                return found is not None and found.content == content
            case Set(content=content, version=version):
                return found is not None and (found.version, found.content) == (version + 1, content)
            case Delete():
                return found is None

    def _hear(self, path: str, event: WatchedEvent) -> None:
        del event
        self._watched.discard(path)
        self.on_news()

    def _listen(self, state: str) -> None:
        if state == KazooState.LOST:
            self._session_ended = True
        elif state == KazooState.CONNECTED:
            self.on_news()


@contextmanager
def zookeeper_tree(address: str) -> Iterator[ZooKeeperTree]:
    """A session with `host:port[,host:port…][/chroot]`; raises `Unreachable` if nobody answers there."""
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # errors are reported by us, once
    patience = KazooRetry(max_tries=-1, delay=0.05, max_delay=1.0, deadline=OUTAGE_S)
    hosts, _, chroot = address.partition("/")
    client = KazooClient(hosts=hosts, timeout=SESSION_TIMEOUT_S, command_retry=patience)
    try:
        client.start(timeout=CONNECT_TIMEOUT_S)
        if chroot:
            client.ensure_path(f"/{chroot}")
            client.chroot = f"/{chroot}"
        tree = ZooKeeperTree(client)
        yield tree
        tree.on_news = _nothing
    except KazooTimeoutError as error:
        raise Unreachable(f"no ZooKeeper answered at {address} within {CONNECT_TIMEOUT_S:.0f} s") from error
    except KazooException as error:
        raise Unreachable(f"ZooKeeper at {address} failed: {type(error).__name__} {error}".rstrip()) from error
    finally:
        client.stop()
        client.close()


def _add(transaction: TransactionRequest, write: Write) -> None:
    match write:
        case Create(path, content):
            transaction.create(path, content, ephemeral=write.is_ephemeral, sequence=write.is_sequential)
        case Set(path, content, version):
            transaction.set_data(path, content, version)
        case Delete(path):
            transaction.delete(path)


def _nothing() -> None:
    pass
