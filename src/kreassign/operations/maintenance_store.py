"""Where it is written down which brokers are in maintenance: in the state directory, and in the cluster for others.

The cluster keeps it beside offsets that the group `kreassign-maintenance` commits, as it keeps what throttles were
before a run, for `offsets.retention.minutes` (7 days by default) after the last word. The later of both words counts.
Where there is no `__consumer_offsets`, only this machine knows; `--lease require` has the cluster create it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.errors import ClusterError, InputError
from kreassign.executor.brokers.in_maintenance import GROUP_ID, read_kept, record_places
from kreassign.executor.brokers.maintenance_record import MaintenanceRecord, format_record, parse_record
from kreassign.executor.journal.paths import cluster_folder, make_file, make_folder, rename
from kreassign.executor.lease import LeasePolicy
from kreassign.executor.lease.lease import CALL_TIMEOUT_MS, JOIN_TIMEOUT_MS, OFFSETS_TOPIC, PROTOCOL_TYPE, SESSION_MS
from kreassign.executor.lease.originals import commit_texts
from kreassign.executor.lease.pieces import NOTHING, cut
from kreassign.model.group import GroupCandidate
from kreassign.operations.run import RunContext

FILE_NAME = "maintenance.json"
NOTHING_WRITTEN = MaintenanceRecord()


@dataclass(slots=True)
class MaintenanceStore:
    """The record of one cluster. `writer` names the process that writes it, unlike any other."""

    client: AdminClient
    context: RunContext
    cluster_id: str
    writer: str
    _has_warned: bool = False

    def read(self) -> MaintenanceRecord:
        """What was written down last. Raises ClusterError, and InputError for what cannot be understood."""
        found = (self._read_here(), self._read_cluster())
        return max((one for one in found if one is not None), key=lambda one: one.at_ms, default=NOTHING_WRITTEN)

    def write(self, record: MaintenanceRecord) -> None:
        """Write it down in place of what is there; warns where only this machine knows. Raises ClusterError."""
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
            return parse_record(self._path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(f"{self._path}: it is no record of maintenance: {error}. Move it away") from error

    def _write_here(self, text: str) -> None:
        make_folder(self._path.parent)
        unfinished = self._path.with_name(f".{FILE_NAME}.{os.getpid()}.unfinished")
        make_file(unfinished)
        unfinished.write_text(text, encoding="utf-8")
        rename(unfinished, self._path)

    # --- the cluster --------------------------------------------------------------------------------------------

    def _read_cluster(self) -> MaintenanceRecord | None:
        if self.context.lease is LeasePolicy.OFF:
            return None
        try:
            return read_kept(self.client)
        except ValueError as error:
            raise InputError(
                f"the record of maintenance in group {GROUP_ID} cannot be read: {error}. Look at the orders of replica "
                "lists yourself, then delete the group (`kafka-consumer-groups --delete`)"
            ) from error

    def _write_cluster(self, text: str) -> str | None:
        """Why the cluster does not keep it, if so."""
        if self.context.lease is LeasePolicy.OFF:
            return "--lease off does not ask the cluster"
        if self.context.lease is LeasePolicy.REQUIRE:
            self.client.describe_group(GROUP_ID, timeout_ms=CALL_TIMEOUT_MS)  # whoever looks for it creates the topic
        keys = record_places(self.client)
        pieces = cut(text)
        if len(pieces) > len(keys):
            return (
                f"it needs {len(pieces)} offsets, and {OFFSETS_TOPIC} has {len(keys)} partitions"
                if keys
                else f"the cluster has no topic {OFFSETS_TOPIC} yet; `--lease require` creates it"
            )
        # With a protocol of its own, two that write at the same time cannot both be members.
        candidate = GroupCandidate(GROUP_ID, self.writer, PROTOCOL_TYPE, self.writer, b"", SESSION_MS)
        membership = self.client.join_group(candidate, timeout_ms=JOIN_TIMEOUT_MS)
        try:
            commit_texts(self.client, membership, (*pieces, *(NOTHING for _ in range(len(keys) - len(pieces)))))
        finally:
            self.client.leave_group(GROUP_ID, self.writer, member_id=membership.member_id, timeout_ms=CALL_TIMEOUT_MS)
        return None
