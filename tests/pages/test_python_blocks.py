"""Blocks of Python on the pages are executed, each as it stands, and what readers are to have of it is there."""

from __future__ import annotations

import hashlib
import hmac
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import kreassign
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_facts import plan_id
from kreassign.model.requests import NewTopic
from kreassign.monitoring.webhooks import signature
from kreassign.operations.plan_files import write_plan
from tests.checks.source import ROOT
from tests.pages.test_commands import ADDRESS, PAGES
from tests.report.plans import FACTS, TARGETS

BLOCK = re.compile(r"^(?P<indent>[ ]*)```python\n(?P<block>.*?)^(?P=indent)```[ ]*$", re.MULTILINE | re.DOTALL)
ELSEWHERE = {"docs/guides/use-from-python.md"}
"""Executed by tests/test_public_api.py, on a twin that serves it for longer."""


def blocks_of(page: Path) -> list[str]:
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [re.sub(rf"^{part['indent']}", "", part["block"], flags=re.MULTILINE) for part in found]


BLOCKS = {str(page.relative_to(ROOT)): blocks for page in PAGES if (blocks := blocks_of(page))}


def executed(page: str, number: int = 0, bootstrap_servers: str = "") -> dict[str, Any]:
    """The names that a block leaves behind."""
    names: dict[str, Any] = {}
    exec(ADDRESS.sub(bootstrap_servers, BLOCKS[page][number]), names)
    return names


def test_every_block_is_executed_by_a_test_here_or_there() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    here = {name: len(blocks) for name, blocks in BLOCKS.items() if name not in ELSEWHERE}
    counted = {name: len(re.findall(rf'executed\("{re.escape(name)}"', text)) for name in here}
    assert counted == here
    assert set(BLOCKS) >= ELSEWHERE


def test_a_plan_is_made_from_python(capsys: pytest.CaptureFixture[str]) -> None:
    names = executed("docs/guides/plan-from-python.md")
    moved = sum({3, 4} & set(replicas) != set() for replicas in names["found"].plan.replicas.values())
    assert moved > 0
    assert str(names["found"].facts.totals.moved_bytes) in capsys.readouterr().out


def test_a_twin_is_broken_in_virtual_time_and_when_it_is_served() -> None:
    names = executed("docs/guides/break-the-twin.md", 0)
    names["transport"].sleep(6.0)
    assert names["twin"].is_frozen(1)
    names["transport"].sleep(20.0)
    assert not names["twin"].is_frozen(1)
    executed("docs/guides/break-the-twin.md", 1)


def test_a_receiver_takes_our_messages_and_no_others() -> None:
    is_genuine = executed("docs/guides/monitor-runs.md")["is_genuine"]
    secret, body, at_s = b"0123456789abcdef", b'{"event": "done"}', int(time.time())
    headers = {"Kreassign-Timestamp": str(at_s), "Kreassign-Signature": f"v1={signature(secret, at_s, body)}"}
    assert is_genuine(secret, headers, body)
    assert not is_genuine(secret, headers, body + b" ")
    assert not is_genuine(b"another secret..", headers, body)
    old = str(at_s - 3_600)
    digest = hmac.new(secret, f"{old}.".encode() + body, hashlib.sha256).hexdigest()
    assert not is_genuine(secret, {"Kreassign-Timestamp": old, "Kreassign-Signature": f"v1={digest}"}, body)


def test_a_page_of_a_plan_is_made_from_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(tuple(PartitionAssignment(name, target) for name, target in TARGETS.items()))
    write_plan(tmp_path / "plan.json", plan, replace(FACTS, plan_id=plan_id(plan)))
    monkeypatch.chdir(tmp_path)
    assert executed("docs/guides/show-plans-and-runs.md")["page"].startswith("<!doctype html>")


def test_the_program_for_spark_submit_is_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kreassign-main.py", "--version"])
    with pytest.raises(SystemExit) as ended:
        executed("docs/guides/run-on-spark.md")
    assert (ended.value.code or 0, "kreassign" in capsys.readouterr().out) == (0, True)


@contextmanager
def from_the_fixture() -> Iterator[str]:
    """Value that the fixture of the guide yields."""
    fixture = executed("docs/guides/test-your-tooling-against-the-twin.md", 0)["bootstrap_servers"]
    yielding = fixture.__wrapped__()
    yield next(yielding)
    assert list(yielding) == []


def test_the_fixture_serves_a_twin_to_the_guides_clients(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with from_the_fixture() as servers:
        with kreassign.connect(servers) as client:
            client.create_topics([NewTopic("fresh", assignments=((0, 1),))]).raise_if_any()
        executed("docs/guides/test-your-tooling-against-the-twin.md", 1, servers)
        assert "['fresh']" in capsys.readouterr().out
        executed("docs/guides/test-your-tooling-against-the-twin.md", 2, servers)
        assert "fresh 1" in capsys.readouterr().out
