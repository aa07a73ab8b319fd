"""Changes of partitions: leaders and replicas come and go, catch up, fall behind, and move between directories.

A replica in sync costs nothing; one out of sync is an entry in the table of copies. All changes of a partition go
through `Replicas.changing`, which takes the traffic of the partition out of the sums before, and adds the new
traffic after.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kreassign.model import TopicPartition
from kreassign.model.text import combined_hash, share_of
from kreassign.twin.replication.copy_rates import CLOSE
from kreassign.twin.replication.hardware import (
    UNTHROTTLED,
    BrokerHardware,
    Follower,
    PartitionTraffic,
    ReplicationSettings,
    TopicThrottle,
)
from kreassign.twin.replication.partition_logs import NOWHERE
from kreassign.twin.replication.state import (
    CopyKey,
    CopyPositions,
    DeleteCopy,
    FutureCopyCaughtUp,
    Join,
    ReachRetention,
    ReplicationState,
    ReviewLag,
    StartCopy,
)

# ISR members, requests to join, and members that may have to leave because they lag.


class IsrMembership:
    """ISR members as their leaders see them.

    `outside` has the replicas in sync that are not in the ISR, `joining` the due time of a `Join` by replica,
    `ineligible` the brokers that may not join because they are fenced or shutting down.
    """

    def __init__(self, state: ReplicationState, positions: CopyPositions) -> None:
        self.outside: set[tuple[int, int]] = set()
        self.joining: dict[tuple[int, int], int] = {}
        self.ineligible: set[int] = set()
        self._state = state
        self._positions = positions

    def set(self, row: int, isr: frozenset[int]) -> None:
        """Apply the ISR that the controller decided upon. The replicas must have been placed."""
        state = self._state
        leader = int(state.logs.table["leader"][row])
        for log_dir in state.logs.replica_dirs(row):
            broker = state.fleet.owner_of(log_dir)
            key = CopyKey(row, broker)
            if key in state.copies:
                self._set_copy(key, is_member=broker in isr)
            elif broker in isr or broker == leader:
                self.outside.discard((row, broker))
            else:
                self.outside.add((row, broker))
                self.request_join(row, broker)

    def _set_copy(self, key: CopyKey, *, is_member: bool) -> None:
        entry = self._state.copies.entry(key)
        if bool(entry["in_isr"]) == is_member:
            return
        self._positions.settle()
        entry["in_isr"] = is_member
        entry["behind_since_ms"] = self._state.now_ms
        self._state.must_share = True
        self.watch(key)

    def request_join(self, row: int, broker: int) -> None:
        """Let the leader soon ask the controller to add a caught-up follower."""
        if (row, broker) not in self.joining:
            self.schedule_join(row, broker, self._state.settings.join_ms)

    def schedule_join(self, row: int, broker: int, wait_ms: int) -> None:
        """Let the leader ask for a follower after `wait_ms`, replacing an earlier schedule."""
        due_ms = self.joining[row, broker] = self._state.now_ms + wait_ms
        self._state.timers.add(due_ms, Join(row, broker))

    def set_eligible(self, broker: int, *, is_eligible: bool) -> None:
        """Allow or forbid a broker to join ISRs; fenced brokers and those shutting down may not."""
        if not is_eligible:
            self.ineligible.add(broker)
            return
        self.ineligible.discard(broker)
        for row, other in sorted(self.outside):
            if other == broker:
                self.request_join(row, other)

    def watch(self, key: CopyKey) -> None:
        """Schedule a check of an ISR member that may be behind, for when the allowed lag is over."""
        state, entry = self._state, self._state.copies.entry(key)
        behind = state.logs.end(key.row, state.now_ms) - float(entry["position"]) > CLOSE
        if entry["in_isr"] and not entry["reviewed"] and (behind or state.logs.grows(key.row) > 0):
            entry["reviewed"] = True
            due_ms = int(entry["behind_since_ms"]) + state.settings.lag_time_max_ms
            state.timers.add(max(due_ms, state.now_ms), ReviewLag(key, int(entry["serial"])))

    def forget(self, row: int, broker: int) -> None:
        """Forget a replica that is removed."""
        self.outside.discard((row, broker))
        self.joining.pop((row, broker), None)


# Usage of log directories: logs, bytes, due deletions, and the directory for a new copy.


class LeftCopy(NamedTuple):
    """A copy that was taken from a broker that is down: its deletion, and the bytes of the log that it has."""

    deletion: DeleteCopy
    begin: float
    end: float


class LogDirUsage:
    """Usage of log directories.

    `log_counts` is the number of logs in each directory, `to_be_deleted` the bytes that wait for deletion. `wanted` are
    the directories for copies that brokers do not have yet (AlterReplicaLogDirs). `_left` are copies that were taken
    from brokers that are down: such a broker finds them at its next start, and deletes those that it still lacks then.
    """

    def __init__(self, state: ReplicationState) -> None:
        self.log_counts = [0] * len(state.fleet.paths)
        self.to_be_deleted = np.zeros(len(state.fleet.paths))
        self.wanted: dict[tuple[TopicPartition, int], int] = {}
        self._state = state
        self._left: dict[CopyKey, LeftCopy] = {}
        self._waiting_for_broker: list[DeleteCopy] = []

    def used_bytes(self) -> NDArray[np.float64]:
        """Bytes in each log directory, including those to be deleted. Positions must be settled."""
        live = self._state.copies.live
        sizes = live["position"] - live["begin"]
        copied = np.bincount(live["log_dir"], sizes, len(self._state.fleet.paths))
        return self._state.in_sync_traffic.size + self.to_be_deleted + copied

    def choose(self, broker: int) -> int:
        """The log directory in which a broker would create the next copy: the one with the fewest logs."""
        fleet = self._state.fleet
        dirs = fleet.dirs_of(broker)
        healthy = [log_dir for log_dir in dirs if not fleet.failed[log_dir]] or [dirs[0]]
        # A broker whose directories are all cordoned accepts the replica all the same, in its first directory.
        open_dirs = [log_dir for log_dir in healthy if not fleet.cordoned[log_dir]] or [healthy[0]]
        return min(open_dirs, key=self.log_counts.__getitem__)

    def place(self, row: int, broker: int, log_dir: int | None) -> int:
        """Place a copy in this log directory, or where its broker chooses; return the directory."""
        state = self._state
        if log_dir is None:
            topic_partition = state.logs.topic_partition(row)
            log_dir = self.wanted.pop((topic_partition, broker), None)
            if log_dir is None or state.fleet.failed[log_dir]:
                log_dir = self.choose(broker)
        state.logs.place(row, log_dir)
        self.log_counts[log_dir] += 1
        return log_dir

    def give_up(self, row: int, log_dir: int, size: float) -> None:
        """Remove a log from a directory; its bytes take room until they are deleted."""
        state, broker = self._state, self._state.fleet.owner_of(log_dir)
        task = self._remove(row, log_dir, size)
        if state.fleet.up[broker]:
            state.timers.add(state.now_ms + state.settings.deletion_delay_ms, task)
        else:
            self._waiting_for_broker.append(task)

    def _remove(self, row: int, log_dir: int, size: float) -> DeleteCopy:
        state = self._state
        self.log_counts[log_dir] -= 1
        self.to_be_deleted[log_dir] += size
        return DeleteCopy(
            state.logs.topic_partition(row), state.broker_id(state.fleet.owner_of(log_dir)), log_dir, size
        )

    def leave(self, key: CopyKey, log_dir: int, begin: float, end: float) -> None:
        """Remove the copy of a broker that is down, which has these bytes of its log on disk all the same."""
        if key in self._left:  # in a directory that failed since
            self._abandon([key])
        self._left[key] = LeftCopy(self._remove(key.row, log_dir, end - begin), begin, end)

    def take_back(self, key: CopyKey) -> LeftCopy | None:
        """The copy that a broker that is down still has of a replica, which is the broker's again; None without any."""
        left = self._left.get(key)
        if left is None or self._state.fleet.failed[left.deletion.log_dir]:
            return None
        del self._left[key]
        self.log_counts[left.deletion.log_dir] += 1
        self.to_be_deleted[left.deletion.log_dir] -= left.deletion.size
        self._state.logs.place(key.row, left.deletion.log_dir)
        return left

    def forget(self, row: int) -> None:
        """Let nobody take back copies of a deleted partition: another of its name has an id of its own."""
        keys = (CopyKey(row, broker) for broker in range(len(self._state.fleet.broker_ids)))
        self._abandon([key for key in keys if key in self._left])

    def _abandon(self, keys: Iterable[CopyKey]) -> None:
        """Let nobody take these copies back: their brokers delete them after their next start."""
        self._waiting_for_broker += [self._left.pop(key).deletion for key in keys]

    def schedule_deletions(self) -> None:
        """Let restarted brokers delete the logs that were removed while they were down."""
        state = self._state
        self._abandon([key for key in self._left if state.fleet.up[key.broker]])
        waiting, self._waiting_for_broker = self._waiting_for_broker, []
        for task in waiting:
            if state.fleet.up[state.fleet.owner_of(task.log_dir)]:
                state.timers.add(state.now_ms + state.settings.deletion_delay_ms, task)
            else:
                self._waiting_for_broker.append(task)


# All replicas of all partitions.

# Traffic above a capacity by rounding alone.
ROUNDING = 1.0 + 1e-9


class Replicas:
    """Replicas of all partitions: `state`, their copies, the usage of log directories, and ISR membership."""

    def __init__(self, hardware: Mapping[int, BrokerHardware], settings: ReplicationSettings, now_ms: int) -> None:
        self.state = ReplicationState(hardware, settings, now_ms)
        self.positions = CopyPositions(self.state)
        self.log_dirs = LogDirUsage(self.state)
        self.isr = IsrMembership(self.state, self.positions)

    # --- changes of one partition -----------------------------------------------------------------------------

    @contextmanager
    def changing(self, row: int) -> Iterator[None]:
        """Change the leader, replicas, rate, throttles or hardware of a partition inside the block."""
        state = self.state
        self.positions.settle()
        before = self.traffic_of(row)
        state.in_sync_traffic.add(before, -1)
        state.logs.settle(row, state.now_ms)
        yield
        self._conform_to_fleet(row)
        state.logs.settle(row, state.now_ms)
        after = self.traffic_of(row)
        state.in_sync_traffic.add(after)
        state.must_share |= before.rate > 0 or after.rate > 0
        self.expect_retention(row)

    def expect_retention(self, row: int) -> None:
        """Schedule a task for when a log reaches its retention, if it ever does."""
        wait_ms = self.state.logs.full_length_ms(row, self.state.now_ms)
        if wait_ms is not None:
            self.state.timers.add(self.state.now_ms + wait_ms, ReachRetention(row))

    def traffic_of(self, row: int) -> PartitionTraffic:
        """The traffic of the replicas in sync of a partition."""
        state, logs, fleet = self.state, self.state.logs, self.state.fleet
        entry = logs.table[row]
        leader, leader_dir = int(entry["leader"]), int(entry["leader_dir"])
        throttle, partition = state.throttle_of(row), int(entry["partition"])
        followers = [log_dir for log_dir in logs.replica_dirs(row) if log_dir != leader_dir]
        brokers = map(fleet.owner_of, followers)
        grows = logs.grows(row)
        return PartitionTraffic(
            leader=leader,
            leader_dir=leader_dir,
            leader_is_throttled=throttle.leaders.holds(partition, state.broker_id(leader)),
            followers=tuple(
                Follower(broker, log_dir, throttle.followers.holds(partition, state.broker_id(broker)))
                for broker, log_dir in zip(brokers, followers, strict=True)
                if CopyKey(row, broker) not in state.copies
            ),
            rate=grows,
            growth=0.0 if entry["full_length"] else grows,
            size=logs.end(row, state.now_ms) - logs.start(row, state.now_ms),
        )

    def _conform_to_fleet(self, row: int) -> None:
        """Stop writes to a leader that is down or cannot write; put followers that cannot follow out of sync."""
        state, fleet = self.state, self.state.fleet
        entry = state.logs.table[row]
        leader = int(entry["leader"])
        leader_dir = entry["leader_dir"] = state.dir_of(row, leader)
        entry["flows"] = leader != NOWHERE and bool(fleet.up[leader]) and fleet.is_writable(leader_dir)
        for log_dir in state.logs.replica_dirs(row):
            broker = fleet.owner_of(log_dir)
            if broker == leader or CopyKey(row, broker) in state.copies:
                continue
            is_linked = leader == NOWHERE or not fleet.cut[leader, broker]
            if not (fleet.up[broker] and fleet.is_writable(log_dir) and is_linked):
                self.mark_behind(row, broker, log_dir)
            elif (row, broker) in self.isr.outside:
                self.isr.request_join(row, broker)
        self._mark_throttles(row)

    def _mark_throttles(self, row: int) -> None:
        """Mark the throttles on the copies of a partition, and watch those that may leave the ISR."""
        state = self.state
        keys = state.copies_of(row)
        if not keys:
            return
        throttle, partition = state.throttle_of(row), int(state.logs.table["partition"][row])
        leader = state.broker_id(int(state.logs.table["leader"][row]))
        leader_throttled = throttle.leaders.holds(partition, leader)
        for key in keys:
            entry = state.copies.entry(key)
            follower_throttled = throttle.followers.holds(partition, state.broker_id(key.broker))
            if (entry["leader_throttled"], entry["follower_throttled"]) != (leader_throttled, follower_throttled):
                entry["leader_throttled"], entry["follower_throttled"] = leader_throttled, follower_throttled
                state.must_share |= bool(entry["runs"])
            self.isr.watch(key)

    # --- changes of many partitions ---------------------------------------------------------------------------

    def exchange_throttle(self, topic: str, throttle: TopicThrottle, rows: list[int]) -> None:
        """Replace the throttle lists of a topic, of which only these rows change."""
        with ExitStack() as stack:
            for row in rows:
                if self.state.logs.grows(row) > 0 or self.state.copies_of(row):
                    stack.enter_context(self.changing(row))
            self.state.throttles.pop(topic, None)
            if throttle != UNTHROTTLED:
                self.state.throttles[topic] = throttle

    def reconsider(self, broker: int) -> None:
        """Update all partitions of a broker that went down or came back."""
        self._reconsider(self.state.fleet.owner[self.state.logs.dirs] == broker)

    def reconsider_dir(self, log_dir: int) -> None:
        """Update all partitions in a log directory that failed, filled up or came back."""
        self._reconsider(self.state.logs.dirs == log_dir)

    def _reconsider(self, affected: NDArray[np.bool_]) -> None:
        for row in np.flatnonzero(affected.any(axis=1)).tolist():
            with self.changing(row):
                pass
        self.state.must_share = True

    # --- inside `changing`: leaders and replicas --------------------------------------------------------------

    def lead(self, row: int, broker: int) -> None:
        """Make a replica the leader, or none with `NOWHERE`. All other replicas then follow its log."""
        state = self.state
        entry = state.logs.table[row]
        if int(entry["leader"]) == broker:
            return
        key = CopyKey(row, broker)
        if key in state.copies:
            copy = state.copies.entry(key)
            state.logs.replace(row, float(copy["begin"]), float(copy["position"]))
            state.copies.remove(key)
        entry["leader"] = broker
        self.isr.outside.discard((row, broker))
        for other in state.copies_of(row):
            copy = state.copies.entry(other)
            copy["position"] = min(float(copy["position"]), state.logs.end(row, state.now_ms))
            copy["begin"] = min(float(copy["begin"]), float(copy["position"]))
            # A new leader gives every follower the full time again.
            copy["behind_since_ms"] = state.now_ms
        state.must_share = True

    def place(self, row: int, broker: int, log_dir: int | None, *, skips_tiered: bool = False) -> None:
        """Create an empty copy on a broker, which then begins to fetch the local log of the leader.

        - With `skips_tiered` it skips what remote storage has (KIP-1023), unless the leader has the log locally from
          offset 0 on: a real broker asks for that first.
        - A broker that was down since before it lost the replica has its former copy yet, and goes on with that.
        """
        state, left = self.state, self.log_dirs.take_back(CopyKey(row, broker))
        start, end = state.logs.start(row, state.now_ms), state.logs.end(row, state.now_ms)
        if left is not None:
            log_dir, position = left.deletion.log_dir, max(start, min(left.end, end))
            start = max(start, min(left.begin, position))
        else:
            log_dir = self.log_dirs.place(row, broker, log_dir)
            if skips_tiered and start > 0:
                start = state.logs.uploaded(row, state.now_ms) or start
            position = start
        entry = state.copies.add(CopyKey(row, broker), log_dir, start, position, state.now_ms)
        wait_ms = self._fetcher_wait_ms(int(state.logs.table["leader"][row]), broker)
        self.start_later(CopyKey(row, broker), int(entry["serial"]), wait_ms)

    def drop(self, row: int, broker: int) -> None:
        """Remove a copy that is not moving between directories: its files are renamed now, deleted later."""
        state = self.state
        key, log_dir = CopyKey(row, broker), state.dir_of(row, broker)
        begin, end = self.positions.span(key)
        if key in state.copies:
            state.copies.remove(key)
            state.must_share = True
        state.logs.displace(row, log_dir)
        self.isr.forget(row, broker)
        if state.fleet.up[broker]:
            self.log_dirs.give_up(row, log_dir, end - begin)
        else:
            self.log_dirs.leave(key, log_dir, begin, end)

    def mark_behind(self, row: int, broker: int, log_dir: int) -> None:
        """Turn a follower in sync into a copy out of sync that has the log so far."""
        state, outside = self.state, self.isr.outside
        start, end = state.logs.start(row, state.now_ms), state.logs.end(row, state.now_ms)
        entry = state.copies.add(CopyKey(row, broker), log_dir, start, end, state.now_ms)
        entry["started"] = True
        entry["in_isr"] = (row, broker) not in outside
        outside.discard((row, broker))
        state.must_share = True

    # --- copies catch up --------------------------------------------------------------------------------------

    def start_later(self, key: CopyKey, serial: int, wait_ms: int = 0) -> None:
        """Let a copy begin to fetch when its broker knows of it and `wait_ms` has passed."""
        state = self.state
        state.timers.add(state.now_ms + state.settings.fetch_start_ms + wait_ms, StartCopy(key, serial))

    def _fetcher_wait_ms(self, leader: int, broker: int) -> int:
        """Milliseconds until a follower that waits for new records of a leader can ask for another partition.

        0 if it has no partition of that leader in sync yet, or gets records all the time.
        """
        state, used = self.state, self.state.in_sync_traffic
        period_ms, live = state.settings.fetch_wait_ms, state.copies.live
        if leader == NOWHERE or not used.followed[leader, broker] or used.sent[leader, broker]:
            return 0
        from_leader = state.logs.table["leader"][live["row"]] == leader
        if (live["runs"] & ~live["is_future"] & (live["broker"] == broker) & from_leader).any():
            return 0
        phase_ms = (leader * 7919 + broker * 104_729) % period_ms
        return (phase_ms - state.now_ms) % period_ms

    def start_again(self, broker: int) -> None:
        """Let a restarted broker fetch for all its copies, and find those that were removed meanwhile."""
        live = self.state.copies.live
        mine = (live["broker"] == broker) & ~live["is_future"]
        live["started"][mine] = False
        for index in np.flatnonzero(mine).tolist():
            self.start_later(self.state.copies.key(index), int(live["serial"][index]))
        self.log_dirs.schedule_deletions()

    def fits(self, arrived: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mask of the copies that fit within the capacities if all that arrived and run in the ISR were in sync."""
        logs, used, fleet = self.state.logs, self.state.in_sync_traffic, self.state.fleet
        live = self.state.copies.live
        rates, leader = logs.growths(live["row"]), logs.table["leader"][live["row"]]
        crowd = (arrived | (live["runs"] & live["in_isr"])) & ~live["is_future"]
        brokers, log_dirs, added = live["broker"], live["log_dir"], rates[crowd]
        net_in = used.net_in + np.bincount(brokers[crowd], added, len(fleet.net_in))
        net_out = used.net_out + np.bincount(leader[crowd], added, len(fleet.net_out))
        write = used.write + np.bincount(log_dirs[crowd], added, len(fleet.write))
        room_in, room_out = net_in <= fleet.net_in * ROUNDING, net_out <= fleet.net_out * ROUNDING
        room = room_in[brokers] & room_out[leader] & (write <= fleet.write * ROUNDING)[log_dirs]
        return np.asarray((rates == 0) | room | live["is_future"])

    def mark_in_sync(self, key: CopyKey) -> None:
        """Mark a copy that has caught up as in sync."""
        with self.changing(key.row):
            if not self.state.copies.entry(key)["in_isr"]:
                self.isr.outside.add((key.row, key.broker))
            self.state.copies.remove(key)
        self.state.must_share = True


# Moves between the log directories of a broker: a future copy is built beside the current one, then replaces it.
#
# A broker has as many threads for such moves as log directories (`num.replica.alter.log.dirs.threads`). A partition
# belongs to the thread that its name hashes to. A thread works on one partition until its copy has caught up, then on
# the first waiting partition, by name.


class Thread(NamedTuple):
    """A directory move thread of a broker (by index)."""

    broker: int
    number: int


class MoveQueue:
    """Directory moves, running and waiting, by thread."""

    def __init__(self) -> None:
        self._working: dict[Thread, CopyKey] = {}
        self._waiting: dict[Thread, dict[CopyKey, TopicPartition]] = {}
        self._threads: dict[CopyKey, Thread] = {}

    def add(self, key: CopyKey, topic_partition: TopicPartition, thread_count: int) -> CopyKey | None:
        """Add a move; return the move (this one or None) that begins now."""
        thread = Thread(key.broker, thread_number(topic_partition, thread_count))
        self._threads[key] = thread
        self._waiting.setdefault(thread, {})[key] = topic_partition
        return None if thread in self._working else self._next(thread)

    def remove(self, key: CopyKey) -> CopyKey | None:
        """Remove a move that ended or was cancelled; return the move that begins instead, if any."""
        thread = self._threads.pop(key)
        if self._working.get(thread) == key:
            del self._working[thread]
            return self._next(thread)
        del self._waiting[thread][key]
        return None

    def _next(self, thread: Thread) -> CopyKey | None:
        waiting = self._waiting[thread]
        if not waiting:
            return None
        first = min(waiting, key=waiting.__getitem__)
        del waiting[first]
        self._working[thread] = first
        return first


class DirectoryMoves:
    """Directory moves that run or wait; brokers and log directories by their index in the fleet."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._queue = MoveQueue()

    def alter(self, row: int, broker: int, log_dir: int) -> None:
        """Move the replica to this directory. A move elsewhere is cancelled; its own directory only cancels that."""
        key = CopyKey(row, broker, is_future=True)
        copies, current = self._replicas.state.copies, self._replicas.state.dir_of(row, broker)
        if key in copies and int(copies.entry(key)["log_dir"]) == log_dir:
            return
        self.cancel(row, broker)
        if log_dir != current:
            self._begin(key, current, log_dir)

    def _begin(self, key: CopyKey, current: int, log_dir: int) -> None:
        replicas = self._replicas
        replicas.positions.settle()
        start, _ = replicas.positions.span(CopyKey(key.row, key.broker))
        entry = replicas.state.copies.add(key, log_dir, start, start, replicas.state.now_ms)
        entry["source_dir"] = current
        replicas.log_dirs.log_counts[log_dir] += 1
        thread_count = len(replicas.state.fleet.dirs_of(key.broker))
        self._start(self._queue.add(key, replicas.state.logs.topic_partition(key.row), thread_count))

    def cancel(self, row: int, broker: int) -> None:
        """Cancel the move of a replica, if there is one."""
        key = CopyKey(row, broker, is_future=True)
        if key not in self._replicas.state.copies:
            return
        replicas = self._replicas
        replicas.positions.settle()
        entry = replicas.state.copies.entry(key)
        replicas.log_dirs.give_up(row, int(entry["log_dir"]), float(entry["position"] - entry["begin"]))
        self._forget(key)

    def finish(self, key: CopyKey) -> None:
        """Replace the current copy by a future copy that has caught up."""
        replicas = self._replicas
        local = CopyKey(key.row, key.broker)
        with replicas.changing(key.row):
            current, target = (
                replicas.state.dir_of(key.row, key.broker),
                int(replicas.state.copies.entry(key)["log_dir"]),
            )
            replicas.log_dirs.give_up(key.row, current, replicas.positions.size(local))
            replicas.state.logs.displace(key.row, current, target)
            if local in replicas.state.copies:
                replicas.state.copies.entry(local)["log_dir"] = target
            self._forget(key)
        topic_partition, fleet = replicas.state.logs.topic_partition(key.row), replicas.state.fleet
        replicas.state.events.append(
            FutureCopyCaughtUp(topic_partition, fleet.broker_ids[key.broker], fleet.paths[target])
        )

    def fail(self, log_dir: int) -> None:
        """Cancel all moves that read from or write to a directory."""
        live = self._replicas.state.copies.live
        concerned = live["is_future"] & ((live["log_dir"] == log_dir) | (live["source_dir"] == log_dir))
        for row, broker in zip(live["row"][concerned].tolist(), live["broker"][concerned].tolist(), strict=True):
            self.cancel(row, broker)

    def _forget(self, key: CopyKey) -> None:
        self._replicas.state.copies.remove(key)
        self._replicas.state.must_share = True
        self._start(self._queue.remove(key))

    def _start(self, key: CopyKey | None) -> None:
        if key is None:
            return
        self._replicas.state.copies.entry(key)["started"] = True
        self._replicas.state.must_share = True


def thread_number(topic_partition: TopicPartition, thread_count: int) -> int:
    """The thread of a partition: a hash of its name that is the same on every Java machine."""
    return share_of(combined_hash(topic_partition.topic, topic_partition.partition), thread_count)
