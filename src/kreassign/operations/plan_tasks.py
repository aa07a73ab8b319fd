"""What operators ask a plan for: each task is a value that poses a problem to the search, or answers it itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Protocol

from kreassign.errors import Drifted, InputError
from kreassign.executor.history.run_history import RunHistory
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.printable import shortened
from kreassign.model.whole_number import parse_whole
from kreassign.operations.assignment_files import Assignments, named
from kreassign.operations.plan_inputs import Inputs
from kreassign.planner import tasks
from kreassign.planner.problem.cluster import Assignment
from kreassign.planner.problem.problem import Problem
from kreassign.planner.tasks import Circumstances, TopicChoice

__all__ = [
    "ALL_TOPICS",
    "AddBrokers",
    "BalanceLeaders",
    "BalanceLogDirs",
    "ChangeReplicationFactor",
    "DemoteBrokers",
    "DrainBrokers",
    "DrainLogDirs",
    "Import",
    "Posed",
    "Rebalance",
    "Repair",
    "ReplaceBrokers",
    "Restore",
    "Task",
    "TopicChoice",
    "WhatIf",
    "before_run",
    "described",
    "parse_log_dir",
]

SECONDS_PER_DAY = 86_400
ALL_TOPICS = TopicChoice()


@dataclass(frozen=True, slots=True, eq=False)
class Posed:
    """A problem to search, or with an `assignment` only to judge.

    Unless `repairs_dead`, what is on dead brokers or was lost with a directory stays as it is. `left` are sentences on
    what an assignment leaves undone.
    """

    problem: Problem
    assignment: Assignment | None = None
    repairs_dead: bool = False
    left: tuple[str, ...] = ()


class Task(Protocol):
    """A task of `plan`."""

    @property
    def name(self) -> str:
        """The task in words, for the facts about a plan."""
        ...

    def pose(self, inputs: Inputs) -> Posed:
        """The problem, from the present state. Raises InputError, Infeasible."""
        ...


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Balance the brokers, with all topics or with some."""

    topics: TopicChoice = ALL_TOPICS

    @property
    def name(self) -> str:
        """The task in words."""
        return f"rebalance{_of(self.topics)}"

    def pose(self, inputs: Inputs) -> Posed:
        """All partitions that may move."""
        return Posed(tasks.rebalance(inputs.problem, None if self.topics == ALL_TOPICS else self.topics))


@dataclass(frozen=True, slots=True)
class AddBrokers:
    """Move replicas to new brokers; with `mixed` between the others too."""

    brokers: tuple[int, ...]
    mixed: bool = False

    @property
    def name(self) -> str:
        """The task in words."""
        return f"add brokers {_listed(self.brokers)}"

    def pose(self, inputs: Inputs) -> Posed:
        """Replicas go to the new brokers."""
        return Posed(tasks.add_brokers(inputs.problem, self.brokers, only_onto=not self.mixed))


@dataclass(frozen=True, slots=True)
class DrainBrokers:
    """Move all replicas off brokers, live or dead; with `and_balance` balance the others in the same plan."""

    brokers: tuple[int, ...]
    and_balance: bool = False

    @property
    def name(self) -> str:
        """The task in words."""
        return f"drain brokers {_listed(self.brokers)}"

    def pose(self, inputs: Inputs) -> Posed:
        """Their replicas go elsewhere."""
        return Posed(_limited(tasks.drain_brokers(inputs.problem, self.brokers), self.and_balance))


@dataclass(frozen=True, slots=True)
class ReplaceBrokers:
    """Give each broker's replicas to the successor in the same place, and change nothing else."""

    brokers: tuple[int, ...]
    successors: tuple[int, ...]

    @property
    def name(self) -> str:
        """The task in words."""
        return f"replace brokers {_listed(self.brokers)} by {_listed(self.successors)}"

    def pose(self, inputs: Inputs) -> Posed:
        """The assignment with other ids in it. Raises InputError unless each broker has a successor."""
        if len(self.successors) != len(self.brokers):
            raise InputError("each broker to replace needs one successor")
        return Posed(*tasks.replace_brokers(inputs.problem, dict(zip(self.brokers, self.successors, strict=True))))


@dataclass(frozen=True, slots=True)
class DrainLogDirs:
    """Move all replicas off log directories, each a broker and a path; with `between_brokers` to other brokers too."""

    places: tuple[tuple[int, str], ...]
    between_brokers: bool = False
    and_balance: bool = False

    @property
    def name(self) -> str:
        """The task in words."""
        return f"drain log directories {', '.join(f'{broker}:{path}' for broker, path in self.places)}"

    def pose(self, inputs: Inputs) -> Posed:
        """What is in them goes elsewhere."""
        problem = tasks.drain_log_dirs(inputs.problem, self.places, between_brokers=self.between_brokers)
        return Posed(_limited(problem, self.and_balance))


@dataclass(frozen=True, slots=True)
class ChangeReplicationFactor:
    """Change the replication factor of all topics, or of some."""

    replication_factor: int
    topics: TopicChoice = ALL_TOPICS
    and_balance: bool = False

    @property
    def name(self) -> str:
        """The task in words."""
        return f"replication factor {self.replication_factor}{_of(self.topics)}"

    def pose(self, inputs: Inputs) -> Posed:
        """So many replicas for each partition."""
        problem = tasks.change_factors(inputs.problem, self.replication_factor, self.topics)
        return Posed(_limited(problem, self.and_balance))


@dataclass(frozen=True, slots=True)
class Repair:
    """Replace replicas on dead brokers; add missing ones, and spread them over racks."""

    racks: bool = True
    replication_factors: bool = True
    and_balance: bool = False

    @property
    def name(self) -> str:
        """The task in words."""
        return "repair"

    def pose(self, inputs: Inputs) -> Posed:
        """What is missing comes back."""
        problem = tasks.repair(inputs.problem, racks=self.racks, factors=self.replication_factors)
        return Posed(_limited(problem, self.and_balance), repairs_dead=True)


@dataclass(frozen=True, slots=True)
class BalanceLeaders:
    """Balance leadership by reordering replica lists; copy nothing."""

    @property
    def name(self) -> str:
        """The task in words."""
        return "leaders"

    def pose(self, inputs: Inputs) -> Posed:
        """Only the order of replicas is free."""
        return Posed(tasks.leaders_only(inputs.problem))


@dataclass(frozen=True, slots=True)
class DemoteBrokers:
    """Move leadership off brokers; copy nothing."""

    brokers: tuple[int, ...]

    @property
    def name(self) -> str:
        """The task in words."""
        return f"demote brokers {_listed(self.brokers)}"

    def pose(self, inputs: Inputs) -> Posed:
        """They lead nothing that another can lead."""
        return Posed(tasks.demote(inputs.problem, self.brokers))


@dataclass(frozen=True, slots=True)
class BalanceLogDirs:
    """Balance the log directories of each broker; with `between_brokers` balance brokers in the same plan."""

    between_brokers: bool = False

    @property
    def name(self) -> str:
        """The task in words."""
        return "disks"

    def pose(self, inputs: Inputs) -> Posed:
        """Replicas may change their directory."""
        return Posed(tasks.balance_disks(inputs.problem, between_brokers=self.between_brokers))


@dataclass(frozen=True, slots=True)
class Restore:
    """Go back to an assignment from before; `source` says whence it is."""

    wanted: Plan
    source: str

    @property
    def name(self) -> str:
        """The task in words."""
        return f"restore {self.source}"

    def pose(self, inputs: Inputs) -> Posed:
        """The assignment itself."""
        return Posed(*tasks.restore(inputs.problem, self.wanted))


@dataclass(frozen=True, slots=True)
class Import:
    """Take over an assignment that another tool made."""

    found: Assignments

    @property
    def name(self) -> str:
        """The task in words."""
        return f"import {self.found.source}"

    def pose(self, inputs: Inputs) -> Posed:
        """The assignment itself. Raises Drifted where other brokers hold a partition than it was made for."""
        wrong = tasks.held_by_others(inputs.problem, self.found.expected)
        if wrong:
            first = min(wrong)
            raise Drifted(
                f"{self.found.source} was made for another state of the cluster: {len(wrong)} of "
                f"{len(self.found.expected)} partitions are on other brokers now, for example {first} on "
                f"{_listed(wrong[first])}, not {_listed(self.found.expected[first])}; let its maker plan again"
            )
        problem, assignment = tasks.restore(inputs.problem, self.found.plan)
        worse = tasks.crowded(inputs.problem, assignment)
        racks = (f"{named(worse)}: more replicas in one rack than before",) if worse else ()
        return Posed(problem, assignment, left=(*self.found.unsaid, *racks))


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

    @property
    def name(self) -> str:
        """The task in words, without the days, which only a snapshot has."""
        return "what if"

    def pose(self, inputs: Inputs) -> Posed:
        """The same cluster under these circumstances."""
        return Posed(tasks.what_if(inputs.problem, self.circumstances(inputs)))

    def circumstances(self, inputs: Inputs) -> Circumstances:
        """These for the planner; days count from the snapshot. Raises InputError for a day before it."""
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


def before_run(run: RunHistory) -> Plan:
    """The assignment that the partitions of a run had before it."""
    return Plan(tuple(PartitionAssignment(TopicPartition(one.topic, one.partition), one.original) for one in run.moves))


def parse_log_dir(text: str) -> tuple[int, str]:
    """A log directory, `BROKER:PATH`. Raises InputError."""
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
        f"without brokers {_listed(found.removed)}" if found.removed else "",
        f"traffic x {found.traffic:g}" if found.traffic != 1 else "",
        f"{found.growth_per_month:.1%} growth a month for {found.days:.0f} days" if found.growth_per_month else "",
        f"replication factor {found.factor}" if found.factor else "",
    )
    return ", ".join(filter(None, parts)) or "nothing changes"


def _limited(problem: Problem, and_balance: bool) -> Problem:
    return problem if and_balance else tasks.only_forced(problem)


def _of(topics: TopicChoice) -> str:
    return f" of {', '.join((*topics.names, *topics.patterns))}" if topics.names or topics.patterns else ""


def _listed(brokers: tuple[int, ...]) -> str:
    return ", ".join(map(str, brokers))
