"""Maintain brokers: move leaders off them while they are restarted or repaired, and restore everything afterwards.

`executor/maintenance` decides each step from the present state of the cluster and the maintenance record
(`broker_changes.py`), so a later call continues where the last one stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum

from kreassign.admin import AdminClient
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import Drifted, InputError
from kreassign.executor.brokers import (
    NOT_SHOWN,
    Await,
    Blocked,
    Cordon,
    Finished,
    Steps,
    confirmed,
    listed_brokers,
    read_brokers,
)
from kreassign.executor.cluster import permissions
from kreassign.executor.cluster.port import confirmed_writes
from kreassign.executor.cluster.readings import partitions_of, topic_ids_of, topics_of_two
from kreassign.executor.cluster.receivers import read_closures
from kreassign.executor.cluster.requests import min_isr_of
from kreassign.executor.history.run_history import UnreadableJournal, left_behind, read_history
from kreassign.executor.journal import active_run, journal_path
from kreassign.executor.lease import LeasePolicy, present_holder
from kreassign.executor.maintenance.decisions import (
    BeginEnd,
    Elect,
    Forget,
    MaintenanceFacts,
    Remember,
    Reorder,
    Step,
    Uncordon,
    due_to_enter,
    due_to_exit,
    is_recreated,
    next_to_enter,
    next_to_exit,
    to_be_named,
)
from kreassign.executor.maintenance.record import MaintenanceRecord
from kreassign.model import Batch, TopicPartition
from kreassign.model.authorization import error_text
from kreassign.model.error_codes import INVALID_REPLICA_ASSIGNMENT, has_code
from kreassign.model.plan_facts import is_another
from kreassign.model.run import ACTIVE, MoveStatus, RunHistory
from kreassign.model.text import some_of
from kreassign.operations.broker_changes import MaintenanceStore, cordon, sole_change, uncordon, validated_cordons
from kreassign.operations.connect import Tell, tell_nobody
from kreassign.operations.run import RunContext, new_run_id

WAIT_S = 300.0
"""How long to wait for replicas to be in sync and for moves to end, before reporting to the operator."""

SHOWN_LISTS = 3


@dataclass(frozen=True, slots=True)
class MaintenanceResult:
    """Steps taken, in words, and the next step: a `Finished`, or a `Blocked` with what to do."""

    steps: tuple[str, ...]
    next_step: Step

    @property
    def is_finished(self) -> bool:
        """True if the brokers may be stopped, or are as they were before."""
        return isinstance(self.next_step, Finished)


class Way(StrEnum):
    """Into maintenance, or out of it."""

    ENTER = "enter"
    EXIT = "exit"


def maintain(
    client: AdminClient,
    brokers: tuple[int, ...],
    way: Way,
    context: RunContext,
    tell: Tell = tell_nobody,
    *,
    wait_s: float = WAIT_S,
    clock: Clock = SYSTEM_CLOCK,
    is_agreed: bool = True,
) -> MaintenanceResult:
    """Move leadership off brokers until they may be stopped; or restore everything.

    Entering changes nothing if a partition would lose min.insync.replicas, nor if a permission is missing
    for a later step. Unless that `is_agreed`, nothing is changed: it is checked that there is nothing to do. Returns
    when all is done, or when only the operator can go on. Raises InputError, ClusterError, JournalUnreadable.
    """
    return Maintenance(client, brokers, context, tell, wait_s, clock, is_agreed).go_on(_DECISIONS[way], _DUE[way])


@dataclass(frozen=True, slots=True)
class MaintenancePreview:
    """The next step, and all due steps for the present cluster; none if finished or blocked."""

    next_step: Step
    due: tuple[Step, ...]


def preview_maintenance(
    client: AdminClient, brokers: tuple[int, ...], way: Way, context: RunContext
) -> MaintenancePreview:
    """Predict what `maintain` would do; changes nothing. Raises InputError, ClusterError."""
    facts = Maintenance(client, brokers, context).facts()
    return MaintenancePreview(_DECISIONS[way](facts), _DUE[way](facts))


Decide = Callable[[MaintenanceFacts], Step]
Due = Callable[[MaintenanceFacts], tuple[Step, ...]]


def _unknown_ahead(_: MaintenanceFacts) -> tuple[Step, ...]:
    return ()


_DECISIONS: Mapping[Way, Decide] = {Way.ENTER: next_to_enter, Way.EXIT: next_to_exit}
_DUE: Mapping[Way, Due] = {Way.ENTER: due_to_enter, Way.EXIT: due_to_exit}


@dataclass
class Maintenance:
    """One process that takes the steps. It remembers refusals of the cluster, and what it has seen in the record.

    So it does not begin again what was ended elsewhere meanwhile, nor end what was begun again.
    """

    client: AdminClient
    brokers: tuple[int, ...]
    context: RunContext
    tell: Tell = tell_nobody
    wait_s: float = WAIT_S
    clock: Clock = SYSTEM_CLOCK
    is_agreed: bool = True
    _cordons: dict[int, str | None] = field(default_factory=dict)
    """Answers of Kafka to the cordon of brokers: None, or why it refuses. Each is asked for before the first change."""
    _staying: frozenset[int] = frozenset()
    """Brokers that the record had in maintenance, without a begun end, as this process has read or written it."""
    _leaving: frozenset[int] = frozenset()
    """Brokers whose maintenance had a begun end in the record, likewise."""
    _refusal: str = ""
    _lease: ExitStack = field(default_factory=ExitStack)
    _confirm: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        if not self.brokers:
            raise InputError("name the brokers, for example 3,4")
        self._cluster_id = self.client.describe_cluster().cluster_id
        writer = f"maintenance-{new_run_id(self.clock.now_ms())}"
        self._store = MaintenanceStore(
            self.client, self.context, self._cluster_id, writer, self.clock, self._confirm_again
        )
        self._steps = Steps(self.tell, lambda: self.clock.sleep(self.context.poll_s))

    def facts(self, asked: int | None = None) -> MaintenanceFacts:
        """Read the input of the next decision, partitions by this broker's view. Raises ClusterError, InputError."""
        found = read_brokers(self.client, self.brokers, asked)
        ids = frozenset(self.brokers)
        topics = {one.topic_partition.topic for one in found.partitions if not ids.isdisjoint(one.replicas)}
        least = min_isr_of(self.client, topics)
        unread = {topic: error_text(error) for topic, error in least.unknown.items()}
        record = self._store.read().decided(self.brokers)
        self._cordons |= validated_cordons(self.client, found, self._cordons)
        uncordoned = {broker: why for broker, why in self._cordons.items() if why is not None}
        busy, coming = self._work_of_runs(record)
        facts = MaintenanceFacts(found, least.known, record, busy, uncordoned, unread, coming=coming)
        if not all(one.may_be_cordoned for one in found.brokers):
            return facts
        closures = read_closures(self.client, to_be_named(facts))
        return replace(facts, refused={broker: one.why for broker, one in closures.items() if one.is_binding})

    def go_on(self, decide: Decide, due: Due = _unknown_ahead) -> MaintenanceResult:
        """Take steps until nothing is left to do, or only the operator can go on.

        Raises InputError before the first of them if a permission is missing for what is `due`.
        """
        with self._lease:
            return self._go_on(decide, due)

    def _go_on(self, decide: Decide, due: Due) -> MaintenanceResult:
        last: Step | None = None
        since_s, overruled, seen = 0.0, "", set[str]()
        steps = self._steps
        while True:
            with steps:
                facts = self.facts()
                step = decide(facts)
                if isinstance(step, Finished):
                    step = confirmed(step, facts.found, lambda broker: decide(self.facts(broker)))
                if isinstance(step, Blocked | Finished) or not (self.is_agreed or isinstance(step, Await)):
                    last = step if isinstance(step, Blocked | Finished) else NOT_SHOWN
                    return MaintenanceResult(tuple(steps.taken), last)
                was_overruled, overruled = overruled, self._overruled(step)
                if overruled and overruled == was_overruled:
                    return MaintenanceResult(tuple(steps.taken), Blocked(overruled))
                if overruled:  # A coordinator that has just taken over shows an earlier record.
                    self.clock.sleep(self.context.poll_s)
                    continue
                self._staying |= facts.record.staying.intersection(self.brokers)
                self._leaving |= facts.record.leaving.intersection(self.brokers)
                if last is None:
                    self._check_permissions(due(facts))
                # Steps that take turns, since others undo them, are not new.
                if type(step) is not type(last) and str(step) not in seen:
                    since_s = self.clock.monotonic_s()
                elif self.clock.monotonic_s() - since_s >= self.wait_s:
                    return MaintenanceResult(tuple(steps.taken), self._too_long(step))
                else:
                    # Brokers need a moment to show the change.
                    self.clock.sleep(self.context.poll_s)
                last = step
                seen.add(str(step))
                self._take(step, facts)

    def _overruled(self, step: Step) -> str:
        """Describe what somebody else has ended or begun since, if the step would undo that; "" if it does not."""
        match step:
            case Remember(brokers, cordoned) if not cordoned:
                again, what = self._staying.intersection(brokers), "ended"
            case BeginEnd(brokers):
                again, what = self._leaving.intersection(brokers), "begun again"
            case _:
                return ""
        if not again:
            return ""
        return (
            f"the maintenance of {listed_brokers(again)} was {what} by somebody else since this command began: ask, "
            "then give the command that is meant"
        )

    def _too_long(self, step: Step) -> Blocked:
        refused = f" (the cluster answers: {self._refusal})" if self._refusal else ""
        return Blocked(
            f"after {self.wait_s:g} s there is still to {step}{refused}. What was done stays done: give the command "
            "again, or the other of `kreassign maintenance enter` and `exit`"
        )

    def _check_permissions(self, due: tuple[Step, ...]) -> None:
        """Check the permissions for all due steps before anything is recorded or cordoned."""
        reassigns = any(isinstance(step, Reorder | Elect) for step in due)
        elects = any(isinstance(step, Elect) for step in due)
        changed = [broker for step in due if isinstance(step, Cordon | Uncordon) for broker in step.brokers]
        if lacking := permissions.lacking_for_brokers(self.client, changed, reassigns=reassigns, elects=elects):
            refused = f"the maintenance of {listed_brokers(self.brokers)} cannot go on, and nothing was changed:"
            raise InputError("\n  - ".join((refused, *lacking)))

    # --- steps --------------------------------------------------------------------------------------------------

    def _take(self, step: Step, facts: MaintenanceFacts) -> None:
        if isinstance(step, Await):
            self._steps.note(str(step))
            self._let_others()
            return
        self._confirm_lease()
        client = self.client if self._confirm is None else confirmed_writes(self.client, self._confirm)
        if isinstance(step, Cordon | Uncordon):
            self._change_cordons(client, step, facts)
            return
        if not self._is_noted(step, facts):
            return
        match step:
            case Remember(brokers, cordoned):
                by = self.context.operator.name
                self._store.write(facts.record.entered(brokers, self.clock.now_ms(), by, cordoned))
                self._staying |= set(brokers)
            case BeginEnd(brokers):
                self._store.write(facts.record.with_end_begun(brokers, self.clock.now_ms()))
                self._leaving |= set(brokers)
            case Reorder():
                self._reorder(client, step, facts)
            case Elect(partitions):
                client.elect_leaders(partitions)  # The next reading shows whether it succeeded.
            case Forget(brokers, _, restored):
                self._store.write(facts.record.left(brokers, self.clock.now_ms(), restored))

    def _change_cordons(self, client: AdminClient, step: Cordon | Uncordon, facts: MaintenanceFacts) -> None:
        """Change one broker after the other, until another command has written the record: it may be of the next."""
        for one in facts.found.brokers:
            if one.broker not in step.brokers:
                continue
            if not self._is_noted(type(step)((one.broker,)), facts):
                return
            if isinstance(step, Cordon):
                self._cordons[one.broker] = cordon(client, one.broker)
                continue
            uncordon(client, one, self.context, is_ours=True)
            # At once: the next broker may refuse, and others cordon this one meanwhile.
            record = self._store.read().decided(self.brokers)
            is_same = record.at_ms == facts.record.at_ms
            if record.brokers.get(one.broker) == facts.record.brokers[one.broker]:
                record = self._store.write(record.uncordoned((one.broker,), self.clock.now_ms()))
            if is_same:
                facts = replace(facts, record=record)

    def _is_noted(self, step: Step, facts: MaintenanceFacts) -> bool:
        """Note a step unless it is outdated, also by the time that it is told: a stopped terminal takes minutes."""
        if self._is_outdated(facts):
            return False
        self._steps.note(str(step))
        return not self._is_outdated(facts)

    def _is_outdated(self, facts: MaintenanceFacts) -> bool:
        """True if another command has written the record since these facts were read: decide again."""
        return self._store.read().record.at_ms != facts.record.at_ms

    def _reorder(self, client: AdminClient, step: Reorder, facts: MaintenanceFacts) -> None:
        # A broker that lags shows lists that others have changed since; sent again, they would undo that.
        topics = topics_of_two(self.client, {name.topic for name in step.present}, only_lists=True)
        lists = {name: partition.replicas for name, partition in partitions_of(topics.known).items()}
        seen, ids = facts.found.topic_ids, topic_ids_of(topics.known)
        if others := sorted(
            name
            for name, replicas in step.present.items()
            if lists.get(name) != replicas or is_another(seen.get(name.topic), ids.get(name.topic))
        ):
            other = f"two brokers show another list of {some_of(others, SHOWN_LISTS)}"
            self._refusal = next(map(error_text, topics.unknown.values()), other)
            return
        known = facts.record.orders
        if any(
            name not in known or known[name].original != target or is_recreated(facts, name, known[name])
            for name, target in step.targets.items()
        ):
            self._store.write(facts.record.reordered(step.present, step.targets, self.clock.now_ms(), ids))
        # One list with another order by now, or a reassignment, prevents the whole request.
        with suppress(Drifted):
            answers = client.alter_partition_reassignments(
                step.targets, expected=step.present, warns_of_overrides=False
            )
            # The controller hears of a cordon and of its end with a heartbeat of the broker: try again.
            late = {name: why for name, why in answers.failed.items() if has_code(why, INVALID_REPLICA_ASSIGNMENT)}
            Batch(answers.ok, {name: why for name, why in answers.failed.items() if name not in late}).raise_if_any()
            self._refusal = error_text(next(iter(late.values()))) if late else ""

    # --- around them --------------------------------------------------------------------------------------------

    def _confirm_lease(self) -> None:
        """Confirm the lease, unless a run of this machine has it: its partitions are left alone."""
        if self._is_of_run_here():
            self._let_others()
            return
        if self._confirm is None:
            self._confirm = self._lease.enter_context(sole_change(self.client, self.context, "maintenance", self.clock))
        self._confirm()

    def _confirm_again(self) -> None:
        if self._confirm is not None:
            self._confirm()

    def _is_of_run_here(self) -> bool:
        """True if a run of this machine goes on, and nobody else holds the lease: it may have none (`--lease off`)."""
        run_id = active_run(self.context.state_dir, self._cluster_id)
        if run_id is None or self.context.lease is LeasePolicy.OFF:
            return run_id is not None
        holder = present_holder(self.client)
        return holder is None or holder.run_id == run_id

    def _let_others(self) -> None:
        """Release the lease while waiting: it would expire meanwhile."""
        self._confirm = None
        self._lease.close()

    def _work_of_runs(
        self, record: MaintenanceRecord
    ) -> tuple[frozenset[TopicPartition], dict[TopicPartition, frozenset[int]]]:
        """Partitions that runs of this machine are still to move; and destinations of the moves that may begin."""
        busy, coming = set[TopicPartition](), dict[TopicPartition, frozenset[int]]()
        for run, may_begin in self._runs(record):
            busy |= {move.topic_partition for move in run.moves if move.status in ACTIVE}
            for move in (move for move in run.moves if move.status in may_begin):
                coming[move.topic_partition] = coming.get(move.topic_partition, frozenset()).union(move.adding)
        return frozenset(busy), coming

    def _runs(self, record: MaintenanceRecord) -> Iterator[tuple[RunHistory, Collection[MoveStatus]]]:
        """Unfinished runs of this machine, and in which state their moves may begin.

        Without a process in none: who resumes it asks the cluster, if the cluster keeps the record.
        """
        state_dir = self.context.state_dir
        if (run_id := active_run(state_dir, self._cluster_id)) is not None:
            run = read_history(journal_path(state_dir, self._cluster_id, run_id))
            yield run, {MoveStatus.SENT} if run.is_held else ACTIVE
        for found in left_behind(state_dir, self._cluster_id):
            if isinstance(found, UnreadableJournal):
                raise found.error  # It may be still to move what would get another order.
            if found.ended_ms is None:
                yield found, () if self._store.is_kept_by_cluster(record) else ACTIVE
