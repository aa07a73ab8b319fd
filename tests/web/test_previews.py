"""Previews and moves as texts of the page."""

from __future__ import annotations

from dataclasses import replace

from kreassign.executor.preview import RunPreview
from kreassign.model.run import LogDirTarget
from kreassign.model.throttle import NO_THROTTLE
from kreassign.web.pages import shown
from kreassign.web.previews import sentences_of
from tests.executor.run_events import WHOLE, measured

OUTAGE = "topic t: producers with acks=all are refused until the copies are in sync"
FACTOR = "topic t: replication factor 3 becomes 2"
AHEAD = RunPreview(
    partitions=1, copies=1, copied_bytes=1_000, leader_changes=0, log_dir_moves=0, log_dir_bytes=0, senders=(0,),
    receivers=(1,), rates=NO_THROTTLE, lowest_free=None, unsized=(1,), shortest_s=None, longest_s=None, reason="drain",
    others=2, factors=(FACTOR,), outages=(OUTAGE,), opening="opens at 22:00",
)  # fmt: skip


def test_a_preview_is_said_in_sentences_with_what_is_severe_first() -> None:
    assert [*sentences_of(AHEAD)] == [
        FACTOR,
        OUTAGE,
        "This run changes 1 partition: 1 copy, 1 kB.",
        "Preferred leaders that change: 0.",
        "Brokers: from 0 to 1.",
        "Throttle: none, so that copies take what disks and networks give.",
        "Time: not known without a fixed throttle.",
        "Window: opens at 22:00.",
        "Free space of broker 1: not known, so nothing keeps a disk there from filling.",
        "Reason: drain.",
        "Cluster that it was made for: not known, so its topics are compared by name only.",
        "Already moving by others: 2 partitions.",
    ]


def test_a_move_between_directories_shows_its_destination_on_the_page() -> None:
    run = measured(WHOLE)
    within = replace(run.moves[0], target=run.moves[0].original, log_dirs=(LogDirTarget(0, "/data/d1", "/data/d0"),))
    cells = shown(replace(run, moves=(within,))).tables["moves"][0]
    assert cells[2] == "0,1; 0:/data/d1"


def test_an_ended_run_shows_its_end_on_the_page() -> None:
    assert shown(measured(WHOLE)).fields["ended"].startswith("ended 1970-01-01 00:")
    assert shown(measured(WHOLE[:-1])).fields["ended"] == ""
