"""The constants of replication: Kafka's own settings, and what was measured on real brokers."""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.errors import InputError


@dataclass(frozen=True, slots=True)
class ReplicationSettings:
    """How replication behaves apart from hardware; times in milliseconds.

    `quota_window_ms` is `replication.quota.window.num` × `replication.quota.window.size.seconds`: so far back brokers
    look when they keep a throttle. `fetch_bytes` is `replica.fetch.max.bytes`, `response_bytes` is
    `replica.fetch.response.max.bytes`, `fetch_backoff_ms` is `replica.fetch.backoff.ms`. `batch_bytes` is the mean
    size of the batches in the logs, as long as producers' default `batch.size`. What follows from these for throttles
    is computed in `quota.py`; `python -m bench twin-calibration` holds it against real brokers.

    `fetch_wait_ms` is `replica.fetch.wait.max.ms`: a follower that waits for records of a leader asks for a new
    partition only when that wait is over. `fetch_start_ms` lies between the controller's decision and a follower's
    first fetch, `join_ms` between its last fetch and the leader's request to add it to the ISR: together the 0.1 s in
    which the quickest moves of an empty partition end. A request that is not granted is repeated every `fetch_wait_ms`.

    `lag_time_max_ms` is `replica.lag.time.max.ms`, looked at every half of it. `deletion_delay_ms` is
    `file.delete.delay.ms`: so long the bytes of a removed copy still take room. `full_slack_bytes` must become free
    on a full log directory before its writes go on.
    """

    quota_window_ms: int = 11_000
    fetch_bytes: int = 1_048_576
    response_bytes: int = 10_485_760
    fetch_backoff_ms: int = 1000
    batch_bytes: int = 16_384
    fetch_wait_ms: int = 500
    fetch_start_ms: int = 80
    join_ms: int = 20
    lag_time_max_ms: int = 30_000
    deletion_delay_ms: int = 60_000
    full_slack_bytes: int = 1_000_000

    def __post_init__(self) -> None:
        waits = (self.fetch_start_ms, self.join_ms, self.fetch_backoff_ms, self.deletion_delay_ms)
        if min(waits) < 0 or self.fetch_wait_ms <= 0 or self.lag_time_max_ms <= 1 or self.quota_window_ms <= 0:
            raise InputError(f"replication cannot wait for less than no time: {self}")
        if min(self.fetch_bytes, self.response_bytes, self.batch_bytes, self.full_slack_bytes) < 0:
            raise InputError(f"replication cannot handle fewer than no bytes: {self}")
