"""The table of options. That it is Kafka's, byte for byte, is tested against Kafka's own tool."""

import re
from pathlib import Path

import pytest

from kreassign.kafka_tools import leader_election, preferred_replica_election
from kreassign.kafka_tools import topic_options as topic
from kreassign.kafka_tools.command_line import Option, help_table
from kreassign.kafka_tools.reassign import options as reassign


def lines(*options):
    return help_table(options).split("\n")


def test_the_table_has_a_head_and_sorts_its_options():
    table = lines(Option("b", "second"), Option("a", "first"))
    assert [line.split() for line in table] == [
        ["Option", "Description"],
        ["------", "-----------"],
        ["--a", "first"],
        ["--b", "second"],
    ]


def test_each_column_is_as_wide_as_its_widest_line():
    table = lines(Option("a-rather-long-name", "word " * 40))
    assert {len(line) for line in table} == {len("--a-rather-long-name") + 2 + len("  " + "word " * 6 + "word")}
    assert {line.index("D") for line in table[:1]} == {len("--a-rather-long-name") + 2}


def test_values_are_shown_by_type_and_name():
    table = lines(
        Option("a", "", "rate", "Long", -1),
        Option("b", "", "host", is_value_optional=True),
    )
    assert table[2].split("  ")[0] == "--a <Long: rate>"
    assert table[2].rstrip().endswith(" (default: -1)")
    assert table[3].rstrip() == "--b [String: host]"


@pytest.mark.parametrize(("text", "folded"), [
    ("brokers specified by the one --broker-list option that is there",
     ["brokers specified by the one --broker-", "  list option that is there"]),
    ("the type of election is told (see --election-type)",
     ["the type of election is told (see --", "  election-type)"]),
    ("format:\n\t[1]\nend", ["format:", "\t[1]", "end"]),
], ids=["blanks and hyphens", "dashes of an option", "its own line ends"])  # fmt: skip
def test_long_texts_fold_with_an_indent(text, folded):
    assert [line[8:].rstrip() for line in lines(Option("a", text))[2:]] == folded


@pytest.mark.parametrize("module", [reassign, topic, leader_election, preferred_replica_election])
def test_an_option_of_our_own_that_takes_a_value_says_its_default(module):
    """Kafka's options say what Kafka's help says of them; `--zookeeper` is one that newer releases dropped."""
    marks = ("Kafka's own tool does not have this option", "Proposed for Kafka's own tool")
    ours = [option for option in module.OPTIONS if any(mark in option.description for mark in marks)]
    assert not [option.name for option in ours if option.value_name and option.default is None]


def test_the_options_of_our_own_are_found():
    table = help_table(reassign.OPTIONS)
    for default in ("no check", "text", "no limit", "1000"):
        assert f"(default: {default})" in " ".join(table.split())


PAGES = {
    "kafka-reassign-partitions": reassign,
    "kafka-topics": topic,
    "kafka-leader-election": leader_election,
    "kafka-preferred-replica-election": preferred_replica_election,
}


@pytest.mark.parametrize("tool", PAGES)
def test_the_page_of_a_tool_has_every_option_of_its_help(tool):
    page = (Path(__file__).parents[2] / "docs" / "reference" / f"{tool}.md").read_text(encoding="utf-8")
    options = {option.name for option in PAGES[tool].OPTIONS} - {"help", "version"}
    assert not {name for name in options if not re.search(rf"`--{name}[` =]", page)}


@pytest.mark.parametrize(
    "words",
    [
        "`--reassignment-batch-size` | count | 0: all at once",
        "the last batch is not waited for, and `--verify` shows the rest",
        "Throttles are set once, for the whole plan, before the first batch",
        "Another execute with `--additional` is not counted",
        "batches without `--incremental` | steps should have clear boundaries",
        "`--incremental` | the brokers should be busy all the time",
    ],
)
def test_the_page_of_the_tool_says_what_kip_1335_wants_documented(words):
    page = Path(__file__).parents[2] / "docs" / "reference" / "kafka-reassign-partitions.md"
    assert words in " ".join(page.read_text(encoding="utf-8").split())
