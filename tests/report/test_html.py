from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

from kreassign import __version__
from kreassign.model.run import RunHistory
from kreassign.report.run_checks import SnapshotRows
from kreassign.report.run_page import ReportView, longest_moves, render_run, report_view, spread, verdict
from tests.approved import approve
from tests.report.eventful import EVENTFUL, TRAIL
from tests.report.plans import FACTS
from tests.report.runs import AFTER, BEFORE, MB, STARTED_MS, TWO_MOVES, a_move, a_run

VOID = {"meta", "br", "link", "img", "input", "hr"}
WITHIN_A_LINE = {"a", "b", "code", "em", "span", "strong", "td", "th", "text", "title", "tspan"}


class Page(HTMLParser):
    """The words of a page, its lines, its tags with attributes, and whether every tag was closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words = ""
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.lines = [line for words in self.words.split("\f") if (line := " ".join(words.split()))]
        self.words = " ".join(self.lines)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.words += " " if tag in WITHIN_A_LINE else "\f"
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag not in VOID
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in {"style", "script"}:
            self.words += data


def a_view(run: RunHistory, before: SnapshotRows | None = BEFORE, after: SnapshotRows | None = AFTER) -> ReportView:
    return report_view(run, before, after, {})


def page(view: ReportView) -> Page:
    return Page(render_run(view))


def test_the_page_tells_the_run_its_brokers_moves_and_verdict() -> None:
    shown = page(a_view(a_run(TWO_MOVES, throttle_bytes_per_s=20 * MB)))
    assert shown.open == []
    approve(shown.lines, "run-page", VERSION=__version__)


def test_the_page_fetches_nothing_and_executes_only_its_own_scripts() -> None:
    text = render_run(a_view(a_run(TWO_MOVES)))
    attributes = Page(text).attributes
    assert not {name for name, _ in attributes} & {"src", "href", "srcset", "onload", "onclick"}
    (policy,) = (value for name, value in attributes if name == "content" and "default-src" in value)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    hashes = {base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts_of(text)}
    assert hashes == set(re.findall(r"'sha256-(.*?)'", policy))
    assert "url(" not in markup(text)
    assert "@import" not in markup(text)


def scripts_of(text: str) -> list[str]:
    """Scripts that a page executes."""
    return re.findall(r"<script>(.*?)</script>", text, re.DOTALL)


def markup(text: str) -> str:
    """A page without what it executes."""
    return re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)


def test_it_is_made_for_phones_and_for_the_dark() -> None:
    text = render_run(a_view(a_run(TWO_MOVES)))
    assert 'name="viewport" content="width=device-width' in text
    assert "prefers-color-scheme: dark" in text


def test_names_and_problems_from_outside_are_text_not_markup() -> None:
    evil = "<script>alert(1)</script>"
    run = a_run(
        (replace(TWO_MOVES[0], topic=evil, problem=evil),), run_id=evil, problems=(evil,), throttle_residue=(evil,)
    )
    text = markup(render_run(a_view(run)))
    assert "<script>" not in text
    assert page(a_view(run)).open == []
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 5


def test_a_failed_run_says_so_and_where() -> None:
    moves = (replace(TWO_MOVES[0], ended_ms=None, problem="broker 3 died"), TWO_MOVES[1])
    shown = page(
        a_view(a_run(moves, state="failed", throttle_residue=("broker 3 is throttled",), problems=("gave up",)))
    )
    for words in (
        "Some checks failed, or the run had problems.",
        "Problems gave up",
        "broker 3 is throttled",
        "broker 3 died",
    ):
        assert words in shown.words, words


def test_one_failed_check_is_enough_to_fail_the_run() -> None:
    failed = a_view(a_run((replace(TWO_MOVES[0], ended_ms=None), TWO_MOVES[1])), BEFORE, None)
    assert not failed.run.problems
    assert verdict(failed)[0] == "failed"
    assert verdict(a_view(a_run(TWO_MOVES, problems=("slow",))))[0] == "failed"
    assert verdict(a_view(a_run(TWO_MOVES)))[0] == "passed"


def test_a_page_without_snapshots_says_what_to_do() -> None:
    view = a_view(a_run(TWO_MOVES), None, None)
    shown = page(view)
    assert "There are no snapshots to compare" in shown.words
    assert "(not checked)" in shown.words
    assert verdict(view)[0] == "unknown"


def test_a_page_with_one_snapshot_shows_half() -> None:
    shown = page(a_view(a_run(TWO_MOVES), BEFORE, None))
    assert "after: no snapshot" in shown.words
    assert "200 MB → -" in shown.words
    assert "not known before and after" in shown.words


def test_a_run_without_moves_has_a_page() -> None:
    assert "Moves completed 0 of 0" in page(a_view(a_run((), ended_ms=None))).words


def test_long_lists_of_moves_and_details_are_cut_and_say_so() -> None:
    moves = tuple(
        replace(TWO_MOVES[0], partition=number, ended_ms=STARTED_MS + number if number else None)
        for number in range(300)
    )
    shown = page(a_view(a_run(moves)))
    assert "The 200 longest of 300." in shown.words
    assert "orders-299" in shown.words
    assert "and 289 more" in shown.words
    kept = {move.name for move in longest_moves(a_view(a_run(moves)).moves, 2)}
    assert kept == {"orders-0", "orders-299"}


def test_a_page_of_a_thousand_brokers_shows_those_that_received_most() -> None:
    moves = tuple(a_move("orders", broker, (0,), (broker,), bytes_copied=broker * MB) for broker in range(1, 1_001))
    text = markup(render_run(a_view(a_run(moves), None, None)))
    shown = Page(text).words
    assert "The 40 that received most, of 1,000." in shown
    assert "96.1 MB/s 961 MB in 0:10" in shown
    assert "96 MB/s 960 MB in 0:10" not in shown
    assert len(text) < 300_000


def test_spread_is_the_largest_over_the_mean() -> None:
    assert spread([3, 1, None, 2]) == 1.5
    assert spread([4, 0]) == 2
    assert spread([0, 0]) is None
    assert spread([None]) is None


def test_text_of_a_cluster_is_shown_without_characters_that_deceive() -> None:
    moves = (replace(TWO_MOVES[0], problem="refused\x1b[8m by \u202egro.live"), *TWO_MOVES[1:])
    text = render_run(a_view(a_run(moves, cluster_id="c\x00<b>")))
    assert "refused\\u001b[8m by \\u202egro.live" in text
    assert "c\\u0000&lt;b&gt;" in text
    assert not {"\x00", "\x1b", "\u202e"} & set(markup(text))


def test_a_page_with_plan_facts_has_the_bound_and_reasons() -> None:
    shown = page(report_view(a_run(TWO_MOVES), BEFORE, AFTER, {}, facts=FACTS)).words
    assert "Lower bound 2 GB any plan that brings about as much copies at least 2 GB: +50.0%" in shown
    assert "orders-0 a copy goes from broker 1 to broker 3: brings disk 2 GB closer to balance" in shown
    assert "orders-1 a copy goes from broker 1 to broker 2: brings disk 1 GB closer to balance" in shown
    assert "Lower bound" not in page(a_view(a_run(TWO_MOVES))).words


def test_a_reason_is_not_said_of_a_move_that_got_another_destination() -> None:
    elsewhere = replace(TWO_MOVES[0], target=(4, 2))
    shown = page(report_view(a_run((elsewhere,)), BEFORE, AFTER, {}, facts=FACTS)).words
    assert "a copy goes from broker 1 to broker 3" not in shown


def test_what_moved_is_kept_apart_from_what_grew() -> None:
    shown = page(a_view(a_run(TWO_MOVES))).words
    head = "Broker before moved in moved out written or removed meanwhile after"
    assert f"{head} 1 200 MB 0 B -100 MB 0 B 100 MB 2 200 MB 0 B 0 B 0 B 200 MB 3 0 B +100 MB 0 B 0 B 100 MB" in shown
    assert head not in page(a_view(a_run(TWO_MOVES), None, None)).words


def test_a_run_that_was_killed_says_when_among_its_marks_and_in_its_log() -> None:
    text = render_run(report_view(EVENTFUL, BEFORE, AFTER, {}, TRAIL))
    said = "the process that executed the run ended without a word"
    assert Page(text).words.count(said) == 2
    assert re.search(rf'<li><span class="soft">0:40</span> {said}</li>', text)
