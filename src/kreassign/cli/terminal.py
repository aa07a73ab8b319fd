"""A run and its terminal: the question before it, progress and signals during it, and `--detach`."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from types import FrameType

import click

from kreassign.cli.next_command import STATE, next_command
from kreassign.cli.options.cluster import ClusterOptions
from kreassign.cli.output import console, print_verbatim, warn
from kreassign.cli.run_text import view_for
from kreassign.cli.streams import output_may_be_lost, unwrapped
from kreassign.clock import SYSTEM_CLOCK
from kreassign.errors import InputError
from kreassign.executor.preview import ASSUMED_NETWORK_BYTES_PER_S, USED_AT_MOST, RunPreview
from kreassign.operations.connect import tell_nobody
from kreassign.operations.run import RunContext, Show, Watch
from kreassign.operations.run_journals import make_state_dir
from kreassign.operations.run_outlook import preview_facts
from kreassign.report.text import format_duration, format_rate

# Preview before a cluster is changed: what will happen, and the question whether to begin.


def refuse_unless_asked(what: str = "to begin the run", *, is_agreed: bool) -> None:
    """Raise InputError if the question is unanswered and stdin is no terminal."""
    if not (is_agreed or sys.stdin.isatty()):
        raise InputError(
            f"cannot ask whether {what}: standard input is no terminal. Add --yes to begin, or --dry-run to look first"
        )


def ask(told: Iterable[str]) -> None:
    """Print what will happen and ask whether to begin. Raises click.exceptions.Exit if refused."""
    show_preview(told)
    try:
        is_agreed = click.confirm("begin?", default=False, err=True)
    except click.Abort:  # Ctrl-C or Ctrl-D, after which the cursor is still on the line of the question
        click.echo(err=True)
        is_agreed = False
    if not is_agreed:
        click.echo("nothing was sent", err=True)
        raise click.exceptions.Exit(1)


def show_preview(told: Iterable[str]) -> None:
    """Print what will happen on stderr: stdout is for the results."""
    for line in told:
        console(stderr=True).print(line, soft_wrap=True)


def preview_lines(found: RunPreview) -> Iterator[str]:
    """Facts about a run ahead, one per line; changed replication factors and refused producers come first."""
    yield from (*found.factors, *found.outages)
    (subject, changes), *facts = preview_facts(found)
    yield f"{subject}: {changes}"
    for name, text in facts:
        yield f"  {name}: {text}"
    if found.proposal is not None:
        one = found.proposal
        yield f"  proposed: --throttle {one.text}, assuming networks of 1 Gbit/s"
        yield f"    broker {one.busiest_broker}, the busiest, carries {format_rate(one.busiest_bytes_per_s)} now;"
        network = f"{USED_AT_MOST:.0%} of the assumed {format_rate(ASSUMED_NETWORK_BYTES_PER_S)}"
        yield f"    {'less would never end, but exceeds' if one.is_least else 'with this it carries at most'} {network}"
        yield "    with faster ones: --throttle auto --broker-capacity RATE"


# A run on a terminal: progress is shown, signals pause it, and losing the terminal does not end it.
#
# SIGINT (Ctrl-C) and SIGTERM (service managers) pause, and so does SIGHUP, which a terminal sends when it is closed;
# under `nohup`, which ignores that signal, the run goes on. A second SIGINT or SIGTERM quits at once. While SIGTSTP
# (Ctrl-Z) stops the process, no guard watches the moves in flight: messages say so at the beginning and the end.

PAUSING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Handler = Callable[[int, FrameType | None], None]


@contextmanager
def on_terminal(
    cluster: ClusterOptions,
    context: RunContext,
    *,
    is_quiet: bool,
    started: Callable[[str], None] = tell_nobody,
) -> Iterator[RunContext]:
    """The context of runs that this process executes: shown unless `is_quiet`, paused by signals.

    `started` is called with the id of the run when it begins.
    """
    with output_may_be_lost(), cluster.connect_controllers() as controllers:
        yield replace(context, controllers=controllers, watch=_watch(is_quiet=is_quiet, started=started), warn=warn)


def _watch(*, is_quiet: bool, started: Callable[[str], None]) -> Watch:
    """Show a run and let signals pause it."""

    @contextmanager
    def watch(run_id: str, stop: Callable[[], None] | None) -> Iterator[Show | None]:
        started(run_id)
        if stop is None:  # another process executes the run; signals to this one must not affect it
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
        # Print before the next signal may quit: a signal in between would suppress the message.
        _say("The terminal is gone: pausing." if number == signal.SIGHUP else "Pausing… Ctrl-C again to quit now.")
        for again in (signal.SIGINT, signal.SIGTERM):
            signal.signal(again, signal.default_int_handler)

    # A process started with SIGHUP ignored must outlive its terminal.
    heeded = [number for number in PAUSING if number != signal.SIGHUP or _is_default(number)]
    with suppress(KeyboardInterrupt), handled(dict.fromkeys(heeded, on_signal)):
        yield


@contextmanager
def _stops_are_said() -> Iterator[None]:
    clock = SYSTEM_CLOCK
    stopped_s: list[float] = []

    def on_stop(number: int, _: FrameType | None) -> None:
        _say(
            "Stopped: moves in flight go on in the cluster, throttled but not guarded, and no others start. "
            "Continue with `fg`."
        )
        stopped_s.append(clock.monotonic_s())
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)  # stop as the terminal asked, after the message; returns after SIGCONT
        signal.signal(number, on_stop)
        if stopped_s:  # no SIGCONT came: the kernel does not stop a process that no shell could continue
            stopped_s.pop()
            _say("Not stopped, because no shell is there to continue it.")

    def on_continue(_: int, __: FrameType | None) -> None:
        lasted = f" after {format_duration(clock.monotonic_s() - stopped_s.pop())}" if stopped_s else ""
        _say(f"Continued{lasted}: looking at the cluster.")

    # Without job control, as in scripts, SIGTSTP is ignored.
    stopping: dict[signal.Signals, Handler] = {signal.SIGTSTP: on_stop} if _is_default(signal.SIGTSTP) else {}
    with handled({**stopping, signal.SIGCONT: on_continue}):
        yield


@contextmanager
def handled(handlers: dict[signal.Signals, Handler]) -> Iterator[None]:
    """Handle these signals so during the block."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_default(number: signal.Signals) -> bool:
    return signal.getsignal(number) is not signal.SIG_IGN


def _say(text: str) -> None:
    # Bypass the stream: the signal may have come in the middle of a write to it. On a terminal that is gone, nothing
    # can be printed.
    with suppress(OSError, ValueError):
        os.write(sys.stderr.fileno(), f"{text}\n".encode())


# Continue without a terminal (`--detach`): in a new process with a session of its own.
#
# The first process waits until the run has begun, so that errors in the command appear where it was typed, with their
# exit code. Neither closing the terminal nor the end of the login reaches the second process.

LOG_SUFFIX = ".log"
_PRIVATE = 0o600


def detach(state_dir: Path, output_format: str) -> Callable[[str], None]:
    """Continue in the background. Returns only there: a function to call with the run's ID once it has begun.

    The first process raises click.exceptions.Exit when the run has begun or the second process has ended.
    """
    make_state_dir(state_dir)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        raise click.exceptions.Exit(_wait_for_start(process, reading, state_dir, output_format))
    os.close(reading)
    os.setsid()
    log = _unnamed_log(state_dir, os.getpid())
    _write_to(log)

    def started(run_id: str) -> None:
        log.replace(state_dir / f"{run_id}{LOG_SUFFIX}")
        os.write(writing, run_id.encode())
        os.close(writing)

    return started


def _wait_for_start(process: int, reading: int, state_dir: Path, output_format: str) -> int:
    with os.fdopen(reading, encoding="utf-8") as pipe:
        run_id = pipe.read()
    if run_id:
        _announce(run_id, process, state_dir / f"{run_id}{LOG_SUFFIX}", output_format)
        return 0
    _, status = os.waitpid(process, 0)
    log = _unnamed_log(state_dir, process)
    click.echo(log.read_text(encoding="utf-8", errors="replace"), err=True, nl=False)
    log.unlink()
    return os.waitstatus_to_exitcode(status)


def _announce(run_id: str, process: int, log: Path, output_format: str) -> None:
    if output_format == "json":
        print_verbatim(json.dumps({"run_id": run_id, "process": process, "log": str(log)}))
        return
    click.echo(f"run {run_id} continues in the background, as process {process}; its output: {log}")
    click.echo(f"next: {next_command('watch', run_id, takes=STATE)}")


def _unnamed_log(state_dir: Path, process: int) -> Path:
    """Log file of the second process until its run has an ID."""
    return state_dir / f".detached-{process}{LOG_SUFFIX}"


def _write_to(log: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, _PRIVATE)
    os.fchmod(written, _PRIVATE)  # whatever the umask
    for descriptor, target in ((nothing, 0), (written, 1), (written, 2)):
        os.dup2(descriptor, target)
    for descriptor in (nothing, written):
        os.close(descriptor)
    for stream in map(unwrapped, (sys.stdout, sys.stderr)):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(line_buffering=True)
