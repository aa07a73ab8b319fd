"""A few examples of everything that is fuzzed, the same ones every time; thousands of each are tried by `make fuzz`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import click
import pytest

from kreassign.admin import AdminClient
from tests.campaigns.campaign import BrokenError, Tally
from tests.fuzz.__main__ import table
from tests.fuzz.commands import command, unfit
from tests.fuzz.documents import EVIL_NAMES, JSON, TOML, changed, tree
from tests.fuzz.frames import ALL_CALLS, NOT_CALLS
from tests.fuzz.target import Attempt, Target, chance_of, try_examples
from tests.fuzz.targets import TARGETS, try_apart

FIRST = 1_000_000
"""Of the examples of a test, so that they are others than those of a campaign."""
QUICK = [target for target in TARGETS.values() if target.quick]
MANY = 20


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the environment after a target."""
    monkeypatch.setenv("KREASSIGN_STATE_DIR", "/nowhere")
    monkeypatch.setenv("KREASSIGN_CONFIG", os.devnull)


@pytest.mark.parametrize("target", QUICK, ids=lambda target: target.name)
def test_odd_input_is_refused_in_one_line_or_means_something(target: Target) -> None:
    tally = try_examples(target, range(FIRST, FIRST + target.quick))
    assert not tally.broken, "\n\n".join(tally.broken)
    assert tally.count == target.quick


@pytest.mark.thorough
@pytest.mark.parametrize("target", [target for target in QUICK if target.share == 1], ids=lambda target: target.name)
def test_much_odd_input_is_refused_in_one_line_or_means_something(target: Target) -> None:
    begin = FIRST + target.quick
    tally = try_examples(target, range(begin, begin + MANY))
    assert not tally.broken, "\n\n".join(tally.broken)


@pytest.mark.thorough
def test_a_bomb_is_refused_within_its_memory() -> None:
    tally = try_apart("bombs of gzip, zlib and Parquet", FIRST, 2)
    assert not tally.broken, "\n\n".join(tally.broken)
    assert tally.ends == {"refused": 2}


# --- that what is broken is seen -----------------------------------------------------------------------------------


def target_of(attempt: Attempt) -> Target:
    return Target("sample", lambda *_: attempt)


def test_what_raises_or_is_said_to_be_broken_is_told_with_its_number() -> None:
    def attempt(chance: Random) -> bool:
        if chance.random() < 0.5:
            raise KeyError("x")
        raise BrokenError("is no refusal")

    broken = try_examples(target_of(attempt), range(3, 11)).broken
    assert len(broken) == 8
    assert broken[0].startswith("example 3: ")
    assert any("KeyError: 'x'" in sentence for sentence in broken)
    assert any("is no refusal" in sentence for sentence in broken)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (lambda: click.echo("fine", err=True) or exit_with(3), "is no refusal in one line"),
        (lambda: click.echo("error: it is wrong", err=True) or exit_with(2), "does not name the file"),
        (lambda: leave_a_file() or exit_with(2), "leaves files behind"),
    ],
)  # fmt: skip
def test_a_refusal_that_is_none_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Callable[[], None], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.json").write_text("{}")
    with pytest.raises(BrokenError, match=complaint):
        command([], tmp_path / "odd.json", called=click.Command("sample", callback=said))


def leave_a_file() -> None:
    Path("left").write_text("x")
    click.echo("error: odd.json", err=True)


def exit_with(code: int) -> None:
    raise SystemExit(code)


def test_characters_that_control_a_terminal_are_seen_and_others_are_not() -> None:
    harmless = {"a\nb", "a\tb", "[red]bold[/red]", "<script>", "é" * 50, "t\u0301", "|a|b|", "=1+1", "\ufeff"}
    assert {name for name in EVIL_NAMES if not unfit(f"text {name} text")} == harmless


def test_an_example_depends_on_its_number_alone() -> None:
    shape = tree({"a": [1, {"b": "c"}], "d": None})
    for form in (JSON, TOML):
        texts = [changed(shape, form, chance_of("sample", number)) for number in range(100)]
        assert texts == [changed(shape, form, chance_of("sample", number)) for number in range(100)]
        assert len(set(texts)) > 80


def test_every_call_of_the_client_gets_odd_answers() -> None:
    methods = {name for name in dir(AdminClient) if not name.startswith("_")} - NOT_CALLS
    assert methods <= used(), methods - used()


def used() -> set[str]:
    """The methods that the calls use."""
    return {name for call in ALL_CALLS.values() for name in call.__code__.co_names}


def test_the_table_has_a_row_for_each_target_and_sums() -> None:
    first = Tally("a", Counter(refused=2, accepted=1), [0.5, 0.1, 0.2], counts={"memory": Counter(MiB=10)})
    second = Tally("b", Counter(broken=1), [2.0], ["x"], {"memory": Counter(MiB=5)}, failed=1)
    rows = table([first, second])
    assert rows.splitlines()[2:] == [
        "| a | 3 | 2 | 1 | 0.5 | 10 | 0 |",
        "| b | 1 | 0 | 0 | 2.0 | 5 | 1 |",
        "| all | 4 | 2 | 1 | 2.0 | 10 | 1 |",
    ]
