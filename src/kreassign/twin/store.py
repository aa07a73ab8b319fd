"""Stores of a twin's metadata: a log in a file (KRaft mode), or a real ZooKeeper.

`FileLog` is readable after a crash at any moment. `ZooKeeperTree` is one candidate for controller in a real
ZooKeeper: no write of a deposed controller gets through.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, get_args

from kazoo.client import KazooClient, KazooState, TransactionRequest
from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError, RolledBackError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import WatchedEvent
from kazoo.retry import KazooRetry

from kreassign.errors import ControllerMoved, DataError, InputError, StaleZnode, Unreachable
from kreassign.model.typed_json import Reader
from kreassign.model.znodes import contents, paths
from kreassign.twin.metadata import MetadataLog, Record
from kreassign.twin.zookeeper.znodes import Create, Delete, Set, Write, Znode

# Records as JSON texts: the name of the record, then its fields; default values are left out.

_KIND = "record"
_CLASSES: Mapping[str, type[Any]] = {kind.__name__: kind for kind in get_args(Record)}
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def to_json(record: Record) -> str:
    """Return a record as JSON on one line."""
    shown: dict[str, Any] = {_KIND: type(record).__name__}
    for field in fields(record):
        value = getattr(record, field.name)
        if field.default is MISSING or value != field.default:
            shown[field.name] = value
    return _ENCODER.encode(shown)


def from_json(text: str | bytes) -> Record:
    """Parse a record. Raises ValueError, KeyError or TypeError if the text is none."""
    try:
        shown = json.loads(text)
        record: Record = Reader().record(shown, _CLASSES[shown.pop(_KIND)])
    except (AttributeError, RecursionError) as error:
        raise ValueError(f"this is no record: {error}") from error
    return record


# A metadata log in a file. After a signature come the records, each as a header (length of the body, its checksum, and
# a checksum of those two) and a body: one byte that says whether the record is the last of its decision, and the record
# as JSON. Numbers are big-endian. A decision whose last record is missing or cut off never happened; opening the file
# drops it. Any other mismatch of a checksum is damage, and the file is refused.

SIGNATURE = b"kreassign twin metadata 1\n"
_NUMBERS = struct.Struct(">II")
_CHECKSUM = struct.Struct(">I")
_HEADER_BYTES = _NUMBERS.size + _CHECKSUM.size
_MORE, _LAST = b"+", b"."


class _Body(NamedTuple):
    """The bytes of a record, whether it ends its decision, and where the next header begins."""

    text: bytes
    is_last: bool
    end: int


class FileLog(MetadataLog):
    """Records in a file to which only this process writes.

    Opening drops an unfinished decision at the end. `DataError` if the file is damaged or no metadata log,
    `InputError` if another process has it open.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        self._file: BinaryIO = path.open("a+b")
        try:
            self._take_over()
        except BaseException:
            self._file.close()
            raise
        if is_new:
            _sync_folder(path.parent)

    def append(self, records: Iterable[Record]) -> None:
        """Write the records of one decision; they are on disk on return."""
        texts = [to_json(record).encode() for record in records]
        for number, text in enumerate(texts, 1):
            self._file.write(_framed((_LAST if number == len(texts) else _MORE) + text))
        self._sync()

    def read(self) -> Iterator[Record]:
        """Read all records from the first to the last written by now."""
        end = self._size()
        with self.path.open("rb") as file:
            file.seek(len(SIGNATURE))
            position = len(SIGNATURE)
            while position < end and (body := self._next(file, position)) is not None:
                yield self._record(body.text, position)
                position = body.end

    def close(self) -> None:
        """Close the file and release its lock."""
        self._file.close()

    # --- opening ----------------------------------------------------------------------------------------------

    def _take_over(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{self.path} is in use by another twin; stop that one or choose another file") from None
        size = self._size()
        keep = self._sound_part(size)
        if keep < size:
            self._file.truncate(keep)
        if keep == 0:
            self._file.write(SIGNATURE)
        self._sync()

    def _sound_part(self, size: int) -> int:
        """The length in bytes of the complete decisions from the start."""
        with self.path.open("rb") as file:
            signature = file.read(len(SIGNATURE))
            if len(signature) < len(SIGNATURE) and SIGNATURE.startswith(signature):
                return 0
            if signature != SIGNATURE:
                raise DataError(f"{self.path} is not a metadata log of a twin; choose another file")
            position = keep = len(SIGNATURE)
            while position < size and (body := self._next(file, position)) is not None:
                position = body.end
                keep = position if body.is_last else keep
        return keep

    # --- reading ----------------------------------------------------------------------------------------------

    def _next(self, file: BinaryIO, position: int) -> _Body | None:
        """The record at `position`, where `file` stands; None if truncated."""
        header = file.read(_HEADER_BYTES)
        if len(header) < _HEADER_BYTES:
            return None
        numbers, (checksum,) = header[: _NUMBERS.size], _CHECKSUM.unpack(header[_NUMBERS.size :])
        if zlib.crc32(numbers) != checksum:
            raise self._damaged(position)
        length, checksum = _NUMBERS.unpack(numbers)
        body = file.read(length)
        if len(body) < length:
            return None
        if zlib.crc32(body) != checksum or body[:1] not in (_MORE, _LAST):
            raise self._damaged(position)
        return _Body(body[1:], body[:1] == _LAST, position + _HEADER_BYTES + length)

    def _record(self, text: bytes, position: int) -> Record:
        try:
            return from_json(text)
        except (ValueError, KeyError, TypeError) as reason:
            raise DataError(
                f"{self.path} has no record that this version knows at byte {position} ({reason}); "
                "read it with the version that wrote it"
            ) from reason

    def _damaged(self, position: int) -> DataError:
        return DataError(
            f"{self.path} is damaged in the record that begins at byte {position}; restore the file, "
            f"or cut it to {position} bytes to go on from there"
        )

    # --- writing ----------------------------------------------------------------------------------------------

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


def _framed(body: bytes) -> bytes:
    numbers = _NUMBERS.pack(len(body), zlib.crc32(body))
    return numbers + _CHECKSUM.pack(zlib.crc32(numbers)) + body


def _sync_folder(folder: Path) -> None:
    """Sync the folder, so that a new file survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# The tree of a twin in a real ZooKeeper, over kazoo. Every write is one transaction that also checks the version of
# `/controller_epoch`, so that a deposed controller writes nothing. After a lost connection the tree waits for it, and
# looks up whether the write in flight came through instead of guessing.

CONNECT_TIMEOUT_S = 15.0
OUTAGE_S = 120.0
"""Seconds to wait for a ZooKeeper that does not answer."""
SESSION_TIMEOUT_S = 6.0
_NO_EPOCH = 0


class ZooKeeperTree:
    """The session of one candidate. Values are those of `kreassign.twin.zookeeper.znodes.Znodes`."""

    def __init__(self, client: KazooClient) -> None:
        self.on_news: Callable[[], None] = _nothing
        self._client = client
        self._epoch_version = -1
        self._session_ended = False
        self._watched: set[str] = set()
        client.add_listener(self._listen)

    def get(self, path: str) -> Znode | None:
        """The znode at a path; None if there is none."""
        try:
            content, stat = self._client.retry(self._client.get, path)
        except NoNodeError:
            return None
        return Znode(bytes(content), stat.version, stat.czxid)

    def children(self, path: str) -> tuple[str, ...]:
        """The sorted names of a znode's children; empty if there is no such znode."""
        try:
            return tuple(sorted(self._client.retry(self._client.get_children, path)))
        except NoNodeError:
            return ()

    def elect(self, broker_id: int, now_ms: int) -> int | None:
        """Become the controller; return the next epoch, or None if there is a controller."""
        if self.get(paths.CONTROLLER_EPOCH) is None:
            self._make_first_epoch()
        known = self.get(paths.CONTROLLER_EPOCH)
        assert known is not None
        epoch = contents.parse_controller_epoch(known.content) + 1
        controller = contents.format_controller(broker_id, now_ms)
        writes = (
            Create(paths.CONTROLLER, controller, is_ephemeral=True),
            Set(paths.CONTROLLER_EPOCH, contents.format_controller_epoch(epoch), known.version),
        )
        self._epoch_version = known.version
        try:
            self.write(writes)
        except (StaleZnode, ControllerMoved):
            return None
        self._epoch_version = known.version + 1
        return epoch

    def resign(self) -> None:
        """Resign as controller, if this session is the controller."""
        stat = self._client.retry(self._client.exists, paths.CONTROLLER)
        if stat is not None and stat.ephemeralOwner == self._client.client_id[0]:
            self._client.retry(self._client.delete, paths.CONTROLLER)

    def write(self, writes: tuple[Write, ...]) -> None:
        """Write as the elected controller, all or nothing. Raises `ControllerMoved`, `StaleZnode`."""
        attempts = count()

        def attempt() -> None:
            if next(attempts) and self._is_done(writes[0]):
                return
            self._try(writes)

        self._client.retry(attempt)

    def watch(self, path: str) -> bool:
        """Call `on_news` once when a znode (or its list of children) changes; False if it is watched already."""
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
        """True if the session was replaced by another since the last call."""
        ended, self._session_ended = self._session_ended, False
        return ended

    def wait_for_resignation(self, timeout_s: float) -> None:
        """Wait up to `timeout_s` until there is no controller: that of a killed twin goes with its session."""
        gone = self._client.handler.event_object()

        def hear(event: WatchedEvent) -> None:
            del event
            gone.set()

        if self._client.retry(self._client.exists, paths.CONTROLLER, hear) is not None:
            gone.wait(timeout_s)

    def _make_first_epoch(self) -> None:
        try:
            self._client.retry(self._client.create, paths.CONTROLLER_EPOCH, contents.format_controller_epoch(_NO_EPOCH))
        except NodeExistsError:
            return

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
        """True if a transaction whose answer was lost came through: then its first write did."""
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
    """Open a session with `host:port[,host:port…][/chroot]`; raises `Unreachable` if nothing answers there."""
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # we report errors ourselves, once
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
