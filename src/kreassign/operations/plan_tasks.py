"""Tasks that operators ask a plan for, and the placement of new topics and partitions.

Each task is a value that poses a problem to the search, or answers it itself. `Placement` has the brokers of new
partitions, and what that saves a later rebalance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from enum import Enum
from typing import ClassVar, Protocol

from kreassign.errors import Drifted, IllegalPlan, Infeasible, InputError, InvariantBroken
from kreassign.model import TopicPartition
from kreassign.model.cluster import first_twice, is_topic_name, listed_ids, named_brokers, unified_name
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.plan_facts import NOT_SAID, UNKNOWN_ORIGIN, PlanOrigin
from kreassign.model.requests import NewPartitions, NewTopic
from kreassign.model.run import RunHistory
from kreassign.model.text import format_amount, name_pattern, parse_whole, shortened
from kreassign.operations.plan_files import Assignments, named
from kreassign.operations.plan_inputs import Inputs
from kreassign.planner import Evaluation, evaluate, solve, tasks
from kreassign.planner.problem.policy import PlanPolicy, known_bands, tenant_of
from kreassign.planner.problem.problem import Assignment, Problem
from kreassign.planner.results import Outcome
from kreassign.planner.tasks import Circumstances, TopicChoice, plan_around
from kreassign.planner.tasks.placement import (
    ExpectedLoad,
    add_partitions,
    add_topic,
    check_new_partitions,
    mean_load,
    placed_lists,
    with_new_partitions,
)

SECONDS_PER_DAY = 86_400
ALL_TOPICS = TopicChoice()


class FactorConsent(Enum):
    """Changes of replication factors that a task makes only if the operator allows them.

    A run asks for consent whatever its plan was made for.
    """

    NONE = "none: the task raises factors, or only answers a question"
    UNDERCUT = "below min.insync.replicas: the factor itself was asked for"
    FALL = "below min.insync.replicas, and any that falls: the factor is that of lists from elsewhere"


@dataclass(frozen=True, slots=True, eq=False)
class Posed:
    """A problem to search, or with an `assignment` only to evaluate.

    Unless `repairs_dead`, replicas on dead brokers or lost with a directory stay as they are, but those `lost_on` these
    brokers. `left` are sentences on what the task leaves undone. `consent` says which changes of replication
    factors the operator must allow.
    """

    problem: Problem
    assignment: Assignment | None = None
    repairs_dead: bool = False
    lost_on: tuple[int, ...] = ()
    left: tuple[str, ...] = ()
    consent: FactorConsent = FactorConsent.NONE


class Task(Protocol):
    """A task of `plan`."""

    @property
    def name(self) -> str:
        """Name of the task, as the facts file of its plan has it."""

    def pose(self, inputs: Inputs) -> Posed:
        """Pose the problem for the present state. Raises InputError, Infeasible."""


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Balance the brokers, with all topics or with some; partitions `without` which it is to do stay."""

    topics: TopicChoice = ALL_TOPICS
    without: frozenset[TopicPartition] = frozenset()

    @property
    def name(self) -> str:
        """Name of the task, for the facts file."""
        return f"rebalance{_of(self.topics)}"

    def pose(self, inputs: Inputs) -> Posed:
        """All partitions that may move."""
        topics = None if self.topics == ALL_TOPICS else self.topics
        return Posed(tasks.rebalance(inputs.problem, topics, self.without))


@dataclass(frozen=True, slots=True)
class Relieve:
    """Move so many bytes off a log directory that has too much, to other brokers, and no others."""

    broker: int
    path: str
    leaving_bytes: float

    @property
    def name(self) -> str:
        """Name of the task, for the facts file."""
        return f"relieve {self.path} of broker {self.broker}"

    def pose(self, inputs: Inputs) -> Posed:
        """Let partitions of the directory move."""
        return Posed(tasks.relieve(inputs.problem, self.broker, self.path, self.leaving_bytes))


@dataclass(frozen=True, slots=True)
class AddBrokers:
    """Move replicas to new brokers, and with `mixed` between the others too.

    Partitions `without` which it is to do stay.
    """

    brokers: tuple[int, ...]
    mixed: bool = False
    without: frozenset[TopicPartition] = frozenset()

    @property
    def name(self) -> str:
        """Name of the task, for the facts file."""
        return f"add {named_brokers(self.brokers)}"

    def pose(self, inputs: Inputs) -> Posed:
        """Let replicas move to the new brokers."""
        return Posed(tasks.add_brokers(inputs.problem, self.brokers, only_onto=not self.mixed, without=self.without))


@dataclass(frozen=True, slots=True)
class DrainBrokers:
    """Move all replicas off brokers, live or dead; with `and_balance` balance the others in the same plan."""

    brokers: tuple[int, ...]
    and_balance: bool = False

    @property
    def name(self) -> str:
        """Name of the task, for the facts file."""
        return f"drain {named_brokers(self.brokers)}"

    def pose(self, inputs: Inputs) -> Posed:
        """Move all replicas off the brokers."""
        return Posed(_limited(tasks.drain_brokers(inputs.problem, self.brokers), self.and_balance))


@dataclass(frozen=True, slots=True)
class ReplaceBrokers:
    """Give each broker's replicas to the successor in the same place, and change nothing else."""

    brokers: tuple[int, ...]
    successors: tuple[int, ...]

    @property
    def name(self) -> str:
        """Name of the task, for the facts file."""
        return f"replace {named_brokers(self.brokers)} by {listed_ids(self.successors)}"

    def pose(self, inputs: Inputs) -> Posed:
        """Put the successors' ids in place of the brokers'. Raises InputError unless each broker has a successor."""
        if len(self.successors) != len(self.brokers):
            raise InputError("each broker to replace needs one successor")
        if (twice := first_twice(self.brokers)) is not None:
            raise InputError(f"broker {twice} is given twice; name each broker once")
        return Posed(*tasks.replace_brokers(inputs.problem, dict(zip(self.brokers, self.successors, strict=True))))


@dataclass(frozen=True, slots=True)
class DrainLogDirs:
    """Move all replicas off log directories, each a broker and a path; with `between_brokers` to other brokers too."""

    places: tuple[tuple[int, str], ...]
    between_brokers: bool = False
    and_balance: bool = False

    @property
    def name(self) -> str:
        """Name of the task, for the facts file."""
        return f"drain log directories {', '.join(f'{broker}:{path}' for broker, path in self.places)}"

    def pose(self, inputs: Inputs) -> Posed:
        """Move all replicas out of these directories."""
        problem = tasks.drain_log_dirs(inputs.problem, self.places, between_brokers=self.between_brokers)
        return Posed(_limited(problem, self.and_balance), left=tuple(tasks.in_unknown_log_dirs(problem)))


@dataclass(frozen=True, slots=True)
class ChangeReplicationFactor:
    """Change the replication factor of all topics, or of some."""

    replication_factor: int
    topics: TopicChoice = ALL_TOPICS
    and_balance: bool = False

    @property
    def name(self) -> str:
        """Name of the task, for the facts file."""
        return f"replication factor {self.replication_factor}{_of(self.topics)}"

    def pose(self, inputs: Inputs) -> Posed:
        """Give each partition this number of replicas."""
        problem = tasks.change_factors(inputs.problem, self.replication_factor, self.topics)
        return Posed(_limited(problem, self.and_balance), consent=FactorConsent.UNDERCUT)


@dataclass(frozen=True, slots=True)
class Repair:
    """Replace replicas on dead brokers; add missing ones, and spread them over racks.

    With `lost_on` only those of these brokers are replaced, on dead ones or lost with a log directory, that can be.
    Partitions `without` which it is to do stay as they are, and so do those for which there is no place.
    """

    racks: bool = True
    replication_factors: bool = True
    and_balance: bool = False
    lost_on: tuple[int, ...] = ()
    without: frozenset[TopicPartition] = frozenset()
    name: ClassVar[str] = "repair"

    def pose(self, inputs: Inputs) -> Posed:
        """Replace missing replicas."""
        problem = tasks.repair(
            inputs.problem,
            racks=self.racks,
            factors=self.replication_factors,
            without=self.without,
            leaves_rest=True,
        )
        return Posed(_limited(problem, self.and_balance), repairs_dead=not self.lost_on, lost_on=self.lost_on)


@dataclass(frozen=True, slots=True)
class BalanceLeaders:
    """Balance leadership by reordering replica lists; copy nothing."""

    name: ClassVar[str] = "leaders"

    def pose(self, inputs: Inputs) -> Posed:
        """Let only the order of replicas change."""
        return Posed(tasks.leaders_only(inputs.problem))


@dataclass(frozen=True, slots=True)
class DemoteBrokers:
    """Move leadership off brokers; copy nothing."""

    brokers: tuple[int, ...]

    @property
    def name(self) -> str:
        """Name of the task, for the facts file."""
        return f"demote {named_brokers(self.brokers)}"

    def pose(self, inputs: Inputs) -> Posed:
        """Let the brokers lead only partitions that no other broker can lead."""
        return Posed(tasks.demote(inputs.problem, self.brokers))


@dataclass(frozen=True, slots=True)
class BalanceLogDirs:
    """Balance the log directories of each broker, or of some; with `between_brokers` brokers in the same plan."""

    between_brokers: bool = False
    brokers: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Name of the task, for the facts file."""
        return f"disks of {named_brokers(self.brokers)}" if self.brokers else "disks"

    def pose(self, inputs: Inputs) -> Posed:
        """Let replicas change their directory."""
        return Posed(tasks.balance_disks(inputs.problem, self.brokers, between_brokers=self.between_brokers))


@dataclass(frozen=True, slots=True)
class Restore:
    """Go back to an assignment from before; `source` says whence it is, `origin` of which cluster, where known."""

    wanted: Plan
    source: str
    origin: PlanOrigin = UNKNOWN_ORIGIN

    @property
    def name(self) -> str:
        """Name of the task, for the facts file."""
        return f"restore {self.source}"

    def pose(self, inputs: Inputs) -> Posed:
        """The given assignment. Raises IllegalPlan if it is of another cluster."""
        left = tuple(_compared(self.wanted, self.source, self.origin, inputs))
        return Posed(
            *tasks.restore(inputs.problem, self.wanted, inputs.cluster_id), left=left, consent=FactorConsent.FALL
        )


@dataclass(frozen=True, slots=True)
class Import:
    """Take over an assignment that another tool made."""

    found: Assignments

    @property
    def name(self) -> str:
        """Name of the task, for the facts file."""
        return f"import {self.found.source}"

    def pose(self, inputs: Inputs) -> Posed:
        """The given assignment.

        Raises IllegalPlan if it is of another cluster, Drifted if other brokers hold a partition than it was made for.
        """
        source, file = self.found.source, self.found.file
        unsaid = (*_compared(file.plan, source, file.origin, inputs), *file.unsaid)
        wrong = tasks.held_by_others(inputs.problem, file.expected, file.plan.replicas)
        if wrong:
            first = min(wrong)
            raise Drifted(
                f"{source} was made for another state of the cluster: {len(wrong)} of {len(file.expected)} partitions "
                f"are on other brokers now, for example {first} on {listed_ids(wrong[first])}, not "
                f"{listed_ids(file.expected[first])}; let its maker plan again"
            )
        problem, assignment = tasks.restore(inputs.problem, file.plan, inputs.cluster_id)
        worse = tasks.crowded(inputs.problem, assignment)
        racks = (f"{named(worse)}: more replicas in one rack than before",) if worse else ()
        return Posed(problem, assignment, left=(*unsaid, *racks), consent=FactorConsent.FALL)


def _compared(plan: Plan, source: str, origin: PlanOrigin, inputs: Inputs) -> Iterator[str]:
    """Raise IllegalPlan for another cluster than that of the inputs, or say that this is not known."""
    origin.refuse_others(plan, inputs.cluster_id, inputs.topic_ids)
    if origin.cluster_id is None:
        yield f"the cluster for which {source} was made is {NOT_SAID}"


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Plan as if things were different: brokers added or removed, rates times `traffic`, growth until a day.

    `growth_per_month` is a fraction in 30 days, from the snapshot until `at`.
    """

    added: int = 0
    removed: tuple[int, ...] = ()
    replication_factor: int | None = None
    traffic: float = 1.0
    growth_per_month: float = 0.0
    at: date | None = None
    name: ClassVar[str] = "what if"
    """Without the days, which depend on the snapshot."""

    def pose(self, inputs: Inputs) -> Posed:
        """Return the cluster under these circumstances."""
        return Posed(tasks.what_if(inputs.problem, self.circumstances(inputs)))

    def circumstances(self, inputs: Inputs) -> Circumstances:
        """Circumstances for the planner; days count from the snapshot. Raises InputError for a day before it."""
        days = 0.0
        if self.at is not None:
            midnight = datetime.combine(self.at, time(), UTC)
            days = (midnight.timestamp() - inputs.taken_ms / 1000) / SECONDS_PER_DAY
            if days < 0:
                raise InputError(f"{self.at:%Y-%m-%d} is before the snapshot was taken; specify a later day")
        elif self.growth_per_month:
            raise InputError("growth needs the day until which to forecast")
        return Circumstances(
            self.added, self.removed, self.traffic, self.growth_per_month, days, self.replication_factor
        )


def before_run(run: RunHistory) -> Restore:
    """Restore a run's partitions as they were before the run."""
    moves = ((one.topic_partition, one.original) for one in run.moves)
    topic_ids = {one.topic: one.topic_id for one in run.moves if one.topic_id is not None}
    plan = Plan(tuple(PartitionAssignment(*move) for move in moves))
    return Restore(plan, run.run_id, PlanOrigin(run.cluster_id, topic_ids))


def parse_log_dir(text: str) -> tuple[int, str]:
    """Parse a log directory, `BROKER:PATH`. Raises InputError."""
    broker, colon, path = text.partition(":")
    try:
        return parse_whole(broker if colon and path else ""), path
    except ValueError:
        said = f"{shortened(text)!r} is not a log directory; write BROKER:PATH, for example 3:/data/kafka-1"
        raise InputError(said) from None


def described(found: Circumstances) -> str:
    """The circumstances in words, or that nothing changes."""
    parts = (
        f"{found.added} more broker{'s' if found.added > 1 else ''}" if found.added else "",
        f"without {named_brokers(found.removed)}" if found.removed else "",
        f"traffic x {found.traffic:g}" if found.traffic != 1 else "",
        f"{found.growth_per_month:.1%} growth a month for {found.days:.0f} days" if found.growth_per_month else "",
        f"replication factor {found.factor}" if found.factor else "",
    )
    return ", ".join(filter(None, parts)) or "nothing changes"


def _limited(problem: Problem, and_balance: bool) -> Problem:
    return problem if and_balance else tasks.only_forced(problem)


def _of(topics: TopicChoice) -> str:
    return f" of {', '.join((*topics.names, *topics.patterns))}" if topics.names or topics.patterns else ""


# Placement of a new topic's partitions, or of more partitions of a topic, and what it saves a later rebalance.


@dataclass(frozen=True, slots=True)
class ExpectedRates:
    """Expected size of each partition of a new topic, and the rates at which it is written and consumed."""

    size_bytes: int = 0
    write_bytes_per_s: float = 0.0
    read_bytes_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Savings:
    """Bytes that a rebalance copies before and after a change that copies nothing; None if infeasible."""

    before: int | None
    after: int | None

    def __str__(self) -> str:
        if self.before is None or self.after is None:
            return "what a rebalance would copy is not known: no plan keeps the rules"
        before, after = (format_amount(one, "B") for one in (self.before, self.after))
        return f"a rebalance copies {before} before, and {after} after this"

    @property
    def saved(self) -> int | None:
        """Bytes saved; negative if more are copied."""
        return None if self.before is None or self.after is None else self.before - self.after


@dataclass(frozen=True, slots=True, eq=False)
class NewPlacement:
    """Placement of new partitions: `lists` of broker ids, preferred leader first, for numbers from `first` on.

    `present` are the lists of the topic's other partitions. `evaluation` has every broker before and after.
    `cluster_id` is the id of the cluster that they are for.
    """

    topic: str
    first: int
    lists: tuple[tuple[int, ...], ...]
    present: tuple[tuple[int, ...], ...]
    load: ExpectedLoad
    evaluation: Evaluation
    savings: Savings
    cluster_id: str

    @property
    def plan(self) -> Plan:
        """The new partitions as a plan, for a topic that was created otherwise and is still empty."""
        names = (TopicPartition(self.topic, self.first + number) for number in range(len(self.lists)))
        return Plan(tuple(PartitionAssignment(name, one) for name, one in zip(names, self.lists, strict=True)))

    @property
    def new_topic(self) -> NewTopic:
        """Argument of `AdminClient.create_topics`. Raises InputError if the topic exists."""
        if self.first:
            raise InputError(f"topic {self.topic} is there already; create partitions of it")
        return NewTopic(self.topic, assignments=self.lists)

    @property
    def new_partitions(self) -> NewPartitions:
        """Argument of `AdminClient.create_partitions` for the topic."""
        return NewPartitions(self.first + len(self.lists), self.lists)

    @property
    def command(self) -> str:
        """Command that creates them.

        Kafka's tool wants a list for each present partition too, all of one length, and ignores what is in those. So a
        list of another length, as in the middle of a reassignment, is replaced by that of the first new partition.
        """
        present = (one if len(one) == len(self.lists[0]) else self.lists[0] for one in self.present)
        lists = ",".join(":".join(map(str, one)) for one in (*present, *self.lists))
        what = f"--alter --partitions {self.first + len(self.lists)}" if self.first else "--create"
        return f"kafka-topics {what} --topic {self.topic} --replica-assignment {lists}"


def pose_topic(
    inputs: Inputs,
    policy: PlanPolicy,
    topic: str,
    partitions: int,
    replication_factor: int,
    expected: ExpectedRates | str | None = None,
) -> tuple[Problem, Problem]:
    """The present problem, and that of placing a new topic. Raises InputError, Infeasible."""
    if not is_topic_name(topic):
        raise InputError(
            f"{topic[:80]!r} cannot be a topic: names have letters, digits, dots, underscores and dashes, 249 at most"
        )
    for other in inputs.problem.partitions.topic_names:
        if other != topic and unified_name(other) == unified_name(topic):
            raise InputError(f"topic {topic} collides with topic {other}: in names of metrics, a dot is an underscore")
    check_new_partitions(topic, partitions, extra_records=1)
    problem, _ = plan_around(inputs.problem)
    if isinstance(expected, str):
        load = mean_load(problem.partitions, expected, replication_factor)
    else:
        rates = expected or ExpectedRates()
        load = ExpectedLoad.of_rates(
            problem.partitions, rates.size_bytes, rates.write_bytes_per_s, rates.read_bytes_per_s, replication_factor
        )
    posed = add_topic(problem, topic, [replication_factor] * partitions, load, tenant_of(policy, topic))
    # Goals without any load so far count too: in a new cluster, all of them.
    bands = known_bands(posed.partitions, policy.bands)
    posed = replace(posed, bands=bands, rules=replace(posed.rules, leader_racks=_preferred(policy, topic)))
    return replace(problem, bands=bands), posed


def place_topic(
    inputs: Inputs,
    policy: PlanPolicy,
    topic: str,
    partitions: int,
    replication_factor: int,
    expected: ExpectedRates | str | None = None,
) -> NewPlacement:
    """Place the partitions of a new topic so that brokers are levelled without moves.

    `expected` is what each partition will hold, or another topic that it will be like; without it only counts matter.
    Raises InputError, Infeasible.
    """
    problem, posed = pose_topic(inputs, policy, topic, partitions, replication_factor, expected)
    return _placement(inputs, problem, posed, topic, 0)


def pose_partitions(inputs: Inputs, topic: str, total: int) -> tuple[Problem, Problem]:
    """The present problem, and that of placing more partitions of a topic. Raises InputError, Infeasible."""
    problem, _ = plan_around(inputs.problem)
    return problem, add_partitions(problem, topic, total)


def place_partitions(inputs: Inputs, topic: str, total: int) -> NewPlacement:
    """Place more partitions of a topic, up to `total`, so that brokers are levelled without moves.

    Raises InputError, Infeasible.
    """
    problem, posed = pose_partitions(inputs, topic, total)
    number = problem.partitions.topic_names.index(topic)
    return _placement(inputs, problem, posed, topic, int((problem.partitions.topics == number).sum()))


def savings_of_leaders(outcome: Outcome) -> Savings:
    """Savings of a plan that copies nothing, for a rebalance that would change no leader itself."""
    problem = outcome.problem
    fixed = replace(problem, rules=replace(problem.rules, leaders=False, between_brokers=True))
    after = replace(fixed, partitions=replace(fixed.partitions, replicas=outcome.assignment.replicas))
    return Savings(_copied(fixed), _copied(after))


def _preferred(policy: PlanPolicy, topic: str) -> dict[str, tuple[str, ...]]:
    """Preferred racks for the leaders of a new topic."""
    found = [racks for pattern, racks in policy.leader_racks.items() if name_pattern(pattern).fullmatch(topic)]
    return {topic: found[0]} if found else {}


def _placement(inputs: Inputs, problem: Problem, posed: Problem, topic: str, first: int) -> NewPlacement:
    found = solve(posed).assignment
    evaluation = evaluate(posed, found)
    if evaluation.violations:
        raise InvariantBroken(f"new partitions were placed against the rules: {IllegalPlan(evaluation.violations)}")
    number = posed.partitions.topic_names.index(topic)
    of_topic = problem.partitions.topics == number
    present = [problem.partitions.list_of(one) for one in of_topic.nonzero()[0].tolist()]
    new = posed.partitions.topics == number
    last = int(new.nonzero()[0][-1])
    return NewPlacement(
        topic,
        first,
        placed_lists(posed, found),
        tuple(tuple(problem.brokers.ids[one].tolist()) for one in present),
        ExpectedLoad(
            int(posed.partitions.size_bytes[last]),
            float(posed.partitions.write_bytes_per_s[last]),
            float(posed.partitions.read_bytes_per_s[last]),
            float(posed.partitions.leader_cpu[last]),
            float(posed.partitions.follower_cpu[last]),
        ),
        _without_nowhere(evaluation, evaluate(problem, Assignment.current(problem.partitions))),
        Savings(_copied(problem), _copied(with_new_partitions(posed, found, problem))),
        inputs.cluster_id,
    )


def _without_nowhere(found: Evaluation, present: Evaluation) -> Evaluation:
    """Remove the broker that stands for unplaced replicas; the loads before are the present ones."""
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
