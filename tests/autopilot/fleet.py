"""A twin with an autopilot, in virtual time: the scenarios run days of looks in seconds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from kreassign.autopilot.events import Name
from kreassign.autopilot.memory import Finding
from kreassign.autopilot.messages import Message
from kreassign.autopilot.policy import Kind, Policy, parse_policy
from kreassign.clock import Clock
from kreassign.operations.autopilot import Autopilot
from kreassign.operations.autopilot_decisions import Decisions
from kreassign.operations.connect import tell_nobody
from kreassign.operations.run import RunContext
from tests.executor.twin_runs import TwinRig

HOUR_S = 3600.0
POLL_S = 20.0
"""A run of a test takes up to an hour, and polls of each second would be most of what it costs."""


class HostClock:
    """The clock of a host, so far ahead of the twin's."""

    def __init__(self, time: Clock) -> None:
        self._time, self.ahead_s = time, 0.0

    def now_ms(self) -> int:
        return self._time.now_ms() + round(self.ahead_s * 1000)

    def monotonic_s(self) -> float:
        return self._time.monotonic_s()

    def sleep(self, seconds: float) -> None:
        self._time.sleep(seconds)


class Fleet:
    """A cluster whose policy lets it repair dead and new brokers by itself, unless a test says otherwise."""

    def __init__(self, state_dir: Path, rig: TwinRig, policy: str) -> None:
        self.rig, self.state_dir = rig, state_dir
        self.policy: Policy = parse_policy(policy, "policy.toml")
        self.messages: list[Message] = []
        self.context = RunContext(state_dir, POLL_S, warn=tell_nobody)

    def opened(
        self, *, is_dry: bool = False, clock: Clock | None = None, reread: Callable[[], Policy] | None = None
    ) -> AbstractContextManager[Autopilot]:
        """An autopilot as a new process would begin it, by the twin's clock or by that of its host."""
        client, time = self.rig.client, clock or self.rig.transport
        return Autopilot(
            Decisions(client, self.policy, self.context, self.messages.append, time, is_dry=is_dry, reread=reread)
        )

    def watch(self, autopilot: Autopilot, seconds: float, every_s: float) -> None:
        """Look for so long, in the twin's time."""
        end_s = self.rig.transport.monotonic_s() + seconds
        while self.rig.transport.monotonic_s() < end_s:
            autopilot.look()
            self.rig.transport.sleep(every_s)

    def holders(self) -> frozenset[int]:
        """Brokers with a replica of topic t."""
        return frozenset(broker for replicas in self.rig.replicas.values() for broker in replicas)


def finding(autopilot: Autopilot, kind: Kind, subject: str) -> Finding | None:
    """A finding as it is remembered."""
    return autopilot.memory.findings.get(Name(kind, subject))
