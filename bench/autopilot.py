"""A hundred clusters with an autopilot that repairs all by itself, for ninety days each, in virtual time.

The core and the planner are those of `kreassign autopilot`; clusters are values with troubles drawn by a seed
(`bench/autopilot_world.py`). What must never be is counted, and what was copied is compared with an oracle that knows
the future: it copies for a broker only if that stays away for longer than the policy waits and four hours, fills what
comes back empty, and else copies what the same planner copies for disks and bands.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from statistics import quantiles

from bench.autopilot_world import DAY, HOUR, MINUTE, Kind, Trouble, World
from kreassign.autopilot.core import EndRun, HoldRun, PauseRun, PlanRepair, ReleaseRun, ResumeRun, RunRepair, tick
from kreassign.autopilot.events import Event, Name, NotPlanned, Planned, Rehearsed, Result, RunBegan, RunEnded
from kreassign.autopilot.gates import RESTING
from kreassign.autopilot.memory import Memory, remember
from kreassign.autopilot.policy import Kind as Finding
from kreassign.autopilot.policy import Policy, parse_policy
from kreassign.autopilot.symptoms import Look
from kreassign.errors import IllegalPlan, Infeasible, InputError
from kreassign.model import TopicPartition

CLUSTERS, DAYS = 100, 90.0
POLICY = "[runs]\nthrottle = '100MB/s'\n" + "".join(
    f"[{kind}]\nlevel = 'act'\n" for kind in Finding if Policy().has_remedy(kind)
)
QUIET_S = 5 * MINUTE
"""Looks are so far apart while nothing is the matter; else as the policy says."""

PATIENCE_S = 4 * HOUR
"""The oracle lets a broker be away for so long after the policy would act."""


@dataclass(slots=True)
class Told:
    """Results of one cluster. Amounts are in bytes, times in seconds."""

    seed: int
    acts: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    copied: Counter[str] = field(default_factory=Counter)
    oracle: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    hindsight: int = 0
    messages: int = 0
    redundancy_s: list[float] = field(default_factory=list)
    cpu_s: float = 0.0


class Watch:
    """One cluster and its autopilot."""

    def __init__(self, seed: int, days: float) -> None:
        self.world = World(seed, days)
        self.policy: Policy = parse_policy(POLICY, "policy.toml")
        self.memory = Memory("c")
        self.told = Told(seed)
        self._moved: dict[tuple[TopicPartition, int], tuple[float, Finding]] = {}
        self._held: dict[Trouble, float] = {}

    def watch(self, days: float) -> Told:
        """Look for so long."""
        began = time.process_time()
        while self.world.now_s < days * DAY:
            self._note_troubles()
            self._look()
            is_quiet = not (self.memory.open or self.memory.away or self.memory.running)
            self._let_pass(QUIET_S if is_quiet else self.policy.care.interval)
        self._ask_the_oracle()
        self.told.cpu_s = time.process_time() - began
        return self.told

    def _note(self, event: Event) -> None:
        self.memory = remember(self.memory, event)

    def _let_pass(self, seconds: float) -> None:
        outcome = self.world.go_on(seconds)
        if outcome is not None:
            self._end(outcome)

    def _end(self, outcome: str) -> None:
        run = self.world.run
        assert run is not None
        self.world.run = None
        self._note(RunEnded(round(self.world.now_s * 1000), run.name, Result(outcome), round(run.copied)))
        self.told.outcomes[outcome] += 1
        self.told.copied[run.name.kind] += round(run.copied)
        if outcome == "done" and run.name.kind is Finding.BROKER_GONE:
            away = [
                one
                for one in self.world.on(Kind.OUTAGE, Kind.LOSS)
                if str(run.name.subject) == f"broker {one.brokers[0]}"
            ]
            self.told.redundancy_s += [self.world.now_s - one.begin_s for one in away]

    def _look(self) -> None:
        now = self.world.look()
        decision = tick(self.memory, now, self.policy)
        self.memory = decision.memory
        self.told.messages += len(decision.messages)
        run = self.world.run
        match decision.order:
            case PlanRepair(name):
                self._plan(name)
            case RunRepair(name, plan_id):
                moves = self._plan(name)
                proposal = self.memory.findings[name].proposal
                if moves is not None and proposal is not None and proposal.plan_id == plan_id:
                    self._begin(name, moves, proposal)
            case EndRun():
                assert run is not None
                run.is_ending = True
            case HoldRun() | ReleaseRun() | PauseRun() | ResumeRun() as order:
                assert run is not None
                run.is_held = isinstance(order, HoldRun | PauseRun)
                run.is_left = isinstance(order, PauseRun)
            case None:
                pass

    def _plan(self, name: Name) -> dict[TopicPartition, tuple[int, ...]] | None:
        now = self.world.look()
        if name.kind is Finding.LEADERS:
            return None
        try:
            planned, moves = self.world.plan(name, Look(now, self.memory, self.policy))
        except (InputError, Infeasible, IllegalPlan) as error:
            self._note(NotPlanned(now.at_ms, name, str(error)))
            return None
        if not moves:
            self._note(NotPlanned(now.at_ms, name, "there is nothing to move"))
            return None
        self._note(replace(planned, rehearsal=Rehearsed(now.at_ms, "its runs are copies of a model")))
        return dict(moves)

    def _begin(self, name: Name, moves: dict[TopicPartition, tuple[int, ...]], proposal: Planned) -> None:
        self._judge(name, moves, proposal.copied_bytes)
        at_ms = round(self.world.now_s * 1000)
        self._note(RunBegan(at_ms, name, f"run-{at_ms}", proposal.copied_bytes, proposal.moves, also=proposal.also))
        self.world.begin(name, moves, self.policy)
        self.told.acts[name.kind] += 1

    # What must never be.

    def _judge(self, name: Name, moves: dict[TopicPartition, tuple[int, ...]], copied_bytes: int) -> None:
        world, now_s = self.world, self.world.now_s
        for is_wrong, why in (
            (world.run is not None, "a second run"),
            (bool(world.on(Kind.SPLIT)), "a run while a rack or many brokers are not reached"),
            (bool(world.on(Kind.OTHERS)), "a run beside another tool"),
            (bool(world.on(Kind.BRAKE)), "a run though the brake is pulled"),
            (bool(world.on(Kind.UNREAD)), "a run while a broker does not answer"),
            (not self._explained(name), "an act without a reason"),
            (self._spent(DAY) + copied_bytes > self.policy.budget.bytes_per_day, "more bytes than the day has"),
            (self._spent(7 * DAY) + copied_bytes > self.policy.budget.bytes_per_week, "more than the week has"),
        ):
            if is_wrong:
                self.told.broken.append(f"{why}: {name}, seed {self.told.seed}, at {now_s / HOUR:.1f} h")
        for partition, target in moves.items():
            before = set(world.lists[partition])
            for broker in before - set(target):
                self._moved[partition, broker] = now_s, name.kind
            for broker in set(target) - before:
                left_s, by = self._moved.get((partition, broker), (float("-inf"), name.kind))
                is_free = by in RESTING.get(name.kind, frozenset(Finding))
                if now_s - left_s < self.policy.care.rest and not is_free:
                    self.told.broken.append(f"there and back within its rest: {partition}, seed {self.told.seed}")
        for one in world.on(Kind.OUTAGE):
            if name == (Finding.BROKER_GONE, f"broker {one.brokers[0]}"):
                self.told.hindsight += one.end_s - one.begin_s < self.policy.broker_gone.act_after + PATIENCE_S

    def _explained(self, name: Name) -> bool:
        finding = self.memory.findings[name]
        return bool(finding.seen and finding.proposal and finding.proposal.sentences)

    def _spent(self, seconds: float) -> int:
        since_ms = (self.world.now_s - seconds) * 1000
        return sum(one.copied_bytes for one in self.memory.acts if one.begun_ms > since_ms)

    # What was needed.

    def _note_troubles(self) -> None:
        for one in self.world.on(Kind.OUTAGE, Kind.LOSS):
            if one not in self._held:
                self._held[one] = self.world.held_bytes(one.brokers[0])

    def _ask_the_oracle(self) -> None:
        long_s = self.policy.broker_gone.act_after + PATIENCE_S
        for one, held in self._held.items():
            if one.end_s - one.begin_s > long_s:
                self.told.oracle[Finding.BROKER_GONE] += round(held)
                self.told.oracle[Finding.NEW_BROKER] += round(self.world.share_bytes)
        for kind in (Finding.DISK_FILLS, Finding.BAND_LEFT, Finding.PLACEMENT):
            self.told.oracle[kind] += self.told.copied[kind]


def told_of(seed: int, days: float = DAYS) -> Told:
    """Watch one cluster."""
    return Watch(seed, days).watch(days)


def measure(clusters: int = CLUSTERS, days: float = DAYS) -> None:
    """Print what came of all clusters; exit code 1 if anything was that must never be."""
    began = time.monotonic()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(told_of, range(clusters), [days] * clusters))
    took_s = time.monotonic() - began
    acts, copied, oracle, outcomes = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for one in found:
        acts += one.acts
        copied += one.copied
        oracle += one.oracle
        outcomes += one.outcomes
    print("| what | acts | copied | the oracle | ratio |\n|---|---|---|---|---|")
    for kind in sorted({*acts, *oracle}):
        _row(kind, acts[kind], copied[kind], oracle[kind])
    _row("all", acts.total(), copied.total(), oracle.total())
    times = [seconds / HOUR for told in found for seconds in told.redundancy_s]
    median_h, late_h = quantiles(times, n=20)[9::9] if len(times) > 1 else (math.nan, math.nan)
    broken = [one for told in found for one in told.broken]
    cpu_s = sum(one.cpu_s for one in found)
    print(f"\n{clusters} clusters, {days:.0f} days: {took_s / 60:.1f} min, {cpu_s:.0f} s of CPU")
    print(f"ends of runs: {dict(outcomes)}; messages: {sum(one.messages for one in found)}")
    hindsight = sum(one.hindsight for one in found)
    print(f"copied for brokers that came back within {PATIENCE_S / HOUR:.0f} h more: {hindsight}")
    print(f"full redundancy after a broker went: median {median_h:.1f} h, 95 % {late_h:.1f} h")
    print(f"must never be: {len(broken)}", *broken[:20], sep="\n  ")
    sys.exit(1 if broken else 0)


def _row(what: str, acts: int, copied: int, oracle: int) -> None:
    ratio = f"{copied / oracle:.2f}" if oracle else "—"
    print(f"| {what} | {acts} | {copied / 1e12:.1f} TB | {oracle / 1e12:.1f} TB | {ratio} |")
