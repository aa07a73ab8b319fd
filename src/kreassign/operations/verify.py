"""Compare the cluster with a plan, with a run, or with a placement that files declare.

A plan or a run is verified with its throttles: none may be left. A declared placement is kept in files, as in a
repository: the check returns the drift, and what to write there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.errors import InputError, Unsupported
from kreassign.executor.cluster import requests
from kreassign.executor.cluster.observations import Difference, Expectations, Facts, FindingKind
from kreassign.executor.cluster.observations import verify as compare
from kreassign.executor.cluster.readings import (
    every_topic_of_two,
    listed_moves,
    live_of_two,
    live_with,
    ongoing_moves,
    read_log_dirs,
)
from kreassign.executor.events import lists_of, topic_ids_of_moves
from kreassign.executor.history.run_history import fold
from kreassign.executor.journal import read_events
from kreassign.executor.state import RunView
from kreassign.executor.throttle_ledger import ConfigOverride, ConfigValue, command_to_restore, throttle_keys
from kreassign.model import OngoingReassignment, Topic, TopicPartition, TopicPartitionReplica
from kreassign.model.placement import Drift, DriftKind, Placed, drifts, format_placement, undeclared_topics
from kreassign.model.plan import Plan, of_another_cluster
from kreassign.model.plan_facts import refuse_other_cluster
from kreassign.model.snapshot import ClusterSnapshot, SnapshotPartition
from kreassign.model.text import name_pattern, shortened
from kreassign.operations.connect import Warn, warn_of_failures, warn_program
from kreassign.operations.plan_files import PlanFile, read_assignments
from kreassign.operations.run_journals import refuse_run_of_other_cluster
from kreassign.operations.whole_file import replace_file
from kreassign.planner.problem.policy import similar_names

# Whether the cluster matches a plan, or the intended result of a run, and whether any throttle is left.


_NOT_MOVED = "not moved"
_STATES = {
    FindingKind.MISSING: "not there",
    FindingKind.RECREATED: "of a new topic of the same name",
    FindingKind.MOVING: "still moving",
    FindingKind.REPLICAS: "with other replicas",
    FindingKind.ISR: "with replicas that are not in sync",
    FindingKind.LEADER: "without the preferred leader",
    FindingKind.LOG_DIR: "in another log directory",
    FindingKind.THROTTLE: "about throttles",
    FindingKind.SIZE: "with a copy that is too small",
    FindingKind.UNKNOWN: "not known",
}


@dataclass(frozen=True, slots=True)
class Verification:
    """Expected state, actual state, and every difference.

    `factors` has a sentence per replication factor that the plan or the run changes; `before` the replica lists that
    it replaces, where recorded.
    """

    expected: Expectations
    facts: Facts
    findings: tuple[Difference, ...]
    factors: tuple[str, ...] = ()
    before: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)

    @property
    def is_untouched(self) -> bool:
        """True if every partition has the replica list of before, and that is all that differs."""
        return len(self.findings) == len(self.expected.replicas) and set(self._states()) == {_NOT_MOVED}

    def lines(self, most: int) -> Iterator[str]:
        """Count the findings by state, and give `most` of them, the rarest states first."""
        states = self._states()
        counts = Counter(states)
        if len(states) > 1:
            yield f"findings: {', '.join(f'{count:,} {state}' for state, count in counts.most_common())}"
        rarest = sorted(zip(states, self.findings, strict=True), key=lambda pair: counts[pair[0]])
        yield from (str(finding) for _, finding in rarest[:most])
        if (more := len(states) - most) > 0:
            yield f"and {more:,} more; --format json has all"

    def _states(self) -> list[str]:
        """The state of what each finding is about."""
        present = {name: one.replicas for name, one in self.facts.partitions.items()}
        as_before = {str(name) for name, replicas in self.before.items() if present.get(name) == replicas}
        return [
            _NOT_MOVED if one.kind is FindingKind.REPLICAS and one.subject in as_before else _STATES[one.kind]
            for one in self.findings
        ]

    @property
    def remedies(self) -> tuple[tuple[str, ...], ...]:
        """Command for each setting that a run has left, as words of Kafka's own tool without the address."""
        left = (one for one in self.expected.overrides if one.key in self.facts.configs)
        return tuple(
            command_to_restore(one, self.facts.configs[one.key])
            for one in left
            if not one.is_restored(self.facts.configs[one.key])
        )

    @property
    def is_ok(self) -> bool:
        """True if there is no difference."""
        return not self.findings


def verify_plan(client: AdminClient, file: PlanFile, *, ignore_throttles: bool = False) -> Verification:
    """Compare the cluster with a plan: no throttle may be left on its topics, nor on any broker.

    Where none of its topics is there, one finding says so. Raises InputError if it was made for another cluster.
    """
    cluster, plan = client.describe_cluster(), file.plan
    refuse_other_cluster("the plan is for", file.origin.cluster_id, cluster.cluster_id)
    live = frozenset() if ignore_throttles else live_of_two(client)
    keys = () if ignore_throttles else throttle_keys(plan.topics, sorted(live))
    configs = tuple(ConfigValue(key, None) for key in keys)
    wanted = Expectations(
        plan.replicas, plan.log_dirs, configs, checks_sizes=True, topic_ids=dict(file.origin.topic_ids)
    )
    found = _verified(client, wanted, file.expected)
    if not ignore_throttles:
        found = replace(found, findings=tuple(sorted((*found.findings, *_of_brokers_down(client, file, live)))))
    missing = [one for one in found.findings if one.kind is FindingKind.MISSING]
    here = {name.topic for name in found.facts.partitions}
    strange = of_another_cluster(plan.topics, here, cluster.cluster_id) if len(missing) == len(plan.replicas) else None
    if strange is None:
        return found
    others = (
        one for one in found.findings if one.kind is not FindingKind.MISSING and one.kind is not FindingKind.LOG_DIR
    )
    return replace(found, findings=(Difference("the plan", FindingKind.MISSING, strange), *others))


def _of_brokers_down(client: AdminClient, file: PlanFile, live: Collection[int]) -> Iterator[Difference]:
    """A row per broker that is down: it may have a throttle that shows when it is back."""
    try:
        known = live_of_two(client, include_fenced=True)
    except Unsupported:
        lists = (*file.plan.replicas.values(), *file.expected.values())
        known = frozenset(broker for replicas in lists for broker in replicas)
    for broker in sorted(known.difference(live)):
        yield Difference(f"broker {broker}", FindingKind.UNKNOWN, "is down, so its settings were not read")


def verify_run(client: AdminClient, journal: Path, *, ignore_throttles: bool = False) -> Verification:
    """Compare the cluster with the intended result of a run: its moves made, and none of its settings left.

    Raises InputError for a run of another cluster.
    """
    refuse_run_of_other_cluster(journal, client.describe_cluster().cluster_id)
    run = fold(read_events(journal))
    changed = () if ignore_throttles else _to_be_restored(client, run)
    moves = [record.wanted for record in run.records.values()]
    targets, originals = lists_of(moves)
    log_dirs = {copy: path for move in moves for copy, path in move.log_dir_paths.items()}
    topic_ids = topic_ids_of_moves(moves)
    wanted = Expectations(targets, log_dirs, overrides=changed, checks_sizes=True, topic_ids=topic_ids)
    return _verified(client, wanted, originals)


def _to_be_restored(client: AdminClient, run: RunView) -> tuple[ConfigOverride, ...]:
    """All settings that the run changed, except rates left to moves of others while those go on."""
    left = run.left_to_others
    excused = left if left and ongoing_moves(client) else frozenset()
    return tuple(override for key, override in run.overrides.items() if key not in excused)


def _verified(
    client: AdminClient, expected: Expectations, before: Mapping[TopicPartition, tuple[int, ...]]
) -> Verification:
    """Compare; `before` are the lists that the targets replace, where recorded, else those that the cluster has."""
    facts = requests.read_facts(client, expected)
    adding = {name: move.adding for name, move in facts.ongoing.items()}
    present = {
        name: tuple(broker for broker in one.replicas if broker not in adding.get(name, ()))
        for name, one in facts.partitions.items()
    }
    factors = requests.read_factors(client, expected.replicas, {**present, **before}).sentences
    return Verification(expected, facts, compare(expected, facts), factors, before)


# A placement kept in files: drift of the cluster, and updates of the files.

PlacedPartitions = Mapping[TopicPartition, Placed]
"""Present placement of partitions."""

ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class PlacementCheck:
    """A declared placement, every difference of the cluster, and topics without a declaration."""

    declared: Plan
    drifts: tuple[Drift, ...]
    undeclared_topics: tuple[str, ...] = ()
    cluster_id: str = ""

    @property
    def is_ok(self) -> bool:
        """True if the cluster is as declared."""
        return not self.drifts

    @property
    def strange(self) -> str | None:
        """Sentence if no declared topic is in the cluster; None if one is."""
        missing = [one for one in self.drifts if one.kind is DriftKind.MISSING]
        is_strange = len(missing) == len(self.drifts) == len(self.declared)
        return of_another_cluster(self.declared.topics, (), self.cluster_id) if is_strange else None


def read_placement(paths: Sequence[Path]) -> PlanFile:
    """Read the placement that files and directories declare. Raises InputError, which names the file."""
    return read_assignments(paths, takes_two=False).file


def check_placement(
    declared: Plan, found: PlacedPartitions, topics: Iterable[str] = (), *, cluster_id: str = ""
) -> PlacementCheck:
    """Compare the cluster with a declaration; only topics that match one of the patterns `topics`, if there are any.

    `cluster_id` names the cluster where it has none of them.

    Raises InputError if no topic matches, declared or not: a comparison of nothing finds no difference.
    """
    patterns = tuple(topics)
    chosen = _chooser(patterns)
    plan = Plan(tuple(entry for entry in declared.assignments if chosen(entry.topic_partition.topic)))
    here = {name: one for name, one in found.items() if chosen(name.topic)}
    _refuse_no_topic(patterns, (*plan.replicas, *here), (*declared.replicas, *found))
    return PlacementCheck(plan, drifts(plan, here), undeclared_topics(plan, (name.topic for name in here)), cluster_id)


def _refuse_no_topic(
    patterns: Sequence[str], chosen: Collection[TopicPartition], choice: Iterable[TopicPartition]
) -> None:
    """Raise InputError where patterns leave nothing to compare, or to write."""
    if patterns and not chosen:
        named = ", ".join(map(shortened, patterns))
        known = sorted({one.topic for one in choice})
        nearest = "".join(similar_names(pattern, known) for pattern in patterns)
        raise InputError(f"no topic matches {named}, neither one that is declared nor one of the cluster{nearest}")


def write_placement(
    path: Path, found: PlacedPartitions, topics: Iterable[str] = (), before: PlanFile | None = None
) -> int:
    """Declare the cluster as it is, and return how many partitions that are; a file that is there is replaced.

    What that declared of log directories and of its cluster, `before`, is declared again. Raises InputError if patterns
    choose no topic, neither of the cluster nor of `before`.
    """
    patterns, declared = tuple(topics), PlanFile(Plan()) if before is None else before
    chosen = _chooser(patterns)
    here = {name: one for name, one in found.items() if chosen(name.topic)}
    listed = [name for name in declared.plan.replicas if chosen(name.topic)]
    _refuse_no_topic(patterns, (*listed, *here), (*declared.plan.replicas, *found))
    replace_file(path, f"{format_placement(here, declared.plan, declared.origin.cluster_id)}\n".encode())
    return len(here)


def placement_of_cluster(
    client: AdminClient,
    file: PlanFile | None = None,
    warn: Warn = warn_program,
    topics: Iterable[str] = (),
    *,
    is_written: bool = False,
) -> PlacedPartitions:
    """Read the placement of the cluster to compare it with `file`; log directories only if some are declared.

    Topics of the file are asked for by name: a listing leaves out what the client may not see. Raises ClusterError
    where a topic that is declared, or is to be (`is_written`, or no file), cannot be read: it is not known to be
    missing; only topics that match one of the patterns `topics` count, if there are any. InputError if they were
    declared for another cluster.
    """
    declared, chosen = Plan() if file is None else file.plan, _chooser(topics)
    if file is not None:
        refuse_other_cluster("the placement is for", file.origin.cluster_id, client.describe_cluster().cluster_id)
    wanted = {name for name in declared.topics if chosen(name)}
    # A move that begins or ends between the two answers would look like a drift.
    for _ in range(ATTEMPTS):
        ongoing, found = listed_moves(client), every_topic_of_two(client, wanted)
        if listed_moves(client) == ongoing:
            break
    unknown = {name: error for name, error in found.unknown.items() if chosen(name)}
    for name, error in unknown.items():
        if file is None or is_written or name in wanted:
            raise error
    warn_of_failures(warn, "topic metadata", unknown)
    return _placed(found.known.values(), ongoing, _log_dirs(client, declared))


def placement_of_snapshot(snapshot: ClusterSnapshot, declared: PlanFile | None = None) -> PlacedPartitions:
    """Return the placement of a snapshot. Raises InputError if it was declared for another cluster."""
    if declared is not None:
        refuse_other_cluster("the placement is for", declared.origin.cluster_id, snapshot.cluster_id)
    return {name: _snapshotted(partition) for name, partition in snapshot.partitions}


def _placed(
    topics: Iterable[Topic],
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    log_dirs: Mapping[TopicPartitionReplica, str],
) -> PlacedPartitions:
    placed = {}
    for topic in topics:
        for partition in topic.partitions:
            name, move = partition.topic_partition, ongoing.get(partition.topic_partition)
            replicas = partition.replicas if move is None else move.target
            here = ((broker, log_dirs.get(TopicPartitionReplica(broker, *name))) for broker in replicas)
            paths = {broker: path for broker, path in here if path is not None}
            placed[name] = Placed(replicas, move is not None, () if move is None else move.removing, paths)
    return placed


def _snapshotted(found: SnapshotPartition) -> Placed:
    target = OngoingReassignment(found.replicas, found.adding, found.removing).target
    paths = {broker: path for broker, path in zip(found.replicas, found.log_dirs, strict=True) if path is not None}
    return Placed(target, found.is_moving, found.removing, paths)


def _log_dirs(client: AdminClient, declared: Plan) -> dict[TopicPartitionReplica, str]:
    if not declared.log_dirs:
        return {}
    asked = {replica.broker for replica in declared.log_dirs}
    partitions = {replica.topic_partition for replica in declared.log_dirs}
    live = asked & live_with(client, asked)
    answers = read_log_dirs(client, sorted(live), copies_of=sorted(partitions)).raise_if_any()
    return {
        TopicPartitionReplica(broker, *copy.topic_partition): log_dir.path
        for broker, found in answers.items()
        for log_dir in found
        for copy in log_dir.replicas
        if not copy.is_future
    }


def _chooser(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Predicate for topics that match a pattern; all do without patterns."""
    compiled = list(map(name_pattern, patterns))
    return lambda topic: not compiled or any(one.fullmatch(topic) for one in compiled)
