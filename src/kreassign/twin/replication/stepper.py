"""Step replication through time: copies catch up, directories fill up, tasks are due; find the time of the next event.

Rates are recomputed only when their inputs have changed, once for all changes within a millisecond. Between two changes
everything is linear in time.
"""

from __future__ import annotations

import math
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from kreassign.twin.replication.copy_rates import CLOSE, InitialBursts, mark_running, share
from kreassign.twin.replication.partition_logs import NOWHERE
from kreassign.twin.replication.replicas import ROUNDING, DirectoryMoves, Replicas
from kreassign.twin.replication.state import (
    CopyDeleted,
    CopyKey,
    DeleteCopy,
    Join,
    LogDirFull,
    ReachRetention,
    ReplicaCaughtUp,
    ReplicaFellBehind,
    ReviewLag,
    StartCopy,
    Task,
)


class ReplicationSteps:
    """Advances replicas in time."""

    def __init__(self, replicas: Replicas, moves: DirectoryMoves) -> None:
        self._replicas = replicas
        self._moves = moves
        self._state = replicas.state
        self._initial_bursts = InitialBursts(replicas.state)
        self._arrival_ms: int | None = None

    @property
    def next_ms(self) -> int | None:
        """Time of the next event; now, if an event was not reported yet."""
        if self._state.events:
            return self._state.now_ms
        self.resolve()
        if self._state.events:
            return self._state.now_ms
        times = [time for time in (self._arrival_ms, self._state.timers.next_ms) if time is not None]
        return min(times) if times else None

    def move_on(self, now_ms: int) -> None:
        """Advance to `now_ms`, before which nothing may happen, and do what is due then."""
        state = self._state
        state.now_ms = now_ms
        if self._arrival_ms is not None and self._arrival_ms <= now_ms:
            state.must_share = True
        while (task := state.timers.take(now_ms)) is not None:
            self._do(task)
        self.resolve()

    # Immediate consequences

    def resolve(self) -> None:
        """Compute all rates for this moment and apply their immediate consequences, until nothing more follows."""
        replicas, state = self._replicas, self._state
        while state.must_share:
            state.must_share = False
            replicas.positions.settle()
            self._mark_overloaded_behind()
            mark_running(state)
            replicas.positions.apply_log_start(state.copies.live["runs"])
            lags = replicas.positions.lags()
            # Computing rates is expensive, so first mark arrived copies in sync and close full directories.
            if self._arrive(lags) or self._update_full_dirs():
                state.must_share = True
                continue
            share(state, lags)
            self._initial_bursts.watch()
            live = state.copies.live
            live["behind_since_ms"][live["runs"] & (lags <= CLOSE)] = state.now_ms
            self._arrival_ms = self._next_arrival_ms(lags)

    def _arrive(self, lags: NDArray[np.float64]) -> bool:
        """Mark copies that have caught up as in sync; return whether that changed anything."""
        replicas, state = self._replicas, self._state
        arrived = np.asarray(state.copies.live["runs"] & (lags <= CLOSE))
        taken_in = []
        if arrived.any():
            fits = replicas.fits(arrived)
            taken_in = self._keys(arrived & fits)
            for key in self._keys(arrived & ~fits):
                self._ask_for(key)
        for key in taken_in:
            self._take_in(key)
        for key in self._behind_a_late_isr():
            if state.copies.entry(key)["position"] >= replicas.positions.watermark(key.row) - CLOSE:
                replicas.isr.request_join(key.row, key.broker)
        return bool(taken_in)

    def _keys(self, chosen: NDArray[np.bool_]) -> list[CopyKey]:
        return sorted(map(self._state.copies.key, np.flatnonzero(chosen).tolist()))

    def _take_in(self, key: CopyKey) -> None:
        if key.is_future:
            self._moves.finish(key)
        else:
            self._ask_for(key)
            self._replicas.mark_in_sync(key)

    def _ask_for(self, key: CopyKey) -> None:
        if not self._state.copies.entry(key)["in_isr"]:
            self._replicas.isr.request_join(key.row, key.broker)

    def _behind_a_late_isr(self) -> list[CopyKey]:
        """Running copies outside an ISR with lagging members: they need to reach only the high watermark."""
        live = self._state.copies.live
        late = live["in_isr"] & ~live["is_future"]
        if not late.any():
            return []
        candidates = live["runs"] & ~live["in_isr"] & ~live["is_future"] & np.isin(live["row"], live["row"][late])
        return self._keys(candidates)

    def _mark_overloaded_behind(self) -> None:
        """Turn followers into copies that share a capacity where replicas in sync exceed it."""
        replicas, state, used, fleet = self._replicas, self._state, self._state.in_sync_traffic, self._state.fleet
        crowded_in = used.net_in > fleet.net_in * ROUNDING
        crowded_out = used.net_out > fleet.net_out * ROUNDING
        crowded_dirs = used.write > fleet.write * ROUNDING
        if not (crowded_in.any() or crowded_out.any() or crowded_dirs.any()):
            return
        dirs, owners = state.logs.dirs, fleet.owner[state.logs.dirs]
        leaders = state.logs.table["leader"][:, np.newaxis]
        crowded = np.append(crowded_dirs, np.False_)[dirs] | np.append(crowded_in, np.False_)[owners]
        crowded |= np.append(crowded_out, np.False_)[leaders]
        # A follower that gets nothing frees no capacity, and would be marked in sync again at once.
        grows = state.logs.table["flows"] & (state.logs.table["write_rate"] > 0)
        concerned = crowded & (dirs != NOWHERE) & (owners != leaders) & grows[:, np.newaxis]
        for row, place in np.argwhere(concerned).tolist():
            log_dir = int(dirs[row, place])
            key = CopyKey(row, fleet.owner_of(log_dir))
            if key not in state.copies:
                with replicas.changing(row):
                    replicas.mark_behind(row, key.broker, log_dir)

    def _update_full_dirs(self) -> bool:
        """Close full directories and open those with room again; return whether any changed."""
        replicas, state, fleet = self._replicas, self._state, self._state.fleet
        used = replicas.log_dirs.used_bytes()
        filled = ~fleet.full & ~fleet.failed & (used >= fleet.capacity - CLOSE)
        relieved = fleet.full & (used <= fleet.capacity - state.settings.full_slack_bytes)
        judged = np.flatnonzero(filled | relieved).tolist()
        for log_dir in judged:
            fleet.full[log_dir] = not fleet.full[log_dir]
            replicas.reconsider_dir(log_dir)
            if fleet.full[log_dir]:
                broker = fleet.broker_ids[fleet.owner_of(log_dir)]
                state.events.append(LogDirFull(broker, fleet.paths[log_dir]))
        return bool(judged)

    # Time of the next event

    def _next_arrival_ms(self, lags: NDArray[np.float64]) -> int | None:
        soonest = min(self._next_catch_up_s(lags), self._next_watermark_s(), self._next_full_s())
        return None if math.isinf(soonest) else self._state.now_ms + max(1, math.ceil(soonest * 1000))

    def _next_catch_up_s(self, lags: NDArray[np.float64]) -> float:
        replicas, state = self._replicas, self._state
        closing = state.copies.live["rate"] - replicas.positions.target_growths()
        nearing = (lags > CLOSE) & (closing > 0)
        return float(np.min(lags[nearing] / closing[nearing], initial=math.inf))

    def _next_watermark_s(self) -> float:
        state = self._state
        soonest = math.inf
        for key in self._behind_a_late_isr():
            copy = state.copies.entry(key)
            members = [state.copies.entry(other) for other in state.copies_of(key.row)]
            late = [member for member in members if member["in_isr"]]
            last = min(late, key=lambda member: float(member["position"]))
            lag, closing = float(last["position"] - copy["position"]), float(copy["rate"] - last["rate"])
            if lag > CLOSE and closing > 0:
                soonest = min(soonest, lag / closing)
        return soonest

    def _next_full_s(self) -> float:
        """Seconds until a directory is full: never too late; too early if a log is trimmed, and then computed again."""
        replicas, state, fleet = self._replicas, self._state, self._state.fleet
        live = state.copies.live
        growth = state.in_sync_traffic.growth + np.bincount(live["log_dir"], live["rate"], len(fleet.paths))
        growing = (growth > 0) & ~fleet.full & ~fleet.failed
        room = np.maximum(fleet.capacity - replicas.log_dirs.used_bytes(), 0.0)
        return float(np.min(room[growing] / growth[growing], initial=math.inf))

    # Scheduled tasks

    def _do(self, task: Task) -> None:
        match task:
            case StartCopy(key, serial):
                self._start(key, serial)
            case Join(row, broker):
                self._join(row, broker)
            case ReviewLag(key, serial):
                self._review(key, serial)
            case DeleteCopy():
                self._delete(task)
            case ReachRetention(row):
                if self._state.logs.is_at_retention(row, self._state.now_ms):
                    with self._replicas.changing(row):
                        pass
            case _:
                assert_never(task)

    def _is_current(self, key: CopyKey, serial: int) -> bool:
        return key in self._state.copies and int(self._state.copies.entry(key)["serial"]) == serial

    def _start(self, key: CopyKey, serial: int) -> None:
        if not self._is_current(key, serial):
            return
        replicas, state = self._replicas, self._state
        replicas.positions.settle()
        entry = state.copies.entry(key)
        if self._lacks_remote(key):
            state.timers.add(state.now_ms + state.settings.fetch_backoff_ms, StartCopy(key, serial))
            return
        entry["started"] = True
        passed = self._initial_bursts.first_answer(key)
        entry["position"] = min(float(entry["position"]) + passed, state.logs.end(key.row, state.now_ms))
        state.must_share = True

    def _lacks_remote(self, key: CopyKey) -> bool:
        """True if an empty copy needs remote storage that it cannot reach: the epochs of older records are there."""
        state = self._state
        if key.is_future or state.fleet.has_remote[key.broker]:
            return False
        entry, now_ms = state.copies.entry(key), state.now_ms
        is_empty = entry["position"] <= entry["begin"] + CLOSE
        return bool(is_empty and state.logs.first(key.row, now_ms) < state.logs.start(key.row, now_ms))

    def _join(self, row: int, broker: int) -> None:
        replicas, state = self._replicas, self._state
        if replicas.isr.joining.get((row, broker)) != state.now_ms:
            return
        del replicas.isr.joining[row, broker]
        if not self._may_join(row, broker):
            return
        topic_partition = state.logs.topic_partition(row)
        state.events.append(ReplicaCaughtUp(topic_partition, state.fleet.broker_ids[broker]))
        replicas.isr.schedule_join(row, broker, state.settings.fetch_wait_ms)

    def _may_join(self, row: int, broker: int) -> bool:
        replicas, state, key = self._replicas, self._state, CopyKey(row, broker)
        leader = int(state.logs.table["leader"][row])
        if leader == NOWHERE or not state.fleet.up[leader] or broker in replicas.isr.ineligible:
            return False
        if (row, broker) in replicas.isr.outside:
            return True
        if key not in state.copies:
            return False
        replicas.positions.settle()
        entry = state.copies.entry(key)
        is_there = entry["position"] >= replicas.positions.watermark(row) - CLOSE
        return bool(entry["runs"] and not entry["in_isr"] and is_there)

    def _review(self, key: CopyKey, serial: int) -> None:
        if not self._is_current(key, serial):
            return
        replicas, state = self._replicas, self._state
        replicas.positions.settle()
        entry, limit_ms = state.copies.entry(key), state.settings.lag_time_max_ms
        entry["reviewed"] = False
        if not entry["in_isr"] or int(state.logs.table["leader"][key.row]) == NOWHERE:
            return
        if state.logs.end(key.row, state.now_ms) - float(entry["position"]) > CLOSE:
            if state.now_ms - int(entry["behind_since_ms"]) >= limit_ms:
                self._fall_behind(key, serial)
                return
        elif entry["runs"]:
            entry["behind_since_ms"] = state.now_ms
        elif state.logs.grows(key.row) > 0:
            # It fetches nothing: the next record will put it behind, counted from when it stopped.
            entry["reviewed"] = True
            state.timers.add(state.now_ms + state.logs.record_ms(key.row), ReviewLag(key, serial))
            return
        replicas.isr.watch(key)

    def _fall_behind(self, key: CopyKey, serial: int) -> None:
        state = self._state
        leader = int(state.logs.table["leader"][key.row])
        if state.fleet.up[leader]:
            topic_partition = state.logs.topic_partition(key.row)
            state.events.append(ReplicaFellBehind(topic_partition, state.fleet.broker_ids[key.broker]))
        state.copies.entry(key)["reviewed"] = True
        state.timers.add(state.now_ms + state.settings.lag_time_max_ms // 2, ReviewLag(key, serial))

    def _delete(self, task: DeleteCopy) -> None:
        replicas, state, fleet = self._replicas, self._state, self._state.fleet
        replicas.log_dirs.to_be_deleted[task.log_dir] -= task.size
        if fleet.full[task.log_dir]:
            state.must_share = True
        state.events.append(CopyDeleted(task.topic_partition, task.broker, fleet.paths[task.log_dir]))
