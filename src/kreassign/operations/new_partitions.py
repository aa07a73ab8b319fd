"""Where the partitions of a new topic go, or more of one that is there, and what they save a later rebalance."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from kreassign.errors import IllegalPlan, Infeasible, InputError, InvariantBroken
from kreassign.model.new_topic import NewPartitions, NewTopic
from kreassign.model.partition import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.operations.plan_inputs import Inputs
from kreassign.planner import Assignment, Evaluation, Problem, evaluate, solve
from kreassign.planner.problem.policy import PlanPolicy, known_bands, tenant_of
from kreassign.planner.results.outcome import Outcome
from kreassign.planner.tasks import ignore_dead_brokers
from kreassign.planner.tasks.new_partitions import (
    ExpectedLoad,
    add_partitions,
    add_topic,
    mean_load,
    placed,
    settled,
)

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class ExpectedRates:
    """What each partition of a new topic is expected to hold, and what is written to it and consumed of it."""

    size_bytes: int = 0
    write_bytes_per_s: float = 0.0
    read_bytes_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Savings:
    """Bytes that a rebalance copies before and after a change that copies nothing; None where there is no plan."""

    before: int | None
    after: int | None

    def __str__(self) -> str:
        if self.before is None or self.after is None:
            return "what a rebalance would copy is not known: no plan keeps the rules"
        return f"a rebalance copies {self.before} bytes before, and {self.after} after this"

    @property
    def saved(self) -> int | None:
        """How many bytes fewer; negative if more."""
        return None if self.before is None or self.after is None else self.before - self.after


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Where new partitions go: `lists` of broker ids, the preferred leader first, for numbers from `first` on.

    `present` are the lists of the topic's other partitions. `evaluation` has every broker before and after.
    """

    topic: str
    first: int
    lists: tuple[tuple[int, ...], ...]
    present: tuple[tuple[int, ...], ...]
    load: ExpectedLoad
    evaluation: Evaluation
    savings: Savings

    @property
    def plan(self) -> Plan:
        """The new partitions as a plan, for a topic that was created otherwise and is empty still."""
        names = (TopicPartition(self.topic, self.first + number) for number in range(len(self.lists)))
        return Plan(tuple(PartitionAssignment(name, one) for name, one in zip(names, self.lists, strict=True)))

    @property
    def new_topic(self) -> NewTopic:
        """What `AdminClient.create_topics` takes. Raises InputError where the topic is there already."""
        if self.first:
            raise InputError(f"topic {self.topic} is there already; create partitions of it")
        return NewTopic(self.topic, assignments=self.lists)

    @property
    def new_partitions(self) -> NewPartitions:
        """What `AdminClient.create_partitions` takes for the topic."""
        return NewPartitions(self.first + len(self.lists), self.lists)

    @property
    def command(self) -> str:
        """The command that creates them; Kafka's tool wants the present lists as well."""
        lists = ",".join(":".join(map(str, one)) for one in (*self.present, *self.lists))
        what = f"--alter --partitions {self.first + len(self.lists)}" if self.first else "--create"
        return f"kafka-topics {what} --topic {self.topic} --replica-assignment {lists}"


def place_topic(
    inputs: Inputs,
    policy: PlanPolicy,
    topic: str,
    partitions: int,
    replication_factor: int,
    expected: ExpectedRates | str | None = None,
) -> Placement:
    """Place the partitions of a new topic so that brokers level, and nothing moves.

    `expected` is what each partition will hold, or another topic that it will be like; without it only counts matter.
    Raises InputError, Infeasible.
    """
    if not _LEGAL_NAME.fullmatch(topic) or topic in {".", ".."}:
        raise InputError(
            f"{topic[:80]!r} cannot be a topic: names have letters, digits, dots, underscores and dashes, 249 at most"
        )
    problem, _ = ignore_dead_brokers(inputs.problem)
    if isinstance(expected, str):
        load = mean_load(problem.partitions, expected, replication_factor)
    else:
        rates = expected or ExpectedRates()
        load = ExpectedLoad.of_rates(
            problem.partitions, rates.size_bytes, rates.write_bytes_per_s, rates.read_bytes_per_s, replication_factor
        )
    posed = add_topic(problem, topic, [replication_factor] * partitions, load, tenant_of(policy, topic))
    # What nothing had until now counts too: in a cluster that is new, everything.
    bands = known_bands(posed.partitions, policy.bands)
    posed = replace(posed, bands=bands, rules=replace(posed.rules, leader_racks=_preferred(policy, topic)))
    return _placement(replace(problem, bands=bands), posed, topic, 0)


def place_partitions(inputs: Inputs, topic: str, total: int) -> Placement:
    """Place more partitions of a topic, up to `total`, so that brokers level, and nothing moves.

    Raises InputError, Infeasible.
    """
    problem, _ = ignore_dead_brokers(inputs.problem)
    posed = add_partitions(problem, topic, total)
    number = problem.partitions.topic_names.index(topic)
    return _placement(problem, posed, topic, int((problem.partitions.topics == number).sum()))


def savings_of_leaders(outcome: Outcome) -> Savings:
    """What a plan that copies nothing saves a rebalance that would change no leader itself."""
    problem = outcome.problem
    fixed = replace(problem, rules=replace(problem.rules, leaders=False, between_brokers=True))
    after = replace(fixed, partitions=replace(fixed.partitions, replicas=outcome.assignment.replicas))
    return Savings(_copied(fixed), _copied(after))


def _preferred(policy: PlanPolicy, topic: str) -> dict[str, tuple[str, ...]]:
    """Racks that are preferred for the leaders of a topic that is not there yet."""
    found = [racks for pattern, racks in policy.leader_racks.items() if re.compile(pattern).fullmatch(topic)]
    return {topic: found[0]} if found else {}


def _placement(problem: Problem, posed: Problem, topic: str, first: int) -> Placement:
    found = solve(posed).assignment
    evaluation = evaluate(posed, found)
    if evaluation.violations:
        raise InvariantBroken(f"new partitions were placed against the rules: {IllegalPlan(evaluation.violations)}")
    number = posed.partitions.topic_names.index(topic)
    of_topic = problem.partitions.topics == number
    present = [problem.partitions.list_of(one) for one in of_topic.nonzero()[0].tolist()]
    new = posed.partitions.topics == number
    last = int(new.nonzero()[0][-1])
    return Placement(
        topic,
        first,
        placed(posed, found),
        tuple(tuple(problem.brokers.ids[one].tolist()) for one in present),
        ExpectedLoad(
            int(posed.partitions.size_bytes[last]),
            float(posed.partitions.write_bytes_per_s[last]),
            float(posed.partitions.read_bytes_per_s[last]),
            float(posed.partitions.leader_cpu[last]),
            float(posed.partitions.follower_cpu[last]),
        ),
        _without_nowhere(evaluation, evaluate(problem, Assignment.current(problem.partitions))),
        Savings(_copied(problem), _copied(settled(posed, found, problem))),
    )


def _without_nowhere(found: Evaluation, present: Evaluation) -> Evaluation:
    """Without the broker that stands for nowhere, and with loads before that are those of now."""
    return replace(
        found, broker_ids=present.broker_ids, before=present.before, after=found.after[:-1], low=found.low[:-1],
        high=found.high[:-1], bytes_in=found.bytes_in[:-1], bytes_out=found.bytes_out[:-1],
        peak_bytes=found.peak_bytes[:-1],
    )  # fmt: skip


def _copied(problem: Problem) -> int | None:
    try:
        return evaluate(problem, solve(problem).assignment).moved_bytes
    except Infeasible:
        return None
