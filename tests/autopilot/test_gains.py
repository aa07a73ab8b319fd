"""A repair tells its gain beside its cost: the amount that it is for, before it and once it has settled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kreassign.autopilot.events import Gained, Name, Result, State
from kreassign.autopilot.gains import gained
from kreassign.autopilot.memory import Act, Memory, memory_of
from kreassign.autopilot.observation import Observation, Unknown
from kreassign.autopilot.policy import Kind, parse_policy
from kreassign.autopilot.story import curve, story
from kreassign.autopilot.symptoms import Look
from tests.autopilot.values import DAY, GIGABYTE, HOUR, Watched, cluster

LISTS = [(one % 9, (one + 1) % 9, (one + 2) % 9) for one in range(18)]
WITHOUT_3 = [tuple(broker if broker != 3 else 6 for broker in one) for one in LISTS]
FILLED = [*LISTS[:17], (LISTS[17][0], 9, LISTS[17][2])]

BEFORE = {
    Kind.BROKER_GONE: cluster(0, LISTS, down=[3]),
    Kind.DISK_FILLS: cluster(0, LISTS, used={5: 0.9}),
    Kind.BAND_LEFT: cluster(0, LISTS, used={5: 0.75}),
    Kind.NEW_BROKER: cluster(0, LISTS, brokers=10),
}
AFTER = {
    Kind.BROKER_GONE: cluster(0, WITHOUT_3, down=[3]),
    Kind.DISK_FILLS: cluster(0, LISTS, used={5: 0.6}),
    Kind.BAND_LEFT: cluster(0, LISTS),
    Kind.NEW_BROKER: cluster(0, FILLED, brokers=10),
}


@pytest.mark.parametrize(
    ("kind", "gain"),
    [
        (Kind.BROKER_GONE, "6 replicas out of sync before, 0 replicas out of sync now"),
        (Kind.DISK_FILLS, "90% full before, 60% full now"),
        (
            Kind.BAND_LEFT,
            "the fullest broker at 1.42 times the mean before, the fullest broker at 1.00 times the mean now",
        ),
        (Kind.NEW_BROKER, "0 replicas of 0 B before, 1 replica of 1 GB now"),
    ],
)
def test_a_repair_that_settled_says_what_it_gained(kind: Kind, gain: str) -> None:
    watched = Watched(f"[{kind}]\nlevel = 'act'\n", lambda _: (AFTER if watched.runs else BEFORE)[kind])
    watched.watch(10 * HOUR, every_s=300)
    (act,) = watched.memory.acts
    assert act.gain == gain
    (over,) = [one for one in watched.messages if one.is_over]
    assert over.why.endswith(f"its repair: {act.account}")
    assert act.account.endswith(f"; gained: {gain}")
    assert gain in {one.why for one in story(watched.events, act.name)}
    assert memory_of(watched.events) == replace(watched.memory, cluster_id="")


def test_a_repair_that_did_not_help_says_what_it_gained() -> None:
    watched = Watched("[disk-fills]\nlevel = 'act'\n", lambda _: cluster(0, LISTS, used={5: 0.9}))
    watched.watch(5 * HOUR, every_s=300)
    (told,) = [one for one in watched.messages if "look into it" in one.what]
    assert told.why.endswith("gained: 90% full before, 90% full now")


def test_a_gain_is_measured_once_a_repair_has_settled() -> None:
    """Whether the disk fills still is not known for six hours after copies."""

    def world(now_s: float) -> Observation:
        return cluster(0, LISTS, used={5: 0.5 if watched.runs else 0.46 + 0.04 * now_s / HOUR})

    watched = Watched("[disk-fills]\nlevel = 'act'\nurgent-within = '12h'\n", world)
    watched.watch(11 * HOUR, every_s=300)
    (act,), (gain,) = watched.memory.acts, [one for one in watched.events if isinstance(one, Gained)]
    assert gain.at_ms - (act.ended_ms or 0) == HOUR * 1000
    assert watched.memory.findings[act.name].state is State.SETTLING


def test_no_gain_is_told_that_could_not_be_read() -> None:
    """Broker 1 does not say what its directories hold when the copies are back."""

    def world(_: float) -> Observation:
        after = AFTER[Kind.BROKER_GONE]
        hidden = replace(after, log_dirs={**after.log_dirs, 1: Unknown("no answer")})
        return hidden if watched.runs else BEFORE[Kind.BROKER_GONE]

    watched = Watched("[broker-gone]\nlevel = 'act'\n", world)
    watched.watch(DAY, every_s=300)
    (act,) = watched.memory.acts
    assert (act.name, act.gain) == (Name(Kind.BROKER_GONE, "broker 3"), "")


def test_no_gain_of_a_failed_directory_is_told_while_its_broker_is_down() -> None:
    """Copies on that broker are out of sync by that alone."""
    name = Name(Kind.DIRECTORY_FAILED, "broker 3:/d0")
    now = cluster(2, LISTS, down=[3])
    moves = tuple(one.topic_partition for one in now.placed)
    act = Act(name, "run-0", 0, GIGABYTE, moves, 1, Result.DONE, before="6 replicas out of sync")
    assert gained(Look(now, Memory(), parse_policy("[care]\n", "policy.toml")), act) is None


def test_the_page_of_a_band_has_the_curve_of_its_fullest_broker() -> None:
    watched = Watched("[band-left]\n", lambda now_s: cluster(0, LISTS, used={5: 0.75 + now_s / DAY / 10}))
    watched.watch(8 * HOUR, every_s=300)
    about, points = curve(watched.events, Name(Kind.BAND_LEFT, "cluster"))
    assert about == "broker 5, the fullest"
    assert [one.share for one in points] == pytest.approx([0.75 + hour / 240 for hour in range(8)])
