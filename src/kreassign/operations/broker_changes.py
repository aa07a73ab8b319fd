"""Cordon single brokers under the lease of the cluster, and record which brokers are in maintenance.

Apart from `maintenance` and `decommission`: the doctor reads the record, and needs no planner.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.clock import Clock
from kreassign.errors import ClusterError, ExecutionError, InputError
from kreassign.executor.brokers import CORDON, CORDONED_LOG_DIRS, UNCORDON, BrokerReading, is_our_cordon
from kreassign.executor.cluster.port import ConfigPort
from kreassign.executor.cluster.requests import CHANGE_TIMEOUT_MS
from kreassign.executor.journal.folder import cluster_folder, make_file, make_folder, rename_file
from kreassign.executor.lease import LeasePolicy
from kreassign.executor.lease.lease import (
    CALL_TIMEOUT_MS,
    JOIN_TIMEOUT_MS,
    OFFSETS_TOPIC,
    PROTOCOL_TYPE,
    SESSION_MS,
    Taken,
)
from kreassign.executor.maintenance import (
    GROUP_ID,
    NO_PIECE,
    MaintenanceRecord,
    cut_into_pieces,
    format_record,
    parse_record,
    read_maintenance_record,
    record_places,
)
from kreassign.model import ConfigResource
from kreassign.model.error_codes import INVALID_CONFIG, INVALID_REQUEST, has_code
from kreassign.model.requests import CommittedOffset, GroupCandidate
from kreassign.operations.run import LeaseRequest, RunContext, leased, new_run_id
from kreassign.operations.text_files import read_text

# Single changes to brokers, each under the lease of the cluster: the cordon of their log directories.


@contextmanager
def sole_change(client: AdminClient, context: RunContext, what: str, clock: Clock) -> Iterator[Callable[[], None]]:
    """Hold the lease of the cluster for changes outside a run; yields a function to call before each change.

    Raises InputError if a run holds it, ExecutionError if it was lost meanwhile; ClusterError. From here on,
    controllers of another cluster are sent nothing.
    """
    name = f"{what}-{new_run_id(clock.now_ms())}"
    cluster_id = client.describe_cluster().cluster_id
    if context.controllers is not None:
        context.controllers.expect_cluster(cluster_id)
    wanted = LeaseRequest(name, cluster_id, context.state_dir, context.lease, context.operator, context.warn)
    with leased(client, wanted, clock) as lease:

        def confirm() -> None:
            if isinstance(status := lease.confirm(), Taken):
                raise ExecutionError(f"nothing more was changed: {status.reason}; give the command again")

        confirm()
        yield confirm


def cordon(client: AdminClient, broker: int) -> str | None:
    """Close the log directories of a live broker; return the reason if Kafka refuses. Raises ClusterError."""
    resource = ConfigResource.broker(broker)
    error = client.incremental_alter_configs({resource: [CORDON]}).failed.get(resource)
    if error is not None and has_code(error, INVALID_CONFIG, INVALID_REQUEST):
        return error.message  # brokers of 4.3 in a cluster whose metadata.version is an older one
    if error is not None:
        raise error
    return None


def uncordon(client: AdminClient, found: BrokerReading, context: RunContext) -> str:
    """Remove the cordon of a broker if it has our value; return what was done. Raises InputError, ClusterError."""
    if found.is_live and found.cordon is None:
        raise InputError(f"broker {found.broker} cannot be read: {found.unread}. Then give the command again")
    if found.cordon is None:
        if context.controllers is None:
            raise InputError(
                f"broker {found.broker} is not live, and only it and the controllers take {CORDONED_LOG_DIRS}: start "
                "it, or give --bootstrap-controller, then give the command again"
            )
        uncordon_dead(context.controllers, found.broker)
        return f"uncordon broker {found.broker}, which is not live"
    if is_our_cordon(found.cordon.value):
        client.incremental_alter_configs({ConfigResource.broker(found.broker): [UNCORDON]}).raise_if_any()
        return f"uncordon broker {found.broker}"
    if found.cordon.value:
        return f"broker {found.broker} stays as it is: its {CORDONED_LOG_DIRS} is {found.cordon.value}, set by others"
    return f"broker {found.broker} is not cordoned"


def uncordon_dead(controllers: ConfigPort, broker: int) -> None:
    """Delete the setting through the controllers, which do not report its value. Raises ClusterError."""
    change = {ConfigResource.broker(broker): [UNCORDON]}
    controllers.incremental_alter_configs(change, timeout_ms=CHANGE_TIMEOUT_MS).raise_if_any()


# The record of brokers in maintenance: in the state directory, and in the cluster for others.
#
# The cluster keeps it beside offsets that the group `kreassign-maintenance` commits, for `offsets.retention.minutes`
# (7 days by default) after the last write. The later of both records counts.
# Without `__consumer_offsets`, only this machine has the record; `--lease require` has the cluster create the topic.

FILE_NAME = "maintenance.json"
NOTHING_WRITTEN = MaintenanceRecord()


@dataclass(slots=True)
class MaintenanceStore:
    """Maintenance record of one cluster. `writer` names the process that writes it, unlike any other."""

    client: AdminClient
    context: RunContext
    cluster_id: str
    writer: str
    _has_warned: bool = False

    def read(self) -> MaintenanceRecord:
        """Read the latest record. Raises ClusterError, and InputError if it is unreadable."""
        found = (self._read_here(), self._read_cluster())
        return max((one for one in found if one is not None), key=lambda one: one.at_ms, default=NOTHING_WRITTEN)

    def write(self, record: MaintenanceRecord) -> None:
        """Replace the record; warns if only this machine has it. Raises ClusterError."""
        text = format_record(record)
        self._write_here(text)
        try:
            said = self._write_cluster(text)
        except ClusterError as error:
            if self.context.lease is LeasePolicy.REQUIRE:
                raise
            said = str(error)
        if said is not None and not self._has_warned:
            self._has_warned = True
            self.context.warn(
                f"the maintenance is written down on this machine only, so that its end has to be told here: {said}"
            )

    # --- this machine -------------------------------------------------------------------------------------------

    @property
    def _path(self) -> Path:
        return cluster_folder(self.context.state_dir, self.cluster_id) / FILE_NAME

    def _read_here(self) -> MaintenanceRecord | None:
        if not self._path.exists():
            return None
        try:
            return parse_record(read_text(self._path))
        except ValueError as error:
            raise InputError(f"{self._path}: it is no record of maintenance: {error}. Move it away") from error

    def _write_here(self, text: str) -> None:
        make_folder(self._path.parent)
        unfinished = self._path.with_name(f".{FILE_NAME}.{os.getpid()}.unfinished")
        make_file(unfinished)
        unfinished.write_text(text, encoding="utf-8")
        rename_file(unfinished, self._path)

    # --- the cluster --------------------------------------------------------------------------------------------

    def _read_cluster(self) -> MaintenanceRecord | None:
        if self.context.lease is LeasePolicy.OFF:
            return None
        try:
            return read_maintenance_record(self.client)
        except ValueError as error:
            raise InputError(
                f"the record of maintenance in group {GROUP_ID} cannot be read: {error}. Look at the orders of replica "
                "lists yourself, then delete the group (`kafka-consumer-groups --delete`)"
            ) from error

    def _write_cluster(self, text: str) -> str | None:
        """Return the reason if the cluster does not keep the record."""
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
            texts = (*pieces, *(NO_PIECE for _ in range(len(keys) - len(pieces))))
            offsets = {key: CommittedOffset(0, text) for key, text in zip(keys, texts, strict=True)}
            self.client.commit_offsets(membership, offsets, timeout_ms=CALL_TIMEOUT_MS).raise_if_any()
        finally:
            self.client.leave_group(GROUP_ID, self.writer, member_id=membership.member_id, timeout_ms=CALL_TIMEOUT_MS)
        return None
