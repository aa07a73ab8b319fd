"""A run as server-sent events: its document again whenever something changed, until no process executes it any more."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from kreassign.operations.live_runs import LiveRun, RunFollower
from kreassign.web.problems import HttpError

LOOK_EVERY_S = 0.5
SILENT_LOOKS = 30
"""After so many looks without news a comment is sent, so that who has gone is noticed."""

MOST_STREAMS = 50


@dataclass(slots=True)
class Streams:
    """The streams that are open; `count` of them now. Once the server `is_ending`, they end by themselves."""

    count: int = 0
    is_ending: Callable[[], bool] = lambda: False

    def answer(self, follower: RunFollower, content: Callable[[LiveRun], str]) -> StreamingResponse:
        """The answer that streams a run. Raises HttpError where too many are open."""
        if self.count >= MOST_STREAMS:
            raise HttpError(503, "too many streams", f"{MOST_STREAMS} streams are open; close others first")
        return StreamingResponse(self._events(follower, content), media_type="text/event-stream")

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self.count += 1
        try:
            yield
        finally:
            self.count -= 1

    async def _events(self, follower: RunFollower, content: Callable[[LiveRun], str]) -> AsyncIterator[str]:
        """Ends with the run; whoever goes away before ends it too."""
        with self._counted():
            last, silent = "", 0
            while True:
                live = await run_in_threadpool(follower.look)
                now = content(live)
                if now != last:
                    last, silent = now, 0
                    yield f"event: run\ndata: {now}\n\n"
                elif (silent := silent + 1) >= SILENT_LOOKS:
                    silent = 0
                    yield ": nothing new\n\n"
                if self.is_ending():
                    return
                if not live.is_active:
                    yield "event: end\ndata: {}\n\n"
                    return
                await anyio.sleep(LOOK_EVERY_S)
