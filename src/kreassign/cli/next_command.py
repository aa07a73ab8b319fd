"""The next command to suggest, with the options of the present one that it needs, as a line to paste.

Options that were not typed came from the environment or a profile, where the next command finds them too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain, count, pairwise
from pathlib import Path
from shlex import join

import click

from kreassign.cli.options.cluster import ClusterOptions
from kreassign.cli.profiles import ADDRESS_ENVIRONMENT, IN_FORCE, Profile, typed_words, was_typed
from kreassign.model.run import RunHistory

CLUSTER = ("--bootstrap-server", "--command-config")
STATE = ("--state-dir",)
DATA = ("--data",)
_ADDRESS = "HOST:PORT"


def next_command(*words: object, takes: tuple[str, ...] = (), of: RunHistory | None = None) -> str:
    """`kreassign` with these words and the options in `takes`, as given to the present command.

    After `--out` comes a name that is free, for the line is to be pasted: no plan that was approved is replaced by it.
    Options that only the process that started run `of` was given, such as its cluster's address, come from the journal.
    """
    context = click.get_current_context(silent=True)
    profile: Profile | None = None if context is None else context.meta.get(IN_FORCE)
    chosen = (
        ["--cluster", profile.name] if profile is not None and profile.is_chosen and "--cluster" not in words else []
    )
    options = (word for name in takes for word in _given(name, of))
    said = [str(word) for word in words]
    free = [_free(word) if before == "--out" else word for before, word in pairwise(("", *said))]
    return join(["kreassign", *free, *chosen, *options])


def _free(name: str) -> str:
    """The name of a file, with a number if there is one of that name."""
    path = Path(name)
    numbered = (path.with_stem(f"{path.stem}-{number}") for number in count(2))
    return str(next(one for one in chain((path,), numbered) if not one.exists()))


def again(*, but: str = "") -> str:
    """The present command again, without the flag `but`."""
    return next_command(*(word for word in typed_words() if word != but))


def print_next(*commands: str) -> None:
    """Print the next command on stderr: stdout is for programs."""
    for number, command in enumerate(commands):
        click.echo(f"{'  or' if number else 'next'}: {command}", err=True)


def pasted(words: Sequence[str], cluster: ClusterOptions) -> str:
    """The command with the options that reach this cluster: Kafka's own tools do not read our environment."""
    if words[0] == "kreassign":
        return next_command(*words[1:], takes=_taken(words[1:]))
    reach = ["--bootstrap-server", str(cluster.bootstrap_server)]
    if cluster.command_config is not None:
        reach += ["--command-config", str(cluster.command_config)]
    line = words[0] if len(words) == 1 else join(words)
    return f"{line} {join(reach)}"


def _taken(words: Sequence[str]) -> tuple[str, ...]:
    """The cluster options that the command takes: `forget`, for example, connects to no cluster."""
    context = click.get_current_context().find_root()
    command = context.command
    for word in words:
        inner = command.get_command(context, word) if isinstance(command, click.Group) else None
        if inner is None:
            break
        command = inner
    names = {name for parameter in command.params for name in parameter.opts}
    return tuple(name for name in (*CLUSTER, *STATE) if name in names or isinstance(command, click.Group))


def _given(name: str, of: RunHistory | None) -> Iterator[str]:
    context = click.get_current_context(silent=True)
    key = name.removeprefix("--").replace("-", "_")
    if context is not None and key in context.params:
        if was_typed(name):
            yield from (name, _as_typed(name) or str(context.params[key]))
            return
        if context.params[key] is not None:
            return
    profile: Profile | None = None if context is None else context.meta.get(IN_FORCE)
    if profile is not None and name.removeprefix("--") in profile.shared:
        return
    typed = _typed(name, of)
    if typed is not None:
        yield from (name, typed)
    elif name == CLUSTER[0] and not os.environ.get(ADDRESS_ENVIRONMENT):
        yield from (name, _ADDRESS)


def _as_typed(name: str) -> str | None:
    """The value of an option in the present command line, as it was spelled: 20MB/s, not 20000000."""
    found = None
    for word, following in pairwise((*typed_words(), "")):
        if word.startswith(f"{name}="):
            found = word.partition("=")[2]
        elif word == name:
            found = following
    return found


def _typed(name: str, of: RunHistory | None) -> str | None:
    """The value of an option in the command that executed the run last; None for a file that does not exist."""
    words = of.operators[-1].command if of is not None and of.operators else ()
    for word, following in pairwise((*words, "")):
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
        if word == name and following and (name in CLUSTER[:1] or Path(following).exists()):
            return following
    return None
