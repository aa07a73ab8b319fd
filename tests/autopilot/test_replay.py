"""A policy over what another one saw: what it would have repaired, and what kept it from the rest."""

from __future__ import annotations

from kreassign.autopilot.events import DisksMeasured, DiskUse, FindingMoved, Looked, Name, Planned, State
from kreassign.autopilot.policy import Kind, differences, parse_policy
from kreassign.autopilot.replay import WouldAct, replay
from tests.autopilot.test_scenarios import GONE_3, outages
from tests.autopilot.values import DAY, GIGABYTE, HOUR, Watched

OUTAGES = outages((3, 1 * HOUR, 3.5 * HOUR), (5, 10 * HOUR, 10.5 * HOUR), (3, 20 * HOUR, DAY))
ACT = "[broker-gone]\nlevel = 'act'\n"


def test_replay_says_how_often_a_policy_would_have_acted_and_its_cost() -> None:
    watched = Watched("[broker-gone]\nlevel = 'propose'\n", OUTAGES)
    watched.watch(DAY, every_s=300)
    assert watched.runs == []
    played = replay(watched.events, parse_policy(ACT, "p"))
    assert [(one.name, one.copied_bytes) for one in played.acts] == [(GONE_3, GIGABYTE)] * 2
    assert [round(one.at_ms / 3_600_000) for one in played.acts] == [2, 21]
    assert played.not_repaired == {}
    patient = replay(watched.events, parse_policy(f"{ACT}act-after = '3h'\n", "p"))
    assert [round(one.at_ms / 3_600_000) for one in patient.acts] == [23]
    night = replay(watched.events, parse_policy(f"{ACT}[runs]\nwindows = ['04:00-05:00']\n", "p"))
    assert night.acts == ()
    assert night.not_repaired[GONE_3].keys() == {"window"}


def test_replay_names_what_was_never_planned() -> None:
    watched = Watched("[care]", OUTAGES)
    watched.watch(6 * HOUR, every_s=300)
    (act,) = replay(watched.events, parse_policy(ACT, "p")).acts
    assert (act.name, act.copied_bytes) == (GONE_3, None)


def test_replay_proposes_a_disk_by_its_share() -> None:
    disk = Name(Kind.DISK_FILLS, "broker 1:/d0")
    moved = FindingMoved(0, disk, State.SEEN, "it is there", "it is 82% full")
    looks = [Looked(one * 300_000) for one in range(1, 30)]
    for used, acts in ((82, []), (90, [WouldAct(600_000, disk, 7)])):
        measured = DisksMeasured(0, (DiskUse(1, "/d0", used, 100),))
        events = [measured, moved, *looks, Planned(looks[-1].at_ms, disk, "p", 7, ())]
        assert list(replay(events, parse_policy("[disk-fills]\nlevel = 'act'", "p")).acts) == acts


def test_a_proposal_for_approval_keeps_no_other_from_its_plan() -> None:
    disk, failed = Name(Kind.DISK_FILLS, "broker 1:/d0"), Name(Kind.DIRECTORY_FAILED, "broker 2:/d1")
    moved = [FindingMoved(0, one, State.SEEN, "it is there", "seen") for one in (disk, failed)]
    looks = [Looked(one * 300_000) for one in range(1, 40)]
    policy = parse_policy(
        "[disk-fills]\nlevel = 'ask'\n[directory-failed]\nlevel = 'act'\n[approvals]\nallowed-signers = 'ops'\n", "p"
    )
    played = replay([*moved, *looks], policy)
    assert [one.name for one in played.acts][:1] == [failed]
    assert "no signature has been read" in played.not_repaired[disk]["approvals"]


def test_two_policies_differ_in_lines() -> None:
    policies = (parse_policy(text, "p") for text in (ACT, "[runs]\nthrottle = '1MB/s'"))
    assert list(differences(*policies)) == [
        ("runs", "throttle", "20 MB/s", "1 MB/s"),
        ("broker-gone", "level", "act", "tell"),
    ]
