"""Scenarios of whole repairs on twins in virtual time: windows that close, clients that suffer, moves of others."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from kreassign.autopilot.events import Name, State
from kreassign.autopilot.policy import Kind
from kreassign.executor.client_guard import ClientAnswer, ClientGuard
from kreassign.executor.history.run_history import read_history
from kreassign.executor.journal import find_journals
from kreassign.executor.runner import ReadClients
from kreassign.model.text import HOUR_MS
from kreassign.twin.faults.schedule import read_fault, schedule_faults
from tests.autopilot.fleet import HOUR_S, Fleet
from tests.executor.twin_runs import TwinRig

LISTS = [[one, (one + 1) % 6, (one + 2) % 6] for one in range(6)]
LOOKS_S = 300.0
ACT = "[broker-gone]\nlevel = 'act'\n[care]\ninterval = '5m'\n[runs]\nthrottle = '300kB/s'\n"
SIZE_BYTES = 200_000_000
GONE_3 = Name(Kind.BROKER_GONE, "broker 3")


def fleet(folder: Path, policy: str = ACT, **layout: float) -> Fleet:
    rig = TwinRig(folder, LISTS * 2, brokers=6, size_bytes=SIZE_BYTES, **layout)
    ours = Fleet(folder, rig, policy)
    ours.context = replace(ours.context, poll_s=30.0)
    return ours


def wall(at_ms: float) -> str:
    return datetime.fromtimestamp(at_ms / 1000, tz=UTC).strftime("%H:%M")


def holding_3(ours: Fleet) -> int:
    return sum(3 in replicas for replicas in ours.rig.replicas.values())


def test_scenario_6_a_dead_broker_is_replaced_without_loads(tmp_path: Path) -> None:
    """Broker 4 does not say for three hours what its disks hold."""
    ours = fleet(tmp_path, f"{ACT}[band-left]\nlevel = 'act'\nlasting = '30m'\nfind-at = 1.0\nignore-below = 0.0\n")
    schedule_faults(ours.rig.twin, [read_fault("refuse:CLUSTER_AUTHORIZATION_FAILED:DescribeLogDirs:4@1s+3h")])
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 1.5 * HOUR_S, LOOKS_S)
        acts = autopilot.memory.acts
    assert [(one.name, one.outcome) for one in acts] == [(GONE_3, "done")]
    assert (holding_3(ours), ours.rig.throttles) == (0, {})


def test_scenario_8_moves_of_people_in_flight_are_not_reversed(tmp_path: Path) -> None:
    """People move two partitions off a disk that passes 85 %, to a broker that is down for an hour."""
    ours = fleet(tmp_path, "[disk-fills]\nlevel = 'act'\n[care]\ninterval = '5m'\n", log_dir_bytes=650_000_000)
    moves = ("crash:3@5m+1h", "move:t:4:4,3,0@10m", "move:t:5:3,0,1@10m")
    schedule_faults(ours.rig.twin, list(map(read_fault, moves)))
    with ours.opened() as autopilot:
        ours.watch(autopilot, 1.5 * HOUR_S, LOOKS_S)
        found = [finding for name, finding in autopilot.memory.findings.items() if name.kind is Kind.DISK_FILLS]
        assert [finding.state for finding in found] == [State.CLOSED] * 2
        assert autopilot.memory.acts == ()
    assert (ours.rig.replicas[4], ours.rig.replicas[5]) == ((4, 3, 0), (3, 0, 1))


def test_scenario_13_a_closed_window_pauses_until_the_next_night(tmp_path: Path) -> None:
    at_ms = TwinRig(tmp_path, LISTS, brokers=6).transport.now_ms()
    window = (
        f"windows = ['{wall(at_ms + HOUR_MS)}-{wall(at_ms + 1.4 * HOUR_MS)}']\n[budget]\nbytes-per-day = '1500MB'\n"
    )
    ours = fleet(tmp_path, ACT + window)
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 2 * HOUR_S, LOOKS_S)
        assert (holding_3(ours), ours.rig.throttles) == (3, {})
        act = autopilot.memory.running
        assert act is not None
        assert read_history(*find_journals(tmp_path, act.run_id)).state == "paused"
        ours.watch(autopilot, 22 * HOUR_S, 5.5 * HOUR_S)
        assert holding_3(ours) == 3
    with ours.opened() as autopilot:
        ours.watch(autopilot, 2 * HOUR_S, 4 * LOOKS_S)
        (done,) = autopilot.memory.acts
    assert (holding_3(ours), ours.rig.throttles) == (0, {})
    assert (done.run_id, done.outcome, done.copied_bytes) == (act.run_id, "done", 6 * SIZE_BYTES)


def test_scenario_14_a_repair_that_hurts_producers_slows_down(tmp_path: Path) -> None:
    """Their p99 is bad from three minutes after the run begins, for as long as it has its whole rate."""
    ours = fleet(tmp_path, f"{ACT}[clients]\nurl = 'http://localhost:9090'\nqueries = ['p99 < 0.2']\n")
    rates: list[tuple[float, int]] = []

    def ask_clients(guard: ClientGuard) -> AbstractContextManager[ReadClients]:
        transport, (query,) = ours.rig.transport, guard.queries
        begun_s = transport.monotonic_s()

        def read() -> tuple[ClientAnswer, ...]:
            rate = max((int(value) for key, value in ours.rig.throttles.items() if key.endswith(".rate")), default=0)
            rates.append((transport.monotonic_s() - begun_s, rate))
            return (query.read(0.4 if rate > 200_000 and rates[-1][0] > 180 else 0.1),)

        return nullcontext(read)

    ours.context = replace(ours.context, ask_clients=ask_clients, poll_s=20.0)
    with ours.opened() as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 1.5 * HOUR_S, LOOKS_S)
        (act,) = autopilot.memory.acts
    slower = next(seconds for seconds, rate in rates if 0 < rate < 300_000)
    assert 180 < slower <= 240
    assert (act.outcome, ours.rig.throttles, holding_3(ours)) == ("done", {}, 0)
    (ended,) = [one for one in ours.messages if "is done" in one.what]
    assert "% slower for 3" in ended.why
