"""Values that no option means: not a number, without an end, beyond all bounds, and text that is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.errors import InputError

HUGE = "9" * 400


def options_of(command: click.Command, name: str = "kreassign") -> Iterator[tuple[str, click.Parameter]]:
    """Every option and argument of a command and of those below it, by its full name."""
    for parameter in command.params:
        yield f"{name} {parameter.opts[-1]}", parameter
    if isinstance(command, click.Group):
        context = click.Context(command)
        for sub in command.list_commands(context):
            found = command.get_command(context, sub)
            assert found is not None
            yield from options_of(found, f"{name} {sub}")


EVERY_OPTION = dict(options_of(kreassign))
NUMBERS = {
    name: option
    for name, option in EVERY_OPTION.items()
    if isinstance(option.type, click.types.FloatParamType | click.types.IntParamType)
}
READ_BY_US = {
    name: option for name, option in EVERY_OPTION.items() if isinstance(option.type, click.types.FuncParamType)
}


def refused(option: click.Parameter, text: str) -> str:
    """Refusal of a value that an option does not take."""
    with pytest.raises((click.BadParameter, InputError)) as failure:
        option.type.convert(text, option, click.Context(kreassign))
    return str(failure.value)


def test_the_options_are_found() -> None:
    assert len(EVERY_OPTION) > 200
    assert {"kreassign collect --rounds", "kreassign plan what-if --traffic"} <= NUMBERS.keys()
    assert {
        "kreassign run --throttle",
        "kreassign run --poll-interval",
        "kreassign collect --interval",
    } <= READ_BY_US.keys()


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999"])
def test_no_number_is_without_a_value_or_an_end(text: str) -> None:
    for option in NUMBERS.values():
        refused(option, text)


@pytest.mark.parametrize("text", ["nan", "inf", HUGE], ids=["nan", "inf", "huge"])
def test_no_amount_rate_or_time_is_without_a_value_or_an_end(text: str) -> None:
    for option in READ_BY_US.values():
        refused(option, text)


@pytest.mark.parametrize("words", [["status", "a\udce9"], ["run", "--time-zone", "\udcff", "plan.json"]])
def test_an_argument_that_is_no_text_is_refused_by_name(words: list[str]) -> None:
    result = CliRunner().invoke(kreassign, words)
    assert result.exit_code == 2
    assert "is not text in UTF-8" in result.stderr
    assert "\\udc" in result.stderr


def test_goals_are_finite(tmp_path: Path) -> None:
    snapshot = tmp_path / "cluster.json"
    for goal in (
        "disk=nan",
        "disk=infx2",
        "disk=5xnan",
        "topic-spread=inf",
        "failover=inf",
        "topic-leaders=x",
    ):
        snapshot.write_text('{"format": "kreassign-snapshot", "version": 1, "taken_ms": 0, "cluster_id": "c"}')
        result = CliRunner().invoke(kreassign, ["plan", "--snapshot", str(snapshot), "--goal", goal])
        assert result.exit_code == 2, goal
        assert f"'{goal}' is not a goal" in result.stderr
