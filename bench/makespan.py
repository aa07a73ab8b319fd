"""Durations of plans on the twin under rules of pacing, over the least possible, and the load of brokers.

Controller, replication and protocol are those of the twin; for ours the whole machine is there, with its guards and its
looks once a second. Brokers are limited by their network; nothing is throttled and nothing else is written. Plans are
those of our planner on the cases of `planner_cases/`, and random ones. Time is virtual; the bound is
`moves_on_twin.least_s`. The largest plans are thinned out: of every so many moves one, drawn at random, is made.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.moves_on_twin import Case, Move, least_s, random_case, twin_of
from bench.planner import CASES as PLANNER_CASES
from bench.planner import generated
from bench.planner_files import read_case
from kreassign.admin import AdminClient
from kreassign.executor.events import Event, Request
from kreassign.executor.guards import guard_settings
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.executor.runner import Runner
from kreassign.model import TopicPartition
from kreassign.model.pace import NO_LIMITS, Pace
from kreassign.model.throttle import NO_THROTTLE
from kreassign.planner import Assignment, solve
from kreassign.twin.core import Step, TwinCore
from kreassign.twin.metadata import PartitionChanged
from kreassign.twin.transport import TwinTransport

Moves = Mapping[TopicPartition, Move]
Pick = Callable[[Moves, Moves], Iterable[TopicPartition]]
"""Which of the waiting moves start, given those in flight; both in the order of their names."""

Conduct = Callable[[Case, TwinTransport, AdminClient], None]
"""Executes a plan on a twin to its end."""

KIP_LOOK_S = 1.0
"""The poll interval of KIP-1335 by default."""
CRUISE_CONTROL_LOOK_S = 10.0
CRUISE_CONTROL_MOVES = 5


@dataclass(slots=True)
class Watch:
    """Record of a twin: begin and end of each move, and the load of brokers."""

    moves: Moves
    begun_ms: int
    ended_ms: int = 0
    began_ms: dict[TopicPartition, int] = field(default_factory=dict)
    moved_ms: int = 0
    peak_bytes: int = 0
    peak_disk: int = 0
    _flying: Counter[tuple[str, int]] = field(default_factory=Counter)
    _disk: Counter[int] = field(default_factory=Counter)

    def follow(self, twin: TwinCore, step: Step) -> None:
        """Note what began and what ended."""
        for record in step.records:
            if isinstance(record, PartitionChanged) and record.adding is not None:
                name = record.topic_partition
                if record.adding and name not in self.began_ms:
                    self._begin(name, twin.now_ms)
                elif not record.adding:
                    self._end(name, twin.now_ms)

    def _begin(self, name: TopicPartition, now_ms: int) -> None:
        self.began_ms[name] = now_ms
        self._count(self.moves[name], 1)
        for broker in self.moves[name].adding:
            self._disk[broker] += self.moves[name].size_bytes
            self.peak_disk = max(self.peak_disk, self._disk[broker])

    def _end(self, name: TopicPartition, now_ms: int) -> None:
        move = self.moves[name]
        self.ended_ms = now_ms
        self.moved_ms += now_ms - self.began_ms[name]
        self._count(move, -1)
        for broker in set(move.original) - set(move.target):
            self._disk[broker] -= move.size_bytes

    def _count(self, move: Move, sign: int) -> None:
        self._flying["out", move.original[0]] += sign * move.size_bytes * len(move.adding)
        for broker in move.adding:
            self._flying["in", broker] += sign * move.size_bytes
        ends = [("out", move.original[0]), *(("in", broker) for broker in move.adding)]
        self.peak_bytes = max(self.peak_bytes, *(self._flying[end] for end in ends))


@dataclass(frozen=True, slots=True)
class Rule:
    """A way to pace."""

    name: str
    conduct: Conduct


class Forgetful:
    """In place of a journal."""

    def append(self, event: Event) -> None:
        """Keep nothing."""

    def requests_after(self, number: int) -> tuple[Request, ...]:
        """Return no requests."""
        del number
        return ()


def ours(pace: Pace, case: Case, clock: TwinTransport, client: AdminClient) -> None:
    """Pacing of `kreassign run`."""
    chosen = RunSettings("run", clock.now_ms(), NO_THROTTLE, guard_settings(), pace)
    found = Runner(client, clock, Forgetful()).start(prepare(client, case.plan, chosen))
    assert found.state == "done", found.problems


def by_picking(look_s: float, pick: Pick, case: Case, clock: TwinTransport, client: AdminClient) -> None:
    """Look at what is still listed, start what the rule picks, wait."""
    waiting, flying = dict(case.named), dict[TopicPartition, Move]()
    while waiting or flying:
        if flying:
            ongoing = client.list_partition_reassignments(None)
            flying = {name: move for name, move in flying.items() if name in ongoing}
        starting = {name: waiting.pop(name) for name in list(pick(waiting, flying))}
        if starting:
            client.alter_partition_reassignments(
                {n: m.target for n, m in starting.items()}, warns_of_overrides=False
            ).raise_if_any()
        flying |= starting
        if flying:
            clock.sleep(look_s)


def batches(size: int, waiting: Moves, flying: Moves) -> Iterable[TopicPartition]:
    """KIP-1335: a batch starts when the one before is over."""
    return () if flying else list(waiting)[:size]


def incremental(most: int, waiting: Moves, flying: Moves) -> Iterable[TopicPartition]:
    """KIP-1335 with `--incremental`: free places are filled."""
    return list(waiting)[: most - len(flying)]


def per_broker(most: int, waiting: Moves, flying: Moves) -> Iterator[TopicPartition]:
    """Cruise Control's cap: so many moves that a broker takes part in, by adding, removing or leading."""
    busy = Counter(broker for move in flying.values() for broker in _concerned(move))
    for name, move in waiting.items():
        concerned = _concerned(move)
        if all(busy[broker] < most for broker in concerned):
            busy.update(concerned)
            yield name


def _concerned(move: Move) -> set[int]:
    return {move.original[0], *move.adding, *(set(move.original) - set(move.target))}


RULES = (
    Rule("ours", partial(ours, NO_LIMITS)),
    Rule("everything at once", partial(by_picking, KIP_LOOK_S, partial(incremental, sys.maxsize))),
    *(Rule(f"KIP-1335, batches of {n}", partial(by_picking, KIP_LOOK_S, partial(batches, n))) for n in (10, 50, 200)),
    *(
        Rule(f"KIP-1335, incremental, {n}", partial(by_picking, KIP_LOOK_S, partial(incremental, n)))
        for n in (10, 50, 200)
    ),
    Rule("5 per broker, look every 10 s", partial(by_picking, CRUISE_CONTROL_LOOK_S, partial(per_broker, 5))),
)


def measure() -> None:
    """One table per plan."""
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(Path(folder)):
            tell(case, RULES)
        # Looks once a second weigh the more, the shorter a plan takes; the other rules would take hours here.
        tell(planned_case("D", 5, Path(folder)), RULES[:1])


def cases(folder: Path) -> Iterator[Case]:
    """Plans made by the planner, then random ones."""
    for name, one_in in (("A", 1), ("B", 2), ("C", 5), ("D", 15)):
        yield planned_case(name, one_in, folder)
    for brokers, count in ((12, 300), (60, 600)):
        for seed in range(2):
            yield random_case(brokers, count, seed)


def tell(case: Case, rules: Iterable[Rule]) -> None:
    """Execute a plan by each rule, and print what that took."""
    least = least_s(case.moves)
    moved = sum(move.size_bytes * len(move.adding) for move in case.moves)
    print(f"{case.name}: {len(case.moves):,} moves, {moved / 1e9:,.0f} GB, at least {least:,.0f} s\n")
    print("| rule | over the least | in flight, one broker, GB | more on one disk, GB | hours under-replicated |")
    print("|---|---|---|---|---|")
    for rule in rules:
        started = time.process_time()
        seen = carried_out(case, rule)
        seconds = (seen.ended_ms - seen.begun_ms) / 1000
        print(
            f"| {rule.name} | {seconds / least:.3f} | {seen.peak_bytes / 1e9:.1f} | {seen.peak_disk / 1e9:.1f} "
            f"| {seen.moved_ms / 3_600_000:.1f} |",
            flush=True,
        )
        print(f"{rule.name}: {time.process_time() - started:.1f} s of the processor", file=sys.stderr, flush=True)
    print()


def carried_out(case: Case, rule: Rule) -> Watch:
    """Record of a twin that executes a plan by this rule."""
    with twin_of(case) as (twin, clock, client):
        seen = Watch(case.named, clock.now_ms())
        twin.watch(seen.follow)
        rule.conduct(case, clock, client)
    assert len(seen.began_ms) == len(case.moves), "not every move was made"
    return seen


def planned_case(name: str, one_in: int, folder: Path) -> Case:
    """Copies of our plan for a case of `planner_cases/`; of every `one_in` moves one, drawn at random."""
    case = next(case for case in PLANNER_CASES if case.name == name)
    problem = read_case(generated(case, folder), case.brokers, case.racks)
    before, after = Assignment.current(problem.partitions).lists(), solve(problem).assignment.lists()
    moves = [
        Move(tuple(original), tuple(target), size_bytes)
        for original, target, size_bytes in zip(before, after, problem.partitions.size_bytes.tolist(), strict=True)
        if set(target) - set(original)
    ]
    chosen = sorted(random.Random(1).sample(range(len(moves)), len(moves) // one_in))
    thinned = f", one move of {one_in}" if one_in > 1 else ""
    return Case(f"planner's case {name}{thinned}", case.brokers, tuple(moves[number] for number in chosen))
