"""Faults of the machine on which a client runs. They befall clients in the twin's own time (`TwinTransport`) only.

A client on a socket has the clock of its own machine, which a twin cannot change.
"""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.twin.cluster import Twin


@dataclass(frozen=True, slots=True)
class StepClock:
    """The wall clock jumps, back with a negative number; time itself goes on as before. Afterwards it jumps back."""

    by_ms: int

    def check(self, twin: Twin) -> None:
        """Every twin can have it."""

    def inject(self, twin: Twin) -> None:
        """Let it jump."""
        twin.client_clock.step(self.by_ms)

    def recover(self, twin: Twin) -> None:
        """Let it jump back."""
        twin.client_clock.step(-self.by_ms)


@dataclass(frozen=True, slots=True)
class Suspend:
    """The client's machine is suspended, as a virtual machine that is moved: the cluster goes on meanwhile.

    Its wall clock is right afterwards; its monotonic clock has not counted the time, as that of Linux does not.
    """

    for_ms: int

    def check(self, twin: Twin) -> None:
        """Every twin can have it."""

    def inject(self, twin: Twin) -> None:
        """Suspend it, as soon as it waits or asks something."""
        twin.client_clock.suspend(self.for_ms)

    def recover(self, twin: Twin) -> None:
        """Nothing to repair: it goes on by itself."""
