"""`kreassign throttle --remove-left`: show throttles that were left behind, ask, and remove them.

Apart from the other commands that steer runs, because only this one needs a client.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from kreassign.cli.next_command import CLUSTER, STATE, again, next_command, pasted, print_next
from kreassign.cli.options.cluster import ClusterOptions
from kreassign.cli.output import print_json
from kreassign.cli.terminal import ask, refuse_unless_asked, show_preview
from kreassign.errors import ExecutionError
from kreassign.executor.throttle_ledger import ConfigValue, command_to_set
from kreassign.model.text import counted
from kreassign.operations.left_throttles import (
    LeftThrottles,
    RemovedThrottles,
    find_left_throttles,
    remove_left_throttles,
)
from kreassign.operations.run import RunContext


def remove_left(cluster: ClusterOptions, state_dir: Path, output_format: str, *, is_agreed: bool, is_dry: bool) -> None:
    """Remove throttles that were left, once agreed. Raises click.exceptions.Exit with 5 if any stays or is unread."""
    refuse_unless_asked("to begin the removal", is_agreed=is_agreed or is_dry)
    here = cluster.resolved()
    is_quiet = output_format == "json"
    with here.connect() as client:
        found = find_left_throttles(client, state_dir)
        done = RemovedThrottles(())
        if is_dry or is_agreed or not found.left:
            show_preview(() if is_quiet else _lines(found))
        else:
            ask(_lines(found))
        if not is_dry:
            done = remove_left_throttles(client, RunContext(state_dir), found.left)
    if is_quiet:
        print_json(_document(found, done, here))
    else:
        _print_result(done, here)
        is_ahead = is_dry and found.left
        print_next(again(but="--dry-run") if is_ahead else next_command("doctor", takes=(*CLUSTER, *STATE)))
    if found.needed or found.unread or done.kept or done.unknown:
        raise click.exceptions.Exit(ExecutionError.exit_code)


def _lines(found: LeftThrottles) -> Iterator[str]:
    if found.left:
        yield f"{counted(len(found.left), 'setting')} of throttles left behind:"
    elif not (found.needed or found.unread):
        yield "no throttle was left"
    yield from (f"  {one}" for one in found.left)
    for title, sentences in (("needed, so they stay:", found.needed), ("not known:", found.unread)):
        if sentences:
            yield title
            yield from (f"  {sentence}" for sentence in sentences)


def _print_result(done: RemovedThrottles, cluster: ClusterOptions) -> None:
    unknown = dict(done.unknown)
    for one in (*done.removed, *unknown):
        click.echo(f"may be removed: {one.key}: {unknown[one]}" if one in unknown else f"removed: {one.key}")
        click.echo(f"  to set it again: {_again(one, cluster)}")
    for one, reason in done.kept:
        click.echo(f"not removed: {one.key}: {reason}")
    if done.record is not None:
        click.echo(f"the values are kept in {done.record}")


def _again(one: ConfigValue, cluster: ClusterOptions) -> str:
    return pasted(command_to_set(one), cluster)


def _document(found: LeftThrottles, done: RemovedThrottles, cluster: ClusterOptions) -> dict[str, object]:
    problems = dict((*done.kept, *done.unknown))
    settings = [
        {
            "resource": str(one.key.resource),
            "name": one.key.name,
            "value": one.value,
            "is_removed": None if one in dict(done.unknown) else one in done.removed,
            "problem": problems.get(one),
            "to_set_again": _again(one, cluster),
        }
        for one in found.left
    ]
    record = None if done.record is None else str(done.record)
    return {"settings": settings, "needed": list(found.needed), "unread": list(found.unread), "record": record}
