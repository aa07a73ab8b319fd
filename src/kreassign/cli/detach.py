"""Going on without a terminal (`--detach`): the command continues in a process of its own, in a session of its own.

The first process waits until the run has begun, so that whatever is wrong with the command is said where it was typed,
with its exit code. Neither a terminal that is closed nor a login that ends reaches the second one.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path

import click

from kreassign.cli.streams import unwrapped
from kreassign.operations.journals import make_state_dir

LOG_SUFFIX = ".log"
_PRIVATE = 0o600


def detach(state_dir: Path, output_format: str) -> Callable[[str], None]:
    """Continue in the background. Returns only there: what to call with the id of the run once it has begun.

    In the first process click.exceptions.Exit is raised, when the run has begun or the second one has ended.
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
        click.echo(json.dumps({"run_id": run_id, "process": process, "log": str(log)}))
        return
    click.echo(f"run {run_id} continues in the background, as process {process}; its output: {log}")
    click.echo(f"to follow it: kreassign watch {run_id}")


def _unnamed_log(state_dir: Path, process: int) -> Path:
    """Where the second process writes until its run has an id."""
    return state_dir / f".detached-{process}{LOG_SUFFIX}"


def _write_to(log: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _PRIVATE)
    os.fchmod(written, _PRIVATE)  # whatever the umask left of it
    for descriptor, target in ((nothing, 0), (written, 1), (written, 2)):
        os.dup2(descriptor, target)
    for descriptor in (nothing, written):
        os.close(descriptor)
    for stream in map(unwrapped, (sys.stdout, sys.stderr)):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(line_buffering=True)
