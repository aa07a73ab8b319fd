"""Tables of the reference that people wrote say what the code says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from kreassign.cli.main import kreassign
from kreassign.cli.profiles import SHARED, names_in
from kreassign.errors import KreassignError
from tests.checks.source import ROOT


def every_error(above: type[KreassignError] = KreassignError) -> Iterator[type[KreassignError]]:
    yield above
    for below in above.__subclasses__():
        if below.__module__ == KreassignError.__module__:
            yield from every_error(below)


def test_every_error_is_on_its_page_with_its_exit_code() -> None:
    page = (ROOT / "docs/reference/errors-and-exit-codes.md").read_text(encoding="utf-8")
    rows = {name: int(code) for code, name in re.findall(r"^\| (\d+) \| `(\w+)` \| ", page, re.MULTILINE)}
    assert rows == {error.__name__: error.exit_code for error in every_error()}


def test_the_configuration_page_is_read_and_names_shared_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
    assert [option for option in SHARED if f"`{option}`" not in page] == []
    (example,) = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    path = tmp_path / "config.toml"
    path.write_text(example, encoding="utf-8")
    assert names_in(path) == {"test", "prod"}
    monkeypatch.setenv("KREASSIGN_CONFIG", str(path))
    monkeypatch.setenv("KREASSIGN_STATE_DIR", str(tmp_path))
    for name in ("test", "prod"):
        assert CliRunner().invoke(kreassign, ["--cluster", name, "status", "--all"]).exit_code == 0


# What people write there of defaults.

ROW = re.compile(r"^\| (?P<options>`-.*?`) \| (?P<default>.*?) \| .* \|$")
OF_THE_RUN = ("as the run", "as for the run", "that of the run")
"""What `rollback` says of options that the run had, too: their defaults are in the section of `run`."""


def every_command(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command is not None
        yield f"{name} {word}", command
        if isinstance(command, click.Group):
            yield from every_command(command, f"{name} {word}")


def documented_defaults(page: str) -> Iterator[tuple[str, str, str]]:
    """Command, option, and what the page says is its default; of rows with several options, of the first."""
    section = ""
    for line in page.splitlines():
        if line.startswith("#"):
            section = line.lstrip("# ")
        elif (row := ROW.match(line)) and section.startswith("kreassign "):
            (option, *_) = re.findall(r"`(-{1,2}[a-z][\w-]*)", row["options"])
            for command in re.findall(r"kreassign[ a-z-]*", section):
                yield command.strip(), option, row["default"].replace("`", "")


def wrong_default(option: click.Option, said: str) -> str | None:
    """Why what a page says of a default is wrong: it is another value than that of the command, or of its help."""
    context = click.Context(kreassign)
    record = option.get_help_record(context)
    found = re.search(r"\[default: (.*?)\]", " ".join(record[1].split())) if record else None
    told = re.sub(r"; (\d+<=)?x[<>]=\d+(<=\d+)?$", "", found[1]) if found else ""
    value = option.get_default(context)
    if isinstance(value, (tuple, str, int, float, Path)) and not isinstance(value, bool) and value != "":
        real = " ".join(value) if isinstance(value, tuple) else f"{value:g}" if isinstance(value, float) else str(value)
        return None if said == real else f"the page says {said}, the command takes {real}"
    choices = option.type.choices if isinstance(option.type, click.Choice) else ()
    named = set(choices) & {said, told}
    figures = {one for text in (said, told) for one in re.findall(r"\d[\w.:]*", text)}
    other = [one for one in sorted({*named, *figures}) if one not in said or one not in told]
    return f"the page says {said}, the help {told}" if other else None


def test_defaults_in_the_reference_are_those_of_the_commands() -> None:
    page = (ROOT / "docs/reference/kreassign.md").read_text(encoding="utf-8")
    commands = dict(every_command(kreassign, "kreassign"))
    looked_at, wrong = 0, []
    for name, option, said in documented_defaults(page):
        if not said.startswith(OF_THE_RUN) and name in commands:
            mine = [one for one in commands[name].params if option in (*one.opts, *one.secondary_opts)]
            assert mine, f"{name} has no option {option}"
            looked_at += 1
            assert isinstance(mine[0], click.Option)
            if (why := wrong_default(mine[0], said)) is not None:
                wrong.append(f"{name} {option}: {why}")
    assert looked_at > 80
    assert wrong == []


@pytest.mark.parametrize(("default", "told", "said", "is_wrong"), [
    ("5s", "", "5s", False), ("5s", "", "6s", True), (30.0, "", "30", False), (("1", "2"), "", "1 2", False),
    (None, "10", "10", False), (None, "10", "none", True), (None, "none", "10", True),
    (None, "1; on Spark 4", "1; on Spark 8", True), (None, "no limit", "none", False),
])  # fmt: skip
def test_another_default_is_noticed(default: object, told: str, said: str, is_wrong: bool) -> None:
    help_text = f"What.  [default: {told}]" if told else "What."
    arguments: dict[str, Any] = {} if default is None else {"default": default, "show_default": True}
    option = click.Option(["--one"], help=help_text, nargs=2 if isinstance(default, tuple) else 1, **arguments)
    assert (wrong_default(option, said) is not None) is is_wrong
