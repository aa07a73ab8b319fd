"""What replication keeps of a cluster: machines, logs, copies out of sync, traffic in sync, timers and events.

The classes that change it are `CopyPositions`, `LogDirUsage`, `IsrMembership` and, for whole partitions, `Replicas`.
"""

from __future__ import annotations

from kreassign.twin.replication.copies import Copies, CopyKey
from kreassign.twin.replication.events import ReplicaEvent
from kreassign.twin.replication.hardware import Fleet
from kreassign.twin.replication.in_sync_traffic import InSyncTraffic
from kreassign.twin.replication.partition_logs import NOWHERE, PartitionLogs
from kreassign.twin.replication.settings import ReplicationSettings
from kreassign.twin.replication.throttles import UNTHROTTLED, TopicThrottle
from kreassign.twin.replication.timers import EventQueue, Task


class ReplicationState:
    """Brokers and log directories are indices into the fleet, partitions are rows of `logs`.

    `throttles` are the lists of throttled replicas, by topic; topics without any are left out. `events` collects what
    happened and was not reported yet. `must_share` says that rates have to be computed again.
    """

    def __init__(self, settings: ReplicationSettings, now_ms: int) -> None:
        self.settings = settings
        self.now_ms = now_ms
        self.fleet = Fleet()
        self.logs = PartitionLogs()
        self.copies = Copies()
        self.in_sync_traffic = InSyncTraffic()
        self.throttles: dict[str, TopicThrottle] = {}
        self.timers: EventQueue[Task] = EventQueue()
        self.events: list[ReplicaEvent] = []
        self.must_share = False

    def broker_id(self, broker: int) -> int:
        """The id of a broker; `NOWHERE` for none."""
        return NOWHERE if broker == NOWHERE else self.fleet.broker_ids[broker]

    def dir_of(self, row: int, broker: int) -> int:
        """The log directory of the replica on a broker; `NOWHERE` if there is no such replica."""
        dirs = self.logs.replica_dirs(row)
        return next((log_dir for log_dir in dirs if self.fleet.owner_of(log_dir) == broker), NOWHERE)

    def copies_of(self, row: int) -> list[CopyKey]:
        """The copies of a partition that are behind or cut off, without future copies."""
        keys = (CopyKey(row, self.fleet.owner_of(log_dir)) for log_dir in self.logs.replica_dirs(row))
        return [key for key in keys if key in self.copies]

    def throttle_of(self, row: int) -> TopicThrottle:
        """The throttled replicas of a partition's topic."""
        return self.throttles.get(self.logs.topic(row), UNTHROTTLED) if self.throttles else UNTHROTTLED
