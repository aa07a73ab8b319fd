"""The constants of replication: Kafka's own settings, and what was measured on real brokers."""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.errors import InputError


@dataclass(frozen=True, slots=True)
class ReplicationSettings:
    """How replication behaves apart from hardware; times in milliseconds.

    `throttle_efficiency` is the part of a configured rate that is really reached: brokers look back over eleven
    seconds in whole fetch responses and pause when the mean is above the rate. Measured on Kafka 4.3.1, one move, 40
    MB at 1 MB/s: 0.90 to 0.95, 0.93 over the whole; 32 s at 2 MB/s: 0.85. Far below one batch (0.1 MB/s with batches
    of 0.9 MB) real brokers send bursts and exceed the rate by up to a third; the twin does not.

    `fetch_wait_ms` is `replica.fetch.wait.max.ms`: a follower that waits for news from a leader asks for a new
    partition only when that wait is over. `fetch_start_ms` lies between the controller's decision and a follower's
    first fetch, `join_ms` between its last fetch and the leader's wish to add it to the ISR: together the 0.1 s in
    which the quickest moves of an empty partition end. A wish that is not granted is repeated every `fetch_wait_ms`.

    `lag_time_max_ms` is `replica.lag.time.max.ms`, looked at every half of it. `deletion_delay_ms` is
    `file.delete.delay.ms`: so long the bytes of a removed copy still take room. `full_slack_bytes` must become free
    on a full log directory before its writes go on.
    """

    throttle_efficiency: float = 0.93
    fetch_wait_ms: int = 500
    fetch_start_ms: int = 80
    join_ms: int = 20
    lag_time_max_ms: int = 30_000
    deletion_delay_ms: int = 60_000
    full_slack_bytes: int = 1_000_000

    def __post_init__(self) -> None:
        if not 0 < self.throttle_efficiency <= 1:
            raise InputError(f"throttle_efficiency is {self.throttle_efficiency}; it must be above 0, at most 1")
        waits = (self.fetch_start_ms, self.join_ms, self.deletion_delay_ms, self.full_slack_bytes)
        if min(waits) < 0 or self.fetch_wait_ms <= 0 or self.lag_time_max_ms <= 1:
            raise InputError(f"replication cannot wait for less than no time: {self}")
