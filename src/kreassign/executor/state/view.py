"""Show a run to the rest of the program: a read-only view that hides how the machine keeps it.

`hindrance` returns the first of several reasons why waiting moves are not started now, as a sentence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType

from kreassign.executor.client_guard import ClientGuard
from kreassign.executor.guards import NAMED, GuardName, Verdict
from kreassign.executor.scheduling.limits import Endpoint
from kreassign.executor.state import admission, throttling
from kreassign.executor.state.move import MoveRecord
from kreassign.executor.state.phases import Cancelled, Done, Failed
from kreassign.executor.state.run import Control, Run, RunIdentity, one_per_reason, time_of_day
from kreassign.executor.state.setting import SETTLED, SettingState
from kreassign.executor.throttle_ledger import ConfigKey, ConfigOverride
from kreassign.model import ConfigResource, ResourceType, TopicPartition
from kreassign.model.cluster import named_brokers
from kreassign.model.run import AT_REST, ENDED, ClientCost, MoveStatus, Phase
from kreassign.model.text import by_reason, counted, each_partition
from kreassign.model.throttle import WHOLE, ThrottleRates

# Hindrances: the first of several reasons why waiting moves are not started now.


def _reasons(run: Run, at_ms: int) -> Iterator[str]:
    if run.control.is_held:
        yield _paused(run)
    if guards := admission.holding_guards(run):
        yield f"nothing is started while these guards hold it: {', '.join(guards)}"
    if (closed := admission.closed_window(run, at_ms)) is not None:
        yield closed
    yield from _throttle(run)
    if run.health.stuck:
        yield f"disks have no space for {admission.any_of(len(run.health.stuck))}"
    for broker, count in admission.waiting_for_brokers(run).items():
        closed_state = "closed to copies" if broker in run.health.closed | run.health.refused else "in maintenance"
        state = "down" if broker in run.health.down else closed_state
        moves = f"{counted(count, 'move')} to it {'waits' if count == 1 else 'wait'}"
        yield f"broker {broker} is {state}, and {moves} for it"
    for reason, names in by_reason(_waits(run)).items():
        yield each_partition(names, NAMED, reason)


def _waits(run: Run) -> Iterator[tuple[TopicPartition, str]]:
    for name, record in run.moves.records.items():
        if record.status is MoveStatus.PLANNED and record.leaderless_since_ms is not None:
            yield name, "has no leader, so its move is not started"
        if record.is_of_others:
            yield name, record.wait_for_others


def _paused(run: Run) -> str:
    return f"paused by {run.control.held_by}; continue with `kreassign resume {run.identity.run_id}`"


def _throttle(run: Run) -> Iterator[str]:
    throttle = run.throttle
    doubts = [setting.doubt for setting in throttle.settings.values() if setting.doubt is not None]
    if doubts and not throttling.allows_start(run):
        found = min(doubts, key=lambda doubt: doubt.since_ms).value
        others = f"somebody else changed its throttle: {found}"
        checked = f"its throttle is checked before anything is started: {found}"
        yield others if throttle.foreign else checked
    if throttle.unread:
        yield unread_throttle(throttle.unread[0])
    if throttle.is_due:
        yield "nothing is started before its throttle is set again"
    if throttle.full_lists:
        topics = ", ".join(sorted(throttle.full_lists)[:NAMED])
        most = throttling.MOST_LIST_CHARACTERS
        yield (
            f"the lists of throttled replicas of {topics} are full, for a value has at most "
            f"{counted(most, 'character')}: fewer of its moves are in flight at a time, and the rest start as these end"
        )
    if throttle.unset:
        yield f"nothing is started before the throttle of {min(throttle.unset)} is set"


def unread_throttle(resource: ConfigResource) -> str:
    """Text that the throttle of a broker or topic is unreadable, and what reading takes: an answer and a permission."""
    what = "the topic" if resource.type is ResourceType.TOPIC else "the cluster"
    needs = f"a broker has to answer, and to allow DescribeConfigs on {what}"
    return f"nothing is started while the throttle of {resource} cannot be read: {needs}"


class RunView:
    """A run in its present state, or as its last process left it. Times are in ms since the epoch."""

    __slots__ = ("_is_left", "_run")

    def __init__(self, run: Run, *, is_left: bool = False) -> None:
        self._run, self._is_left = run, is_left

    @property
    def as_left(self) -> RunView:
        """Return this run without a process: facts of its last process are not shown as present."""
        return RunView(self._run, is_left=True)

    @property
    def _goes_on(self) -> bool:
        return not (self._is_left or self.phase in AT_REST)

    @property
    def run_id(self) -> str:
        """Id of the run."""
        return self._run.identity.run_id

    @property
    def identity(self) -> RunIdentity:
        """Facts fixed at its start, or when a process resumed it."""
        return self._run.identity

    @property
    def control(self) -> Control:
        """Present settings of operators, guards and the deadline."""
        return self._run.control

    @property
    def phase(self) -> Phase:
        """Its present phase."""
        return self._run.state.phase

    @property
    def step(self) -> str:
        """Name of its state, finer than the phase."""
        return type(self._run.state).__name__

    @property
    def ended_ms(self) -> int | None:
        """Time of its end; None before that."""
        state = self._run.state
        return state.ended_ms if isinstance(state, Done | Cancelled | Failed) else None

    @property
    def records(self) -> Mapping[TopicPartition, MoveRecord]:
        """Every move of the plan, in its order."""
        return MappingProxyType(self._run.moves.records)

    @property
    def in_flight(self) -> tuple[MoveRecord, ...]:
        """Moves that were sent and have not ended."""
        return self._run.moves.in_flight

    @property
    def waiting_write_bytes_per_s(self) -> Mapping[Endpoint, float]:
        """Write rates of waiting moves, by the ends that they load."""
        return self._run.moves.index.queue.write_bytes_per_s

    @property
    def present_rates(self) -> ThrottleRates:
        """Its throttle, as far as it is slowed for clients now."""
        return self._run.present_rates

    @property
    def client_guard(self) -> ClientGuard | None:
        """Its sources on how clients feel; None if nothing does, or it does not react."""
        return self._run.clients.guard if GuardName.CLIENTS in self._run.identity.reactions else None

    @property
    def client_cost(self) -> ClientCost | None:
        """Cost of clients that suffered; None without a guard of them."""
        return None if self.client_guard is None else self._run.clients.cost

    @property
    def outlook(self) -> tuple[str, ...]:
        """Waits, and what does not fit into the schedule; empty if the run does not go on."""
        if not self._goes_on:
            return ()
        silence = () if self.silence is None else (self.silence,)
        percent = self._run.clients.backoff.percent
        slowed = () if percent == WHOLE else (f"copies have {percent} % of the rate of the run, for its clients",)
        return (*silence, *self.lost_destinations, *self._awaiting_replan, *slowed, *self._run.moves.outlook)

    @property
    def silence(self) -> str | None:
        """A sentence about a cluster that does not answer; None if it does."""
        since_ms = self.unreachable_since_ms
        return None if since_ms is None else f"the cluster has not answered since {self.time_of_day(since_ms)}"

    @property
    def _awaiting_replan(self) -> Iterator[str]:
        if count := sum(record.awaited_replan is not None for record in self.in_flight):
            are = "is" if count == 1 else "are"
            yield f"{counted(count, 'move')} to brokers that are down {are} cancelled, to be made to others"

    @property
    def lost_destinations(self) -> tuple[str, ...]:
        """A sentence per broker that is down and to which moves in flight copy."""
        copying = ((broker, sum(broker in record.lagging for record in self.in_flight)) for broker in self.absent)
        until = "the copies go on when it is back" if admission.lost_after_ms(self._run) is None else ""
        return tuple(
            f"broker {broker} is down, and {counted(count, 'move')} {'copies' if count == 1 else 'copy'} to it"
            f"{until and f'; {until}'}"
            for broker, count in copying
            if count
        )

    @property
    def absent(self) -> tuple[int, ...]:
        """Brokers that get copies and were down at the last observation."""
        return self._run.moves.absent

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Verdicts of the guards; empty if the run does not go on, because health is not checked then."""
        return self._run.health.verdicts if self._goes_on else ()

    def hindrance(self, at_ms: int) -> str | None:
        """Reason why waiting moves do not start at this time; None if none waits, or only pacing holds them."""
        # A stepwise move waits between its steps.
        waits = any(one.is_waiting or len(one.steps) > 1 for one in self.records.values())
        return next(_reasons(self._run, at_ms), None) if waits and self.control.wind_down is None else None

    @property
    def unreachable_since_ms(self) -> int | None:
        """Time since when the cluster does not answer; None if it does."""
        return self._run.health.silent_since_ms if self._goes_on else None

    def time_of_day(self, at_ms: int) -> str:
        """The time by the wall clock."""
        return f"{time_of_day(at_ms + self.wall_ahead_ms)} UTC"

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems to report to operators, without the findings of verification."""
        return tuple(dict.fromkeys(sentence for sentence, _ in self._problems()))

    @property
    def problem_partitions(self) -> dict[str, tuple[str, ...]]:
        """Each problem that names only the first of its partitions, with all of them."""
        return {text: tuple(map(str, names)) for text, names in self._problems() if len(names) > NAMED}

    def _problems(self) -> Iterator[tuple[str, Collection[TopicPartition]]]:
        """Problems, with their partitions where they are joined from those of single ones."""
        problems, awaited = self._run.problems, self._run.throttle.awaited
        is_going_on = self._goes_on
        unset = (text for broker, text in problems.unset.items() if is_going_on and broker in awaited)
        unread = map(unread_throttle, self._run.throttle.unread)
        for fact, names in problems.noted.items():
            yield each_partition(names, NAMED, fact) if names else fact, names
        passing = (problem for of_kind in problems.passing.values() for problem in of_kind.values())
        waiting = (*unset, *(unread if is_going_on else ()))
        yield from ((text, ()) for text in (*self._replans, *waiting, *problems.unrestored))
        for problem in one_per_reason(passing):
            yield problem.told(is_going_on=is_going_on, ahead_ms=self.wall_ahead_ms), problem.partitions
        for breach in self._run.health.breaches:
            yield breach.told(is_going_on=is_going_on, ahead_ms=self.wall_ahead_ms), ()

    @property
    def _replans(self) -> Iterator[str]:
        """Changes of targets, in the past tense: those that await a cancellation are not included."""
        made: dict[tuple[int, tuple[int, ...]], list[str]] = {}
        for record in self.records.values() if self._run.control.replans else ():
            for one in record.replans:
                change = f"{record.name} to {list(one.target)} instead of {list(one.before)}"
                made.setdefault((one.at_ms, one.lost), []).append(change)
        for (at_ms, lost), changes in made.items():
            more = f" and {len(changes) - NAMED} more" if len(changes) > NAMED else ""
            when = self.time_of_day(at_ms)
            down = named_brokers(lost, "were down, so that moves were planned again at")
            yield f"{down} {when}: {'; '.join(changes[:NAMED])}{more}"

    @property
    def findings(self) -> tuple[str, ...]:
        """Findings of the verification."""
        return self._run.problems.findings

    @property
    def pending_restores(self) -> Mapping[ConfigKey, ConfigOverride]:
        """Settings that are not confirmed to have their old value again."""
        return MappingProxyType(self._run.throttle.pending)

    @property
    def overrides(self) -> Mapping[ConfigKey, ConfigOverride]:
        """Every setting that the run changed, with every entry that it added to a list."""
        settings = ((key, setting.ever_ours) for key, setting in self._run.throttle.settings.items())
        return MappingProxyType({key: override for key, override in settings if override is not None})

    @property
    def given_up(self) -> tuple[ConfigOverride, ...]:
        """Settings that were never read back as restored, with every value that the run gave them."""
        lost = {ConfigResource.topic(record.name.topic) for record in self.records.values() if record.is_lost}
        restored = self.restored_rates
        settings = (
            one
            for one in self._run.throttle.settings.values()
            if (one.was_given_up and one.key not in restored) or one.key.resource in lost
        )
        return tuple(override for override in (setting.ever_ours for setting in settings) if override is not None)

    @property
    def restored_rates(self) -> frozenset[ConfigKey]:
        """Rates that were read back as restored, or as those of others: from then on, whoever sets one again owns it.

        Lists are not among these: each broker may show that of a former topic again.
        """
        settings = self._run.throttle.settings.items()
        return frozenset(key for key, setting in settings if key.broker is not None and setting.state in SETTLED)

    @property
    def left_to_others(self) -> frozenset[ConfigKey]:
        """Rates that stayed at the end, because moves of others went on."""
        settings = self._run.throttle.settings.items()
        return frozenset(key for key, setting in settings if setting.state is SettingState.LEFT)

    @property
    def residue(self) -> tuple[str, ...]:
        """A sentence per setting that still has a value of the run."""
        return tuple(str(override) for override in self._run.throttle.pending.values() if override.is_open)

    def restorable(self, live: Collection[int] | None = None) -> tuple[ConfigKey, ...]:
        """Settings that still have a value of the run, without those of brokers that are not `live` (None: all)."""
        left = (one.key for one in self._run.throttle.pending.values() if one.is_open)
        return tuple(key for key in left if live is None or key.broker is None or key.broker in live)

    @property
    def was_throttle_kept(self) -> bool:
        """True unless others are known to have changed the throttle while the run had it set."""
        told = (breach.verdict.guard for breach in self._run.health.breaches)
        throttle = self._run.throttle
        return not (throttle.is_lost or throttle.was_found_changed) and GuardName.FOREIGN_THROTTLE not in told

    @property
    def can_be_resumed(self) -> bool:
        """True if moves, settings to restore, or leaders to elect are left."""
        run = self._run
        return run.moves.are_left or bool(run.throttle.open or run.problems.unelected)

    @property
    def is_throttle_due(self) -> bool:
        """True while settings of its throttle are to be read or set first: until then others may be in force."""
        return self._run.throttle.is_due or self._run.throttle.is_unread

    @property
    def is_over(self) -> bool:
        """True if it has ended, and nothing is left of it to do."""
        return self.phase in ENDED and not self.can_be_resumed

    @property
    def why_held(self) -> str | None:
        """Why an operator or guards let no move start in a run that is not at rest; None if none does."""
        guards = admission.holding_guards(self._run)
        if self.phase in AT_REST or not (self.control.is_held or guards):
            return None
        paused = [_paused(self._run)] if self.control.is_held else []
        return "; ".join((*paused, *([f"these guards hold it: {', '.join(guards)}"] if guards else [])))

    @property
    def wall_ahead_ms(self) -> int:
        """Offset of the wall clock from the time of its events, in ms."""
        return self._run.wall_ahead_ms
