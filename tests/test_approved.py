"""Approved screens: a change is seen, one command renews them, and no file is left over."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.approved import FOLDER, RENEWS, compare, named
from tests.checks.source import ROOT, Finding, Source, assert_none, python


def names_asked_for(source: Source) -> list[str]:
    """The names of the screens that a test file compares, as patterns: what is computed may be anything."""
    calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and len(node.args) == 2]
    names = [node.args[1] for node in calls if isinstance(node.func, ast.Name) and node.func.id == "approve"]
    parts = [name.values if isinstance(name, ast.JoinedStr) else [name] for name in names]
    return [
        "".join(re.escape(part.value) if isinstance(part, ast.Constant) else ".+" for part in each) for each in parts
    ]


def misplaced(tests: Iterable[Source], files: Iterable[str]) -> list[Finding]:
    """Approved files for which no test of their folder asks, or more than one."""
    asked: dict[str, list[str]] = {}
    for test in (test for test in tests if "approve(" in test.text):
        asked.setdefault(str(Path(test.path).parent), []).extend(names_asked_for(test))
    found = []
    for file in files:
        folder, _, name = file.rpartition(f"/{FOLDER}/")
        count = sum(bool(re.fullmatch(pattern, name.removesuffix(".txt"))) for pattern in asked.get(folder, ()))
        if count != 1:
            found.append(Finding(file, 1, f"{count or 'no'} tests compare this screen: it should be one"))
    return found


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An approved screen, whatever the environment says of renewing."""
    monkeypatch.delenv(RENEWS, raising=False)
    (tmp_path / "screen.txt").write_text("2 moves\n1 broker\n")
    return tmp_path / "screen.txt"


def test_an_approved_screen_passes(file: Path) -> None:
    compare("2 moves\n1 broker\n", file)


@pytest.mark.parametrize("text", ["2 moves\n3 brokers\n", "2 moves\n1 broker", "2 moves\n1 broker\n\n", ""])
def test_a_changed_screen_fails_and_stays_as_it_was(file: Path, text: str) -> None:
    with pytest.raises(pytest.fail.Exception):
        compare(text, file)
    assert file.read_text() == "2 moves\n1 broker\n"


def test_a_failure_shows_the_difference_and_the_command_that_renews(file: Path) -> None:
    with pytest.raises(pytest.fail.Exception) as failure:
        compare("2 moves\n3 brokers\n", file)
    lines = str(failure.value).splitlines()
    assert lines[3:] == [" 2 moves", "-1 broker", "+3 brokers", "", "If users are to see it so: make approve"]


def test_a_screen_that_nobody_approved_fails(file: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"\+new"):
        compare("new\n", file.with_name("other.txt"))


def test_a_renewed_screen_passes(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RENEWS, "1")
    compare("3 moves\n", file)
    monkeypatch.delenv(RENEWS)
    compare("3 moves\n", file)


def test_parts_that_differ_between_runs_have_names() -> None:
    shown = named(
        "see /a/b, /a and port 90, 12:30", {"FILE": Path("/a/b"), "DIR": "/a", "TIME": re.compile(r"\d\d:\d\d")}
    )
    assert shown == "see <FILE>, <DIR> and port 90, <TIME>"


def test_every_approved_screen_is_compared_by_one_test() -> None:
    files = [path.relative_to(ROOT).as_posix() for path in ROOT.glob(f"tests/**/{FOLDER}/*")]
    assert_none(misplaced(python("tests"), files))


def test_screens_that_no_test_or_more_than_one_compares_are_found() -> None:
    one = Source(
        "tests/a/test_one.py",
        "approve(x, 'plain')\napprove(x, f'of-{name}')\napprove(x, 'twice')\napprove(x, 'a.json')",
    )
    two = Source("tests/a/test_two.py", "approve(x, 'twice', DIR=tmp_path)")
    names = ("plain", "of-a", "of-", "gone", "twice")
    files = [f"tests/a/approved/{name}.txt" for name in names]
    found = misplaced([one, two], [*files, "tests/a/approved/a.json", "tests/approved/plain.txt"])
    assert Counter(finding.path.rpartition("/")[2] for finding in found) == Counter(
        ["of-.txt", "gone.txt", "twice.txt", "plain.txt"]
    )
