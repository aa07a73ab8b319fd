"""Waits for the journal of a run that other processes have locked: told, and bounded where nobody can stop them."""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.clock import Clock
from kreassign.errors import JournalLocked
from kreassign.executor.journal import OnLock, bounded_wait
from kreassign.operations.connect import Warn

TOLD_AFTER_S = 5.0
"""A lock of another command of kreassign is over by then, and not told."""

RESUME_PATIENCE_S = 60.0
"""How long a resume waits for a journal that others write: nobody can stop it before it executes the run."""


@dataclass(slots=True)
class LockWatch:
    """Says once that another process has locked the journal of `who`, and once that it has not any more.

    `meanwhile` is what does not happen until then.
    """

    who: str
    meanwhile: str
    warn: Warn
    clock: Clock
    _since_s: float | None = None
    _is_told: bool = False

    def follow(self, lock: JournalLocked | None) -> None:
        """Take in that the journal is locked, or (None) that it is not any more."""
        now_s = self.clock.monotonic_s()
        if lock is None:
            if self._is_told and self._since_s is not None:
                self.warn(f"the journal of {self.who} can be written again, after {now_s - self._since_s:.0f} s")
            self._since_s, self._is_told = None, False
            return
        self._since_s = now_s if self._since_s is None else self._since_s
        if not self._is_told and now_s - self._since_s >= TOLD_AFTER_S:
            self._is_told = True
            self.warn(f"{self.who} holds: {lock}. Until then it {self.meanwhile}")


def watch_of_run(run_id: str, warn: Warn, clock: Clock) -> LockWatch:
    """The watch of a run that this process executes."""
    meanwhile = "starts nothing; its moves in flight go on, throttled but not guarded"
    return LockWatch(f"run {run_id}", meanwhile, warn, clock)


def wait_of_resume(run_id: str, warn: Warn, clock: Clock, *, is_watched: bool) -> OnLock:
    """Wait for the journal of a run that is resumed; not if an autopilot, which looks at its cluster, tries again."""
    watch, give_up = watch_of_run(run_id, warn, clock), bounded_wait(0 if is_watched else RESUME_PATIENCE_S, clock)

    def wait(lock: JournalLocked | None) -> None:
        watch.follow(lock)
        give_up(lock)

    return wait
