"""Journals that are kept in a second place (`--journal-to`): open it, and resume runs that another host began.

DEST is a folder (a path, or `file:///path`), a bucket (`s3://bucket/prefix`), or a compacted topic of the cluster
(`topic:NAME`). How a mirror is written and read: `executor/journal/mirror.py`.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kreassign.admin import AdminClient
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import (
    ClusterError,
    InputError,
    JournalDamaged,
    MirrorUnavailable,
    OutcomeUnknown,
    Rejected,
    Unsupported,
    requires,
)
from kreassign.executor.journal import (
    BEGINNING,
    FolderPlace,
    Mirror,
    Place,
    bring_home,
    first_event,
    journal_path,
    kept_run,
    mirrored_runs,
)
from kreassign.executor.lease import SESSION_MS, LeaseHolder, present_holder
from kreassign.model import ConfigResource, OffsetSpec, TopicPartition
from kreassign.model.authorization import error_text
from kreassign.model.error_codes import GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, has_code
from kreassign.model.text import shortened
from kreassign.operations.connect import Warn
from kreassign.operations.run_journals import LAST, all_journals, is_active

NOWHERE = "none"
"""Ends the keeping of a journal in a second place."""
_BUCKET = r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}"


def checked_destination(text: str) -> str:
    """A destination in the form in which a journal names it, paths absolute. Raises InputError."""
    scheme, colon, rest = text.partition(":")
    match scheme if colon else "":
        case "topic":
            if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", rest) or rest in {".", ".."}:
                raise InputError(
                    f"{shortened(rest)!r} is no name of a topic; write for example topic:kreassign-journals"
                )
        case "s3" | "s3a" | "s3n":
            address = urlsplit(text)
            parts = {*address.path.split("/")}
            is_bucket = re.fullmatch(_BUCKET, address.netloc) is not None
            if not is_bucket or parts & {".", ".."} or address.query or address.fragment:
                raise InputError(f"{shortened(text)!r} is no bucket; write for example s3://bucket/journals")
            return f"s3:{rest.rstrip('/')}"
        case "file":
            if not rest.startswith("///"):
                raise InputError(f"{shortened(text)!r} is no folder; write for example file:///mnt/journals")
            return str(Path(unquote(rest[2:])))
        case _:
            if not text or "\0" in text or "://" in text:
                raise InputError(
                    f"journals cannot be kept in {shortened(text)!r}; write a folder, s3://bucket/prefix or topic:NAME"
                )
            return text if text == NOWHERE else str(Path(text).absolute())
    return text


def place_at(destination: str, client: AdminClient | None) -> Place:
    """The place of a checked destination; a topic needs a client of its cluster. Raises InputError."""
    if destination.startswith("s3:"):
        with requires("journals in a bucket", "deltalake", "spark"):
            from kreassign.pipeline.tables.objects import ObjectPlace

        return ObjectPlace(destination)
    if destination.startswith("topic:"):
        if client is None:
            raise InputError(f"{destination} is a topic of the cluster; specify --bootstrap-server")
        return TopicPlace(client, destination.removeprefix("topic:"))
    return FolderPlace(Path(destination))


def mirror_of(
    destination: str, client: AdminClient | None, cluster_id: str, run_id: str, clock: Clock = SYSTEM_CLOCK
) -> Mirror:
    """The mirror of a run's journal in a checked destination, not read yet. Raises InputError."""
    return Mirror(place_at(destination, client), cluster_id, kept_run(run_id), clock)


def come_home(client: AdminClient, path: Path, mirror: Mirror, *, asks_lease: bool = True) -> None:
    """Bring a journal up to its mirror, before its run is resumed from here.

    Raises InputError if a process executes the run elsewhere, by the lease of the cluster, and went on with its
    journal; JournalDamaged, MirrorUnavailable.
    """
    bring_home(path, mirror, partial(_refuse_if_executed, client, path.stem) if asks_lease else lambda _: None)


def all_home(
    client: AdminClient,
    path: Path,
    kept_in: str | None,
    wanted: str | None,
    warn: Warn,
    clock: Clock = SYSTEM_CLOCK,
    *,
    asks_lease: bool,
) -> tuple[Mirror | None, Mirror | None]:
    """Bring a journal up to the place where it was `kept_in`, and to the one `wanted` from now on; both mirrors.

    The former is None where it is the same, where there was none, or, with a warning, where it cannot be read: an
    operator who names another place means to go on without. Raises what `come_home` raises, and MirrorUnavailable where
    a place that shall go on has no entry of the run.
    """
    first = first_event(path)

    def home(destination: str) -> Mirror:
        mirror = mirror_of(destination, client, first.cluster_id, first.run_id, clock)
        come_home(client, path, mirror, asks_lease=asks_lease)
        if destination == kept_in and mirror.position == BEGINNING:
            raise MirrorUnavailable(mirror.place, mirror.lost)
        return mirror

    former = None
    if kept_in is not None and kept_in != wanted:
        try:
            former = home(kept_in)
        except (MirrorUnavailable, JournalDamaged) as error:
            warn(f"{error}. Whether another host has gone on with run {first.run_id} is not known")
    return former, None if wanted is None else home(wanted)


def _refuse_if_executed(client: AdminClient, run_id: str, _: object) -> None:
    if holder := executing(client, run_id):
        raise InputError(
            f"{holder} holds the lease of the cluster: its process goes on, or did until a moment ago. Cancel or pause "
            f"the run there; a host that is lost loses the lease {SESSION_MS // 1000} s later: give this again then"
        )


def executing(client: AdminClient, run_id: str) -> LeaseHolder | None:
    """The process that executes a run on any machine, by the lease; None if there is none, or the cluster keeps none.

    Without a lease, as where this client may not see it, the mirror lets one process go on. Raises ClusterError.
    """
    try:
        holder = present_holder(client)
    except Unsupported:
        return None
    except Rejected as error:
        if not has_code(error, GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED):
            raise
        return None
    return holder if holder is not None and holder.run_id == run_id else None


def bring(
    client: AdminClient,
    destination: str,
    state_dir: Path,
    run_id: str | None,
    *,
    asks_lease: bool,
    is_all: bool = False,
) -> None:
    """Bring a run of this cluster from a destination into a state directory; without its id, the latest there, or all.

    Nothing is done about a run that a process here executes, or that is not there. Raises what `come_home` raises.
    """
    cluster_id = client.describe_cluster().cluster_id
    place = place_at(destination, client)
    known = mirrored_runs(place, cluster_id)
    wanted = known if is_all else known[-1:] if run_id in {None, LAST} else [one for one in known if one == run_id]
    for one in wanted:
        path = journal_path(state_dir, cluster_id, one)
        if not is_active(path):
            come_home(client, path, Mirror(place, cluster_id, kept_run(one), SYSTEM_CLOCK), asks_lease=asks_lease)


@contextmanager
def seen_from_afar(
    client: AdminClient, destination: str, run_id: str | None, *, is_all: bool = False
) -> Iterator[Path]:
    """A state directory with the journals of this cluster's runs that `bring` chooses, as a destination has them.

    It is gone at the end of the `with` statement; the state directory of this host is not touched. Raises InputError if
    the destination has no such run.
    """
    with tempfile.TemporaryDirectory() as folder:
        state_dir = Path(folder)
        bring(client, checked_destination(destination), state_dir, run_id, asks_lease=False, is_all=is_all)
        if not all_journals(state_dir):
            what = "no run of this cluster" if run_id in {None, LAST} else f"no run {run_id} of this cluster"
            raise InputError(f"{destination} has {what}; name the place as `kreassign run` had it (--journal-to)")
        yield state_dir


# A compacted topic as a place: an entry is a record in partition 0, by whose key it is kept for ever.
#
# Others are found in the order of the log, which is the same for all readers. A tombstone takes an entry back.

CALL_MS = 10_000
"""Time of a call: less than the lease of a run that waits for it lasts."""
_WAITS_MS = (0, *(500,) * 10)
"""Waits for an entry that was written, which is shown once the high watermark is beyond it: at once, as a rule."""


class TopicPlace:
    """A topic of the cluster. `cleanup.policy` must be `compact` alone: else entries are deleted by age or size."""

    def __init__(self, client: AdminClient, topic: str) -> None:
        self._client, self._partition = client, TopicPartition(topic, 0)
        self._entries: dict[str, bytes] = {}
        self._offset: int | None = None

    def __str__(self) -> str:
        return f"topic:{self._partition.topic}"

    def put(self, name: str, content: bytes) -> None:
        """Write a record, then read until it is there, also where the answer got lost."""
        with self._told():
            self._read()
            written = self._client.produce(self._partition, name.encode(), content, timeout_ms=CALL_MS)
            for error in written.failed.values():
                if not isinstance(error, OutcomeUnknown):
                    raise error
            for wait_ms in _WAITS_MS:
                self._read(wait_ms)
                if self._entries.get(name) == content:
                    return
        raise MirrorUnavailable(self, "a record that was written cannot be read yet")

    def names(self, folder: str) -> list[str]:
        """Names right below a folder, by all records up to the high watermark."""
        with self._told():
            self._read()
        below = (name.removeprefix(f"{folder}/") for name in self._entries if name.startswith(f"{folder}/"))
        return list(dict.fromkeys(name.partition("/")[0] for name in below))

    def get(self, name: str) -> bytes:
        """Content of an entry."""
        if name not in self._entries:
            raise MirrorUnavailable(self, f"there is no record {name}")
        return self._entries[name]

    def remove(self, name: str) -> None:
        """Write a tombstone."""
        with self._told():
            self._client.produce(self._partition, name.encode(), None, timeout_ms=CALL_MS).raise_if_any()

    def _read(self, wait_ms: int = 0) -> None:
        """Read on up to the high watermark."""
        if self._offset is None:
            self._check()
            earliest = self._client.list_offsets([self._partition], OffsetSpec.EARLIEST, timeout_ms=CALL_MS)
            self._offset = earliest.raise_if_any()[self._partition]
        while True:
            fetched = self._client.fetch(self._partition, self._offset, wait_ms=wait_ms, timeout_ms=CALL_MS)
            found = fetched.raise_if_any()[self._partition]
            if found.next_offset == self._offset < found.high_watermark:
                raise MirrorUnavailable(
                    self, f"no record is given from offset {self._offset} on, though there are some"
                )
            self._offset = found.next_offset
            for key, value in found.records:
                name = (key or b"").decode(errors="replace")
                if value is None:
                    self._entries.pop(name, None)
                else:
                    self._entries[name] = value
            if found.next_offset >= found.high_watermark:
                return

    def _check(self) -> None:
        topic = ConfigResource.topic(self._partition.topic)
        configs = self._client.describe_configs([topic], names=["cleanup.policy"], timeout_ms=CALL_MS)
        policy = next(iter(configs.raise_if_any()[topic].values())).value
        if policy != "compact":
            raise InputError(
                f"{self} has cleanup.policy={policy}, which deletes journals; use a topic of its own, made by "
                "`kafka-topics --create --topic NAME --partitions 1 --replication-factor 3 "
                "--config cleanup.policy=compact`"
            )

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except ClusterError as error:
            raise MirrorUnavailable(self, error_text(error)) from error
