"""A run in a test: events go in; what it decides, and what it shows, come out in words that fit into a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from kreassign.executor import events
from kreassign.executor import instructions as orders
from kreassign.executor.events import Event, PartitionObservation, PlacementState, PlannedMove, RunStarted
from kreassign.executor.guards import GuardName, GuardSetting, Health, Reaction
from kreassign.executor.instructions import Instruction, Wait
from kreassign.executor.state import Machine, RunView
from kreassign.executor.throttle_ledger import ConfigKey, ConfigOverride, ConfigValue, FoundThrottles
from kreassign.model import TopicPartition
from kreassign.model.run import MoveStatus
from tests.executor.run_events import KNOWN, LISTS, LIVE, OVERRIDES, RATE, RATES, replay, seen, started

LEADER_0, LEADER_1, FOLLOWER_2, FOLLOWER_3 = (override.key for override in RATES)
FOLLOWERS, LEADERS = (override.key for override in LISTS)
MOVING, UNTOUCHED, ARRIVED = PlacementState.MOVING, PlacementState.UNTOUCHED, PlacementState.ARRIVED
_USUAL = {override.key: override for override in OVERRIDES}
_STEPS_AT_MOST = 60


def begun(
    *moves: PlannedMove,
    throttle: int | None = RATE,
    guards: dict[GuardName, Reaction] | None = None,
    **more: Any,
) -> RunStarted:
    """The beginning of a run with only these guards, and with any that gives up destinations after a minute."""
    more.setdefault("lost_after_ms", 60_000 if set((guards or {}).values()) - {Reaction.OFF} else None)
    chosen = tuple(GuardSetting(guard, reaction) for guard, reaction in (guards or {}).items())
    return replace(started(*moves, throttle=throttle), guards=chosen, **more)


def guarded(*moves: PlannedMove, reaction: Reaction = Reaction.HOLD, **more: Any) -> RunStarted:
    """The beginning of a run that guards its throttle, and so reads it before it sets or sends anything.

    What it finds is meant to be there, unless a test says otherwise.
    """
    more.setdefault("found", FoundThrottles.RESTORE)
    guards = {GuardName.FOREIGN_THROTTLE: reaction}
    return begun(*moves, guards=guards, **more)


class Played:
    """A run to which this happens, step by step, once somebody wants to know what came of it; never before."""

    def __init__(self, *begun: Event) -> None:
        self._steps: list[Callable[[Played], None]] = []
        self._done = 0
        self._path: list[str] = []
        self._machine = Machine()
        self._ordered: tuple[Instruction, ...] = ()
        self._last: tuple[Instruction, ...] = ()
        self.on(*begun)

    def copy(self) -> Played:
        """Another run to which the same happens, and then something else."""
        again = Played()
        again._steps = [*self._steps]
        return again

    def on(self, *happened: Event) -> Played:
        """Let these events happen, too."""
        return self._then(lambda run: run._take_in(*happened))

    def go(self, until: str | tuple[str, ...], where: PlacementState = MOVING) -> Played:
        """Answer as a cluster does in which all is well, until the run decides what begins so; copies are `where`."""
        return self._then(lambda run: run._answer_until(until, where))

    def settle(self) -> Played:
        """Go on until it waits, if it does not yet."""
        return self._then(lambda run: None if Wait() in run._ordered else run._answer_until("wait", MOVING))

    def intend(self) -> Played:
        """Let it write down what it is about to set, and get no answer."""
        return self._then(lambda run: run._take_in(events.ThrottleIntended(run._machine.at_ms, run._overrides())))

    @property
    def machine(self) -> Machine:
        """The machine, after all that happened."""
        self._catch_up()
        return self._machine

    @property
    def ordered(self) -> tuple[Instruction, ...]:
        """Instructions after the last event; none where earlier ones hold, or the run is at rest."""
        self._catch_up()
        return self._ordered

    @property
    def decided(self) -> str:
        """Instructions after the last event, as a short text."""
        return in_words(self.ordered)

    @property
    def path(self) -> tuple[str, ...]:
        """Instructions after each event, as short texts."""
        self._catch_up()
        return tuple(self._path)

    @property
    def now(self) -> int:
        """Time of the last event, in ms."""
        return self.machine.at_ms

    @property
    def view(self) -> RunView:
        """The read-only view of the run."""
        return self.machine.view

    @property
    def step(self) -> str:
        """The name of its state."""
        return self.view.step

    @property
    def moves(self) -> str:
        """Progress of each move."""
        return " ".join(record.status for record in self.view.records.values())

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems as operators read them."""
        return self.view.problems

    @property
    def pending(self) -> str:
        """Settings that are still to be restored."""
        return names_of(self.view.pending_restores)

    @property
    def settings(self) -> dict[ConfigKey, str | None]:
        """To what it sets settings."""
        self._catch_up()
        return {override.key: override.value for override in self._overrides()}

    def _then(self, step: Callable[[Played], None]) -> Played:
        self._steps.append(step)
        return self

    def _catch_up(self) -> None:
        while self._done < len(self._steps):
            self._done += 1
            self._steps[self._done - 1](self)

    def _take_in(self, *happened: Event) -> None:
        for event in happened:
            self._ordered = replay(self._machine, event)
            self._path.append(in_words(self._ordered))
            self._last = self._ordered or self._last

    def _answer_until(self, until: str | tuple[str, ...], where: PlacementState) -> None:
        for _ in range(_STEPS_AT_MOST):
            self._take_in(*self._answer(self._last[0], self._machine.at_ms, where))
            if in_words(self._ordered).startswith(until):
                return
        raise AssertionError(f"it never decides to {until}, but to {in_words(self._ordered)}")

    def _overrides(self) -> tuple[ConfigOverride, ...]:
        (order,) = self._ordered
        assert isinstance(order, orders.SetThrottle), order
        return order.overrides

    def _answer(self, order: Instruction, at_ms: int, where: PlacementState) -> tuple[Event, ...]:
        match order:
            case orders.ObserveMoves(moves):
                return (events.MovesObserved(at_ms, tuple(self._seen(move, where) for move in moves)),)
            case orders.SubmitMoves(targets):
                names = tuple(targets)
                return events.SubmissionIntended(at_ms, names), events.MovesSubmitted(at_ms, names)
            case orders.CancelMoves(names):
                return events.CancelIntended(at_ms, names), events.MovesCancelled(at_ms, names)
            case orders.SetThrottle(overrides):
                return events.ThrottleIntended(at_ms, overrides), events.ThrottleSet(at_ms)
            case orders.ReadConfigs(keys):
                return (events.ConfigsRead(at_ms, tuple(ConfigValue(key, self._value(key)) for key in keys)),)
        return (_ANSWERS[type(order)](order, at_ms),)

    def _seen(self, move: PlannedMove, where: PlacementState) -> PartitionObservation:
        status = self._machine.view.records[move.topic_partition].status
        return seen(move, where if status in {MoveStatus.SENT, MoveStatus.MOVING} else UNTOUCHED)

    def _value(self, key: ConfigKey) -> str | None:
        view = self._machine.view
        is_set = view.step == "Restoring" and key in view.pending_restores
        return view.pending_restores[key].value if is_set else KNOWN.get(key)


def in_words(ordered: tuple[Instruction, ...]) -> str:
    """Orders as a few words."""
    return " ".join(_WORDS[type(order)](order) for order in ordered)


_ANSWERS: dict[type, Callable[[Any, int], Event]] = {
    orders.Wait: lambda _, at_ms: events.TimePassed(at_ms + 1_000),
    orders.CheckHealth: lambda _, at_ms: events.HealthObserved(at_ms, Health(LIVE)),
    orders.CheckThrottle: lambda _, at_ms: events.ThrottleChecked(at_ms),
    orders.RecordVerdicts: lambda order, at_ms: events.VerdictsRecorded(at_ms, order.verdicts),
    orders.MeasureTraffic: lambda _, at_ms: events.TrafficMeasured(at_ms, ()),
    orders.ElectLeaders: lambda order, at_ms: events.LeadersElected(at_ms, order.partitions),
    orders.RestoreThrottle: lambda _, at_ms: events.ThrottleRestored(at_ms),
    orders.TakeLease: lambda _, at_ms: events.LeaseTaken(at_ms, 2),
    orders.Verify: lambda _, at_ms: events.Verified(at_ms, ()),
}

_WORDS: dict[type, Callable[[Any], str]] = {
    orders.ObserveMoves: lambda order: f"observe {_named(order.moves)}",
    orders.SubmitMoves: lambda order: f"submit {_listed(order.targets)}",
    orders.CancelMoves: lambda order: f"cancel {_listed(order.partitions)}",
    orders.ElectLeaders: lambda order: f"elect {_listed(order.partitions)}{_ids(order.topic_ids)}",
    orders.MeasureTraffic: lambda order: f"measure {_listed(order.partitions)}",
    orders.SetThrottle: lambda order: f"set {_together([_with_value(one) for one in order.overrides])}",
    orders.RestoreThrottle: lambda order: f"restore {_kept(order.overrides)}{_shared(order.shared)}",
    orders.CheckThrottle: lambda order: f"check {_kept(order.overrides)}{_ids(order.topic_ids)}",
    orders.ReadConfigs: lambda order: f"read {names_of(order.keys)}{' and moves of others' * order.asks_for_others}",
    orders.Verify: lambda order: f"verify {_named(order.moves)} with {_kept(order.overrides)}",
    orders.RecordVerdicts: lambda order: f"record {' '.join(verdict.guard for verdict in order.verdicts)}",
    orders.ReplanMoves: lambda order: f"replan {_named(order.moves)} without {' '.join(map(str, order.lost))}",
    orders.Wait: lambda _: "wait",
    orders.CheckHealth: lambda order: f"check health{' without ' * bool(order.lost)}{' '.join(map(str, order.lost))}",
    orders.TakeLease: lambda _: "take the lease",
}


def _ids(topic_ids: Mapping[str, str]) -> str:
    return f" ({', '.join(topic_ids.values())})" if topic_ids else ""


def _shared(keys: Iterable[ConfigKey]) -> str:
    return "".join(f"; {word_of(key)} is shared" for key in keys)


def _kept(overrides: Iterable[ConfigOverride]) -> str:
    return names_of(override.key for override in overrides)


def _named(moves: Iterable[PlannedMove]) -> str:
    return _listed(move.topic_partition for move in moves)


def _listed(names: Iterable[TopicPartition]) -> str:
    return " ".join(map(str, names))


def word_of(key: ConfigKey) -> str:
    """A setting as two or three words."""
    side = key.name.partition(".")[0]
    return f"{side}s of {key.resource.name}" if key.broker is None else f"{side} {key.broker}"


def names_of(keys: Iterable[ConfigKey]) -> str:
    """Settings as words; those that a run usually sets have one word together."""
    return _together([word_of(key) for key in keys])


def _with_value(override: ConfigOverride) -> str:
    """A setting with its new value and what may be there until then; the usual value is left out."""
    if replace(override, unconfirmed=()) == _USUAL.get(override.key):
        return word_of(override.key)
    return f"{word_of(override.key)}={'|'.join(map(str, (override.value, *override.unconfirmed)))}"


def _together(words: list[str]) -> str:
    """`all rates` and `both lists` in place of their words, where they are all there and alike."""
    for whole, keys in (("all rates", RATES), ("both lists", LISTS)):
        for end in sorted({word.partition("=")[2] for word in words}):
            parts = [word_of(one.key) + (f"={end}" if end else "") for one in keys]
            if set(parts) <= set(words):
                words = [*(word for word in words if word not in parts), whole + (f"={end}" if end else "")]
    return ", ".join(words)
