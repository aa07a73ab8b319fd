"""A run on a terminal: its progress is shown, signals pause it, and the loss of the terminal does not end it.

SIGINT (Ctrl-C) and SIGTERM (service managers) pause, and so does SIGHUP, which a terminal sends when it is closed;
under `nohup`, which ignores that one, the run goes on. A second SIGINT or SIGTERM quits at once. While SIGTSTP (Ctrl-Z)
has the process stopped, nobody guards the moves in flight: that is said when it begins, and when it is over.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import FrameType

from kreassign.cli.live import view_for
from kreassign.cli.options.cluster import ClusterOptions
from kreassign.cli.output import console, warn
from kreassign.cli.streams import output_may_be_lost
from kreassign.clock import SystemClock
from kreassign.operations.run import RunContext, Show, Watch
from kreassign.report.text import format_duration

PAUSING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Handler = Callable[[int, FrameType | None], None]


@contextmanager
def on_terminal(
    cluster: ClusterOptions,
    context: RunContext,
    *,
    is_quiet: bool,
    started: Callable[[str], None] = lambda _: None,
) -> Iterator[RunContext]:
    """The context of runs that this process executes: shown unless `is_quiet`, stopped by signals.

    `started` is called with the id of the run when it begins.
    """
    with output_may_be_lost(), cluster.connect_controllers() as controllers:
        yield replace(context, controllers=controllers, watch=_watch(is_quiet=is_quiet, started=started), warn=warn)


def _watch(*, is_quiet: bool, started: Callable[[str], None]) -> Watch:
    """Show a run, and let signals pause it."""

    @contextmanager
    def watch(run_id: str, stop: Callable[[], None] | None) -> Iterator[Show | None]:
        started(run_id)
        if stop is None:  # another process executes it, which signals to this one shall not touch
            with view_for(console(stderr=is_quiet)) as view:
                yield view.show
        elif is_quiet:
            with _paused_by_signals(stop), _stops_are_said():
                yield None
        else:
            terminal = console()
            terminal.print(f"run {run_id}")
            with view_for(terminal) as view, _paused_by_signals(stop), _stops_are_said():
                yield view.show

    return watch


@contextmanager
def _paused_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    def on_signal(number: int, _: FrameType | None) -> None:
        stop()
        # Before the next signal may quit: one that came in between would leave the first unsaid.
        _say("The terminal is gone: pausing." if number == signal.SIGHUP else "Pausing… Ctrl-C again to quit now.")
        for again in (signal.SIGINT, signal.SIGTERM):
            signal.signal(again, signal.default_int_handler)

    # A process that was started with SIGHUP ignored shall outlive its terminal.
    heeded = [number for number in PAUSING if number != signal.SIGHUP or _is_default(number)]
    with suppress(KeyboardInterrupt), _handled(dict.fromkeys(heeded, on_signal)):
        yield


@contextmanager
def _stops_are_said() -> Iterator[None]:
    clock = SystemClock()
    stopped_s: list[float] = []

    def on_stop(number: int, _: FrameType | None) -> None:
        _say(
            "Stopped: moves in flight go on in the cluster, throttled but not guarded, and no others start. "
            "Continue with `fg`."
        )
        stopped_s.append(clock.monotonic_s())
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)  # what the terminal asked for, now that it is said; returns after SIGCONT
        signal.signal(number, on_stop)
        if stopped_s:  # no SIGCONT came: the kernel stops nobody whom no shell could continue
            stopped_s.pop()
            _say("Not stopped, because no shell is there to continue it.")

    def on_continue(_: int, __: FrameType | None) -> None:
        lasted = f" after {format_duration(clock.monotonic_s() - stopped_s.pop())}" if stopped_s else ""
        _say(f"Continued{lasted}: looking at the cluster.")

    # Without job control, as in scripts, SIGTSTP is ignored.
    stopping: dict[signal.Signals, Handler] = {signal.SIGTSTP: on_stop} if _is_default(signal.SIGTSTP) else {}
    with _handled({**stopping, signal.SIGCONT: on_continue}):
        yield


@contextmanager
def _handled(handlers: dict[signal.Signals, Handler]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_default(number: signal.Signals) -> bool:
    return signal.getsignal(number) is not signal.SIG_IGN


def _say(text: str) -> None:
    # Past the stream: the signal may have come in the middle of a line that is being written to it. To a terminal that
    # is gone nothing can be said.
    with suppress(OSError, ValueError):
        os.write(sys.stderr.fileno(), f"{text}\n".encode())
