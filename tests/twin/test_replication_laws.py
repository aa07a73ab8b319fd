"""Laws that hold whatever happens: random clusters, moves and faults, looked at after every step."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kreassign.twin.replication.copy_rates import leader_share
from kreassign.twin.replication.hardware import InSyncTraffic, ReplicationSettings
from kreassign.twin.replication.replicas import Replicas
from kreassign.twin.replication.state import CopyKey
from tests.twin.boxes import MB, Box, Given, Told, broker, tp

BROKERS = 4
PARTITIONS = 4
REALISTIC = ReplicationSettings()
Step = tuple[str, int, int, float]
Offsets = dict[tuple[int, int], int]


def start() -> Box:
    """Four partitions of different sizes and rates, one of them at its retention, on brokers with small disks."""
    return Box(
        Given((0, 1), size=300, rate=0.5),
        Given((1, 2), size=900, rate=4, retention=1000),
        Given((2, 3, 0), size=50, rate=1, retention=50),
        Given((3,), size=1200, rate=2, log_dir=1),
        hardware={number: broker(net=200, capacity=6000) for number in range(BROKERS)},
        settings=REALISTIC,
    )


STEPS: dict[str, Callable[[Box, int, int, float], None]] = {}


def step(action: Callable[[Box, int, int, float], None]) -> Callable[[Box, int, int, float], None]:
    STEPS[action.__name__] = action
    return action


@step
def move(box: Box, partition: int, number: int, _: float) -> None:
    if number not in box.state(partition).replicas:
        box.add(partition, number)


@step
def remove(box: Box, partition: int, number: int, _: float) -> None:
    state = box.state(partition)
    left = tuple(replica for replica in state.replicas if replica != number)
    in_sync = tuple(replica for replica in state.isr if replica != number)
    if in_sync and number != state.leader and number in state.replicas:
        box.change(partition, replicas=left, isr=in_sync)


@step
def elect(box: Box, partition: int, number: int, _: float) -> None:
    readings, state = box.replication.readings, box.state(partition)
    ends = {replica: readings.log_end_offset(tp(partition), replica) or 0 for replica in state.replicas}
    if number in state.isr and ends[number] == max(ends.values()):
        box.change(partition, leader=number)


@step
def throttle(box: Box, *_: float) -> None:
    box.throttle(round(_[2] / 10, 1))


@step
def unthrottle(box: Box, *_: float) -> None:
    box.throttle(1, leaders=None, followers=None)


@step
def throttle_one(box: Box, partition: int, number: int, amount: float) -> None:
    box.throttle(amount, leaders=f"{partition}:{number}", followers=f"{partition}:{number}")


@step
def write(box: Box, partition: int, _: int, amount: float) -> None:
    box.replication.set_write_rate(tp(partition), round(amount / 10) * MB)


@step
def crash(box: Box, _: int, number: int, __: float) -> None:
    box.replication.crash(number)


@step
def restore(box: Box, _: int, number: int, __: float) -> None:
    box.replication.restore(number)


@step
def cut(box: Box, other: int, number: int, _: float) -> None:
    if other != number:
        box.replication.set_link(other, number, is_cut=True)


@step
def heal(box: Box, other: int, number: int, _: float) -> None:
    if other != number:
        box.replication.set_link(other, number, is_cut=False)


@step
def slow(box: Box, _: int, number: int, amount: float) -> None:
    box.replication.slow_dir(number, "/d0", max(0.01, amount / 100))


@step
def fail(box: Box, _: int, number: int, __: float) -> None:
    box.replication.fail_dir(number, "/d1")


@step
def repair(box: Box, _: int, number: int, __: float) -> None:
    box.replication.restore_dir(number, "/d1")


@step
def rehouse(box: Box, partition: int, number: int, amount: float) -> None:
    box.replication.alter_log_dir(tp(partition), number, "/d0" if amount < 50 else "/d1")


def do(box: Box, script: list[Step], check: Callable[[Box], None] = lambda _: None) -> list[Told]:
    told: list[Told] = []
    for name, partition, number, amount in script:
        STEPS[name](box, partition, number, amount)
        check(box)
        told += box.live(amount)
        check(box)
    return told


scripts = st.lists(
    st.tuples(
        st.sampled_from(sorted(STEPS)),
        st.integers(0, PARTITIONS - 1),
        st.integers(0, BROKERS - 1),
        st.floats(0, 100).map(lambda seconds: round(seconds, 3)),
    ),
    max_size=20,
)


def inside(box: Box) -> Replicas:
    replicas = box.replication._replicas
    box.replication.next_event_ms()
    replicas.positions.settle()
    return replicas


def bytes_on_disk_add_up(box: Box) -> None:
    replicas = inside(box)
    for number in range(BROKERS):
        for log_dir in box.replication.readings.log_dirs(number):
            if log_dir.total_bytes is None or log_dir.usable_bytes is None:
                continue
            index = replicas.state.fleet.log_dir(number, log_dir.path)
            held = sum(replica.size_bytes for replica in log_dir.replicas) + replicas.log_dirs.to_be_deleted[index]
            assert replicas.log_dirs.used_bytes()[index] == pytest.approx(held, abs=20)
            assert held <= log_dir.total_bytes * (1 + 1e-3)


def the_sums_are_those_of_the_parts(box: Box) -> None:
    replicas = inside(box)
    fresh = InSyncTraffic(len(replicas.state.fleet.broker_ids), len(replicas.state.fleet.paths))
    for partition in range(PARTITIONS):
        row = replicas.state.logs.row(tp(partition))
        assert row is not None
        fresh.add(replicas.traffic_of(row))
    for name in ("net_in", "net_out", "leader_counted", "follower_counted", "write", "growth", "size", "sent"):
        assert getattr(replicas.state.in_sync_traffic, name) == pytest.approx(getattr(fresh, name), abs=10), name
    assert (replicas.state.in_sync_traffic.followed == fresh.followed).all()


def nothing_goes_faster_than_it_can(box: Box) -> None:
    replicas = inside(box)
    live, fleet, used = replicas.state.copies.live, replicas.state.fleet, replicas.state.in_sync_traffic
    follows = live[~live["is_future"]]
    leaders = replicas.state.logs.table["leader"][follows["row"]]
    slack = 1 + 1e-9
    limited = follows["leader_throttled"] & ~follows["in_isr"]
    sent = np.bincount(leaders[limited], follows["rate"][limited], BROKERS)
    left = np.maximum(fleet.leader_limit * leader_share(REALISTIC, used) - used.leader_counted, 0)
    assert (sent <= left * slack).all()
    written = np.bincount(live["log_dir"], live["rate"], len(fleet.paths))
    assert (written <= np.maximum(fleet.write - used.write, 0) * slack).all()
    taken_in = np.bincount(follows["broker"], follows["rate"], BROKERS)
    assert (taken_in <= np.maximum(fleet.net_in - used.net_in, 0) * slack).all()


def nobody_has_more_than_the_leader(box: Box) -> None:
    replicas = inside(box)
    live = replicas.state.copies.live
    ends = replicas.state.logs.ends(live["row"], replicas.state.now_ms)
    assert (live["position"] <= ends + 1).all()
    assert (live["begin"] <= live["position"] + 1).all()


def who_can_follow_and_is_in_sync_costs_nothing(box: Box) -> None:
    replicas = inside(box)
    for row, number in replicas.isr.outside:
        assert CopyKey(row, number) not in replicas.state.copies
    # Half a byte counts as nothing, but the millisecond of the arrival may be still to come.
    arrived = np.asarray(replicas.state.copies.live["runs"] & (replicas.positions.lags() <= 0))
    assert not (arrived & replicas.fits(arrived)).any()


def every_law(box: Box) -> None:
    bytes_on_disk_add_up(box)
    the_sums_are_those_of_the_parts(box)
    nothing_goes_faster_than_it_can(box)
    nobody_has_more_than_the_leader(box)
    who_can_follow_and_is_in_sync_costs_nothing(box)


@given(scripts)
def test_the_laws_hold_after_every_step(script: list[Step]) -> None:
    do(start(), script, every_law)


@given(scripts)
def test_offsets_never_go_back(script: list[Step]) -> None:
    before: Offsets = {}

    def check(box: Box) -> None:
        now: Offsets = {}
        for partition in range(PARTITIONS):
            for number in box.state(partition).replicas:
                end = box.replication.readings.log_end_offset(tp(partition), number)
                start_offset = box.replication.readings.log_start_offset(tp(partition), number)
                if end is not None and start_offset is not None:
                    assert start_offset <= end
                    assert end >= before.get((partition, number), 0)
                    now[partition, number] = end
        before.clear()
        before.update(now)

    do(start(), script, check)


@settings(deadline=None, max_examples=30)
@given(scripts)
def test_the_same_steps_tell_the_same(script: list[Step]) -> None:
    assert do(start(), script) == do(start(), script)


@settings(deadline=None, max_examples=30)
@given(scripts, st.integers(1, 7))
def test_it_does_not_matter_in_how_many_steps_time_passes(script: list[Step], pieces: int) -> None:
    whole, sliced = start(), start()
    told = do(whole, script)
    told_in_pieces: list[Told] = []
    for name, partition, number, amount in script:
        STEPS[name](sliced, partition, number, amount)
        total_ms = round(amount * 1000)
        cuts = [total_ms * piece // pieces for piece in range(pieces + 1)]
        for first, last in pairwise(cuts):
            told_in_pieces += sliced.live((last - first) / 1000)
    assert told_in_pieces == told
