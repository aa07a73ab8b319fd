"""Cordon single brokers under the lease of the cluster, and record which brokers are in maintenance.

Apart from `maintenance` and `decommission`: the doctor reads the record, and needs no planner.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import ClusterError, ExecutionError, InputError
from kreassign.executor.brokers import (
    CORDON,
    CORDONED_LOG_DIRS,
    UNCORDON,
    BrokerReading,
    Cordon,
    Readings,
    cordon_open,
    is_our_cordon,
    way_to_open,
)
from kreassign.executor.cluster.changes import CHANGE_TIMEOUT_MS
from kreassign.executor.cluster.port import ConfigPort
from kreassign.executor.journal.folder import cluster_folder
from kreassign.executor.lease import (
    CALL_TIMEOUT_MS,
    JOIN_TIMEOUT_MS,
    OFFSETS_TOPIC,
    PROTOCOL_TYPE,
    SESSION_MS,
    LeasePolicy,
    Taken,
)
from kreassign.executor.maintenance.record import (
    GROUP_ID,
    NO_PIECE,
    KnownMaintenance,
    MaintenanceRecord,
    brokers_in_maintenance,
    cut_into_pieces,
    format_record,
    is_record_denied,
    known_maintenance,
    parse_record,
    read_maintenance_record,
    record_places,
)
from kreassign.model import ConfigResource, error_codes
from kreassign.model.authorization import error_text
from kreassign.model.requests import CommittedOffset, GroupCandidate
from kreassign.model.text import signed_number
from kreassign.operations.connect import tell_nobody
from kreassign.operations.leases import LeaseRequest, leased
from kreassign.operations.run import RunContext, expect_ours, new_run_id
from kreassign.operations.text_files import UnreadableFileError, read_text
from kreassign.operations.whole_file import PRIVATE_MODE, changing_state, write_state

# Single changes to brokers, each under the lease of the cluster: the cordon of their log directories.


@contextmanager
def sole_change(client: AdminClient, context: RunContext, what: str, clock: Clock) -> Iterator[Callable[[], None]]:
    """Hold the lease of the cluster for changes outside a run; yields a function to call before each change.

    Raises InputError if a run holds it, or for controllers of another cluster; ExecutionError if it was lost meanwhile;
    ClusterError.
    """
    name = f"{what}-{new_run_id(clock.now_ms())}"
    cluster_id = client.describe_cluster().cluster_id
    if context.controllers is not None:
        expect_ours(context.controllers, cluster_id, tell_nobody)
    wanted = LeaseRequest(
        name, cluster_id, context.state_dir, context.lease, context.operator, context.warn, duty=context.duty
    )
    with leased(client, wanted, clock) as lease:

        def confirm() -> None:
            if isinstance(status := lease.confirm(), Taken):
                raise ExecutionError(f"nothing more was changed: {status.reason}; give the command again")

        confirm()
        yield confirm


def cordon(client: AdminClient, broker: int, *, validate_only: bool = False) -> str | None:
    """Close the log directories of a live broker; return the reason if Kafka refuses. Raises ClusterError.

    With `validate_only` nothing is changed; whether this client may change it is not answered then.
    """
    resource = ConfigResource.broker(broker)
    error = client.incremental_alter_configs({resource: [CORDON]}, validate_only=validate_only).failed.get(resource)
    if error is not None and _is_unknown_setting(error):
        return error.message
    if error is not None and not (
        validate_only and error_codes.has_code(error, error_codes.CLUSTER_AUTHORIZATION_FAILED)
    ):
        raise error
    return None


def _is_unknown_setting(error: ClusterError) -> bool:
    """True if brokers of 4.3 refuse a cordon in a cluster whose metadata.version is an older one."""
    return error_codes.has_code(error, error_codes.INVALID_CONFIG, error_codes.INVALID_REQUEST)


def validated_cordons(client: AdminClient, found: Readings, known: Collection[int]) -> dict[int, str | None]:
    """Answers of Kafka to the cordon of each open broker that is not `known`: why it would refuse, or None.

    Raises ClusterError.
    """
    due = cordon_open(found, known)
    brokers = due.brokers if isinstance(due, Cordon) else ()
    return {broker: cordon(client, broker, validate_only=True) for broker in brokers}


def uncordon(client: AdminClient, found: BrokerReading, context: RunContext, *, is_ours: bool = False) -> str:
    """Remove the cordon of a broker if it has our value; return what was done. Raises InputError, ClusterError.

    A cordon that `is_ours` by a record is removed also where the broker shows none, since it may lag.
    """
    is_hidden = is_ours and found.cordon is not None and not found.cordon.value
    if not is_hidden:
        check_uncordon(found, context)
    if not found.may_be_cordoned:
        return f"broker {found.broker} is not cordoned"
    if found.cordon is None:
        assert context.controllers is not None
        uncordon_dead(context.controllers, found.broker)
        return f"uncordon broker {found.broker}, which is not live"
    if is_hidden or is_our_cordon(found.cordon.value):
        resource = ConfigResource.broker(found.broker)
        error = client.incremental_alter_configs({resource: [UNCORDON]}).failed.get(resource)
        if error is not None and not (is_hidden and _is_unknown_setting(error)):
            raise error
        return f"uncordon broker {found.broker}"
    if found.cordon.value:
        return left_to_others(found.broker, found.cordon.value)
    return f"broker {found.broker} is not cordoned"


def left_to_others(broker: int, value: str) -> str:
    """A sentence about a cordon with a value that is not ours."""
    return (
        f"broker {broker} stays as it is: its {CORDONED_LOG_DIRS} is {value}, set by others; "
        f"to open it: {' '.join(way_to_open(broker))}"
    )


def check_uncordon(found: BrokerReading, context: RunContext) -> None:
    """Raise InputError unless `uncordon` can do its work on this broker."""
    if not found.may_be_cordoned:
        return
    if found.is_live and found.cordon is None:
        raise InputError(f"broker {found.broker} cannot be read: {found.unread}. Then give the command again")
    if found.cordon is None:
        if found.is_registered is False:
            raise InputError(
                f"broker {found.broker} is not registered, and Kafka takes {CORDONED_LOG_DIRS} of registered brokers "
                "only: give the command again once a broker of this id runs"
            )
        if context.controllers is None:
            raise InputError(
                f"broker {found.broker} is not live, and only it and the controllers take {CORDONED_LOG_DIRS}: start "
                "it, or give --bootstrap-controller, then give the command again"
            )
    elif found.is_closed and not found.cordon.value:
        raise InputError(
            f"broker {found.broker} has only cordoned log directories, and none in its {CORDONED_LOG_DIRS}: one answer "
            "is not so, or server.properties has it. Give the command again, or change it there"
        )


def uncordon_dead(controllers: ConfigPort, broker: int) -> None:
    """Delete the setting through the controllers, which do not report its value. Raises ClusterError."""
    change = {ConfigResource.broker(broker): [UNCORDON]}
    controllers.incremental_alter_configs(change, timeout_ms=CHANGE_TIMEOUT_MS).raise_if_any()


# Notes of the decommissions of this state directory: brokers that an unfinished one cordoned (only these are opened
# again unasked), and brokers that one emptied or unregistered (only of these it is said that nothing is left to do,
# once the cluster does not know them any more).

CORDONS = "cordons"
CORDONED_HERE = "which says which brokers were cordoned here"
DECOMMISSIONED = "decommissioned"
DECOMMISSIONED_HERE = "which says which brokers were decommissioned here"


def noted_cordons(state_dir: Path, cluster_id: str) -> frozenset[int]:
    """Brokers that were noted. Raises InputError if the note cannot be read: it may name any broker."""
    return _numbers(cluster_folder(state_dir, cluster_id) / CORDONS)


def note_cordons(state_dir: Path, cluster_id: str, brokers: Iterable[int]) -> None:
    """Note that these brokers, too, are cordoned by us.

    Raises InputError if the note cannot be read or written: replaced unread, it would lose the other brokers.
    """
    ids = frozenset(brokers)
    _change_note(cluster_folder(state_dir, cluster_id) / CORDONS, CORDONED_HERE, lambda known: known | ids)


def forget_cordons(state_dir: Path, cluster_id: str, brokers: Iterable[int], done: Iterable[str] = ()) -> None:
    """Note that no cordon of these is to be opened unasked: later ones are those of others.

    Raises as above, with what was `done` before.
    """
    ids = frozenset(brokers)
    _change_note(cluster_folder(state_dir, cluster_id) / CORDONS, CORDONED_HERE, lambda known: known - ids, done)


def noted_decommissions(state_dir: Path, cluster_id: str) -> frozenset[int]:
    """Brokers that were noted. Raises InputError as `noted_cordons` does."""
    return _numbers(cluster_folder(state_dir, cluster_id) / DECOMMISSIONED)


def note_decommissions(state_dir: Path, cluster_id: str, brokers: Iterable[int]) -> None:
    """Note that these brokers, too, are emptied or unregistered by us. Raises InputError as `note_cordons` does."""
    path, ids = cluster_folder(state_dir, cluster_id) / DECOMMISSIONED, frozenset(brokers)
    _change_note(path, DECOMMISSIONED_HERE, lambda known: known | ids)


def forget_decommissions(state_dir: Path, cluster_id: str, brokers: Iterable[int], done: Iterable[str] = ()) -> None:
    """Note that these brokers are in use (again). Raises as `forget_cordons` does."""
    path, ids = cluster_folder(state_dir, cluster_id) / DECOMMISSIONED, frozenset(brokers)
    _change_note(path, DECOMMISSIONED_HERE, lambda known: known - ids, done)


def readable_notes(state_dir: Path, cluster_id: str) -> frozenset[int]:
    """Brokers whose cordon was noted, once each note is readable. Raises InputError, before anything is changed."""
    noted_decommissions(state_dir, cluster_id)
    return noted_cordons(state_dir, cluster_id)


def _change_note(
    path: Path, what: str, change: Callable[[frozenset[int]], frozenset[int]], done: Iterable[str] = ()
) -> None:
    known = _numbers(path)
    if change(known) == known:
        return  # Also in a state directory that cannot be written.
    steps = "; ".join(done)
    left = f"Done before that: {steps}" if steps else "It is as it was"
    with changing_state(path, what, left):
        numbers = " ".join(map(str, sorted(change(_numbers(path)))))
        write_state(path, numbers, what, left, mode=PRIVATE_MODE)


def _numbers(path: Path) -> frozenset[int]:
    """Brokers that were noted. Raises InputError if the note is there and cannot be read."""
    try:
        numbers = {word: signed_number(word) for word in read_text(path).split()}
    except FileNotFoundError:
        return frozenset()
    except UnreadableFileError as error:
        raise InputError(f"{error}. Then give the command again") from error
    except InputError as error:
        raise InputError(f"{error}. Move it away, then give the command again") from error
    if None in numbers.values():
        raise InputError(f"{path}: it holds more than ids of brokers. Move it away, then give the command again")
    return frozenset(number for number in numbers.values() if number is not None)


# The record of brokers in maintenance: in the cluster, and a copy in the state directory.
#
# The cluster keeps it beside offsets that the group `kreassign-maintenance` commits, for `offsets.retention.minutes`
# (7 days by default) after the last write. It is written there first. `known_maintenance` decides which one counts.
# Without `__consumer_offsets`, only this machine has the record; `--lease require` has the cluster create the topic.

FILE_NAME = "maintenance.json"
_SAID, _THEN = ("the record of maintenance", "Nothing more was changed"), ", then give the command again"
_WRITTEN_SINCE = (
    "nothing more was changed: somebody has written the record of maintenance since it was read; give the command again"
)


def read_maintenance(client: AdminClient, context: RunContext) -> KnownMaintenance:
    """Read the record, also with `--lease off`, which is about leases. Raises ClusterError, InputError."""
    brokers_in_maintenance(client)  # Where this client may not see the record, a store takes it for none.
    cluster_id = client.describe_cluster().cluster_id
    return MaintenanceStore(client, replace(context, lease=LeasePolicy.AUTO), cluster_id, writer="").read()


def kept_by_maintenance(client: AdminClient, context: RunContext, brokers: Iterable[int]) -> dict[int, str]:
    """Brokers of which maintenance keeps the cordon, each with the reason: all of these where this client is denied it.

    Raises ClusterError, InputError.
    """
    try:
        known = read_maintenance(client, context)
    except ClusterError as error:
        if not is_record_denied(error):
            raise
        return may_be_maintained(brokers, error)
    entered = {**known.doubtful.brokers, **known.record.brokers}
    return {broker: _kept_by(broker, is_cordoned=one.is_cordoned) for broker, one in entered.items()}


def _kept_by(broker: int, *, is_cordoned: bool) -> str:
    """Reason to leave the cordon of a broker in maintenance, whose end opens it only if maintenance cordoned it."""
    way_out = f"`kreassign maintenance exit {broker}`"
    if is_cordoned:
        return f"it is in maintenance, which {way_out} ends"
    return (
        f"it is in maintenance, whose end leaves a cordon that was there before: give {way_out}, then "
        f"`kreassign decommission {broker} --cancel`"
    )


def may_be_maintained(brokers: Iterable[int], error: Exception) -> dict[int, str]:
    """Reason to leave the cordon of each of these brokers, as the record of maintenance was not read."""
    why = f"it may be in maintenance: which brokers are in maintenance could not be read ({error_text(error)})"
    return {one: f"{why}. To open it: {' '.join(way_to_open(one))}" for one in brokers}


@dataclass(slots=True)
class MaintenanceStore:
    """Maintenance record of one cluster. `writer` names the process that writes it, unlike any other.

    `confirm` is called before each write, after the wait for other commands; it raises if nothing may be changed.
    """

    client: AdminClient
    context: RunContext
    cluster_id: str
    writer: str
    clock: Clock = SYSTEM_CLOCK
    confirm: Callable[[], None] = lambda: None
    _here_ms: int | None = None
    """Time of this machine's record as this process has last read or written it."""

    def read(self) -> KnownMaintenance:
        """Read what is known. Raises ClusterError, and InputError if a record is unreadable."""
        here = self._read_here()
        self._here_ms = None if here is None else here.at_ms
        return known_maintenance(here, self._read_cluster())

    def is_kept_by_cluster(self, record: MaintenanceRecord) -> bool:
        """True if other processes learn of this record from the cluster, or of the first one once it is written."""
        if self.context.lease is LeasePolicy.OFF:
            return False
        if record.brokers:
            return not record.is_here_only
        try:
            return self.context.lease is LeasePolicy.REQUIRE or bool(record_places(self.client))
        except ClusterError as error:
            if not is_record_denied(error):
                raise
            return False

    def write(self, record: MaintenanceRecord) -> MaintenanceRecord:
        """Replace the record; return it as it is kept, for the next change.

        Warns when only this machine has it from now on, and an exit has to come from here.

        Raises ClusterError if the cluster can, and does not say that it has: nothing may follow from the record then.
        Raises ExecutionError if the cluster, or this machine, has another record by now than that from which this one
        was made.
        """
        kept = replace(record, cluster_ms=record.at_ms)
        with changing_state(self._path, *_SAID, self.clock, then=_THEN):
            self.confirm()
            here = self._read_here()
            if here is not None and here.at_ms != self._here_ms:
                raise ExecutionError(_WRITTEN_SINCE)
            try:
                refusal = self._write_cluster(format_record(kept), {record.cluster_ms, record.at_ms})
            except ClusterError as error:
                if self.context.lease is LeasePolicy.REQUIRE or not is_record_denied(error):
                    raise
                refusal = str(error)
            written = kept if refusal is None else record
            write_state(self._path, format_record(written), *_SAID, then=_THEN, mode=PRIVATE_MODE)
            self._here_ms = written.at_ms
        is_known = here is not None and here.is_here_only and record.brokers.keys() <= here.brokers.keys()
        if refusal is not None and record.brokers and not is_known:
            self.context.warn(
                "the maintenance is recorded on this machine only; run `kreassign maintenance exit` from here: "
                f"{refusal}"
            )
        return written

    # --- this machine -------------------------------------------------------------------------------------------

    @property
    def _path(self) -> Path:
        return cluster_folder(self.context.state_dir, self.cluster_id) / FILE_NAME

    def _read_here(self) -> MaintenanceRecord | None:
        try:
            return parse_record(read_text(self._path))
        except FileNotFoundError:
            return None
        except UnreadableFileError as error:
            raise InputError(f"{error}. Then give the command again") from error
        except ValueError as error:
            raise InputError(f"{self._path}: it is no record of maintenance: {error}. Move it away") from error

    # --- the cluster --------------------------------------------------------------------------------------------

    def _read_cluster(self) -> MaintenanceRecord | None:
        if self.context.lease is LeasePolicy.OFF:
            return None
        try:
            return read_maintenance_record(self.client)
        except ClusterError as error:
            if error_codes.has_code(error, error_codes.TOPIC_AUTHORIZATION_FAILED):
                return None  # this client cannot have it kept there either, and is warned when it writes
            raise
        except ValueError as error:
            raise InputError(
                f"the record of maintenance in group {GROUP_ID} cannot be read: {error}. Look at the orders of replica "
                "lists yourself, then delete the group (`kafka-consumer-groups --delete`)"
            ) from error

    def _write_cluster(self, text: str, known_ms: Collection[int]) -> str | None:
        """Return the reason if the cluster does not keep the record, in place of one of the times that are known."""
        if self.context.lease is LeasePolicy.OFF:
            return "--lease off does not ask the cluster"
        if self.context.lease is LeasePolicy.REQUIRE:
            self.client.describe_group(GROUP_ID, timeout_ms=CALL_TIMEOUT_MS)  # looking for the group creates the topic
        keys = record_places(self.client)
        pieces = cut_into_pieces(text)
        if len(pieces) > len(keys):
            return (
                f"it needs {len(pieces)} offsets, and {OFFSETS_TOPIC} has {len(keys)} partitions"
                if keys
                else f"the cluster has no topic {OFFSETS_TOPIC} yet; `--lease require` creates it"
            )
        # Each writer has a protocol of its own, so that two concurrent writers cannot both be members.
        candidate = GroupCandidate(GROUP_ID, self.writer, PROTOCOL_TYPE, self.writer, b"", SESSION_MS)
        membership = self.client.join_group(candidate, timeout_ms=JOIN_TIMEOUT_MS)
        try:
            # A coordinator that had just taken over may have shown an earlier record; it has taken a member since.
            present = self._read_cluster()
            if present is not None and present.at_ms not in known_ms:
                raise ExecutionError(_WRITTEN_SINCE)
            texts = (*pieces, *(NO_PIECE for _ in range(len(keys) - len(pieces))))
            offsets = {key: CommittedOffset(0, text) for key, text in zip(keys, texts, strict=True)}
            self.client.commit_offsets(membership, offsets, timeout_ms=CALL_TIMEOUT_MS).raise_if_any()
        finally:
            self.client.leave_group(GROUP_ID, self.writer, member_id=membership.member_id, timeout_ms=CALL_TIMEOUT_MS)
        return None
