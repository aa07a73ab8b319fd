"""A run on a terminal: its progress is shown, and signals pause it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import FrameType

import click

from kreassign.cli.live import view_for
from kreassign.cli.options.cluster import ClusterOptions
from kreassign.cli.output import console, warn
from kreassign.operations.run import RunContext, Show, Watch

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def on_terminal(cluster: ClusterOptions, context: RunContext, *, is_quiet: bool) -> Iterator[RunContext]:
    """The context of runs that this process executes: shown unless `is_quiet`, stopped by signals."""
    with cluster.connect_controllers() as controllers:
        yield replace(context, controllers=controllers, watch=_watch(is_quiet=is_quiet), warn=warn)


def _watch(*, is_quiet: bool) -> Watch:
    """Show a run, and let the first SIGINT or SIGTERM pause it; the second one leaves at once."""

    @contextmanager
    def watch(run_id: str, stop: Callable[[], None] | None) -> Iterator[Show | None]:
        if stop is None:  # another process executes it, which signals to this one shall not touch
            with view_for(console(stderr=is_quiet)) as view:
                yield view.show
        elif is_quiet:
            with _paused_by_signals(stop):
                yield None
        else:
            terminal = console()
            terminal.print(f"run {run_id}")
            with view_for(terminal) as view, _paused_by_signals(stop):
                yield view.show

    return watch


@contextmanager
def _paused_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    def on_signal(_: int, __: FrameType | None) -> None:
        for number in SIGNALS:
            signal.signal(number, signal.default_int_handler)
        click.echo("Pausing… Ctrl-C again to quit now.", err=True)
        stop()

    before = {number: signal.signal(number, on_signal) for number in SIGNALS}
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
