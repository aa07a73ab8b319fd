"""The last look before a cluster is changed: what will happen, in words, and the question whether it shall."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import click

from kreassign.cli.options.throttle import rates_text
from kreassign.cli.output import console, counted
from kreassign.errors import InputError
from kreassign.operations.preview import ASSUMED_NETWORK_BYTES_PER_S, USED_AT_MOST, RunPreview
from kreassign.report.text import format_bytes, format_duration, format_rate

NAMED = 8


yes_option = click.option(
    "--yes", "is_agreed", is_flag=True, help="Begin without asking; needed where nobody can be asked."
)
"""Add `--yes`: parameter `is_agreed: bool`."""


def refuse_unless_asked(what: str = "the run", *, is_agreed: bool) -> None:
    """Raise InputError where the question has no answer yet and nobody is there to give one."""
    if not (is_agreed or sys.stdin.isatty()):
        raise InputError(
            f"nobody can be asked whether {what} shall begin, for standard input is no terminal: --yes begins it, "
            "--dry-run shows what it would do"
        )


def ask(told: Iterable[str]) -> None:
    """Print what will happen and ask whether it shall begin. Raises click.exceptions.Exit if not."""
    show(told)
    if not click.confirm("begin?", default=False, err=True):
        click.echo("nothing was sent", err=True)
        raise click.exceptions.Exit(1)


def show(told: Iterable[str]) -> None:
    """Print what will happen, on stderr: stdout belongs to what was asked for."""
    for line in told:
        console(stderr=True).print(line, soft_wrap=True)


def lines(found: RunPreview) -> Iterator[str]:
    """What a run will do, in lines with one fact each."""
    copied = f"{counted(found.copies, 'copy', 'copies')}, {format_bytes(found.copied_bytes)}"
    yield f"this run changes {counted(found.partitions, 'partition')}: {copied}"
    yield f"  preferred leaders that change: {found.leader_changes}"
    if found.log_dir_moves:
        yield f"  copies that change their log directory: {found.log_dir_moves}"
    if found.copies:
        yield f"  brokers: from {_named(found.senders)} to {_named(found.receivers)}"
    yield f"  throttle: {rates_text(found.rates) or 'none, so that copies take what disks and networks give'}"
    yield f"  time: {_time(found)}"
    if found.lowest_free is not None:
        free = found.lowest_free
        yield (
            f"  lowest free disk: broker {free.broker}, {format_bytes(free.usable_bytes)} ({free.share:.0%}) when all "
            "copies are there"
        )
    yield f"  reason: {found.reason or 'not known, the plan has no facts file'}"
    yield f"  already moving by others: {counted(found.others, 'partition') if found.others else 'nothing'}"
    if found.proposal is not None:
        one = found.proposal
        yield f"  proposed: --throttle {one.text}, assuming networks of 1 Gbit/s"
        yield f"    broker {one.busiest_broker}, the busiest, carries {format_rate(one.busiest_bytes_per_s)} now;"
        network = f"{USED_AT_MOST:.0%} of the assumed {format_rate(ASSUMED_NETWORK_BYTES_PER_S)}"
        yield f"    {'less would never end, but exceeds' if one.is_least else 'with this it carries at most'} {network}"
        yield "    with faster ones: --throttle auto --broker-capacity RATE"


def _time(found: RunPreview) -> str:
    proposed = "" if found.proposal is None else f" at the proposed {format_rate(found.proposal.bytes_per_s)}"
    if found.shortest_s is None:
        return "not known without a fixed throttle"
    if found.longest_s is None:
        return f"{format_duration(found.shortest_s)} or longer, for producers write meanwhile{proposed}"
    return f"from {format_duration(found.shortest_s)} to {format_duration(found.longest_s)}{proposed}"


def _named(brokers: tuple[int, ...]) -> str:
    more = f" and {len(brokers) - NAMED} more" if len(brokers) > NAMED else ""
    return f"{', '.join(map(str, brokers[:NAMED])) or 'none'}{more}"
