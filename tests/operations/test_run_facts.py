"""Facts of its plan in a run: reports show the bound and the reasons, also when the plan's files are gone."""

from __future__ import annotations

import gzip
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

import kreassign
from kreassign.errors import MalformedPlan
from kreassign.executor.journal import Journal, find_journals
from kreassign.operations.report import report_page
from kreassign.operations.run_journals import keep_facts, kept_facts, kept_facts_path
from kreassign.twin.cluster import Twin, TwinSettings
from kreassign.twin.server import serving
from tests.executor.run_events import started
from tests.report.plans import FACTS
from tests.report.test_html import Page
from tests.twin.asking import cluster


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    with Journal.create(tmp_path, replace(started(), plan_id=FACTS.plan_id)) as journal:
        return journal.path


def test_what_was_kept_is_read_again_and_only_its_owner_may(journal: Path) -> None:
    assert kept_facts(journal, FACTS.plan_id) is None
    keep_facts(journal, FACTS)
    assert kept_facts(journal, FACTS.plan_id) == FACTS
    assert kept_facts_path(journal).stat().st_mode & 0o777 == 0o600
    assert find_journals(journal.parent.parent) == (journal,)


def test_facts_of_another_plan_are_nobodys(journal: Path) -> None:
    keep_facts(journal, replace(FACTS, plan_id="another"))
    assert kept_facts(journal, FACTS.plan_id) is None


@pytest.mark.parametrize("content", [b"no gzip", b""])
def test_damaged_facts_are_named_and_the_page_is_made_without(journal: Path, content: bytes) -> None:
    kept_facts_path(journal).write_bytes(content)
    with pytest.raises(MalformedPlan, match=kept_facts_path(journal).name):
        kept_facts(journal, FACTS.plan_id)
    warnings: list[str] = []
    assert "Lower bound" not in report_page(journal, None, warnings.append)
    (warning,) = warnings
    assert warning.startswith("the report will not show why moves are made: ")


def test_no_more_than_facts_may_hold_is_decompressed(journal: Path) -> None:
    kept_facts_path(journal).write_bytes(gzip.compress(bytes(50_000_000)))
    tracemalloc.start()
    try:
        with pytest.raises(MalformedPlan, match=r"facts\.json\.gz.* holds more than 1 MB, which no plan's facts do"):
            kept_facts(journal, FACTS.plan_id, most_bytes=1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_the_page_of_a_run_needs_no_plan_files_for_its_reasons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    twin = Twin(cluster({"t": [[0, 3], [3, 1], [2, 0]]}), TwinSettings())
    with serving(twin, speed=10.0) as served, kreassign.connect(served.bootstrap_servers) as client:
        snapshot = kreassign.snapshot(client, measure_for_s=0)
        plan = kreassign.plan(snapshot, kreassign.DrainBrokers((3,)))
        done = kreassign.run(client, plan, measure_for_s=0, poll_s=0.1)
    shown = Page(kreassign.report_page(done.run_id)).words
    assert "Lower bound" in shown
    assert "any plan that brings about as much copies at least" in shown
    assert shown.count("broker 3 is to be emptied") == 2
