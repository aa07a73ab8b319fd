"""Output of `make kafka-next`, and its refusals: a release that does not exist, or is too old, is one line."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.wire import api
from scripts.kafka_next import SUITES, NoSuchReleaseError, chosen_tests, differences, fetch, why_not
from scripts.release_data import ErrorCode, ReleaseFacts
from testbed.releases import DEFAULT, FORMER

ROOT = Path(__file__).parent.parent.parent
_KEY = api.DESCRIBE_CONFIGS.response.DescribeConfigsResult.DescribeConfigsResourceResult


def key(kind: int, default: str | None, *, read_only: bool = False) -> object:
    return _KEY(name="any", config_type=kind, value=default, config_source=5, read_only=read_only)


BEFORE = ReleaseFacts(
    {"Produce (broker)": "0-13", "Gone (broker)": "0-0"},
    {"kraft.version": "0-1"},
    {"a.ms": key(5, "1"), "b": key(1, "true")},
    {},
    (ErrorCode(124, "FENCED", "FencedException", "old", retriable=False),),
    {"TopicCommand": "Usage\n--list  old\n"},
)
AFTER = replace(
    BEFORE,
    apis={"Produce (broker)": "3-14", "New (broker)": "0-0"},
    brokers={"a.ms": key(5, "2"), "b": key(1, "true"), "c": key(2, None, read_only=True)},
    errors=(ErrorCode(124, "FENCED", "FencedException", "new", retriable=False),),
    help={"TopicCommand": "Usage\n--list  new\n"},
)


def test_each_difference_is_one_line_under_its_subject() -> None:
    assert list(differences(BEFORE, AFTER)) == [
        "APIs:",
        "  - Gone (broker): 0-0",
        "  + New (broker): 0-0",
        "  ~ Produce (broker): 0-13 → 3-14",
        "Features: no difference",
        "Keys of brokers:",
        "  ~ a.ms: long, default '1' → long, default '2'",
        "  + c: string, default None, read-only",
        "Keys of topics: no difference",
        "Error codes:",
        "  ~ 124 FENCED: FencedException: old → FencedException: new",
        "Help of TopicCommand:",
        "  - --list  old",
        "  + --list  new",
    ]


@pytest.mark.parametrize("release", ["", "4", "4.4", "3.9.1", "4.4.0-rc1", "4.4.0; true", "../4.4.0"])
def test_a_release_that_cannot_be_tried_is_refused_unfetched(release: str) -> None:
    with pytest.raises(NoSuchReleaseError, match=r"is not a release from 4\.0\.0 on"):
        fetch(release)


@pytest.mark.parametrize("output", [
    "[ERROR] Could not resolve: org.apache.kafka:kafka_2.13:jar:4.9.0 was not found in https://x during\n",
    "[ERROR] Could not find artifact org.apache.kafka:kafka_2.13:jar:4.9.0 in central (https://x)\n",
])  # fmt: skip
def test_a_release_that_the_registry_lacks_is_named_in_one_line(output: str) -> None:
    assert why_not("4.9.0", output) == (
        "Kafka 4.9.0 is not in the registry: org.apache.kafka:kafka_2.13:jar:4.9.0 was not found. "
        "Name a release that is there"
    )
    assert why_not("4.9.0", "x\n[ERROR] no network\n") == "Maven could not fetch Kafka 4.9.0: no network"


def test_the_makefile_fetches_the_releases_that_the_testbed_runs() -> None:
    values = dict(
        re.findall(r"^(KAFKA|FORMER) := (\S+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert values == {"KAFKA": DEFAULT, "FORMER": FORMER}


def test_the_suites_are_there() -> None:
    assert [suite for suite in SUITES if not (ROOT / suite).exists()] == []


@pytest.mark.parametrize(("release", "is_left_out"), [("4.5.0", True), ("4.3.1", False)])
def test_tests_on_the_release_itself_are_never_left_out(release: str, is_left_out: bool) -> None:
    assert ("not 4.3" in chosen_tests(release)) is is_left_out
    assert chosen_tests(release).startswith("not zookeeper and not 3.9")
