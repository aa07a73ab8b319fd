"""Where every copy is and what state it is in: in sync at no cost, or a copy of its own in the table of copies.

All changes of a partition go through `changing`, which takes what the partition uses out of the sums before, and puts
what it then uses back after.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
from numpy.typing import NDArray

from kreassign.model import TopicPartition
from kreassign.twin.replication.copies import Copies, CopyKey
from kreassign.twin.replication.copy_rates import CLOSE
from kreassign.twin.replication.events import ReplicaEvent, ReplicaPlaced
from kreassign.twin.replication.fleet import Fleet
from kreassign.twin.replication.in_sync_traffic import Follower, InSyncTraffic, PartitionTraffic
from kreassign.twin.replication.partition_logs import NOWHERE, PartitionLogs
from kreassign.twin.replication.settings import ReplicationSettings
from kreassign.twin.replication.throttles import UNTHROTTLED, TopicThrottle
from kreassign.twin.replication.timers import DeleteCopy, EventQueue, Join, ReachRetention, ReviewLag, StartCopy, Task

# More traffic than a capacity bears by rounding alone.
ROUNDING = 1.0 + 1e-9


class Replicas:
    """The copies of all partitions; brokers and log directories by their index in the fleet.

    `outside` holds the copies in sync that are not in the ISR, `joining` when a `Join` is due for whom,
    `ineligible` the brokers that are fenced or shutting down, `to_be_deleted`
    the bytes per log directory that wait for deletion, `log_counts` how many logs each one has, `throttles` the lists
    of topics that have any, `wanted_dirs` where brokers (by index) shall put copies that they do not have yet.
    `events` collects what happened, `must_share` says that rates have to be computed anew.
    """

    def __init__(self, settings: ReplicationSettings, now_ms: int) -> None:
        self.settings = settings
        self.now_ms = now_ms
        self.fleet = Fleet()
        self.logs = PartitionLogs()
        self.copies = Copies()
        self.in_sync_traffic = InSyncTraffic()
        self.timers: EventQueue[Task] = EventQueue()
        self.events: list[ReplicaEvent] = []
        self.must_share = False
        self.outside: set[tuple[int, int]] = set()
        self.joining: dict[tuple[int, int], int] = {}
        self.ineligible: set[int] = set()
        self.to_be_deleted = np.zeros(0)
        self.log_counts: list[int] = []
        self._settled_ms = now_ms
        self.throttles: dict[str, TopicThrottle] = {}
        self.wanted_dirs: dict[tuple[TopicPartition, int], int] = {}
        self._unscheduled_deletions: list[DeleteCopy] = []

    def grow(self) -> None:
        """Make room for what was added to the fleet."""
        more = len(self.fleet.paths) - len(self.to_be_deleted)
        self.to_be_deleted = np.pad(self.to_be_deleted, (0, more))
        self.log_counts += [0] * more
        self.in_sync_traffic.grow(len(self.fleet.broker_ids), len(self.fleet.paths))

    # Time

    def settle(self) -> None:
        """Bring all sums and positions to this moment, before a rate changes."""
        passed = self.now_ms - self._settled_ms
        if passed == 0:
            return
        self._settled_ms = self.now_ms
        self.in_sync_traffic.pass_time(passed)
        live = self.copies.live
        live["position"] += live["rate"] * (passed / 1000)
        self.apply_log_start(live["rate"] > 0)
        live["position"] = np.minimum(live["position"], self.targets())
        live["begin"] = np.minimum(live["begin"], live["position"])

    def apply_log_start(self, chosen: NDArray[np.bool_]) -> None:
        """Let copies that hear from their leader lose what it has lost; those further behind skip it."""
        live = self.copies.live
        starts = np.where(chosen, self._starts(), 0.0)
        live["position"] = np.maximum(live["position"], starts)
        live["begin"] = np.maximum(live["begin"], starts)

    def start(self, key: CopyKey) -> float:
        """Where the log of a copy that is not a future one begins, and where a future copy of it is to begin."""
        if key in self.copies:
            return float(self.copies.entry(key)["begin"])
        return self.logs.start(key.row, self.now_ms)

    def _starts(self) -> NDArray[np.float64]:
        live = self.copies.live
        starts = self.logs.starts(live["row"], self.now_ms)
        for future, local in self._futures_of_copies():
            starts[future] = live["begin"][local]
        return starts

    def lags(self) -> NDArray[np.float64]:
        """How many bytes each copy has still to go. Everything must be settled."""
        return np.asarray(self.targets() - self.copies.live["position"], np.float64)

    def targets(self) -> NDArray[np.float64]:
        """Where each copy shall arrive: the end of its log; for a future copy, of the copy that it replaces."""
        live = self.copies.live
        ends = self.logs.ends(live["row"], self.now_ms)
        for future, local in self._futures_of_copies():
            ends[future] = min(float(ends[future]), float(live["position"][local]))
        return ends

    def target_growths(self) -> NDArray[np.float64]:
        """How fast the targets move away, bytes per second."""
        live = self.copies.live
        growths = self.logs.growths(live["row"])
        for future, local in self._futures_of_copies():
            growths[future] = live["rate"][local]
        return growths

    def _futures_of_copies(self) -> Iterator[tuple[int, int]]:
        for future in np.flatnonzero(self.copies.live["is_future"]).tolist():
            local = self.copies.index(self.copies.key(future)._replace(is_future=False))
            if local is not None:
                yield future, local

    def position(self, key: CopyKey) -> float:
        """Where a copy is at this moment, without settling anything."""
        entry = self.copies.entry(key)
        gained = float(entry["rate"]) * (self.now_ms - self._settled_ms) / 1000
        return min(
            float(entry["position"]) + gained, max(self.logs.end(key.row, self.now_ms), float(entry["position"]))
        )

    @property
    def settled_ms(self) -> int:
        """As of when sums and positions hold."""
        return self._settled_ms

    def used_bytes(self) -> NDArray[np.float64]:
        """Bytes on each log directory, those to be deleted included. Everything must be settled."""
        live = self.copies.live
        sizes = live["position"] - live["begin"]
        return (
            self.in_sync_traffic.size + self.to_be_deleted + np.bincount(live["log_dir"], sizes, len(self.fleet.paths))
        )

    # Changes

    @contextmanager
    def changing(self, row: int) -> Iterator[None]:
        """Change the leader, the replicas, the rate or the throttles of a partition, or what it runs on, inside."""
        self.settle()
        before = self._traffic_of(row)
        self.in_sync_traffic.subtract(before)
        self.logs.settle(row, self.now_ms)
        yield
        self._conform_to_fleet(row)
        self.logs.settle(row, self.now_ms)
        after = self._traffic_of(row)
        self.in_sync_traffic.add(after)
        self.must_share |= before.rate > 0 or after.rate > 0
        self.expect_retention(row)

    def expect_retention(self, row: int) -> None:
        """Look at a log again when it is as long as it may become, if it ever is."""
        wait_ms = self.logs.full_length_ms(row, self.now_ms)
        if wait_ms is not None:
            self.timers.add(self.now_ms + wait_ms, ReachRetention(row))

    def _traffic_of(self, row: int) -> PartitionTraffic:
        entry = self.logs.table[row]
        leader, leader_dir = int(entry["leader"]), int(entry["leader_dir"])
        throttle, partition = self._throttle(row), int(entry["partition"])
        followers = [log_dir for log_dir in self.logs.replica_dirs(row) if log_dir != leader_dir]
        brokers = map(self.fleet.owner_of, followers)
        grows = self.logs.grows(row)
        return PartitionTraffic(
            leader=leader,
            leader_dir=leader_dir,
            leader_is_throttled=throttle.leaders.holds(partition, self._broker_id(leader)),
            followers=tuple(
                Follower(broker, log_dir, throttle.followers.holds(partition, self._broker_id(broker)))
                for broker, log_dir in zip(brokers, followers, strict=True)
                if CopyKey(row, broker) not in self.copies
            ),
            rate=grows,
            growth=0.0 if entry["full_length"] else grows,
            size=self.logs.end(row, self.now_ms) - self.logs.start(row, self.now_ms),
        )

    def _conform_to_fleet(self, row: int) -> None:
        """Stop the writes of a leader that cannot take them, and cut loose the followers that cannot follow."""
        entry, fleet = self.logs.table[row], self.fleet
        leader = int(entry["leader"])
        leader_dir = entry["leader_dir"] = self.dir_of(row, leader)
        entry["flows"] = leader != NOWHERE and bool(fleet.up[leader]) and fleet.is_writable(leader_dir)
        for log_dir in self.logs.replica_dirs(row):
            broker = fleet.owner_of(log_dir)
            if broker == leader or CopyKey(row, broker) in self.copies:
                continue
            is_linked = leader == NOWHERE or not fleet.cut[leader, broker]
            if not (fleet.up[broker] and fleet.is_writable(log_dir) and is_linked):
                self.mark_behind(row, broker, log_dir)
            elif (row, broker) in self.outside:
                self.request_join(row, broker)
        self._mark(row)

    def mark_behind(self, row: int, broker: int, log_dir: int) -> None:
        """Let a follower in sync become a copy that has everything so far. Only inside `changing`."""
        start, end = self.logs.start(row, self.now_ms), self.logs.end(row, self.now_ms)
        entry = self.copies.add(CopyKey(row, broker), log_dir, start, end, self.now_ms)
        entry["started"] = True
        entry["in_isr"] = (row, broker) not in self.outside
        self.outside.discard((row, broker))
        self.must_share = True

    def _mark(self, row: int) -> None:
        """Note on the copies of a partition which throttles are theirs, and watch those that may leave the ISR."""
        keys = self.copies_of(row)
        if not keys:
            return
        throttle, partition = self._throttle(row), int(self.logs.table["partition"][row])
        leader = self._broker_id(int(self.logs.table["leader"][row]))
        leader_throttled = throttle.leaders.holds(partition, leader)
        for key in keys:
            entry = self.copies.entry(key)
            follower_throttled = throttle.followers.holds(partition, self._broker_id(key.broker))
            if (entry["leader_throttled"], entry["follower_throttled"]) != (leader_throttled, follower_throttled):
                entry["leader_throttled"], entry["follower_throttled"] = leader_throttled, follower_throttled
                self.must_share |= bool(entry["runs"])
            self.watch(key)

    def watch(self, key: CopyKey) -> None:
        """See to it that a member of the ISR that may be behind is looked at when the allowed lag is over."""
        entry = self.copies.entry(key)
        behind = self.logs.end(key.row, self.now_ms) - float(entry["position"]) > CLOSE
        if entry["in_isr"] and not entry["reviewed"] and (behind or self.logs.grows(key.row) > 0):
            entry["reviewed"] = True
            due_ms = int(entry["behind_since_ms"]) + self.settings.lag_time_max_ms
            self.timers.add(max(due_ms, self.now_ms), ReviewLag(key, int(entry["serial"])))

    def copies_of(self, row: int) -> list[CopyKey]:
        """The copies of a partition that are behind or cut off, future ones not included."""
        keys = (CopyKey(row, self.fleet.owner_of(log_dir)) for log_dir in self.logs.replica_dirs(row))
        return [key for key in keys if key in self.copies]

    def _throttle(self, row: int) -> TopicThrottle:
        return self.throttles.get(self.logs.topic(row), UNTHROTTLED) if self.throttles else UNTHROTTLED

    def exchange_throttle(self, topic: str, throttle: TopicThrottle, rows: list[int]) -> None:
        """Give a topic other lists of throttled replicas, which concern only these of its partitions."""
        with ExitStack() as stack:
            for row in rows:
                if self.logs.grows(row) > 0 or self.copies_of(row):
                    stack.enter_context(self.changing(row))
            self.throttles.pop(topic, None)
            if throttle != UNTHROTTLED:
                self.throttles[topic] = throttle

    def _broker_id(self, broker: int) -> int:
        return NOWHERE if broker == NOWHERE else self.fleet.broker_ids[broker]

    def reconsider(self, broker: int) -> None:
        """Look again at all partitions that are on a broker, which has gone or come back."""
        self._reconsider(self.fleet.owner[self.logs.dirs] == broker)

    def reconsider_dir(self, log_dir: int) -> None:
        """Look again at all partitions in a log directory, which has failed or filled up or come back."""
        self._reconsider(self.logs.dirs == log_dir)

    def _reconsider(self, concerned: NDArray[np.bool_]) -> None:
        for row in np.flatnonzero(concerned.any(axis=1)).tolist():
            with self.changing(row):
                pass
        self.must_share = True

    # Leaders and the ISR

    def lead(self, row: int, broker: int) -> None:
        """Make a replica the leader, or nobody with `NOWHERE`. Everyone else then follows what it has.

        Only inside `changing`.
        """
        entry = self.logs.table[row]
        if int(entry["leader"]) == broker:
            return
        key = CopyKey(row, broker)
        if key in self.copies:
            copy = self.copies.entry(key)
            self.logs.replace(row, float(copy["begin"]), float(copy["position"]))
            self.copies.remove(key)
        entry["leader"] = broker
        self.outside.discard((row, broker))
        for other in self.copies_of(row):
            copy = self.copies.entry(other)
            copy["position"] = min(float(copy["position"]), self.logs.end(row, self.now_ms))
            copy["begin"] = min(float(copy["begin"]), float(copy["position"]))
            # A new leader gives every follower the full time again.
            copy["behind_since_ms"] = self.now_ms
        self.must_share = True

    def set_isr(self, row: int, isr: frozenset[int]) -> None:
        """Take over who is in the ISR. The replicas must have been placed."""
        leader = int(self.logs.table["leader"][row])
        for log_dir in self.logs.replica_dirs(row):
            broker = self.fleet.owner_of(log_dir)
            key = CopyKey(row, broker)
            if key in self.copies:
                self._set_copy_isr(key, is_member=broker in isr)
            elif broker in isr or broker == leader:
                self.outside.discard((row, broker))
            else:
                self.outside.add((row, broker))
                self.request_join(row, broker)

    def _set_copy_isr(self, key: CopyKey, *, is_member: bool) -> None:
        entry = self.copies.entry(key)
        if bool(entry["in_isr"]) == is_member:
            return
        self.settle()
        entry["in_isr"] = is_member
        entry["behind_since_ms"] = self.now_ms
        self.must_share = True
        self.watch(key)

    def watermark(self, row: int) -> float:
        """How far all members of the ISR have come. Everything must be settled."""
        members = (self.copies.entry(key) for key in self.copies_of(row))
        positions = [float(member["position"]) for member in members if member["in_isr"]]
        return min([self.logs.end(row, self.now_ms), *positions])

    def request_join(self, row: int, broker: int) -> None:
        """Let the leader ask soon for a follower that has caught up."""
        if (row, broker) not in self.joining:
            self.schedule_join(row, broker, self.settings.join_ms)

    def schedule_join(self, row: int, broker: int, wait_ms: int) -> None:
        """Let the leader ask for a follower after so long, and not before."""
        self.joining[row, broker] = self.now_ms + wait_ms
        self.timers.add(self.now_ms + wait_ms, Join(row, broker))

    # Replicas come, catch up and go

    def place(self, row: int, broker: int, log_dir: int | None) -> None:
        """Make an empty copy on a broker, which then begins to fetch. Only inside `changing`."""
        log_dir = self.put(row, broker, log_dir)
        start = self.logs.start(row, self.now_ms)
        entry = self.copies.add(CopyKey(row, broker), log_dir, start, start, self.now_ms)
        wait_ms = self._fetcher_wait_ms(int(self.logs.table["leader"][row]), broker)
        self.start_later(CopyKey(row, broker), int(entry["serial"]), wait_ms)

    def put(self, row: int, broker: int, log_dir: int | None) -> int:
        """Give a broker a copy, which counts as in sync, in this log directory or where it chooses; the directory.

        Only inside `changing`.
        """
        if log_dir is None:
            log_dir = self.wanted_dirs.pop((self.logs.topic_partition(row), broker), None)
            if log_dir is None or self.fleet.failed[log_dir]:
                log_dir = self.choose_dir(broker)
            path = self.fleet.paths[log_dir]
            self.events.append(ReplicaPlaced(self.logs.topic_partition(row), self._broker_id(broker), path))
        self.logs.place(row, log_dir)
        self.log_counts[log_dir] += 1
        return log_dir

    def choose_dir(self, broker: int) -> int:
        """The log directory in which a broker would make the next copy: the one with the fewest logs."""
        dirs = self.fleet.dirs_of(broker)
        healthy = [log_dir for log_dir in dirs if not self.fleet.failed[log_dir]] or [dirs[0]]
        # A broker whose directories are all cordoned takes the replica all the same, in its first.
        open_dirs = [log_dir for log_dir in healthy if not self.fleet.cordoned[log_dir]] or [healthy[0]]
        return min(open_dirs, key=self.log_counts.__getitem__)

    def start_later(self, key: CopyKey, serial: int, wait_ms: int = 0) -> None:
        """Let a copy begin to fetch when its broker has learnt of it and has waited."""
        self.timers.add(self.now_ms + self.settings.fetch_start_ms + wait_ms, StartCopy(key, serial))

    def _fetcher_wait_ms(self, leader: int, broker: int) -> int:
        """A follower that waits for news from a leader asks for something new only when the wait is over.

        It does not wait if it has nothing from that leader yet, or gets something all the time.
        """
        period_ms, live = self.settings.fetch_wait_ms, self.copies.live
        if (
            leader == NOWHERE
            or not self.in_sync_traffic.followed[leader, broker]
            or self.in_sync_traffic.sent[leader, broker]
        ):
            return 0
        from_leader = self.logs.table["leader"][live["row"]] == leader
        if (live["runs"] & ~live["is_future"] & (live["broker"] == broker) & from_leader).any():
            return 0
        phase_ms = (leader * 7919 + broker * 104_729) % period_ms
        return (phase_ms - self.now_ms) % period_ms

    def fitting(self, arrived: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of all copies could be taken as in sync, if all those that arrived and run in the ISR were."""
        live, used, fleet = self.copies.live, self.in_sync_traffic, self.fleet
        rates, leader = self.logs.growths(live["row"]), self.logs.table["leader"][live["row"]]
        crowd = (arrived | (live["runs"] & live["in_isr"])) & ~live["is_future"]
        brokers, log_dirs, added = live["broker"], live["log_dir"], rates[crowd]
        net_in = used.net_in + np.bincount(brokers[crowd], added, len(fleet.net_in))
        net_out = used.net_out + np.bincount(leader[crowd], added, len(fleet.net_out))
        write = used.write + np.bincount(log_dirs[crowd], added, len(fleet.write))
        room_in, room_out = net_in <= fleet.net_in * ROUNDING, net_out <= fleet.net_out * ROUNDING
        room = room_in[brokers] & room_out[leader] & (write <= fleet.write * ROUNDING)[log_dirs]
        return np.asarray((rates == 0) | room | live["is_future"])

    def mark_in_sync(self, key: CopyKey) -> None:
        """Take a copy that has caught up as in sync."""
        with self.changing(key.row):
            if not self.copies.entry(key)["in_isr"]:
                self.outside.add((key.row, key.broker))
            self.copies.remove(key)
        self.must_share = True

    def drop(self, row: int, broker: int) -> None:
        """Remove a copy that is not moving between directories: its files are renamed now, deleted later.

        Only inside `changing`.
        """
        key, log_dir = CopyKey(row, broker), self.dir_of(row, broker)
        size = self.size(key)
        if key in self.copies:
            self.copies.remove(key)
            self.must_share = True
        self.logs.displace(row, log_dir)
        self.outside.discard((row, broker))
        self.joining.pop((row, broker), None)
        self.schedule_deletion(row, log_dir, size)

    def size(self, key: CopyKey) -> float:
        """Bytes of a copy. Everything must be settled."""
        if key in self.copies:
            entry = self.copies.entry(key)
            return float(entry["position"] - entry["begin"])
        return self.logs.end(key.row, self.now_ms) - self.logs.start(key.row, self.now_ms)

    def schedule_deletion(self, row: int, log_dir: int, size: float) -> None:
        """Give up a log in a directory: its bytes take room until they are deleted."""
        broker = self.fleet.owner_of(log_dir)
        self.log_counts[log_dir] -= 1
        self.to_be_deleted[log_dir] += size
        task = DeleteCopy(self.logs.topic_partition(row), self._broker_id(broker), log_dir, size)
        if self.fleet.up[broker]:
            self.timers.add(self.now_ms + self.settings.deletion_delay_ms, task)
        else:
            self._unscheduled_deletions.append(task)

    def start_again(self, broker: int) -> None:
        """Let a broker that is back fetch for all its copies, and find those that were removed meanwhile."""
        live = self.copies.live
        mine = (live["broker"] == broker) & ~live["is_future"]
        live["started"][mine] = False
        for index in np.flatnonzero(mine).tolist():
            self.start_later(self.copies.key(index), int(live["serial"][index]))
        self._delete_unscheduled()

    def _delete_unscheduled(self) -> None:
        down = [task for task in self._unscheduled_deletions if not self.fleet.up[self.fleet.owner_of(task.log_dir)]]
        for task in self._unscheduled_deletions:
            if task not in down:
                self.timers.add(self.now_ms + self.settings.deletion_delay_ms, task)
        self._unscheduled_deletions = down

    def has(self, row: int, broker: int) -> bool:
        """Whether a broker has a copy of a partition."""
        return self.dir_of(row, broker) != NOWHERE

    def dir_of(self, row: int, broker: int) -> int:
        """The log directory of the replica on a broker; `NOWHERE` if there is no such replica."""
        dirs = self.logs.replica_dirs(row)
        return next((log_dir for log_dir in dirs if self.fleet.owner_of(log_dir) == broker), NOWHERE)
