"""Who is in the ISR, who asks to join it, and who may have to leave it because it lags."""

from __future__ import annotations

from kreassign.twin.replication.copies import CopyKey
from kreassign.twin.replication.copy_rates import CLOSE
from kreassign.twin.replication.positions import CopyPositions
from kreassign.twin.replication.state import ReplicationState
from kreassign.twin.replication.timers import Join, ReviewLag


class IsrMembership:
    """Members of ISRs as leaders see them.

    `outside` has the replicas in sync that are not in the ISR, `joining` when a `Join` is due for whom, `ineligible`
    the brokers that may not join because they are fenced or shutting down.
    """

    def __init__(self, state: ReplicationState, positions: CopyPositions) -> None:
        self.outside: set[tuple[int, int]] = set()
        self.joining: dict[tuple[int, int], int] = {}
        self.ineligible: set[int] = set()
        self._state = state
        self._positions = positions

    def set(self, row: int, isr: frozenset[int]) -> None:
        """Take over the ISR that the controller decided upon. The replicas must have been placed."""
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
        """Let the leader soon ask the controller to add a follower that has caught up."""
        if (row, broker) not in self.joining:
            self.schedule_join(row, broker, self._state.settings.join_ms)

    def schedule_join(self, row: int, broker: int, wait_ms: int) -> None:
        """Let the leader ask for a follower after so long, and not before."""
        due_ms = self.joining[row, broker] = self._state.now_ms + wait_ms
        self._state.timers.add(due_ms, Join(row, broker))

    def set_eligible(self, broker: int, *, is_eligible: bool) -> None:
        """Let a broker join ISRs, or not because it is fenced or shutting down."""
        if not is_eligible:
            self.ineligible.add(broker)
            return
        self.ineligible.discard(broker)
        for row, other in sorted(self.outside):
            if other == broker:
                self.request_join(row, other)

    def watch(self, key: CopyKey) -> None:
        """Schedule a check of a member of the ISR that may be behind, for when the allowed lag is over."""
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
