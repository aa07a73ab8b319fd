"""Changes of partitions: leaders and replicas come and go, catch up and fall behind.

A replica in sync costs nothing; one out of sync is an entry in the table of copies. All changes of a partition go
through `changing`, which takes what the partition uses out of the sums before, and adds what it then uses after.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
from numpy.typing import NDArray

from kreassign.twin.replication.copies import CopyKey
from kreassign.twin.replication.in_sync_traffic import Follower, PartitionTraffic
from kreassign.twin.replication.isr_membership import IsrMembership
from kreassign.twin.replication.log_dir_usage import LogDirUsage
from kreassign.twin.replication.partition_logs import NOWHERE
from kreassign.twin.replication.positions import CopyPositions
from kreassign.twin.replication.settings import ReplicationSettings
from kreassign.twin.replication.state import ReplicationState
from kreassign.twin.replication.throttles import UNTHROTTLED, TopicThrottle
from kreassign.twin.replication.timers import ReachRetention, StartCopy

# More traffic than a capacity takes by rounding alone.
ROUNDING = 1.0 + 1e-9


class Replicas:
    """The replicas of all partitions: `state`, where copies are, what log directories hold, and who is in sync."""

    def __init__(self, settings: ReplicationSettings, now_ms: int) -> None:
        self.state = ReplicationState(settings, now_ms)
        self.positions = CopyPositions(self.state)
        self.log_dirs = LogDirUsage(self.state)
        self.isr = IsrMembership(self.state, self.positions)

    def grow(self) -> None:
        """Make room for what was added to the fleet."""
        self.log_dirs.grow()
        self.state.in_sync_traffic.grow(len(self.state.fleet.broker_ids), len(self.state.fleet.paths))

    # --- changes of one partition -----------------------------------------------------------------------------

    @contextmanager
    def changing(self, row: int) -> Iterator[None]:
        """Change the leader, the replicas, the rate or the throttles of a partition, or what it runs on, inside."""
        state = self.state
        self.positions.settle()
        before = self.traffic_of(row)
        state.in_sync_traffic.subtract(before)
        state.logs.settle(row, state.now_ms)
        yield
        self._conform_to_fleet(row)
        state.logs.settle(row, state.now_ms)
        after = self.traffic_of(row)
        state.in_sync_traffic.add(after)
        state.must_share |= before.rate > 0 or after.rate > 0
        self.expect_retention(row)

    def expect_retention(self, row: int) -> None:
        """Schedule a look at a log for when it reaches its retention, if it ever does."""
        wait_ms = self.state.logs.full_length_ms(row, self.state.now_ms)
        if wait_ms is not None:
            self.state.timers.add(self.state.now_ms + wait_ms, ReachRetention(row))

    def traffic_of(self, row: int) -> PartitionTraffic:
        """What the replicas in sync of a partition use."""
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
        """Stop the writes of a leader that cannot take them; let followers that cannot follow fall out of sync."""
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
        """Note on the copies of a partition which throttles are theirs, and watch those that may leave the ISR."""
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
        """Give a topic other lists of throttled replicas, which concern only these of its partitions."""
        with ExitStack() as stack:
            for row in rows:
                if self.state.logs.grows(row) > 0 or self.state.copies_of(row):
                    stack.enter_context(self.changing(row))
            self.state.throttles.pop(topic, None)
            if throttle != UNTHROTTLED:
                self.state.throttles[topic] = throttle

    def reconsider(self, broker: int) -> None:
        """Update all partitions on a broker, which has gone or come back."""
        self._reconsider(self.state.fleet.owner[self.state.logs.dirs] == broker)

    def reconsider_dir(self, log_dir: int) -> None:
        """Update all partitions in a log directory, which has failed or filled up or come back."""
        self._reconsider(self.state.logs.dirs == log_dir)

    def _reconsider(self, affected: NDArray[np.bool_]) -> None:
        for row in np.flatnonzero(affected.any(axis=1)).tolist():
            with self.changing(row):
                pass
        self.state.must_share = True

    # --- inside `changing`: leaders and replicas --------------------------------------------------------------

    def lead(self, row: int, broker: int) -> None:
        """Make a replica the leader, or none with `NOWHERE`. All others then follow what it has."""
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
        """Make an empty copy on a broker, which then begins to fetch: all that the leader has itself.

        With `skips_tiered` only what is not in remote storage either (KIP-1023), unless the leader has the log from
        offset 0 on: that is what it asks for first.
        """
        state = self.state
        log_dir = self.log_dirs.place(row, broker, log_dir)
        start = state.logs.start(row, state.now_ms)
        if skips_tiered and start > 0:
            start = state.logs.uploaded(row, state.now_ms) or start
        entry = state.copies.add(CopyKey(row, broker), log_dir, start, start, state.now_ms)
        wait_ms = self._fetcher_wait_ms(int(state.logs.table["leader"][row]), broker)
        self.start_later(CopyKey(row, broker), int(entry["serial"]), wait_ms)

    def drop(self, row: int, broker: int) -> None:
        """Remove a copy that is not moving between directories: its files are renamed now, deleted later."""
        state = self.state
        key, log_dir = CopyKey(row, broker), state.dir_of(row, broker)
        size = self.positions.size(key)
        if key in state.copies:
            state.copies.remove(key)
            state.must_share = True
        state.logs.displace(row, log_dir)
        self.isr.forget(row, broker)
        self.log_dirs.give_up(row, log_dir, size)

    def mark_behind(self, row: int, broker: int, log_dir: int) -> None:
        """Let a follower in sync become a copy that has everything so far."""
        state, outside = self.state, self.isr.outside
        start, end = state.logs.start(row, state.now_ms), state.logs.end(row, state.now_ms)
        entry = state.copies.add(CopyKey(row, broker), log_dir, start, end, state.now_ms)
        entry["started"] = True
        entry["in_isr"] = (row, broker) not in outside
        outside.discard((row, broker))
        state.must_share = True

    # --- copies catch up --------------------------------------------------------------------------------------

    def start_later(self, key: CopyKey, serial: int, wait_ms: int = 0) -> None:
        """Let a copy begin to fetch when its broker has learnt of it and has waited."""
        state = self.state
        state.timers.add(state.now_ms + state.settings.fetch_start_ms + wait_ms, StartCopy(key, serial))

    def _fetcher_wait_ms(self, leader: int, broker: int) -> int:
        """A follower that waits for new records of a leader asks for another partition only when the wait is over.

        It does not wait if it has no partition of that leader in sync yet, or gets records all the time.
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
        """Let a broker that is back fetch for all its copies, and find those that were removed meanwhile."""
        live = self.state.copies.live
        mine = (live["broker"] == broker) & ~live["is_future"]
        live["started"][mine] = False
        for index in np.flatnonzero(mine).tolist():
            self.start_later(self.state.copies.key(index), int(live["serial"][index]))
        self.log_dirs.schedule_deletions()

    def fits(self, arrived: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of all copies could be taken as in sync, if all those that arrived and run in the ISR were."""
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
        """Take a copy that has caught up as in sync."""
        with self.changing(key.row):
            if not self.state.copies.entry(key)["in_isr"]:
                self.isr.outside.add((key.row, key.broker))
            self.state.copies.remove(key)
        self.state.must_share = True
