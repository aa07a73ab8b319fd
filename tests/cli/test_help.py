"""Help texts: an imperative first, then options with their defaults, then examples that can be typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from kreassign.cli.commands.plan import DEFAULT_TASK
from kreassign.cli.main import ALIASES, COMMANDS, GROUPS, PURPOSES, by_group, kreassign
from tests.approved import approve

# How a help text may begin. A new word is added by somebody who has read it aloud as an order.
IMPERATIVES = frozenset({
    "Approve", "Audit", "Balance", "Cancel", "Change", "Check", "Compact", "Compare", "Compute", "Convert", "Cut",
    "Diagnose", "Execute", "Follow", "Forget", "Give", "Import", "Inject", "Kill", "Limit", "Move", "Pause", "Place",
    "Plan", "Play", "Print", "Read", "Rebalance", "Rehearse", "Repair", "Replace", "Restart", "Restore", "Resume",
    "Roll", "Run", "Sample", "Serve", "Show", "Shut", "Start", "Stream", "Take", "Verify", "Watch", "Write",
})  # fmt: skip


def every_command() -> Iterator[tuple[str, click.Command]]:
    """All commands and groups below `kreassign`, with the words that lead to them."""
    todo = [(name, command.load()) for name, command in COMMANDS.items()]
    while todo:
        words, command = todo.pop()
        yield words, command
        if isinstance(command, click.Group):
            todo += [(f"{words} {name}", each) for name, each in command.commands.items()]


EVERY_OPTION = {
    f"{words} {parameter.opts[-1]}": parameter for words, command in every_command() for parameter in command.params
}


def defaults_not_said(command: click.Command) -> Iterator[str]:
    """The options that take a value and may be left out, but do not say what holds then, or say it by hand.

    A default that click knows is shown by click, so that what the help says cannot differ from what the command does.
    """
    for option in command.params:
        if not isinstance(option, click.Option) or option.is_flag or option.required or option.hidden:
            continue
        known = isinstance(option.default, int | float | str | Path | tuple) and option.default != ""
        if not (option.show_default if known else "  [default: " in (option.help or "")):
            yield option.opts[0]


def parsed(words: list[str]) -> tuple[click.Command, dict[str, Any]]:
    """The command that these words lead to, and its parameters as they are written."""
    command: click.Command = kreassign
    while isinstance(command, click.Group):
        name = words.pop(0) if words[0] in command.list_commands(click.Context(command)) else DEFAULT_TASK
        found = command.get_command(click.Context(command), name)
        assert found is not None, name
        command = found
    # A command keeps the help option of the first parser that is made of it.
    context = click.Context(command, **kreassign.context_settings)
    given, rest, _ = command.make_parser(context).parse_args(words)
    assert not rest
    return command, given


EVERY_COMMAND = pytest.mark.parametrize(
    ("words", "command"), list(every_command()), ids=lambda value: value if isinstance(value, str) else ""
)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_registered_command_exists_and_has_a_help_text(name: str) -> None:
    result = CliRunner().invoke(kreassign, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert f"kreassign {name}" in result.stdout


@EVERY_COMMAND
def test_every_help_text_begins_with_an_imperative_and_is_a_sentence(words: str, command: click.Command) -> None:
    first, *_ = (command.help or "").partition("\n\n")
    assert first.split(" ")[0] in IMPERATIVES, words
    assert first.rstrip().endswith("."), words


def test_the_list_of_commands_says_imperatives() -> None:
    assert not [name for name, command in COMMANDS.items() if command.summary.split(" ")[0] not in IMPERATIVES]


def test_the_first_help_has_every_command_once_and_examples_that_parse() -> None:
    shown = CliRunner().invoke(kreassign, ["--help"], terminal_width=80).stdout
    approve(shown, "help")
    examples, _, lists = shown.partition("Options:\n")
    typed = [line.strip() for line in examples.partition("Examples:\n")[2].splitlines() if line.strip()]
    assert len(typed) == 5
    for line in typed:
        parsed(shlex.split(line)[1:])
    headings = re.findall(r"^([A-Z][a-z, ]+):$", lists, re.MULTILINE)
    assert headings == [*PURPOSES, "Aliases"]
    told = lists[lists.index(next(iter(PURPOSES))) : lists.index("Aliases:")]
    assert sorted(re.findall(r"^  ([a-z][a-z-]*) {2,}[A-Z]", told, re.MULTILINE)) == sorted(COMMANDS)
    assert max(len(names) for names in PURPOSES.values()) < 10


@EVERY_COMMAND
def test_every_option_that_may_be_left_out_says_its_default(words: str, command: click.Command) -> None:
    assert not list(defaults_not_said(command)), words


@pytest.mark.parametrize(
    ("option", "is_said"),
    [
        (click.Option(["--rounds"], type=int, default=3, show_default=True, help="Rounds."), True),
        (click.Option(["--rounds"], type=int, help="Rounds.  [default: until stopped]"), True),
        (click.Option(["--rounds"], type=int, required=True, help="Rounds."), True),
        (click.Option(["--rounds"], is_flag=True, help="Rounds."), True),
        (click.Option(["--rounds"], type=int, help="Rounds."), False),
        (click.Option(["--rounds"], type=int, default=3, help="Rounds."), False),
        (click.Option(["--rounds"], type=int, default=3, help="Rounds.  [default: 4]"), False),
    ],
)
def test_a_default_that_is_not_said_is_found(option: click.Option, is_said: bool) -> None:
    assert list(defaults_not_said(click.Command("sample", params=[option]))) == ([] if is_said else ["--rounds"])


@EVERY_COMMAND
def test_every_command_has_examples_that_can_be_parsed(words: str, command: click.Command) -> None:
    shown = CliRunner().invoke(kreassign, [*words.split(), "--help"], terminal_width=200).stdout
    examples = shown.partition("Examples:\n")[2].partition("\n\n")[0]
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    assert lines
    assert all(line.startswith(f"kreassign {words}") for line in lines)
    for line in lines:
        meant, given = parsed(shlex.split(line)[1:])
        assert meant is command or isinstance(command, click.Group)
        missing = [
            parameter.name for parameter in meant.params if parameter.required and not given[str(parameter.name)]
        ]
        assert not missing


def test_help_is_shown_where_the_encoding_lacks_its_signs() -> None:
    shown = CliRunner(charset="ascii").invoke(kreassign, ["twin", "start", "--help"])
    assert (shown.exit_code, "--racks A,B,..." in shown.stdout) == (0, True), shown.output


def test_help_groups_options_where_there_are_many() -> None:
    shown = CliRunner().invoke(kreassign, ["run", "--help"], terminal_width=80).stdout
    approve(shown, "help-of-run")
    command = COMMANDS["run"].load()
    told = [line.split()[0].rstrip(",") for line in shown.splitlines() if line.startswith("  -")]
    assert sorted(told) == sorted([option.opts[0] for option in command.params[1:]] + ["-h"])
    few = CliRunner().invoke(kreassign, ["status", "--help"]).stdout
    assert re.findall("^[A-Z][a-z ]+:$", few, re.MULTILINE) == ["Options:"]


HEADINGS = [
    ("twin start", "--racks", "Options"),
    ("stream-metrics", "--conf", "Spark"),
    ("stream-metrics", "--data", "Options"),
    ("web", "--data", "Options"),
    ("pace", "--disk-reserve", "Options"),
    ("plan rebalance", "--racks", "Goals"),
    ("plan rebalance", "--conf", "Spark"),
    ("run", "--dry-run", "Safety"),
]


@pytest.mark.parametrize(("words", "option", "heading"), HEADINGS)
def test_an_option_stands_under_a_heading_that_fits(words: str, option: str, heading: str) -> None:
    shown = CliRunner().invoke(kreassign, [*words.split(), "--help"], terminal_width=80).stdout
    above, _, _ = shown.partition(f"\n  {option} ")
    assert re.findall(r"^([A-Z][a-z ]+):$", above, re.MULTILINE)[-1] == heading


def test_no_heading_stands_above_a_single_option() -> None:
    for words, command in every_command():
        rows = [option.get_help_record(click.Context(command)) for option in command.params]
        groups = dict(by_group(row for row in rows if row is not None))
        assert not [group for group, members in groups.items() if group in GROUPS and len(members) == 1], words


def test_every_option_of_a_group_is_one_of_some_command() -> None:
    options = [option for _, command in every_command() for option in command.params]
    there = {name for option in options for name in (*option.opts, *option.secondary_opts)}
    assert {name for options in GROUPS.values() for name in options} <= there


@pytest.mark.parametrize(
    ("word", "meant"), [("statsu", "status"), ("paln", "plan"), ("cancle", "cancel"), ("dreain", "drain")]
)
def test_a_command_that_is_misspelt_is_told_with_what_may_be_meant(word: str, meant: str) -> None:
    refused = CliRunner().invoke(kreassign, [word])
    assert (refused.exit_code, f"'{meant}'" in refused.stderr) == (2, True)


@pytest.mark.parametrize("alias", ALIASES)
def test_other_words_lead_to_the_same_command(alias: str) -> None:
    usage = CliRunner().invoke(kreassign, [alias, "--help"]).stdout.splitlines()[0]
    assert usage.startswith(f"Usage: kreassign {' '.join(ALIASES[alias])} ")
