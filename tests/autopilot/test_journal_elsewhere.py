"""Decisions in a second place: another host goes on where the lost one stopped, and one process decides. On twins."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from kreassign.autopilot.events import (
    ApprovalAsked,
    ApprovalsJudged,
    Ended,
    Event,
    Name,
    NotPlanned,
    Planned,
    Resumed,
    RunBegan,
    RunEnded,
    Silenced,
    State,
)
from kreassign.autopilot.memory import Memory
from kreassign.autopilot.policy import Kind, Level
from kreassign.clock import Clock
from kreassign.errors import InputError, JournalTaken, MirrorUnavailable, StandsBy
from kreassign.executor.journal import read_events
from kreassign.executor.lease import GROUP_ID
from kreassign.model.run import Operator
from kreassign.operations import journal_waits
from kreassign.operations.autopilot import STAND_BY_S, Autopilot, watch_or_stand_by
from kreassign.operations.autopilot_decisions import Decisions
from kreassign.operations.autopilot_journal import (
    DECISIONS,
    Requests,
    approval_path,
    decisions_path,
    proposal_path,
    remembered,
)
from kreassign.operations.autopilot_keeper import LOST_S, Vigil, decisions_from_afar
from kreassign.operations.mirrors import seen_from_afar
from tests.autopilot.fleet import HOUR_S, Fleet, HostClock
from tests.autopilot.test_approvals_on_twin import Asking
from tests.executor.twin_runs import TwinRig

LISTS = [[one, (one + 1) % 6, (one + 2) % 6] for one in range(6)]
ACT = "[broker-gone]\nlevel = 'act'\n[care]\ninterval = '5m'\n"
GONE = Name(Kind.BROKER_GONE, "broker 3")
LOOKS_S = 300.0


class Killed(BaseException):
    """The process is gone, without any of its ends."""


class Hosts:
    """Two hosts and more with an autopilot of one cluster, whose decisions are in a folder that all of them have."""

    def __init__(self, fleet: Fleet, place: str) -> None:
        self.fleet, self.place = fleet, place
        self.warnings: list[str] = []
        self.vigils: dict[str, Vigil] = {}

    def on(self, host: str, place: str | None = "", clock: Clock | None = None) -> Autopilot:
        """An autopilot of this host, as its process begins it; `place` is its --journal-to."""
        context = replace(
            self.fleet.context,
            state_dir=self.state_dir(host),
            operator=Operator("zoe", host),
            journal_to=self.place if place == "" else place,
            warn=self.warnings.append,
        )
        vigil = self.vigils.setdefault(host, Vigil(self.fleet.rig.transport))
        time = clock or self.fleet.rig.transport
        fleet = self.fleet
        return Autopilot(Decisions(fleet.rig.client, fleet.policy, context, fleet.messages.append, time, vigil=vigil))

    def standing_by(self, host: str) -> Autopilot:
        """An autopilot of this host once it may go on."""
        for _ in range(60):
            with suppress(StandsBy):
                return self.on(host)
            self.wait(STAND_BY_S)
        raise AssertionError("it stands by for ever")

    @contextmanager
    def killed(self, host: str, clock: Clock | None = None) -> Iterator[Autopilot]:
        """An autopilot whose process is killed at the end of the block, or by `Killed`."""
        autopilot = self.on(host, clock=clock)
        try:
            yield autopilot
        except Killed:
            pass
        finally:
            autopilot.decisions.journal.close()

    def state_dir(self, host: str) -> Path:
        return self.fleet.state_dir / host

    def memory(self, host: str) -> Memory:
        return remembered(self.state_dir(host), self.cluster_id)

    def path(self, host: str) -> Path:
        return decisions_path(self.state_dir(host), self.cluster_id)

    @property
    def cluster_id(self) -> str:
        return self.fleet.rig.twin.cluster_id

    def wait(self, seconds: float) -> None:
        self.fleet.rig.transport.sleep(seconds)


def hosts_of(fleet: Fleet) -> Hosts:
    place = fleet.state_dir / "mirror"
    place.mkdir()
    return Hosts(fleet, str(place))


@pytest.fixture
def hosts(tmp_path: Path) -> Hosts:
    return hosts_of(Fleet(tmp_path, TwinRig(tmp_path, LISTS, brokers=6), ACT))


def killing(autopilot: Autopilot, before: type[Event]) -> Callable[[Event], None]:
    """Kill the process right after an event of this class is in its journal, before anything follows."""
    note = autopilot.decisions.note

    def noted(event: Event) -> None:
        note(event)
        if isinstance(event, before):
            raise Killed

    return noted


def test_another_host_goes_on_between_decision_and_act(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = hosts.fleet
    with hosts.killed("a") as autopilot:
        autopilot.look()
        Requests(hosts.state_dir("a"), hosts.cluster_id, ours.rig.transport).silence(
            Name(Kind.LEADERS, "cluster"), 99 * HOUR_S, "ann", "later"
        )
        ours.rig.twin.crash(3)
        monkeypatch.setattr(autopilot.decisions, "note", killing(autopilot, RunBegan))
        ours.watch(autopilot, 4 * HOUR_S, LOOKS_S)
    before = hosts.memory("a")
    assert (before.findings[GONE].state, 3 in ours.holders()) == (State.RUNNING, True)
    with pytest.raises(StandsBy, match=r"zoe@a looks after the cluster, by its decisions in .*mirror"):
        hosts.on("b")
    assert not hosts.path("b").exists(), "nothing is taken from a host that may live"
    with hosts.standing_by("b") as autopilot:
        assert replace(autopilot.memory, keeper=before.keeper) == before, "findings, silences, budgets are the same"
        autopilot.look()
        assert autopilot.memory.findings[GONE].problem.endswith("is not begun")
        ours.watch(autopilot, 3 * HOUR_S, LOOKS_S)
        assert 3 not in ours.holders()
        assert [one.outcome for one in autopilot.memory.acts] == ["not begun", "done"]
        assert autopilot.memory.findings[Name(Kind.LEADERS, "cluster")].silence is not None
    (begun,) = [one for one in read_events(hosts.path("b"), DECISIONS)[: len(read_events(hosts.path("a"), DECISIONS))]
                if isinstance(one, RunBegan)]  # fmt: skip
    assert begun.run_id == before.acts[0].run_id


@pytest.mark.parametrize(("level", "after", "told"), [
    ("act", RunEnded, "is done"), ("ask", ApprovalAsked, "2 approvals wanted"), ("propose", Planned, "to copy"),
    ("act", NotPlanned, "it is not repaired"), ("ask", ApprovalsJudged, "its approval is void"),
])  # fmt: skip
def test_a_message_outlives_a_crash_right_after_its_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str, after: type[Event], told: str
) -> None:
    """Such as while a second place that is gone keeps the event waiting."""
    asking = Asking(tmp_path, "40m" if after is ApprovalsJudged else "24h")
    asking.policy = replace(asking.policy, broker_gone=replace(asking.policy.broker_gone, level=Level(level)))
    autopilot = asking.opened()
    asking.rig.twin.crash(3)
    if after is NotPlanned:
        proposal_path(autopilot.decisions.journal.path, GONE).parent.write_text("in the way")
    note = autopilot.decisions.note

    def noted(event: Event) -> None:
        note(event)
        if isinstance(event, after) and getattr(event, "dead", "-"):
            raise Killed

    monkeypatch.setattr(autopilot.decisions, "note", noted)
    with suppress(Killed):
        asking.watch(autopilot, 2 * HOUR_S, LOOKS_S)
    autopilot.decisions.journal.close()
    with asking.opened() as autopilot:
        asking.watch(autopilot, 2 * LOOKS_S, LOOKS_S)
    assert sum(told in one.what for one in asking.messages) == 1


def test_another_host_ends_the_repair_of_a_lost_one(hosts: Hosts) -> None:
    ours, lost = hosts.fleet, list[str]()

    def lose(run: object, _: object) -> None:
        if getattr(run, "in_flight", ()):
            lost.append(str(getattr(run, "run_id", "")))
            raise Killed

    ours.context = replace(ours.context, observers=(lose,))
    ours.policy = replace(ours.policy, runs=replace(ours.policy.runs, throttle=100_000))
    with hosts.killed("a") as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 4 * HOUR_S, LOOKS_S)
    ours.context = replace(ours.context, observers=())
    run_id = lost[0]
    assert hosts.memory("a").acts[-1].run_id == run_id
    ours.rig.twin.groups.leave(GROUP_ID, "", run_id, ours.rig.twin.now_ms)
    with hosts.standing_by("b") as autopilot:
        ours.watch(autopilot, 2 * HOUR_S, LOOKS_S)
        assert [(one.run_id, one.outcome) for one in autopilot.memory.acts] == [(run_id, "done")]
    assert (3 in ours.holders(), ours.rig.throttles) == (False, {})


def test_a_host_waits_while_another_one_repairs(hosts: Hosts) -> None:
    """Also while that one has the lease of its run only."""
    ours, refusals = hosts.fleet, list[str]()

    def begin_elsewhere(*_: object) -> None:
        for _ in range(2 - len(refusals)):
            with pytest.raises(StandsBy) as refusal:
                hosts.on("b")
            refusals.append(str(refusal.value))
            autopilot.decisions.lease.release()

    ours.context = replace(ours.context, observers=(begin_elsewhere,))
    with hosts.on("a") as autopilot:
        ours.rig.twin.crash(3)
        ours.watch(autopilot, 3 * HOUR_S, LOOKS_S)
    assert "zoe@a looks after the cluster" in refusals[0]
    assert "repairs broker-gone broker 3; this one goes on when that is lost, or over" in refusals[1]


def test_a_host_that_returns_decides_nothing_more(hosts: Hosts) -> None:
    with hosts.killed("a") as old:
        old.look()
        with hosts.standing_by("b") as new:
            new.look()
            with pytest.raises(JournalTaken, match="another process has resumed the autopilot"):
                hosts.fleet.watch(old, HOUR_S, LOOKS_S)
            new.look()
    with hosts.on("a") as back:  # the other one ended in good order
        assert back.memory.keeper is not None
        assert back.memory.keeper.by == "zoe@a"
    kinds = [type(one) for one in read_events(hosts.path("a"), DECISIONS)]
    assert kinds.count(Resumed) == 3
    assert kinds[-1] is Ended


def test_signatures_count_on_another_host(tmp_path: Path) -> None:
    asking = Asking(tmp_path)
    hosts = hosts_of(asking)
    with hosts.killed("a") as autopilot:
        asking.rig.twin.crash(3)
        asking.watch(autopilot, 2 * HOUR_S, LOOKS_S)
        Requests(hosts.state_dir("a"), hosts.cluster_id).approve(GONE, asking.keys["ann"], "ann")
        asking.watch(autopilot, 2 * LOOKS_S, LOOKS_S)
        proposal = autopilot.memory.findings[GONE].proposal
    shutil.rmtree(hosts.state_dir("a"))
    with hosts.standing_by("b") as autopilot:
        assert approval_path(hosts.path("b"), GONE).exists()
        assert autopilot.memory.findings[GONE].proposal == proposal
        Requests(hosts.state_dir("b"), hosts.cluster_id).approve(GONE, asking.keys["bob"], "bob")
        asking.watch(autopilot, 2 * LOOKS_S, LOOKS_S)
        assert [one.outcome for one in autopilot.memory.acts] == ["done"]


def test_it_decides_nothing_while_the_place_is_gone(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_waits, "TOLD_AFTER_S", 0.0)
    place = Path(hosts.place)
    gone = place.with_name("gone")
    decided: list[int] = []
    with hosts.on("a") as autopilot:
        autopilot.look()
        place.rename(gone)

        def bring_back(text: str) -> None:
            hosts.warnings.append(text)
            if "holds" in text:
                decided.append(len(autopilot.memory.findings))
                gone.rename(place)

        autopilot.decisions.locks.warn = bring_back
        hosts.fleet.rig.twin.crash(3)
        hosts.fleet.watch(autopilot, 2 * LOOKS_S, LOOKS_S)
        assert autopilot.memory.findings
    assert decided == [0]
    assert hosts.warnings[0].startswith(f"the autopilot holds: {place} does not keep the journal: ")
    assert "Until then it looks at nothing, and repairs nothing" in hosts.warnings[0]
    assert "the journal of the autopilot can be written again" in hosts.warnings[1]


def test_it_does_not_begin_without_its_place(hosts: Hosts) -> None:
    with pytest.raises(MirrorUnavailable, match="does not keep the journal"):
        hosts.on("a", "/no/such/folder")
    with hosts.on("a") as autopilot:
        autopilot.look()
    place = Path(hosts.place)
    place.rename(place.with_name("gone"))
    place.mkdir()
    with pytest.raises(MirrorUnavailable, match="it has no entry of the autopilot any more"):
        hosts.on("a", None)


def test_decisions_move_to_another_place(hosts: Hosts, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with hosts.on("a") as autopilot:
        autopilot.look()
    with hosts.on("a", str(other)) as autopilot:
        autopilot.look()
    with pytest.raises(InputError, match=f"the autopilot keeps its decisions in {other} by now, by zoe@a"):
        hosts.on("b")
    with hosts.on("b", str(other)) as autopilot:
        autopilot.look()
    with hosts.on("b", "none") as autopilot:
        autopilot.look()
    with pytest.raises(InputError, match="the autopilot left it, by zoe@b"):
        hosts.on("c", str(other))


def test_requests_need_the_process_that_decides(hosts: Hosts) -> None:
    """A request to a journal that another host goes on with would be lost."""
    clock = hosts.fleet.rig.transport
    with hosts.on("a") as autopilot:
        Requests(hosts.state_dir("a"), hosts.cluster_id, clock).off(HOUR_S, "ann", "upgrade")
        autopilot.look()
        assert autopilot.memory.off is not None
    with pytest.raises(InputError, match="no process here looks after cluster"):
        Requests(hosts.state_dir("a"), hosts.cluster_id, clock).off(HOUR_S, "ann", "upgrade")
    with hosts.on("b") as autopilot:
        Requests(hosts.state_dir("b"), hosts.cluster_id, clock).silence(GONE, HOUR_S, "ann", "new disk")
        hosts.wait(1)
        autopilot.look()
        assert autopilot.memory.last_request == 2, "numbers go on from those of the other host"
        assert isinstance(autopilot.memory.findings[GONE].silence, Silenced)


def test_decisions_are_no_run(hosts: Hosts) -> None:
    with hosts.on("a") as autopilot:
        autopilot.look()
    client = hosts.fleet.rig.client
    with pytest.raises(InputError, match="has no run of this cluster"), seen_from_afar(client, hosts.place, None):
        pass
    with decisions_from_afar(client, hosts.place) as state_dir:
        assert remembered(state_dir, hosts.cluster_id) == hosts.memory("a")


def test_a_process_stands_by_and_goes_on_by_itself(hosts: Hosts) -> None:
    clock, warnings = hosts.fleet.rig.transport, list[str]()
    with hosts.killed("a") as autopilot:
        autopilot.look()

    def begin() -> Autopilot:
        autopilot = hosts.on("b")
        autopilot.decisions.report = interrupt
        return autopilot

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    begun_s = clock.monotonic_s()
    with pytest.raises(KeyboardInterrupt):
        watch_or_stand_by(begin, warnings.append, clock)
    assert LOST_S <= clock.monotonic_s() - begun_s < LOST_S + 2 * STAND_BY_S
    assert len(warnings) == 2, "each is said once"
    assert warnings[0].startswith("it stands by, and decides nothing: zoe@a looks after the cluster")
    assert warnings[1] == "this process looks after the cluster from now on"


def test_a_clock_that_is_behind_delays_nobody(hosts: Hosts) -> None:
    """Decisions of a lost host whose clock was two hours ahead are never old by the clock of another."""
    ahead = HostClock(hosts.fleet.rig.transport)
    ahead.ahead_s = 2 * HOUR_S
    with hosts.killed("a", ahead) as autopilot:
        autopilot.look()
    with hosts.standing_by("b") as autopilot:
        autopilot.look()


def test_who_knows_that_a_host_is_lost_takes_over_at_once(hosts: Hosts) -> None:
    with hosts.killed("a") as autopilot:
        autopilot.look()
    hosts.vigils["b"] = Vigil(hosts.fleet.rig.transport, 0.0)
    with hosts.killed("b") as autopilot:
        autopilot.look()
    with hosts.standing_by("a") as autopilot:
        autopilot.look()
        with pytest.raises(StandsBy):
            hosts.on("b")
