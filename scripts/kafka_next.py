#!/usr/bin/env python3
"""`make kafka-next VERSION=4.5.0`: what a release of Kafka changes for kreassign, and which tests fail on it.

Fetches the jars of the release, prints what it says of itself otherwise than the release that the testbed runs (APIs
and features with their versions, keys of configuration with types and defaults, error codes, help of the tools), and
runs the tests that compare with real Kafka on it. The exit code is that of the tests; 2 if there is no such release.
CONTRIBUTING.md says what to edit afterwards.
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from kreassign.wire.api import Message
from scripts.release_data import ReleaseFacts, default, read_facts, type_name
from testbed import JavaMissing
from testbed.releases import DEFAULT, FORMER, RELEASE_VARIABLE, line

ROOT = Path(__file__).resolve().parent.parent
FETCH_S = 900
SUITES = (
    "tests/conformance",
    "tests/kips",
    "tests/real/test_reassign_differential.py",
    "tests/real/test_reassign_input_differential.py",
    "tests/real/test_election_differential.py",
    "tests/real/test_topics_differential.py",
    "tests/real/test_foreign_throttle.py",
    "tests/real/test_kip_455.py",
    "tests/real/test_kip_179.py",
    "tests/real/test_kip_1335.py",
    "tests/real/test_kips_with_a_quorum.py",
    "tests/real/test_admin_client.py",
    "tests/real/test_decommission.py",
    "tests/real/test_maintenance.py",
    "tests/real/test_run.py",
)
"""Tests that ask real brokers of the testbed's release: conformance, tools, KIPs, maintenance, runs."""
_OTHERS = ("zookeeper", "3.9", "3_9", "391", line(FORMER))
"""Words in the names of tests on other releases."""
_RELEASE = re.compile(r"(\d{1,3})\.\d{1,3}\.\d{1,3}")
_NOT_THERE = re.compile(r"(\S+:jar:\S+) (?:was not found|in \S+ \(|from/to)|Could not find artifact (\S+)")


class NoSuchReleaseError(Exception):
    """There are no jars of the release, with the reason as one line."""


def fetch(release: str) -> None:
    """Fetch the jars of a release unless they are there; NoSuchReleaseError if they cannot be had."""
    named = _RELEASE.fullmatch(release)
    if named is None or int(named[1]) < 4:
        raise NoSuchReleaseError(f"{release!r} is not a release from 4.0.0 on; name one as in VERSION={DEFAULT}")
    command = ["make", "--no-print-directory", f"build/jvm/kafka-{release}.ready"]
    try:
        fetched = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=FETCH_S, check=False)
    except subprocess.TimeoutExpired:
        raise NoSuchReleaseError(
            f"Maven fetched no Kafka {release} within {FETCH_S // 60} minutes; try again when the registry answers"
        ) from None
    if fetched.returncode:
        raise NoSuchReleaseError(why_not(release, fetched.stdout + fetched.stderr))


def why_not(release: str, output: str) -> str:
    """One line about a failed fetch: the artifact that the registry lacks, else the first error of Maven."""
    if missing := _NOT_THERE.search(output):
        return (
            f"Kafka {release} is not in the registry: {(missing[1] or missing[2]).rstrip(':')} was not found. "
            "Name a release that is there"
        )
    error = next((line for line in output.splitlines() if "ERROR" in line), "it said nothing")
    return f"Maven could not fetch Kafka {release}: {error.removeprefix('[ERROR] ')[:300]}"


def differences(before: ReleaseFacts, after: ReleaseFacts) -> Iterator[str]:
    """Lines of text: a heading per subject, and below it what was added (+), went (-) or changed (~)."""
    subjects = (
        ("APIs", before.apis, after.apis),
        ("Features", before.features, after.features),
        ("Keys of brokers", _keys(before.brokers), _keys(after.brokers)),
        ("Keys of topics", _keys(before.topics), _keys(after.topics)),
        ("Error codes", _errors(before), _errors(after)),
    )
    for title, was, now in subjects:
        yield from _under(title, list(_changes(was, now)))
    for tool in dict.fromkeys((*before.help, *after.help)):
        lines = (facts.help.get(tool, "").splitlines() for facts in (before, after))
        diff = itertools.islice(difflib.unified_diff(*lines, lineterm="", n=0), 2, None)
        changed = [f"{line[0]} {line[1:].strip()}" for line in diff if not line.startswith("@@")]
        yield from _under(f"Help of {tool}", changed)


def _under(title: str, lines: list[str]) -> Iterator[str]:
    yield f"{title}: {'no difference' if not lines else ''}".rstrip()
    yield from (f"  {line}" for line in lines)


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*before, *after}):
        was, now = before.get(name), after.get(name)
        if was is None:
            yield f"+ {name}: {now}"
        elif now is None:
            yield f"- {name}: {was}"
        elif was != now:
            yield f"~ {name}: {was} → {now}"


def _keys(configs: Mapping[str, Message]) -> dict[str, str]:
    return {
        name: f"{type_name(config)}, default {default(config)!r}{', read-only' if config.read_only else ''}"
        for name, config in configs.items()
    }


def _errors(facts: ReleaseFacts) -> dict[str, str]:
    return {f"{error.code} {error.name}": f"{error.java_exception}: {error.text}" for error in facts.errors}


def chosen_tests(release: str) -> str:
    """The expression for pytest's -k: all tests but those on other releases than this one."""
    return " and ".join(f"not {name}" for name in _OTHERS if name != line(release))


def run_suites(release: str) -> int:
    """Run the tests on the release; the exit code of pytest."""
    environment = os.environ | {RELEASE_VARIABLE: release, "KREASSIGN_REQUIRE_KAFKA": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "kafka", "-k", chosen_tests(release), *SUITES]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main() -> int:
    """Compare, then test."""
    parser = argparse.ArgumentParser(description="Compare a release of Kafka with the one that the testbed runs.")
    parser.add_argument("version", help="the release, such as 4.5.0")
    parser.add_argument("--against", default=DEFAULT, help=f"the release to compare with (default: {DEFAULT})")
    parser.add_argument("--no-tests", action="store_true", help="print what differs, and run no tests")
    chosen = parser.parse_args()
    try:
        for release in (chosen.against, chosen.version):
            fetch(release)
        lines = differences(read_facts(chosen.against), read_facts(chosen.version))
        sys.stdout.write("\n".join((f"Kafka {chosen.version} beside {chosen.against}", "", *lines, "")))
        sys.stdout.flush()
    except (NoSuchReleaseError, JavaMissing) as error:
        sys.stderr.write(f"kafka-next: {error}\n")
        return 2
    return 0 if chosen.no_tests else run_suites(chosen.version)


if __name__ == "__main__":
    sys.exit(main())
