"""Place replicas without a broker: of new partitions, or of brokers lost during a run.

No other replica moves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from kreassign.errors import IllegalPlan, InputError
from kreassign.model import TopicPartition
from kreassign.model.load import CPU_PER_COPY, CPU_PER_READ, CPU_PER_WRITE
from kreassign.model.text import counted, format_amount
from kreassign.model.topic_changes import NEW_PARTITIONS_PER_REQUEST
from kreassign.planner.arrays import NOWHERE, BoolArray, BytesArray, FloatArray, IntArray
from kreassign.planner.check.evaluate import evaluate
from kreassign.planner.goals import DISK
from kreassign.planner.problem.build import cpu_per_cost
from kreassign.planner.problem.holds import Hold
from kreassign.planner.problem.policy import known_topic
from kreassign.planner.problem.problem import Assignment, Budget, Gone, Partitions, Problem, RackLimits, Rules

# New partitions: of a new topic, or more of a topic that exists.
#
# They level the cluster without copies if placed where load is missing. The search and the check treat them as a drain:
# each starts with one replica on a placeholder broker, which holds nothing else and is to be emptied.

NOWHERE_ID = -1
"""Id of the placeholder broker for replicas without one; no broker of Kafka has it."""


@dataclass(frozen=True, slots=True)
class ExpectedLoad:
    """Expected size and load of a new partition; see `PartitionFacts`."""

    size_bytes: int = 0
    write_bytes_per_s: float = 0.0
    read_bytes_per_s: float = 0.0
    leader_cpu: float = 0.0
    follower_cpu: float = 0.0

    @classmethod
    def of_rates(
        cls, partitions: Partitions, size_bytes: int, written: float, consumed: float, factor: int
    ) -> ExpectedLoad:
        """Derive the load from the rates of producers and consumers, in bytes/s; followers read too.

        CPU follows from bytes in the same ratio as in the existing partitions.
        """
        sent = written * (factor - 1) + consumed
        scale = cpu_per_cost(partitions)
        leading = scale * (CPU_PER_WRITE * written + CPU_PER_READ * sent)
        return cls(size_bytes, written, sent, leading, scale * CPU_PER_COPY * written)


LOADS = tuple(field.name for field in fields(ExpectedLoad))


def mean_load(partitions: Partitions, topic: str, factor: int) -> ExpectedLoad:
    """Mean load of a topic's partitions, as if they had `factor` replicas.

    Raises InputError for an unknown topic, and for one without any known size.
    """
    chosen = _of_topic(partitions, topic)
    written = float(partitions.write_bytes_per_s[chosen].mean())
    copied = partitions.write_bytes_per_s[chosen] * (partitions.factors[chosen] - 1)
    consumed = float(np.maximum(partitions.read_bytes_per_s[chosen] - copied, 0.0).mean())
    size = _mean_size(partitions, partitions.size_bytes, chosen)
    return ExpectedLoad.of_rates(partitions, size, written, consumed, factor)


def _mean_size(partitions: Partitions, size_bytes: BytesArray, chosen: BoolArray) -> int:
    """Mean of the known sizes of a topic's partitions. Raises InputError if none is known."""
    sized = chosen & ((partitions.holds & Hold.UNSIZED) == 0)
    if not sized.any():
        topic = partitions.topic_names[int(partitions.topics[chosen][0])]
        unknown = f"how large a partition of topic {topic} will be is not known"
        raise InputError(f"{unknown}: {Hold.UNSIZED.why} of any; {Hold.UNSIZED.remedy}")
    return int(size_bytes[sized].mean())


def check_new_partitions(topic: str, count: int, *, extra_records: int) -> None:
    """Raise InputError for a number of new partitions that no request creates.

    A KRaft controller writes a record for each, and `extra_records`: one for a new topic.
    """
    most = NEW_PARTITIONS_PER_REQUEST - extra_records
    if not 1 <= count <= most:
        raise InputError(
            f"topic {topic} would get {counted(count, 'new partition')}; a controller creates at most {most:,} per "
            "request, so place at least one and at most so many, and more once they are there"
        )


def add_topic(problem: Problem, topic: str, factors: Sequence[int], load: ExpectedLoad, broker_set: int) -> Problem:
    """Build the problem of placing a new topic with one partition per factor.

    `broker_set` is the number of its broker set, or NOWHERE. Raises InputError if the topic exists, or brokers are too
    few.
    """
    if topic in problem.partitions.topic_names:
        raise InputError(f"topic {topic} is there already; `kreassign plan partitions` places more partitions of it")
    return _to_be_placed(problem, topic, factors, load, broker_set)


def add_partitions(problem: Problem, topic: str, total: int) -> Problem:
    """Build the problem of placing more partitions of a topic, up to `total`, with its usual factor.

    The topic's load is expected to spread over all partitions in time: each old partition keeps its part of it, and a
    new one gets their mean. Raises InputError if the topic is unknown, has that many already, or no known size, and for
    more than a request creates.
    """
    partitions = problem.partitions
    chosen = _of_topic(partitions, topic)
    present = int(chosen.sum())
    if total <= present:
        raise InputError(
            f"topic {topic} has {counted(present, 'partition')} already; specify more than that, not {total}"
        )
    check_new_partitions(topic, total - present, extra_records=0)
    numbers = {name: getattr(partitions, name) for name in LOADS}
    spread = {name: np.where(chosen, one * (present / total), one).astype(one.dtype) for name, one in numbers.items()}
    load = ExpectedLoad(
        _mean_size(partitions, spread["size_bytes"], chosen),
        *(float(spread[name][chosen].mean()) for name in LOADS[1:]),
    )
    factor = _factor_of_new_partitions(partitions, topic, chosen)
    broker_set = int(partitions.broker_sets[chosen][0])
    if partitions.follower_reads is not None:
        spread["follower_reads"] = np.where(chosen, present / total, 1.0) * partitions.follower_reads
    problem = replace(problem, partitions=replace(partitions, **spread))
    return _to_be_placed(problem, topic, [factor] * (total - present), load, broker_set)


def _factor_of_new_partitions(partitions: Partitions, topic: str, chosen: BoolArray) -> int:
    """The factor of partition 0: Kafka takes new partitions only with as many replicas as that has at the time."""
    first = int(np.flatnonzero(chosen & (partitions.numbers == 0))[0])
    present, usual = int(partitions.factors[first]), int(partitions.usual_factors[first])
    if not partitions.holds[first] & Hold.MOVING or present == usual:
        return present
    why = f"all partitions of topic {topic} are being reassigned, so its replication factor is not known"
    if usual:
        why = (
            f"{topic}-0 is being reassigned, and Kafka wants as many replicas of new partitions as that has meanwhile, "
            f"{present} instead of {usual}"
        )
    raise InputError(f"{why}; {Hold.MOVING.remedy}")


def placed_lists(problem: Problem, assignment: Assignment) -> tuple[tuple[int, ...], ...]:
    """Replica lists of the new partitions as broker ids, in the order of their numbers."""
    new = np.flatnonzero(_is_new(problem))
    lists = assignment.lists()
    return tuple(tuple(problem.brokers.ids[lists[one]].tolist()) for one in new.tolist())


def with_new_partitions(problem: Problem, assignment: Assignment, before: Problem) -> Problem:
    """The cluster with the new partitions placed: they may move, and so may all that could `before`."""
    partitions, new = problem.partitions, _is_new(problem)
    holds = np.zeros(len(partitions), np.int32)
    holds[~new] = before.partitions.holds
    stays = np.repeat(~new, np.diff(assignment.offsets))
    there = replace(
        partitions, offsets=assignment.offsets, replicas=assignment.replicas, log_dirs=assignment.log_dirs,
        holds=holds, is_lost=_where(stays, before.partitions.is_lost),
        in_sync=None if (known := before.partitions.in_sync) is None else ~_where(stays, ~known), future_log_dirs=None,
    )  # fmt: skip
    gone = before.gone and replace(before.gone, replicas=_where(stays, before.gone.replicas))
    return replace(before, partitions=there, gone=gone)


def _where(chosen: BoolArray, values: BoolArray) -> BoolArray:
    """Spread the values, in their order, over the chosen places; False elsewhere."""
    found = np.zeros(len(chosen), bool)
    found[chosen] = values
    return found


def _is_new(problem: Problem) -> BoolArray:
    """Mask of partitions that start on the placeholder broker, (P,)."""
    partitions = problem.partitions
    nowhere = int(np.flatnonzero(problem.brokers.ids == NOWHERE_ID)[0])
    new: BoolArray = np.isin(np.arange(len(partitions)), partitions.owners[partitions.replicas == nowhere])
    return new


def _of_topic(partitions: Partitions, topic: str) -> BoolArray:
    chosen: BoolArray = partitions.topics == partitions.topic_names.index(known_topic(topic, partitions.topic_names))
    if not chosen.any():
        raise InputError(f"nothing is known of the partitions of topic {topic}")
    return chosen


def _to_be_placed(problem: Problem, topic: str, factors: Sequence[int], load: ExpectedLoad, broker_set: int) -> Problem:
    """Add new partitions on the placeholder broker; all others stay."""
    hosts = int(problem.brokers.receiving.sum())
    if not factors or max(factors) > hosts or min(factors) < 1:
        asked = max(factors, default=0)
        raise InputError(
            f"a replication factor of {asked} needs {counted(asked, 'broker')} that may receive; there are {hosts}"
        )
    brokers = problem.brokers.extended([NOWHERE_ID], [NOWHERE], are_open=False)
    partitions = problem.partitions.held(np.ones(len(problem.partitions), bool), Hold.STAYS)
    partitions = _inserted(partitions, topic, factors, load, (len(brokers) - 1, broker_set))
    stays = partitions.replicas < len(problem.brokers)
    gone = problem.gone
    return replace(
        problem,
        brokers=brokers,
        partitions=partitions,
        gone=gone and Gone(np.append(gone.brokers, [False]), _where(stays, gone.replicas)),
        # Drop rules that would require changes of present partitions: those stay.
        rules=replace(problem.rules, least_topic_leaders={}, repair_racks=False),
    )


def _inserted(
    partitions: Partitions, topic: str, factors: Sequence[int], load: ExpectedLoad, place: tuple[int, int]
) -> Partitions:
    """Insert new partitions after those of their topic; `place` is their first broker and their broker set."""
    broker, broker_set = place
    names = partitions.topic_names if topic in partitions.topic_names else (*partitions.topic_names, topic)
    number, count = names.index(topic), len(factors)
    at = int(np.searchsorted(partitions.topics, np.array(number, partitions.topics.dtype), side="right"))
    slot, present = int(partitions.offsets[at]), int((partitions.topics == number).sum())
    values: dict[str, npt.ArrayLike] = {
        "topics": number, "numbers": np.arange(present, present + count), "wanted_factors": np.array(factors),
        "holds": Hold.NONE, "broker_sets": broker_set, **{name: getattr(load, name) for name in LOADS},
    }  # fmt: skip
    offsets = np.concatenate(
        [partitions.offsets[: at + 1], slot + 1 + np.arange(count), partitions.offsets[at + 1 :] + count]
    )
    known_reads = partitions.follower_read_bytes_per_s[partitions.topics == number]
    reads = np.full(count, known_reads.mean() if len(known_reads) else 0.0)
    return replace(
        partitions,
        topic_names=names,
        offsets=offsets.astype(np.int32),
        replicas=np.insert(partitions.replicas, slot, [broker] * count),
        log_dirs=np.insert(partitions.log_dirs, slot, [NOWHERE] * count),
        future_log_dirs=None,  # no replica that is there now moves
        is_lost=np.insert(partitions.is_lost, slot, [False] * count),
        in_sync=None if (synced := partitions.in_sync) is None else np.insert(synced, slot, [True] * count),
        coordinated=None if (known := partitions.coordinated) is None else np.insert(known, at, [0.0] * count),
        follower_reads=None if (own := partitions.follower_reads) is None else np.insert(own, at, reads),
        **{name: np.insert(one := getattr(partitions, name), at, np.broadcast_to(value, count).astype(one.dtype))
           for name, value in values.items()},
    )  # fmt: skip


# Successors: another broker for each lost replica, at the same place of the list. The smallest possible change.
#
# Nothing is searched: a running reassignment needs an answer at once, partition by partition, and a partition without a
# solution must not hold up the others. The largest replica chooses first. Among the brokers that may take it, it goes
# to a rack with the fewest replicas of its partition, and there to the broker that ends up least full. The check
# (`check/`) looks at the result, as at every plan.

BrokersByPartition = Mapping[TopicPartition, Collection[int]]
Lists = dict[TopicPartition, tuple[int, ...]]
Refusals = dict[TopicPartition, str]


def replace_lost(problem: Problem, leaving: BrokersByPartition, barred: BrokersByPartition) -> tuple[Lists, Refusals]:
    """Give replicas on `leaving` brokers (by id) another broker that is not `barred`.

    Returns the new lists, as ids, of the partitions that have one, and why the others stay unchanged. Raises
    IllegalPlan if the check finds a rule broken.
    """
    partitions = problem.partitions
    lost = _lost_replicas(problem, leaving)
    search = _Successors(problem, lost)
    refusals: Refusals = {}
    sizes = partitions.size_bytes[partitions.owners]
    for place in sorted(np.flatnonzero(lost).tolist(), key=lambda one: (-int(sizes[one]), one)):
        name = partitions.name(int(partitions.owners[place]))
        reason = search.settle(place, np.isin(problem.brokers.ids, sorted(barred.get(name, ()))))
        if reason is not None:
            refusals[name] = reason
    names = (partitions.name(int(owner)) for owner in partitions.owners[lost])
    settled = lost.copy()
    settled[lost] = [name not in refusals for name in names]
    replicas = np.where(lost & ~settled, partitions.replicas, search.replicas).astype(np.int32)
    log_dirs = np.where(settled, NOWHERE, partitions.log_dirs).astype(np.int32)
    found = Assignment(partitions.offsets, replicas, log_dirs)
    if wrong := evaluate(_problem_to_judge(problem, settled), found).violations:
        raise IllegalPlan(wrong)
    changed = np.unique(partitions.owners[settled]).tolist()
    lists = found.lists()
    return {partitions.name(one): tuple(problem.brokers.ids[lists[one]].tolist()) for one in changed}, refusals


def _lost_replicas(problem: Problem, leaving: BrokersByPartition) -> BoolArray:
    """Mask of lost replicas, (S,)."""
    partitions = problem.partitions
    lost = np.zeros(len(partitions.replicas), bool)
    for index in range(len(partitions)):
        if gone := leaving.get(partitions.name(index)):
            lost[partitions.span(index)] = np.isin(problem.brokers.ids[partitions.list_of(index)], sorted(gone))
    return lost


def _problem_to_judge(problem: Problem, settled: BoolArray) -> Problem:
    """The problem to check by: with as many copies as replicas moved, and leader changes only for lost leaders."""
    moving = np.logical_or.reduceat(settled, problem.partitions.offsets[:-1])
    return replace(
        problem,
        partitions=replace(problem.partitions, holds=np.where(moving, 0, Hold.STAYS).astype(np.int32)),
        bands=(),
        rules=Rules(racks=problem.rules.racks, leaders=False),
        budget=Budget(moves=int(settled.sum())),
    )


def _limits_of_open(problem: Problem) -> RackLimits:
    """Limits of racks as if all live brokers received: a run crowds no rack because another is closed for a while."""
    brokers, partitions = problem.brokers, problem.partitions
    all_open = replace(brokers, may_receive=np.ones_like(brokers.may_receive), closures=np.zeros_like(brokers.closures))
    whole = replace(partitions, is_lost=np.zeros_like(partitions.is_lost))
    return replace(problem, brokers=all_open, partitions=whole).rack_limits


class _Successors:
    """Placement and load while replicas are settled one after the other."""

    def __init__(self, problem: Problem, lost: BoolArray) -> None:
        self.problem = problem
        self.replicas: IntArray = problem.partitions.replicas.copy()
        partitions, count = problem.partitions, len(problem.brokers)
        held = self.replicas[~lost]
        self._is_open = lost.copy()
        self._sizes = partitions.size_bytes[partitions.owners]
        self._bytes: FloatArray = np.bincount(held, self._sizes[~lost], count).astype(np.float64)
        self._counts: FloatArray = np.bincount(held, minlength=count).astype(np.float64)
        self._racks, self._limits = problem.rack_of_broker, _limits_of_open(problem)
        self._room = problem.brokers.capacity_of(DISK.name)

    def settle(self, place: int, barred: BoolArray) -> str | None:
        """Assign a broker to one replica; return the reason if there is none."""
        brokers, partitions = self.problem.brokers, self.problem.partitions
        partition = int(partitions.owners[place])
        its = partitions.span(partition)
        others = self.replicas[its][~self._is_open[its]]
        held = np.bincount(self._racks[others], minlength=int(self._racks.max()) + 1)
        in_rack, limit = held[self._racks], self._limits.of(partition, held)
        was_over = in_rack[self.replicas[place]] >= limit
        allowed = brokers.receiving & ~np.isin(np.arange(len(brokers)), self.replicas[its]) & ~barred
        size, broker_set = int(self._sizes[place]), partitions.broker_sets[partition]
        for rule, reason in (
            (np.ones(len(brokers), bool), "no other broker may take it"),
            (
                (brokers.broker_sets == broker_set) | (broker_set == NOWHERE),
                "no other broker of its broker set may take it",
            ),
            ((in_rack < limit) | was_over, "every other broker is in a rack that has a replica of it"),
            (self._bytes + size <= self._room, f"no other broker has room for {format_amount(size, 'B')}"),
        ):
            allowed = allowed & rule
            if not allowed.any():
                return reason
        fill = (self._bytes + size) / np.where(np.isfinite(self._room), self._room, 1.0)
        choice = min(
            np.flatnonzero(allowed).tolist(),
            key=lambda one: (in_rack[one], fill[one], self._counts[one], brokers.ids[one]),
        )
        self._is_open[place], self.replicas[place] = False, choice
        self._bytes[choice] += size
        self._counts[choice] += 1
        return None
