"""Rates of all copies, in bytes per second.

Each copy runs through several capacities (disks, networks, throttles) and gets its max-min fair share of what the
replicas in sync leave of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kreassign.twin.replication.hardware import InSyncTraffic, ReplicationSettings
from kreassign.twin.replication.partition_logs import NOWHERE
from kreassign.twin.replication.state import CopyKey, ReplicationState

# Throttles as brokers enforce them (KIP-73): the share of a rate that is reached, and the burst before it takes hold.
#
# A broker adds up what it counted in the samples of the last eleven seconds, divides by the time since the oldest one
# began, and refuses while the result is above the rate. A refused follower retries after a pause. The first answer of
# the oldest sample stands for the pause before it, which the divisor leaves out: so a pause's worth in every window is
# never used.

_FIRST_SAMPLE_MS = 1000
"""The shortest time that a quota divides by: one sample (`replication.quota.window.size.seconds`)."""


def whole_batches(settings: ReplicationSettings) -> float:
    """Share of a fetch's sent and counted bytes that the follower keeps: it drops the batch cut off at the end."""
    sent, batch = settings.fetch_bytes, settings.batch_bytes
    if batch > sent:
        return 1.0  # A batch that is bigger than a fetch is sent all the same, alone.
    return batch / sent if batch > sent / 2 else 1.0 - batch / (2 * sent)


def leader_share(settings: ReplicationSettings, in_sync_traffic: InSyncTraffic) -> NDArray[np.float64]:
    """Share of each broker's rate that followers outside the ISR really get from it.

    A fetch that is refused waits at the leader, at most `fetch_wait_ms` and until a batch of records comes in.
    """
    return _share(settings, _until_next_batch_ms(settings, in_sync_traffic.net_out))


def follower_share(settings: ReplicationSettings, in_sync_traffic: InSyncTraffic) -> NDArray[np.float64]:
    """Share of each broker's rate with which it really fetches throttled partitions.

    A follower that refuses itself pauses for `fetch_backoff_ms`, but fetches its other partitions meanwhile, if any.
    """
    pause_ms = _until_next_batch_ms(settings, in_sync_traffic.sent.sum(axis=0))
    return _share(settings, np.where(in_sync_traffic.followed.any(axis=0), pause_ms, settings.fetch_backoff_ms))


def directory_share(settings: ReplicationSettings) -> float:
    """Share of the rate of moves between directories that is really reached."""
    return float(_share(settings, np.array([settings.fetch_backoff_ms]))[0])


def trickle(
    settings: ReplicationSettings,
    brokers: NDArray[np.int32],
    others: NDArray[np.int32],
    broker_count: int,
    *,
    at_once: bool,
) -> NDArray[np.float64]:
    """Bytes per second, by broker, that pass its throttle however low it is.

    After a window without traffic a quota is like new, and whole answers pass, even if the rate is 0. `brokers` are the
    throttled ends of each copy, `others` the other ends. Receivers ask all fetchers `at_once`, before they count any
    answer; senders have counted one answer before the next.
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
    """Bursts before a throttle takes hold: a quota that has counted nothing yet lets whole answers through."""

    def __init__(self, state: ReplicationState) -> None:
        self._state = state
        self._sending, self._receiving = _Quotas(state), _Quotas(state)
        self._answers: dict[tuple[int, int], float] = {}
        self._answered_ms = 0

    def watch(self) -> None:
        """Track the throttles that apply to copies from now on."""
        live = self._state.copies.live
        running = live["runs"] & ~live["is_future"]
        leaders = self._state.logs.table["leader"][live["row"]]
        self._sending.watch(leaders[running & live["leader_throttled"] & ~live["in_isr"]])
        self._receiving.watch(live["broker"][running & live["follower_throttled"]])

    def first_answer(self, key: CopyKey) -> float:
        """Bytes that a copy gets at once when it begins to fetch, if the log has that many.

        Every fetcher, a follower with one of its leaders, gets one answer of up to `response_bytes`, with at most
        `fetch_bytes` of each partition. A leader answers until it has counted more than its limit of a second; a
        follower counts only what has arrived, after it has asked all leaders.
        """
        state, fleet = self._state, self._state.fleet
        entry, leader = state.copies.entry(key), int(state.logs.table["leader"][key.row])
        if key.is_future or leader == NOWHERE:
            return 0.0
        sends = bool(entry["leader_throttled"] and not entry["in_isr"]) and np.isfinite(fleet.leader_limit[leader])
        takes = bool(entry["follower_throttled"]) and np.isfinite(fleet.follower_limit[key.broker])
        if not (sends or takes):
            return 0.0
        if self._answered_ms != state.now_ms:
            self._answers, self._answered_ms = {}, state.now_ms
        fetcher = leader, key.broker
        if fetcher not in self._answers:
            answer = self._answer(*fetcher)
            is_open = (not sends or self._sending.admits(leader, fleet.leader_limit[leader])) and (
                not takes or self._receiving.admits(key.broker, np.inf)
            )
            self._answers[fetcher] = answer if is_open else 0.0
            if is_open and sends:
                self._sending.count(leader, answer)
            if is_open and takes:
                self._receiving.count(key.broker, answer)
        sent = min(self._answers[fetcher], state.settings.fetch_bytes)
        self._answers[fetcher] -= sent
        return sent * whole_batches(state.settings)

    def _answer(self, leader: int, follower: int) -> float:
        live, settings = self._state.copies.live, self._state.settings
        from_leader = self._state.logs.table["leader"][live["row"]] == leader
        request = (live["broker"] == follower) & ~live["is_future"] & from_leader
        return float(min(int(np.count_nonzero(request)) * settings.fetch_bytes, settings.response_bytes))


class _Quotas:
    """Quotas of all brokers in one direction: when each counted last, and its count when it opened."""

    def __init__(self, state: ReplicationState) -> None:
        brokers = len(state.fleet.broker_ids)
        self._state = state
        self._counts: NDArray[np.bool_] = np.zeros(brokers, np.bool_)
        self._last_ms, self._opened_ms = np.full(brokers, -np.inf), np.full(brokers, -np.inf)
        self._passed = np.zeros(brokers)

    def watch(self, brokers: NDArray[np.int32]) -> None:
        self._last_ms[self._counts] = self._state.now_ms
        self._counts[:] = False
        self._counts[brokers] = True

    def admits(self, broker: int, limit: float) -> bool:
        """True if a quota has not counted too much yet; after a window without traffic it is like new."""
        if self._state.now_ms - self._opened_ms[broker] < _FIRST_SAMPLE_MS:
            return bool(self._passed[broker] <= limit * _FIRST_SAMPLE_MS / 1000)
        idle_ms = 0 if self._counts[broker] else self._state.now_ms - self._last_ms[broker]
        return bool(idle_ms >= self._state.settings.quota_window_ms)

    def count(self, broker: int, passed: float) -> None:
        if self._state.now_ms - self._opened_ms[broker] >= _FIRST_SAMPLE_MS:
            self._opened_ms[broker], self._passed[broker] = self._state.now_ms, 0.0
        self._passed[broker] += passed


# Max-min fair sharing of many capacities among many flows, by progressive filling.
#
# All rates rise together until a capacity is used up; its flows stop there, the others go on rising. The result is the
# only division in which no flow can get more without taking from a flow with the same rate or less.
#
# Rather than one capacity at a time, each round settles every capacity that is the scarcest of all of its flows.
# Filling one by one would settle them later at the same rate, since settling others first never lowers the share that a
# capacity can offer. Hundreds of steps become a handful of rounds.

# Shares that differ only by rounding are settled together: each would otherwise cost a round of its own.
_TIED = 1.0 + 1e-12


def max_min_rates(
    capacities: NDArray[np.float64], uses: NDArray[np.int64], limits: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """The rate of each flow, in the unit of the capacities.

    `capacities` has shape (capacities,), none negative; infinity never binds. `uses` has shape (flows, most capacities
    of a flow): indices into `capacities`, each row filled up with -1. `limits`, shape (flows,), is the most that a flow
    wants. A flow without any finite capacity or limit has an infinite rate.
    """
    if uses.shape[0] == 0:
        return np.zeros(0)
    wanted = np.full(uses.shape[0], np.inf) if limits is None else limits
    capacities = np.append(capacities, np.inf)
    uses = np.where(uses < 0, capacities.size - 1, uses)
    most = np.minimum(capacities[uses].min(axis=1), wanted)
    return _fill(*_scarce(capacities, uses, most), most)


def _scarce(
    capacities: NDArray[np.float64], uses: NDArray[np.int64], most: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the capacities that their flows could exhaust at their highest rates, and `uses` renumbered to them."""
    scarce = _totals(uses, most, capacities.size) > capacities
    # The last (infinite) capacity replaces all non-binding ones.
    renumbered = np.where(scarce, np.cumsum(scarce) - 1, np.count_nonzero(scarce))[uses]
    binding_columns = scarce[uses].any(axis=0)
    return np.append(capacities[scarce], np.inf), renumbered[:, binding_columns]


def _fill(remaining: NDArray[np.float64], uses: NDArray[np.int64], most: NDArray[np.float64]) -> NDArray[np.float64]:
    rates = np.zeros(uses.shape[0])
    rising = np.arange(uses.shape[0])
    while rising.size:
        counts = np.bincount(uses.ravel(), minlength=remaining.size)
        offered = (remaining / np.maximum(counts, 1))[uses]
        rate = np.minimum(offered.min(axis=1, initial=np.inf), most)
        binding = offered <= rate[:, np.newaxis] * _TIED
        settled = np.bincount(uses.ravel(), weights=binding.ravel(), minlength=remaining.size) == counts
        stops = settled[uses].any(axis=1) | (rate >= most)
        rates[rising[stops]] = rate[stops]
        taken = _totals(uses[stops], np.where(np.isinf(rate[stops]), 0.0, rate[stops]), remaining.size)
        remaining = np.maximum(remaining - taken, 0.0)
        rising, uses, most = rising[~stops], uses[~stops], most[~stops]
    return rates


def _totals(uses: NDArray[np.int64], rates: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    totals = np.bincount(uses.ravel(), weights=np.repeat(rates, uses.shape[1]), minlength=size)
    return totals.astype(np.float64, copy=False)


# The rate of every copy: its capacities, and its fair share of them.

# Bytes: a copy closer than this to the end has arrived. Positions are real numbers of up to 10^13.
CLOSE = 0.5
_NONE = -1


def mark_running(state: ReplicationState) -> None:
    """Set `runs` of every copy: false if it waits, a broker is down, a directory failed or full, or the link cut."""
    live, fleet = state.copies.live, state.fleet
    leader, source = _sources(state, live)
    follower, target = live["broker"], live["log_dir"]
    brokers = (leader >= 0) & fleet.up[leader] & fleet.up[follower] & ~fleet.cut[leader, follower]
    dirs = ~fleet.failed[source] & ~fleet.failed[target] & ~fleet.full[target]
    live["runs"] = live["started"] & brokers & dirs


def share(state: ReplicationState, lags: NDArray[np.float64]) -> None:
    """Set the `rate` of every copy that runs; the rate of the others is 0.

    `lags` are the bytes that each copy still has to fetch; a copy without lag takes only the newly written bytes.
    """
    live = state.copies.live
    live["rate"] = 0.0
    running = np.flatnonzero(live["runs"])
    if running.size:
        chosen = live[running]
        demands = np.where(lags[running] <= CLOSE, state.logs.growths(chosen["row"]), np.inf)
        live["rate"][running] = max_min_rates(_left(state, *_trickle(state, chosen)), _uses(state, chosen), demands)


def _sources(state: ReplicationState, live: NDArray[np.void]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Broker and log directory from which each copy reads; -1 if there is no leader."""
    future, table = live["is_future"], state.logs.table
    leader = np.where(future, live["broker"], table["leader"][live["row"]])
    return leader, np.where(future, live["source_dir"], table["leader_dir"][live["row"]])


def _uses(state: ReplicationState, live: NDArray[np.void]) -> NDArray[np.int64]:
    """The capacities of each copy, as indices into the result of `_left`."""
    brokers, log_dirs = len(state.fleet.broker_ids), len(state.fleet.paths)
    follower, future = live["broker"], live["is_future"]
    leader, source = _sources(state, live)
    counted_out = live["leader_throttled"] & ~live["in_isr"]
    columns = (
        np.where(future, 4 * brokers + follower, leader),
        np.where(future, _NONE, brokers + follower),
        np.where(counted_out & ~future, 2 * brokers + leader, _NONE),
        np.where(live["follower_throttled"] & ~future, 3 * brokers + follower, _NONE),
        5 * brokers + source,
        5 * brokers + log_dirs + live["log_dir"],
    )
    return np.stack(columns, axis=1).astype(np.int64)


def _trickle(state: ReplicationState, live: NDArray[np.void]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bytes per second that flow however low a throttle is, as sender and as receiver, by broker."""
    leader, _ = _sources(state, live)
    followers = ~live["is_future"]
    brokers, follower = len(state.fleet.broker_ids), live["broker"]
    taken = followers & live["follower_throttled"]
    # An unthrottled follower keeps asking, and each empty answer counts for a little: more than nothing.
    holds_back = taken & np.isfinite(state.fleet.follower_limit[follower])
    may_send = holds_back | (state.fleet.leader_limit[leader] > 0)
    sent = followers & live["leader_throttled"] & ~live["in_isr"] & may_send
    return (
        trickle(state.settings, leader[sent], follower[sent], brokers, at_once=False),
        trickle(state.settings, follower[taken], leader[taken], brokers, at_once=True),
    )


def _left(
    state: ReplicationState, least_sent: NDArray[np.float64], least_taken: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Bytes per second of every capacity that replicas in sync leave over."""
    fleet, used, settings = state.fleet, state.in_sync_traffic, state.settings
    sent = fleet.leader_limit * leader_share(settings, used) - used.leader_counted
    taken = fleet.follower_limit * follower_share(settings, used) - used.follower_counted
    left = np.concatenate(
        [
            fleet.net_out - used.net_out,
            fleet.net_in - used.net_in,
            np.maximum(sent, least_sent),
            np.maximum(taken, least_taken),
            fleet.dir_limit * directory_share(settings),
            fleet.read,
            fleet.write - used.write,
        ]
    )
    return np.asarray(np.maximum(left, 0.0), np.float64)
