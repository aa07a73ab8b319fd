"""Legal names of topics."""

import pytest

from kreassign.twin.controller.topics import check_topic_name, unified_name

STRANGE = "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "__internal", "...", "a" * 249])
def test_legal_names(name):
    assert not check_topic_name(name).is_failure


@pytest.mark.parametrize(("name", "reason"), [
    ("", "the empty string is not allowed"),
    (".", "'.' is not allowed"),
    ("..", "'..' is not allowed"),
    ("a" * 250, f"the length of '{'a' * 250}' is longer than the max allowed length 249"),
    ("a b", f"'a b' {STRANGE}"),
    ("a/b", f"'a/b' {STRANGE}"),
    ("ä", f"'ä' {STRANGE}"),
    ("a\n", f"'a\n' {STRANGE}"),
])  # fmt: skip
def test_illegal_names_are_refused_in_kafkas_words(name, reason):
    outcome = check_topic_name(name)
    assert (outcome.code, outcome.message) == (17, f"Topic name is invalid: {reason}")


def test_metrics_cannot_tell_dots_from_underscores():
    assert unified_name("a.b_c") == unified_name("a_b.c") == "a_b_c"
    assert unified_name("a-b") != unified_name("a_b")
