"""A run as server-sent events: its document again whenever something changed, until no process executes it any more.

However many listen, a run is looked at twice a second, and its document written once: all who listen to the same are
sent the same. Whoever reads slowly is sent what is the latest by then, and what came between is left out for him.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from kreassign.operations.live_runs import LiveRun, RunFollower
from kreassign.web.problems import HttpError

LOOK_EVERY_S = 0.5
SILENT_LOOKS = 30
"""After so many looks without news a comment is sent, so that who has gone is noticed."""

MOST_STREAMS = 250

Content = Callable[[LiveRun], str]
"""What is sent of a run; a function of a module, by which those are known who listen to the same."""


class Look(NamedTuple):
    """What was seen of a run: the first, second, third … time."""

    number: int
    text: str
    is_active: bool


class Followed:
    """A run that somebody listens to.

    Of those who wait for the next look one has the turn: it waits until it is time, and looks. The others then get the
    turn one by one and find that it was done. Turns are given in the order in which they are asked for, so that nobody
    who waits for a look gets the one after it.
    """

    def __init__(self, make: Callable[[], RunFollower], content: Content) -> None:
        self._make, self._content = make, content
        self._follower: RunFollower | None = None
        self._turn = anyio.Lock()
        self._latest = Look(0, "", is_active=True)
        self._due_s = self._old_s = 0.0
        self.listeners = 0

    async def begin(self) -> None:
        """Read the run as far as it is, if nobody did yet. Raises what that raises."""
        if self._follower is None:
            async with self._turn:
                self._follower = self._follower or await run_in_threadpool(self._make)

    async def after(self, number: int) -> Look:
        """The latest look, once it is a later one than that of this number. Raises what reading the run raises.

        A look is given to whoever comes soon after it, not to whoever comes later, when nobody but listeners that read
        nothing was left to look again.
        """
        async with self._turn:
            if self._latest.number <= number or anyio.current_time() >= self._old_s:
                await anyio.sleep_until(self._due_s)
                self._due_s = anyio.current_time() + LOOK_EVERY_S
                self._latest = await run_in_threadpool(self._look)
                self._old_s = anyio.current_time() + LOOK_EVERY_S
            return self._latest

    def _look(self) -> Look:
        assert self._follower is not None, "nobody began to follow"
        live = self._follower.look()
        return Look(self._latest.number + 1, self._content(live), live.is_active)


@dataclass(slots=True)
class Streams:
    """The streams that are open; `count` of them now. Once the server `is_ending`, they end by themselves."""

    count: int = 0
    is_ending: Callable[[], bool] = lambda: False
    _followed: dict[tuple[str, Content], Followed] = field(default_factory=dict)

    async def answer(self, run_id: str, follower: Callable[[str], RunFollower], content: Content) -> StreamingResponse:
        """The answer that streams a run; `follower` makes what follows it. Raises HttpError where too many are open."""
        if self.count >= MOST_STREAMS:
            raise HttpError(503, "too many streams", f"{MOST_STREAMS} streams are open; close others first")
        key = (run_id, content)
        followed = self._followed.setdefault(key, Followed(partial(follower, run_id), content))
        try:
            await followed.begin()
        finally:
            # Whoever begins to listen brings it back; nothing is kept of who does not, or of runs that are not there.
            if not followed.listeners and self._followed.get(key) is followed:
                del self._followed[key]
        return StreamingResponse(self._events(key, followed), media_type="text/event-stream")

    @contextmanager
    def _listening(self, key: tuple[str, Content], made: Followed) -> Iterator[Followed]:
        followed = self._followed.setdefault(key, made)
        self.count += 1
        followed.listeners += 1
        try:
            yield followed
        finally:
            self.count -= 1
            followed.listeners -= 1
            if not followed.listeners:
                del self._followed[key]

    async def _events(self, key: tuple[str, Content], made: Followed) -> AsyncIterator[str]:
        """Ends with the run; whoever goes away before ends it too."""
        with self._listening(key, made) as followed:
            last, number, silent = "", 0, 0
            while True:
                number, now, is_active = await followed.after(number)
                if now != last:
                    last, silent = now, 0
                    yield f"event: run\ndata: {now}\n\n"
                elif (silent := silent + 1) >= SILENT_LOOKS:
                    silent = 0
                    yield ": nothing new\n\n"
                if self.is_ending():
                    return
                if not is_active:
                    yield "event: end\ndata: {}\n\n"
                    return
