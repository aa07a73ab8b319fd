"""One word for one meaning: words that were retired do not come back. What is meant by the others: the glossary.

The table holds what was said once and what is said now. It is checked over the product (names, docstrings, messages,
help), the pages, the benchmarks, the testbed, the scenarios and the names of tests.
"""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.checks.source import Source, assert_none, python, read
from tests.checks.words import Retired, names_of_tests, room, used

RETIRED = (
    # The workflow
    Retired(r"roads?", "workflow"),
    Retired(r"(?:seven|each|per|every|next|data) stops?|stops? of the", "step"),
    # A request is carried out, in plain English; a plan, a run and a move are executed.
    Retired(r"carr(?:y|ies|ying) (?:\S+ ){0,3}?out(?! of)", "execute, run"),
    Retired(r"(?:plans?|runs?|moves?) (?:\S+ ){0,2}carried (?:\S+ )?out", "executed"),
    Retired(r"manner", "RunContext"),
    Retired(r"foret(?:old|ells?)", "predicted, ETA range"),
    Retired(r"bring\w* (?:\S+ ){1,3}to (?:its|their) ends?", "cancel, finish"),
    Retired(r"owes nothing", "has nothing to restore"),
    Retired(r"ailments?", "issue"),
    Retired(r"recall(?:s|ed|ing)?", "cancel, cancellation"),
    Retired(r"owe[sd]?|owing", "pending restore"),
    Retired(r"debts?", "ConfigOverride, pending restore"),
    Retired(r"chronicles?", "audit trail"),
    Retired(r"left runs?", "interrupted runs"),
    Retired("way back", "rollback plan", as_name=True),
    # Asking for something
    Retired(r"wish(?:es|ed)?", "request, next action, update, policy, target"),
    Retired(r"be otherwise", "be changed"),
    Retired(r"what becomes of", "how to treat"),
    Retired(r"do not mind", "ignore"),
    # Looking at the cluster
    Retired(r"whereabouts", "placement state"),
    Retired(r"sightings?", "observation"),
    Retired(r"settledness", "placement progress"),
    Retired(r"busyness", "saturation"),
    Retired(r"(?:tell|tells|telling|told) (?:\S+ )?apart", "distinguish"),
    # Planning and scheduling
    Retired(r"hunger|hungry", "deficit"),
    Retired(r"purse", "budget left"),
    Retired(r"dice", "RNG state"),
    Retired(r"toll", "transfer cost"),
    Retired(r"leave dead", "ignore dead brokers"),
    Retired(r"legs", "move steps"),
    Retired(r"lanes?", "route queue"),
    Retired(r"leftover", "adaptive throttle"),
    # The twin
    Retired(r"doors?|doorbells?", "listener, schedule"),
    Retired(r"disturbances?", "response fault"),
    # Plain words for what is done again, computed, chosen, repaired and closed
    Retired(r"anew", "again, from scratch"),
    Retired(r"reckon(?:s|ed|ing)?", "compute, count, forecast"),
    Retired(r"by lot", "at random"),
    Retired(r"mend(?:s|ed|ing)?", "repair, fix"),
    Retired(r"hangs? up|hung up|hanging up", "close the connection"),
    Retired(r"(?:tak(?:e|es|en|ing)|took) (?:it |(?:the |a )?(?:runs?|plans?) )?up", "resume"),
    Retired(r"side files?", "facts file"),
    # Commands and options
    Retired(r"kreassign tidy", "kreassign compact"),
    Retired("rates over", "measure for", as_name=True),
    # Ordinary words that were names of something else
    Retired("tidy", "compact", as_name=True),
    Retired("carrying", "run session", as_name=True),
    Retired("fitting", "disk admission", as_name=True),
    Retired("judging", "inspection", as_name=True),
    Retired("standing", "move index", as_name=True),
    Retired("ending", "ETA interval", as_name=True),
    Retired("timing", "schedule window", as_name=True),
    Retired("rating", "throttle rates", as_name=True),
    Retired("turns", "priority merge", as_name=True),
    Retired("looking", "observation", as_name=True),
    Retired("placing", "log dir changes", as_name=True),
    Retired("inverse", "rollback plan", as_name=True),
    Retired("framing", "encoding", as_name=True),
    Retired("undoing", "rollback", as_name=True),
    Retired("homes", "initial brokers", as_name=True),
    Retired("office", "ZooKeeper controller", as_name=True),
    Retired("telling", "control messages", as_name=True),
    Retired("situation", "controller context", as_name=True),
)

BOLD = re.compile(r"\*\*(.+?)\*\*")


@cache
def every_text() -> tuple[Source, ...]:
    """Texts to check; of tests only the names of their functions. This file holds the retired words itself."""
    own = ("src/kreassign/**/*.html", "src/kreassign/twin/scenarios/**/*.toml")
    texts = read(*own, "docs/**/*.md", "*.md", "changelog/*.md", "Makefile")
    code = python("src/kreassign", "bench", "testbed", "scripts")
    tests = (names_of_tests(file) for file in python("tests") if file.path != "tests/test_words.py")
    return (*texts, *code, *tests)


def test_the_texts_are_found() -> None:
    paths = {text.path for text in every_text()}
    assert {"README.md", "src/kreassign/cli/main.py", "docs/README.md", "tests/test_pages.py"} <= paths


def test_retired_words_stay_retired() -> None:
    assert_none(finding for text in every_text() for _, finding in used(text, RETIRED))


def test_the_words_in_their_place_are_in_the_glossary() -> None:
    (glossary,) = read("docs/reference/glossary.md")
    terms = {term.lower() for row in glossary.lines if row.startswith("| **") for term in BOLD.findall(row)}
    ours = {"workflow", "execute", "ETA range", "audit trail", "rollback plan", "observation", "placement state"}
    assert {word.lower() for word in ours} <= terms
    assert len(terms) > 80


def test_the_glossary_has_each_word_once() -> None:
    (glossary,) = read("docs/reference/glossary.md")
    terms = [term.lower() for row in glossary.lines if row.startswith("| **") for term in BOLD.findall(row)]
    assert sorted(set(terms)) == sorted(terms)


def page(text: str, path: str = "src/kreassign/admin/client.py") -> Source:
    return Source(path, text)


@pytest.mark.parametrize("text", [
    "class RunWish: ...",
    "def wishes(): ...",
    "x = the_wish.value",
    "# What is wished for",
    "raise ValueError('no such wish')",
    "A Wish is one.",
])  # fmt: skip
def test_a_retired_word_is_found_wherever_it_stands(text: str) -> None:
    ((word, finding),) = used(page(f"\n{text}\n"), [Retired("wish(?:es|ed)?", "request")])
    assert word.standard == "request"
    assert str(finding).endswith("uses 'wish(?:es|ed)?'; the word is 'request'")
    assert finding.line == 2


@pytest.mark.parametrize("text", ["carry a plan out", "carries\n    # out", "carried-out moves", "carry_out(plan)"])
def test_a_phrase_is_found_over_the_end_of_a_line_and_in_names(text: str) -> None:
    assert list(used(page(text, "docs/a.md"), [Retired(r"carr(?:y|ies|ied) (?:\S+ ){0,3}?out", "execute")]))


@pytest.mark.parametrize("text", [
    "the run was taken up", "class TakingUp: ...", "take_up(run)", "it takes the run up", "who took it up",
])  # fmt: skip
def test_a_run_is_resumed_in_every_form(text: str) -> None:
    assert [word.standard for word, _ in used(page(text, "docs/a.md"), RETIRED)] == ["resume"]


@pytest.mark.parametrize(("text", "count"), [
    ("class Ending: ...", 1),
    ("def f(ending): ...", 1),
    ("from a.ending import x", 1),
    ("x.ending", 1),
    ("'the ending of it'", 0),
    ("class EndingOfRun: ...", 0),
])  # fmt: skip
def test_an_ordinary_word_is_retired_only_as_a_name(text: str, count: int) -> None:
    assert len(list(used(page(text), [Retired("ending", "ETA interval", as_name=True)]))) == count


def test_the_name_of_a_module_counts() -> None:
    ((_, finding),) = used(page("", "src/kreassign/executor/ending.py"), [Retired("ending", "x", as_name=True)])
    assert finding.path == "src/kreassign/executor/ending.py"


def test_of_tests_only_the_names_count() -> None:
    text = names_of_tests(page("def test_wish():\n    wish = 1\n", "tests/a/test_it.py"))
    assert [finding.line for _, finding in used(text, [Retired("wish", "request")])] == [1]


@pytest.mark.parametrize(("path", "place"), [
    ("src/kreassign/admin/client.py", "src/kreassign/admin"),
    ("docs/guides/disks.md", "docs"),
    ("README.md", "README.md"),
])  # fmt: skip
def test_allowances_are_for_rooms(path: str, place: str) -> None:
    assert room(path) == place
