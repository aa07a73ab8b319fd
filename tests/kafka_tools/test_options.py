"""Command lines as joptsimple reads them."""

import pytest

from kreassign.kafka_tools.command_line import Option, ParserError, ToolError, parse

KNOWN = (
    Option("list", "no value"),
    Option("rate", "a value", "rate"),
    Option("server", "maybe a value", "server", is_value_optional=True),
)


def read(*words):
    return parse(KNOWN, words)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--rate", "5"], [("rate", "5")]),
        (["--rate=5"], [("rate", "5")]),
        (["--rate=a=b"], [("rate", "a=b")]),
        (["--rate=", "5"], [("rate", "")]),
        (["-rate", "5", "-list"], [("rate", "5"), ("list", None)]),
        (["--rate", "--list"], [("rate", "--list")]),
        (["--rate", "-1"], [("rate", "-1")]),
        (["--server", "a:1"], [("server", "a:1")]),
        (["--server", "--list"], [("server", None), ("list", None)]),
        (["--server"], [("server", None)]),
        (["--server", "-"], [("server", "-")]),
        (["--list=x"], [("list", None)]),
        (["a", "--list", " ", ""], [("list", None)]),
        (["--", "--list"], []),
        (["--list", "--list"], [("list", None), ("list", None)]),
    ],
)
def test_words_are_read_as_options_with_their_values(words, found):
    assert read(*words).found == tuple(found)


@pytest.mark.parametrize(
    ("word", "shown"),
    [("--lis", "lis"), ("--x=1", "x"), ("-x", "x"), ("-lst", "l"), ("-x=1", "x"), ("---list", "-list")],
)
def test_an_unknown_or_abbreviated_option_is_refused(word, shown):
    with pytest.raises(ParserError) as caught:
        read(word)
    expected = f"joptsimple.UnrecognizedOptionException: {shown} is not a recognized option"
    assert str(caught.value) == f'Exception in thread "main" {expected}'


def test_a_missing_value_is_refused():
    with pytest.raises(ParserError) as caught:
        read("--list", "--rate")
    expected = "joptsimple.OptionMissingRequiredArgumentException: Option rate requires an argument"
    assert str(caught.value) == f'Exception in thread "main" {expected}'


def test_all_words_are_counted():
    assert (read().word_count, read(" ").word_count, read("--", "x").word_count) == (0, 1, 2)


def test_a_missing_option_has_no_text_and_its_default_number():
    assert read("--list").text("rate") is None
    assert read("--list").number("rate", 7) == 7


@pytest.mark.parametrize(("text", "number"), [("5", 5), ("+5", 5), ("-1", -1), ("007", 7), (str(2**63 - 1), 2**63 - 1)])
def test_numbers_are_those_of_java(text, number):
    assert read("--rate", text).number("rate", 0) == number


@pytest.mark.parametrize("text", ["abc", "", " 5", "1_000", "1.0", "٥", str(2**63), str(-(2**63) - 1)])
def test_other_text_is_no_number(text):
    with pytest.raises(ToolError) as caught:
        read("--rate", text).number("rate", 0)
    assert str(caught.value) == f"Error: Cannot parse argument '{text}' of option rate"


def test_several_values_are_refused_where_one_is_asked_for():
    options = read("--rate", "1", "--rate", "2")
    with pytest.raises(ToolError) as caught:
        options.text("rate")
    assert str(caught.value) == "Error: Found multiple arguments for option rate, but you asked for only one"
