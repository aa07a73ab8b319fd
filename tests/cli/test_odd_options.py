"""Every option and argument of every command, with values that it cannot mean: refused by name, and nothing is done.

Each command line ends at a file that cannot be read, a run that is not there, or a port at which nobody listens:
whoever comes so far has accepted the value. What may be accepted is in `ACCEPTED`, or follows from the bounds of a
number.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from kreassign.cli.main import kreassign
from kreassign.cli.options.values import FiniteRange, Place, WholeRange
from tests.cli.test_help import every_command

ESCAPE = "\x1b]0;title\x07"
NUMBERS = {"nan": "nan", "inf": "inf", "-inf": "-inf", "1e400": "1e400", "5,000 digits": "9" * 5_000,
           "25 digits": "9" * 25, "superscript": "²"}  # fmt: skip
ODD = {**NUMBERS, "negative": "-1", "zero": "0", "empty": "", "half": "\udc80", "NUL": "a\0b", "ESC": ESCAPE,
       "directory": "{folder}", "nowhere": "/nowhere/at/all"}  # fmt: skip
NO_ARGUMENT = {"empty", "half", "NUL"}
"""What no argument of any command means."""

TEXT = set(ODD) - NO_ARGUMENT
ENDS = ("is not a properties file: it holds a malformed", "this is JSON, but not an object", "received []",
        "there is no run ", "there are no tables in ", "there is no folder ",
        "--snapshot has no meaning for the plans of many clusters",
        "CREATE SCHEMA IF NOT EXISTS", "rules:", "it lacks the columns",
        "no twin takes orders at", "a plan is made from one of ", "_KREASSIGN_COMPLETE",
        "is not TOML", "not a text in UTF-8", "--update` writes one", "has a name that ends in .json",
        "the autopilot has looked after no cluster", "a plan is a file of JSON")  # fmt: skip
"""What is said where a command line ends that was accepted."""

GIVEN = {
    "--bootstrap-server": ["localhost:1"],
    "--command-config": ["{properties}"],
    "--control": ["127.0.0.1:1"],
    "--faults": ["{list}"],
    "--label": ["before"],
    "--location": ["/data"],
    "--data": ["{folder}"],
    "--cluster": ["c"],
    "--for": ["1h"],
    "--why": ["why"],
    "--topic": ["t"],
    "--run": ["no-run"],
    "--snapshot": ["{list}"],
    "after": ["after"],
    "before": ["before"],
    "broker": ["1"],
    "brokers": ["1"],
    "count": ["2"],
    "fault": ["crash:1"],
    "file": ["{list}"],
    "files": ["{latin}"],
    "kind": ["leaders"],
    "limit": ["1MB/s"],
    "places": ["1:/d"],
    "name": ["t"],
    "plan": ["{list}"],
    "policy": ["{list}"],
    "run_id": ["no-run"],
    "runs": ["no-run"],
    "shell": ["bash"],
    "snapshots": ["{list}"],
    "plan_or_run": ["no-run"],
    "subject": ["cluster"],
    "topic": ["t"],
    "total": ["2"],
    "what": ["alerts"],
}
"""What is given to a parameter, where a command has it and needs it, or needs it to end."""

AGREED: dict[str, list[str]] = {"--yes": []}
NEEDED = {"import-metrics": {"--broker": ["1"]}, "pace": {"--max-moves": ["5"]}, "snapshot": {"--data": ["{folder}"]},
          "plan what-if": {"--at": ["2030-01-31"]}, "plan brokers-needed": {"--at": ["2030-01-31"]},
          "plan new-topic": {"--partitions": ["2"], "--replication-factor": ["1"]},
          "autopilot approve": {"--key": ["{list}"]},
          "rollback": AGREED, "decommission": AGREED,
          "maintenance enter": AGREED, "maintenance exit": AGREED}  # fmt: skip
"""What a command cannot do without, though none of its parameters is required."""
ONLY_REFUSED = {"load", "audit compare", "compact", "demo", "web"}
"""What is accepted there starts Spark, or does something."""

IN_PLACE_OF = {("plan restore", "--run"): "file"}
"""Options that are given instead of an argument."""

HOSTS = TEXT - {"5,000 digits", "ESC", "directory", "nowhere"}
ADDRESSES = HOSTS - {"25 digits", "zero"}
"""A port alone is no address."""
ACCEPTED: dict[str, set[str]] = {
    "--add-brokers": {"zero"},
    "--as-of": set(),
    "--at": set(),
    "--give-up-after": set(),
    "--bootstrap-controller": ADDRESSES,
    "--bootstrap-server": ADDRESSES,
    "--broker-capacity": set(),
    "--budget-bytes": {"zero"},
    "--conf": set(),
    "--control": set(),
    "--deadline": set(),
    "--disk": set(),
    "--exclude-brokers": {"zero"},
    "--exclude-topics": TEXT,
    "--may-stay": TEXT,
    "--explain": set(),
    "--fault": set(),
    "--fit-in": {"zero"},
    "--for": set(),
    "--goal": set(),
    "--guard": set(),
    "--guard-command": TEXT,
    "--guard-query": set(),
    "--guard-url": set(),
    "--instance": set(),
    "--interval": set(),
    "--journal-to": TEXT,
    "--kafka-version": set(),
    "--label": TEXT - {"5,000 digits", "ESC", "superscript", "directory", "nowhere"},
    "--lasts": {"zero"},
    "--location": {"directory", "nowhere"},
    "--max-load-age": set(),
    "--measure-for": {"zero"},
    "--network": set(),
    "--poll-interval": set(),
    "--rack-price": {"zero"},
    "--rate": set(),
    "--read-rate": {"zero"},
    "--remove-brokers": {"zero"},
    "--replace-with": {"zero"},
    "--replication-factor": set(),
    "--schema": {"nan", "inf"},
    "--size": {"zero"},
    "--speed": set(),
    "--speeds": set(),
    "--throttle": set(),
    "--throttle-broker": set(),
    "--throttle-floor": set(),
    "--time-zone": set(),
    "--topics": TEXT,
    "--traffic": {"zero"},
    "--listen": HOSTS,
    "--wait": {"zero"},
    "--watermark": set(),
    "--webhook": set(),
    "--window": set(),
    "--write-rate": {"zero"},
    "--zookeeper": ADDRESSES,
    "brokers": {"zero"},
    "fault": set(),
    "limit": set(),
    "places": set(),
    "subject": set(),
}
"""Odd values of parameters that are read by functions of their own: those that mean something."""


def leaves() -> dict[str, click.Command]:
    return {words: command for words, command in every_command() if not isinstance(command, click.Group)}


def name_of(parameter: click.Parameter) -> str:
    """An option by its long name, an argument by its own."""
    return max(parameter.opts, key=lambda name: name.startswith("--"))


def taking_values(command: click.Command) -> Iterator[click.Parameter]:
    for parameter in command.params:
        if not (isinstance(parameter, click.Option) and (parameter.is_flag or parameter.count)):
            yield parameter


def accepted(parameter: click.Parameter) -> set[str]:
    """Odd values that a parameter accepts."""
    name = name_of(parameter)
    match parameter.type:
        case FiniteRange() | WholeRange() as kind:
            found = {odd for odd, number in {"zero": 0, "negative": -1}.items() if is_within(kind, number)}
        case Place() as kind:
            found = TEXT - {"5,000 digits"} - (set() if kind.dir_okay else {"directory"})
            found -= {"nowhere"} if kind.file_okay else set()
        case click.Path() as kind:
            found = {"directory"} if kind.dir_okay else set()
        case click.File():
            found = TEXT - {"5,000 digits", "directory", "nowhere"}
        case click.types.StringParamType():
            found = ACCEPTED.get(name, TEXT)
        case click.Choice():
            found = set()
        case _:
            found = set() if re.match("--max-(moves|bytes)", name) else ACCEPTED[name]
            found = found | ({"zero"} if "; 0s " in (getattr(parameter, "help", None) or "") else set())
    return found


def is_within(kind: FiniteRange | WholeRange, number: int) -> bool:
    is_above = kind.min is None or number > kind.min or (number == kind.min and not kind.min_open)
    return is_above and (kind.max is None or number < kind.max)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Files at which command lines end, and a folder; the working directory is there too."""
    monkeypatch.chdir(tmp_path)
    for name in ("KREASSIGN_BOOTSTRAP_SERVER", "KREASSIGN_BOOTSTRAP_CONTROLLER", "KREASSIGN_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KREASSIGN_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "client.properties").write_text("client.id=\\u12")
    (tmp_path / "latin.txt").write_bytes("größer".encode("latin-1"))
    (tmp_path / "folder").mkdir()
    return {"list": str(tmp_path / "list.json"), "properties": str(tmp_path / "client.properties"),
            "latin": str(tmp_path / "latin.txt"), "folder": str(tmp_path / "folder")}  # fmt: skip


def line(words: str, command: click.Command, odd: dict[str, list[str]], places: dict[str, str]) -> list[str]:
    """A command line that is whole, with these values in place of those that are usual."""
    usual = GIVEN | NEEDED.get(words, {})
    ending = {"--command-config", "--faults", "--snapshot", *NEEDED.get(words, ())}
    options, arguments = [], []
    for parameter in command.params:
        name = name_of(parameter)
        values = odd.get(name) or [word.format(**places) for word in usual.get(name, ())]
        if any(IN_PLACE_OF.get((words, other)) == name for other in odd):
            continue
        if isinstance(parameter, click.Argument):
            arguments += values
        elif name in odd or parameter.required or name in ending:
            options += [name, *values]
    return [*words.split(), *options, *(["--"] if arguments else []), *arguments]


def run(words: list[str]) -> Result:
    result = CliRunner().invoke(kreassign, words)
    assert result.exception is None or isinstance(result.exception, SystemExit), (words, result.exception)
    assert "Traceback" not in result.output, words
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", result.output), words
    return result


def has_ended(result: Result) -> bool:
    return result.exit_code in {0, 2, 4, 6} and any(end in result.output for end in ENDS)


LEAVES = leaves()


@pytest.mark.thorough
@pytest.mark.parametrize("words", LEAVES)
def test_what_an_option_cannot_mean_is_refused_by_name_and_nothing_is_done(words: str, places: dict[str, str]) -> None:
    command, wrong = LEAVES[words], []
    for parameter in taking_values(command):
        name, may_be = name_of(parameter), accepted(parameter)
        for odd, text in ODD.items():
            if odd in may_be and words in ONLY_REFUSED:
                continue
            value = text.format(**places)
            given = [value, *["1MB/s"] * (parameter.nargs - 1)]
            result = run(line(words, command, {name: given}, places))
            if has_ended(result) != (odd in may_be):
                wrong.append(f"{name} {odd}: {result.exit_code} {result.output[-200:]}")
            elif odd not in may_be and not is_named(result, parameter, value, odd):
                wrong.append(f"{name} {odd} is not named: {result.exit_code} {result.output[-300:]}")
        for left in Path.cwd().glob("[!clf]*"):  # files that were opened to be written
            left.unlink() if left.is_file() else shutil.rmtree(left)
    assert not wrong, "\n".join(wrong)


def is_named(result: Result, parameter: click.Parameter, value: str, odd: str) -> bool:
    """True if the refusal tells the parameter and the value that it was given."""
    names = [*parameter.opts, str(parameter.name), parameter.make_metavar(click.Context(kreassign))]
    says_which = any(name.lower() in result.output.lower() for name in names) or (
        odd in NO_ARGUMENT and isinstance(parameter, click.Argument)
    )
    return result.exit_code == 2 and says_which and repr(value)[1:-1][:10] in result.output


@pytest.mark.thorough
@pytest.mark.parametrize("words", sorted(LEAVES.keys() - ONLY_REFUSED))
def test_the_command_lines_of_the_test_above_are_whole(words: str, places: dict[str, str]) -> None:
    result = run(line(words, LEAVES[words], {}, places))
    assert has_ended(result), result.output


def test_a_file_may_lie_in_the_tables_directory_of_the_same_command(places: dict[str, str]) -> None:
    words = ["snapshot", "--bootstrap-server", "localhost:1", "--command-config", places["properties"]]
    assert has_ended(run([*words, "--data", "new/tables", "--out", "new/tables/cluster.json"]))


def test_numbers_and_places_to_write_are_read_by_types_of_ours() -> None:
    """Click's own types take `nan`, numbers of any length, and directories that turn out missing at the end."""
    kinds = (click.types.IntParamType, click.types.FloatParamType, click.Path)
    for words, command in LEAVES.items():
        for parameter in taking_values(command):
            kind = parameter.type
            is_input = isinstance(kind, click.Path) and kind.exists
            assert not isinstance(kind, kinds) or is_input or isinstance(kind, FiniteRange | WholeRange | Place), (
                f"{words} {name_of(parameter)}"
            )


@pytest.mark.parametrize("name", ["KREASSIGN_BOOTSTRAP_SERVER", "KREASSIGN_DATA", "KREASSIGN_STATE_DIR"])
def test_a_variable_of_the_environment_that_is_no_text_is_refused_by_name(
    name: str, places: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "\udc80")
    result = run(["status"])
    assert result.exit_code == 2
    assert f"the environment variable {name}='\\udc80' is not text in UTF-8" in result.stderr


@pytest.mark.parametrize(("word", "said"), [
    ("", "the argument '' after --time-zone is empty"),
    ("\udc80", "the argument '\\udc80' after --time-zone is not text in UTF-8"),
    ("a\0b", "the argument 'a\\x00b' after --time-zone has the character U+0000"),
])  # fmt: skip
def test_what_no_argument_means_is_refused_with_the_option_before_it(word: str, said: str) -> None:
    result = run(["pace", "no-run", "--time-zone", word])
    assert result.exit_code == 2
    assert said in result.stderr


def test_an_option_whose_value_is_nothing_is_refused() -> None:
    result = run(["pace", "no-run", "--time-zone="])
    assert (result.exit_code, "the argument '--time-zone=' is empty" in result.stderr) == (2, True)
