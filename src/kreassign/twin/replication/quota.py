"""What brokers make of a throttle (KIP-73): how much of a rate is reached, and what passes before it is felt.

A broker adds up what it counted in the samples of the last eleven seconds, divides by the time since the oldest one
began, and refuses while the result is above the rate. Whoever was refused asks again after a pause. The first answer
of the oldest sample stands for the pause before it, which the divisor leaves out: so a pause's worth in every window
is never used.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kreassign.twin.replication.copies import Copies, CopyKey
from kreassign.twin.replication.hardware import Fleet
from kreassign.twin.replication.in_sync_traffic import InSyncTraffic
from kreassign.twin.replication.partition_logs import NOWHERE, PartitionLogs
from kreassign.twin.replication.settings import ReplicationSettings

_FIRST_SAMPLE_MS = 1000
"""The shortest time that a quota divides by: one sample (`replication.quota.window.size.seconds`)."""


def whole_batches(settings: ReplicationSettings) -> float:
    """The part of what a fetch sends, and counts, that the follower keeps: it drops the batch cut off at the end."""
    sent, batch = settings.fetch_bytes, settings.batch_bytes
    if batch > sent:
        return 1.0  # A batch that is bigger than a fetch is sent all the same, alone.
    return batch / sent if batch > sent / 2 else 1.0 - batch / (2 * sent)


def leader_share(settings: ReplicationSettings, in_sync_traffic: InSyncTraffic) -> NDArray[np.float64]:
    """By broker, the part of its rate that followers outside the ISR really get from it.

    A fetch that is refused waits at the leader, at most `fetch_wait_ms` and until a batch of records comes in.
    """
    return _share(settings, _until_next_batch_ms(settings, in_sync_traffic.net_out))


def follower_share(settings: ReplicationSettings, in_sync_traffic: InSyncTraffic) -> NDArray[np.float64]:
    """By broker, the part of its rate with which it really fetches what is throttled.

    One that refuses itself pauses for `fetch_backoff_ms`, but asks for its other partitions meanwhile, if it has any.
    """
    pause_ms = _until_next_batch_ms(settings, in_sync_traffic.sent.sum(axis=0))
    return _share(settings, np.where(in_sync_traffic.followed.any(axis=0), pause_ms, settings.fetch_backoff_ms))


def directory_share(settings: ReplicationSettings) -> float:
    """The part of the rate of moves between directories that is really reached."""
    return float(_share(settings, np.array([settings.fetch_backoff_ms]))[0])


def trickle(
    settings: ReplicationSettings,
    brokers: NDArray[np.int32],
    others: NDArray[np.int32],
    broker_count: int,
    *,
    at_once: bool,
) -> NDArray[np.float64]:
    """What passes the throttles of brokers however low they are, bytes per second by broker.

    When a window has passed without traffic a quota is like new, and whole answers pass, even where the rate is 0.
    `brokers` and `others` are the ends of each throttled copy, the former those whose throttle it is. Receivers
    ask all fetchers `at_once`, before they count any answer; senders have counted one answer before the next.
    """
    fetchers, copies = np.unique(np.stack([brokers, others]), axis=1, return_counts=True)
    answers = np.minimum(copies * settings.fetch_bytes, settings.response_bytes) * whole_batches(settings)
    found = np.zeros(broker_count)
    (np.add if at_once else np.maximum).at(found, fetchers[0], answers)
    return found * (1000 / settings.quota_window_ms)


def _until_next_batch_ms(settings: ReplicationSettings, bytes_per_s: NDArray[np.float64]) -> NDArray[np.float64]:
    comes_ms = np.full(bytes_per_s.shape, np.inf)
    np.divide(1000.0 * settings.batch_bytes, bytes_per_s, out=comes_ms, where=bytes_per_s > 0)
    return np.asarray(np.minimum(comes_ms, settings.fetch_wait_ms), np.float64)


def _share(settings: ReplicationSettings, pause_ms: NDArray[np.float64]) -> NDArray[np.float64]:
    window_ms = settings.quota_window_ms
    return np.asarray(whole_batches(settings) * window_ms / (window_ms + pause_ms), np.float64)


class InitialBursts:
    """What passes before a throttle is felt: a quota that has counted nothing yet lets whole answers through."""

    def __init__(self, settings: ReplicationSettings) -> None:
        self._settings = settings
        self._sending = _Quotas(settings)
        self._receiving = _Quotas(settings)
        self._answers: dict[tuple[int, int], float] = {}
        self._answered_ms = 0

    def watch(self, logs: PartitionLogs, copies: Copies, brokers: int, now_ms: int) -> None:
        """Take note of the throttles through which copies run from now on."""
        live = copies.live
        running = live["runs"] & ~live["is_future"]
        leaders = logs.table["leader"][live["row"]][running & live["leader_throttled"] & ~live["in_isr"]]
        self._sending.watch(leaders, brokers, now_ms)
        self._receiving.watch(live["broker"][running & live["follower_throttled"]], brokers, now_ms)

    def first_answer(self, fleet: Fleet, logs: PartitionLogs, copies: Copies, key: CopyKey, now_ms: int) -> float:
        """The bytes that a copy which begins to fetch gets at once, unless there are fewer.

        Every fetcher, which is a follower and one of its leaders, gets one answer of up to `response_bytes`, with at
        most `fetch_bytes` of each partition. A leader answers until it has counted more than it may in a second; a
        follower counts only what has come, after it has asked all leaders.
        """
        entry, leader = copies.entry(key), int(logs.table["leader"][key.row])
        if key.is_future or leader == NOWHERE:
            return 0.0
        sends = bool(entry["leader_throttled"] and not entry["in_isr"]) and np.isfinite(fleet.leader_limit[leader])
        takes = bool(entry["follower_throttled"]) and np.isfinite(fleet.follower_limit[key.broker])
        if not (sends or takes):
            return 0.0
        if self._answered_ms != now_ms:
            self._answers, self._answered_ms = {}, now_ms
        fetcher = leader, key.broker
        if fetcher not in self._answers:
            answer = self._answer(logs, copies, *fetcher)
            is_open = (not sends or self._sending.admits(leader, fleet.leader_limit[leader], now_ms)) and (
                not takes or self._receiving.admits(key.broker, np.inf, now_ms)
            )
            self._answers[fetcher] = answer if is_open else 0.0
            if is_open and sends:
                self._sending.count(leader, answer, now_ms)
            if is_open and takes:
                self._receiving.count(key.broker, answer, now_ms)
        sent = min(self._answers[fetcher], self._settings.fetch_bytes)
        self._answers[fetcher] -= sent
        return sent * whole_batches(self._settings)

    def _answer(self, logs: PartitionLogs, copies: Copies, leader: int, follower: int) -> float:
        live = copies.live
        request = (live["broker"] == follower) & ~live["is_future"] & (logs.table["leader"][live["row"]] == leader)
        return float(min(int(np.count_nonzero(request)) * self._settings.fetch_bytes, self._settings.response_bytes))


class _Quotas:
    """The quotas of all brokers in one direction: when each counted last, and what it counted when it opened."""

    def __init__(self, settings: ReplicationSettings) -> None:
        self._settings = settings
        self._counts: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._last_ms = np.zeros(0)
        self._opened_ms = np.zeros(0)
        self._passed = np.zeros(0)

    def watch(self, brokers: NDArray[np.int32], count: int, now_ms: int) -> None:
        self._grow(count)
        self._last_ms[self._counts] = now_ms
        self._counts[:] = False
        self._counts[brokers] = True

    def admits(self, broker: int, limit: float, now_ms: int) -> bool:
        """Whether a quota has not counted too much yet; one that has counted nothing for a window is like new."""
        self._grow(broker + 1)
        if now_ms - self._opened_ms[broker] < _FIRST_SAMPLE_MS:
            return bool(self._passed[broker] <= limit * _FIRST_SAMPLE_MS / 1000)
        idle_ms = 0 if self._counts[broker] else now_ms - self._last_ms[broker]
        return bool(idle_ms >= self._settings.quota_window_ms)

    def count(self, broker: int, passed: float, now_ms: int) -> None:
        if now_ms - self._opened_ms[broker] >= _FIRST_SAMPLE_MS:
            self._opened_ms[broker], self._passed[broker] = now_ms, 0.0
        self._passed[broker] += passed

    def _grow(self, count: int) -> None:
        more = count - len(self._counts)
        if more > 0:
            self._counts = np.append(self._counts, np.zeros(more, np.bool_))
            self._last_ms, self._opened_ms = (
                np.append(times, np.full(more, -np.inf)) for times in (self._last_ms, self._opened_ms)
            )
            self._passed = np.append(self._passed, np.zeros(more))
