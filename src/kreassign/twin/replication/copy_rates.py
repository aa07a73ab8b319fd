"""How fast each copy goes: which capacities it runs through, and its fair share of what replicas in sync leave."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kreassign.twin.replication.copies import Copies
from kreassign.twin.replication.hardware import Fleet
from kreassign.twin.replication.in_sync_traffic import InSyncTraffic
from kreassign.twin.replication.max_min import max_min_rates
from kreassign.twin.replication.partition_logs import PartitionLogs
from kreassign.twin.replication.quota import directory_share, follower_share, leader_share, trickle
from kreassign.twin.replication.settings import ReplicationSettings

# Bytes: closer than this to the end is there. Positions are real numbers of up to 10^13.
CLOSE = 0.5
_NONE = -1


def mark_running(fleet: Fleet, logs: PartitionLogs, copies: Copies) -> None:
    """Set `runs` of every copy: not if it waits, a broker is down, a directory failed or full, or the link cut."""
    live = copies.live
    leader, source = _sources(logs, live)
    follower, target = live["broker"], live["log_dir"]
    brokers = (leader >= 0) & fleet.up[leader] & fleet.up[follower] & ~fleet.cut[leader, follower]
    dirs = ~fleet.failed[source] & ~fleet.failed[target] & ~fleet.full[target]
    live["runs"] = live["started"] & brokers & dirs


def share(
    fleet: Fleet,
    in_sync_traffic: InSyncTraffic,
    logs: PartitionLogs,
    copies: Copies,
    lags: NDArray[np.float64],
    settings: ReplicationSettings,
) -> None:
    """Set the `rate` of every copy; the others stand still.

    `lags` are the bytes that each copy has to go; one that is there takes no more than what is written. `settings`
    say which part of a throttle is really reached.
    """
    live = copies.live
    live["rate"] = 0.0
    running = np.flatnonzero(live["runs"])
    if running.size:
        chosen = live[running]
        demands = np.where(lags[running] <= CLOSE, logs.growths(chosen["row"]), np.inf)
        left = _left(fleet, in_sync_traffic, settings, _trickle(fleet, logs, chosen, settings))
        found = max_min_rates(left, _uses(fleet, logs, chosen), demands)
        live["rate"][running] = found


def _sources(logs: PartitionLogs, live: NDArray[np.void]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Broker and log directory that each copy is read from; -1 where there is no leader."""
    future = live["is_future"]
    leader = np.where(future, live["broker"], logs.table["leader"][live["row"]])
    return leader, np.where(future, live["source_dir"], logs.table["leader_dir"][live["row"]])


def _uses(fleet: Fleet, logs: PartitionLogs, live: NDArray[np.void]) -> NDArray[np.int64]:
    """The capacities of each copy, as indices into what `_left` returns."""
    brokers, log_dirs = len(fleet.broker_ids), len(fleet.paths)
    follower, future = live["broker"], live["is_future"]
    leader, source = _sources(logs, live)
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


def _trickle(
    fleet: Fleet, logs: PartitionLogs, live: NDArray[np.void], settings: ReplicationSettings
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What flows however low a throttle is, as sender and as receiver, by broker."""
    leader, _ = _sources(logs, live)
    followers = ~live["is_future"]
    brokers, follower = len(fleet.broker_ids), live["broker"]
    taken = followers & live["follower_throttled"]
    # Who does not hold back goes on asking, and each empty answer counts for a little: more than nothing.
    holds_back = taken & np.isfinite(fleet.follower_limit[follower])
    sent = followers & live["leader_throttled"] & ~live["in_isr"] & (holds_back | (fleet.leader_limit[leader] > 0))
    return (
        trickle(settings, leader[sent], follower[sent], brokers, at_once=False),
        trickle(settings, follower[taken], leader[taken], brokers, at_once=True),
    )


def _left(
    fleet: Fleet,
    in_sync_traffic: InSyncTraffic,
    settings: ReplicationSettings,
    trickle: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """What the replicas in sync leave of every capacity, bytes per second."""
    sent = fleet.leader_limit * leader_share(settings, in_sync_traffic) - in_sync_traffic.leader_counted
    taken = fleet.follower_limit * follower_share(settings, in_sync_traffic) - in_sync_traffic.follower_counted
    left = np.concatenate(
        [
            fleet.net_out - in_sync_traffic.net_out,
            fleet.net_in - in_sync_traffic.net_in,
            np.maximum(sent, trickle[0]),
            np.maximum(taken, trickle[1]),
            fleet.dir_limit * directory_share(settings),
            fleet.read,
            fleet.write - in_sync_traffic.write,
        ]
    )
    return np.asarray(np.maximum(left, 0.0), np.float64)
