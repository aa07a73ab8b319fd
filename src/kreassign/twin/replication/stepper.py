"""What time brings: copies arrive, directories fill up, tasks fall due; and when the next of these is.

Rates are computed anew only when something that bears on them has changed, once for all that changed within a
millisecond. Between two such moments everything is a straight line.
"""

from __future__ import annotations

import math
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from kreassign.twin.replication.copies import CopyKey
from kreassign.twin.replication.copy_rates import CLOSE, mark_running, share
from kreassign.twin.replication.directory_moves import DirectoryMoves
from kreassign.twin.replication.events import CopyDeleted, LogDirFull, ReplicaCaughtUp, ReplicaFellBehind
from kreassign.twin.replication.partition_logs import NOWHERE
from kreassign.twin.replication.quota import InitialBursts
from kreassign.twin.replication.replicas import ROUNDING, Replicas
from kreassign.twin.replication.timers import DeleteCopy, Join, ReachRetention, ReviewLag, StartCopy, Task


class Progress:
    """Moves replicas on in time."""

    def __init__(self, replicas: Replicas, moves: DirectoryMoves) -> None:
        self._replicas = replicas
        self._moves = moves
        self._initial_bursts = InitialBursts(replicas.settings)
        self._arrival_ms: int | None = None

    @property
    def next_ms(self) -> int | None:
        """When something happens next; now, if something has happened that was not told yet."""
        if self._replicas.events:
            return self._replicas.now_ms
        self.resolve()
        if self._replicas.events:
            return self._replicas.now_ms
        times = [time for time in (self._arrival_ms, self._replicas.timers.next_ms) if time is not None]
        return min(times) if times else None

    def move_on(self, now_ms: int) -> None:
        """Let the time pass, in which nothing may happen before `now_ms`, and do what is due then."""
        replicas = self._replicas
        replicas.now_ms = now_ms
        if self._arrival_ms is not None and self._arrival_ms <= now_ms:
            replicas.must_share = True
        while (task := replicas.timers.take(now_ms)) is not None:
            self._do(task)
        self.resolve()

    # What follows at once from how things are

    def resolve(self) -> None:
        """Compute all rates for this moment and do what they bring about at once, until nothing more follows."""
        replicas = self._replicas
        while replicas.must_share:
            replicas.must_share = False
            replicas.settle()
            self._shed()
            mark_running(replicas.fleet, replicas.logs, replicas.copies)
            replicas.apply_log_start(replicas.copies.live["runs"])
            lags = replicas.lags()
            # Rates are the dear part; they wait until what has arrived is taken in and what is full is closed.
            if self._arrive(lags) or self._judge_fullness():
                replicas.must_share = True
                continue
            share(replicas.fleet, replicas.in_sync_traffic, replicas.logs, replicas.copies, lags, replicas.settings)
            self._initial_bursts.watch(replicas.logs, replicas.copies, len(replicas.fleet.broker_ids), replicas.now_ms)
            replicas.copies.live["behind_since_ms"][replicas.copies.live["runs"] & (lags <= CLOSE)] = replicas.now_ms
            self._arrival_ms = self._next_arrival_ms(lags)

    def _arrive(self, lags: NDArray[np.float64]) -> bool:
        """Let in who has caught up; whether that changed anything."""
        replicas = self._replicas
        arrived = np.asarray(replicas.copies.live["runs"] & (lags <= CLOSE))
        taken_in = []
        if arrived.any():
            fitting = replicas.fitting(arrived)
            taken_in = self._keys(arrived & fitting)
            for key in self._keys(arrived & ~fitting):
                self._ask_for(key)
        for key in taken_in:
            self._take_in(key)
        for key in self._behind_a_late_isr():
            if replicas.copies.entry(key)["position"] >= replicas.watermark(key.row) - CLOSE:
                replicas.request_join(key.row, key.broker)
        return bool(taken_in)

    def _keys(self, chosen: NDArray[np.bool_]) -> list[CopyKey]:
        return sorted(map(self._replicas.copies.key, np.flatnonzero(chosen).tolist()))

    def _take_in(self, key: CopyKey) -> None:
        if key.is_future:
            self._moves.finish(key)
        else:
            self._ask_for(key)
            self._replicas.mark_in_sync(key)

    def _ask_for(self, key: CopyKey) -> None:
        if not self._replicas.copies.entry(key)["in_isr"]:
            self._replicas.request_join(key.row, key.broker)

    def _behind_a_late_isr(self) -> list[CopyKey]:
        """Running copies outside an ISR that has members behind: they need to reach only the high watermark."""
        live = self._replicas.copies.live
        late = live["in_isr"] & ~live["is_future"]
        if not late.any():
            return []
        candidates = live["runs"] & ~live["in_isr"] & ~live["is_future"] & np.isin(live["row"], live["row"][late])
        return self._keys(candidates)

    def _shed(self) -> None:
        """Where replicas in sync use more than there is, their followers have to share like copies that are behind."""
        replicas, used, fleet = self._replicas, self._replicas.in_sync_traffic, self._replicas.fleet
        crowded_in = used.net_in > fleet.net_in * ROUNDING
        crowded_out = used.net_out > fleet.net_out * ROUNDING
        crowded_dirs = used.write > fleet.write * ROUNDING
        if not (crowded_in.any() or crowded_out.any() or crowded_dirs.any()):
            return
        dirs, owners = replicas.logs.dirs, fleet.owner[replicas.logs.dirs]
        leaders = replicas.logs.table["leader"][:, np.newaxis]
        crowded = np.append(crowded_dirs, np.False_)[dirs] | np.append(crowded_in, np.False_)[owners]
        crowded |= np.append(crowded_out, np.False_)[leaders]
        # One that gets nothing relieves nobody, and would be taken in again at once.
        grows = replicas.logs.table["flows"] & (replicas.logs.table["write_rate"] > 0)
        concerned = crowded & (dirs != NOWHERE) & (owners != leaders) & grows[:, np.newaxis]
        for row, place in np.argwhere(concerned).tolist():
            log_dir = int(dirs[row, place])
            key = CopyKey(row, fleet.owner_of(log_dir))
            if key not in replicas.copies:
                with replicas.changing(row):
                    replicas.mark_behind(row, key.broker, log_dir)

    def _judge_fullness(self) -> bool:
        """Close directories that are full and open those that are no longer; whether there was any."""
        replicas, fleet = self._replicas, self._replicas.fleet
        used = replicas.used_bytes()
        filled = ~fleet.full & ~fleet.failed & (used >= fleet.capacity - CLOSE)
        relieved = fleet.full & (used <= fleet.capacity - replicas.settings.full_slack_bytes)
        judged = np.flatnonzero(filled | relieved).tolist()
        for log_dir in judged:
            fleet.full[log_dir] = not fleet.full[log_dir]
            replicas.reconsider_dir(log_dir)
            if fleet.full[log_dir]:
                broker = fleet.broker_ids[fleet.owner_of(log_dir)]
                replicas.events.append(LogDirFull(broker, fleet.paths[log_dir]))
        return bool(judged)

    # When the lines cross next

    def _next_arrival_ms(self, lags: NDArray[np.float64]) -> int | None:
        soonest = min(self._next_catch_up_s(lags), self._next_watermark_s(), self._next_full_s())
        return None if math.isinf(soonest) else self._replicas.now_ms + max(1, math.ceil(soonest * 1000))

    def _next_catch_up_s(self, lags: NDArray[np.float64]) -> float:
        replicas = self._replicas
        closing = replicas.copies.live["rate"] - replicas.target_growths()
        nearing = (lags > CLOSE) & (closing > 0)
        return float(np.min(lags[nearing] / closing[nearing], initial=math.inf))

    def _next_watermark_s(self) -> float:
        replicas = self._replicas
        soonest = math.inf
        for key in self._behind_a_late_isr():
            copy = replicas.copies.entry(key)
            members = [replicas.copies.entry(other) for other in replicas.copies_of(key.row)]
            late = [member for member in members if member["in_isr"]]
            last = min(late, key=lambda member: float(member["position"]))
            lag, closing = float(last["position"] - copy["position"]), float(copy["rate"] - last["rate"])
            if lag > CLOSE and closing > 0:
                soonest = min(soonest, lag / closing)
        return soonest

    def _next_full_s(self) -> float:
        """Never too late; a log that loses its start makes it too early, and then it is asked again."""
        replicas, fleet = self._replicas, self._replicas.fleet
        live = replicas.copies.live
        growth = replicas.in_sync_traffic.growth + np.bincount(live["log_dir"], live["rate"], len(fleet.paths))
        growing = (growth > 0) & ~fleet.full & ~fleet.failed
        room = np.maximum(fleet.capacity - replicas.used_bytes(), 0.0)
        return float(np.min(room[growing] / growth[growing], initial=math.inf))

    # What was to be done at a set time

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
                if self._replicas.logs.is_at_retention(row, self._replicas.now_ms):
                    with self._replicas.changing(row):
                        pass
            case _:
                assert_never(task)

    def _is_current(self, key: CopyKey, serial: int) -> bool:
        return key in self._replicas.copies and int(self._replicas.copies.entry(key)["serial"]) == serial

    def _start(self, key: CopyKey, serial: int) -> None:
        if not self._is_current(key, serial):
            return
        replicas = self._replicas
        replicas.settle()
        entry = replicas.copies.entry(key)
        entry["started"] = True
        passed = self._initial_bursts.first_answer(replicas.fleet, replicas.logs, replicas.copies, key, replicas.now_ms)
        entry["position"] = min(float(entry["position"]) + passed, replicas.logs.end(key.row, replicas.now_ms))
        replicas.must_share = True

    def _join(self, row: int, broker: int) -> None:
        replicas = self._replicas
        if replicas.joining.get((row, broker)) != replicas.now_ms:
            return
        del replicas.joining[row, broker]
        if not self._may_join(row, broker):
            return
        topic_partition = replicas.logs.topic_partition(row)
        replicas.events.append(ReplicaCaughtUp(topic_partition, replicas.fleet.broker_ids[broker]))
        replicas.schedule_join(row, broker, replicas.settings.fetch_wait_ms)

    def _may_join(self, row: int, broker: int) -> bool:
        replicas, key = self._replicas, CopyKey(row, broker)
        leader = int(replicas.logs.table["leader"][row])
        if leader == NOWHERE or not replicas.fleet.up[leader] or broker in replicas.ineligible:
            return False
        if (row, broker) in replicas.outside:
            return True
        if key not in replicas.copies:
            return False
        replicas.settle()
        entry = replicas.copies.entry(key)
        is_there = entry["position"] >= replicas.watermark(row) - CLOSE
        return bool(entry["runs"] and not entry["in_isr"] and is_there)

    def _review(self, key: CopyKey, serial: int) -> None:
        if not self._is_current(key, serial):
            return
        replicas = self._replicas
        replicas.settle()
        entry, limit_ms = replicas.copies.entry(key), replicas.settings.lag_time_max_ms
        entry["reviewed"] = False
        if not entry["in_isr"] or int(replicas.logs.table["leader"][key.row]) == NOWHERE:
            return
        if replicas.logs.end(key.row, replicas.now_ms) - float(entry["position"]) > CLOSE:
            if replicas.now_ms - int(entry["behind_since_ms"]) >= limit_ms:
                self._fall_behind(key, serial)
                return
        elif entry["runs"]:
            entry["behind_since_ms"] = replicas.now_ms
        elif replicas.logs.grows(key.row) > 0:
            # It fetches nothing: the next record will put it behind, and has done so since it stopped.
            entry["reviewed"] = True
            replicas.timers.add(replicas.now_ms + replicas.logs.record_ms(key.row), ReviewLag(key, serial))
            return
        replicas.watch(key)

    def _fall_behind(self, key: CopyKey, serial: int) -> None:
        replicas = self._replicas
        leader = int(replicas.logs.table["leader"][key.row])
        if replicas.fleet.up[leader]:
            topic_partition = replicas.logs.topic_partition(key.row)
            replicas.events.append(ReplicaFellBehind(topic_partition, replicas.fleet.broker_ids[key.broker]))
        replicas.copies.entry(key)["reviewed"] = True
        replicas.timers.add(replicas.now_ms + replicas.settings.lag_time_max_ms // 2, ReviewLag(key, serial))

    def _delete(self, task: DeleteCopy) -> None:
        replicas, fleet = self._replicas, self._replicas.fleet
        replicas.to_be_deleted[task.log_dir] -= task.size
        if fleet.full[task.log_dir]:
            replicas.must_share = True
        replicas.events.append(CopyDeleted(task.topic_partition, task.broker, fleet.paths[task.log_dir]))
