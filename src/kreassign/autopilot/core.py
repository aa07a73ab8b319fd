"""One tick: from what is remembered and what a look shows, to events, messages, and at most one thing to do. Pure.

    look ──▶ symptoms ──▶ evidence of each finding ──▶ its next state (`STEPS`) ──▶ messages
                                                             │
                             the most urgent that is due ────┴──▶ plan it, run it, or end its run

What is decided is written down before it is done; what came of it is an event as well. So a process that is killed
anywhere is replaced by any other, and a tick in virtual time is a tick.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from kreassign.autopilot import events, gates
from kreassign.autopilot.detectors import DETECTORS, is_low
from kreassign.autopilot.events import CLUSTER, ClosedGate, Event, Name, State
from kreassign.autopilot.facts import MISSED_MS, facts, is_long_ago, is_sign_due
from kreassign.autopilot.gains import gained
from kreassign.autopilot.gates import Case
from kreassign.autopilot.memory import SILENT_MS, Act, Finding, Memory, last_act, remember, rests_since
from kreassign.autopilot.messages import COMMANDS, Message, about, digest, digest_is_due, over_text, told_message
from kreassign.autopilot.observation import Known, Observation, RunSeen
from kreassign.autopilot.policy import Kind, Level, Policy
from kreassign.autopilot.rehearsals import counts_still
from kreassign.autopilot.symptoms import NEVER_S, Look, Symptom, level_of
from kreassign.model.text import DAY_MS, HOUR_MS, counted, format_seconds

WAITING = frozenset({State.TOLD, State.PROPOSED})
"""States in which gates keep a repair from running."""

PLANNED = frozenset({State.PROPOSED, State.SETTLING})
"""States that need evidence as ripe as it was."""

LASTS_MS = HOUR_MS // 2
"""A finding that was not told, for it came and went, is told when it lasts so long."""

URGENT_MS = HOUR_MS
"""A finding that was urgent, and was not for so long, is told again when it is urgent again."""

MOSTLY = 0.5
"""A repair ends by itself when what it copies is there again to this part."""

LEADERS_BACK = "kreassign plan leaders --out plan.json"
"""Command that gives leaders to a broker that lost them."""

PLANNED_AGAIN_MS = HOUR_MS
"""A proposal for people is planned again so often."""


@dataclass(frozen=True, slots=True)
class PlanRepair:
    """Plan the repair of this finding, and say what it costs."""

    name: Name


@dataclass(frozen=True, slots=True)
class RunRepair:
    """Plan it once more, and run the plan if it is still this one."""

    name: Name
    plan_id: str
    at_any_time: bool = False


@dataclass(frozen=True, slots=True)
class _OfRun:
    run_id: str


class EndRun(_OfRun):
    """Let the running repair end once its moves in flight are done."""


class HoldRun(_OfRun):
    """Let the running repair start no moves for now."""


class ReleaseRun(_OfRun):
    """Let the running repair start moves again."""


class PauseRun(_OfRun):
    """Let the process of the running repair leave it, with its throttle restored, once nothing is in flight."""


class ResumeRun(_OfRun):
    """Go on with the running repair, which no process executes."""


class SettleRun(_OfRun):
    """Resume the running repair, which its process left without restoring its throttle, and start nothing."""


Order = PlanRepair | RunRepair | EndRun | HoldRun | ReleaseRun | PauseRun | ResumeRun | SettleRun


@dataclass(slots=True)
class Decision:
    """Outcome of a tick: the memory after its events, in order, messages, and what to do now."""

    memory: Memory
    events: list[Event] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    order: Order | None = None

    def note(self, event: Event) -> None:
        """Take in an event."""
        self.events.append(event)
        self.memory = remember(self.memory, event)

    def tell(
        self, name: Name, what: str, why: str = "", commands: tuple[str, ...] = (), *, is_over: bool = False
    ) -> None:
        """Tell people of a finding."""
        self.messages.append(about(name, what, why, commands, is_over=is_over))


def tick(memory: Memory, now: Observation, policy: Policy, shown: Mapping[Name, Symptom] | None = None) -> Decision:
    """Decide on one look, by the symptoms that it shows unless others are given."""
    decided = Decision(memory)
    for event in facts(Look(now, memory, policy)):
        decided.note(event)
    shown = symptoms(Look(now, decided.memory, policy)) if shown is None else shown
    names = {*shown, *(one.name for one in decided.memory.open)}
    for name in sorted(names, key=lambda one: _order(one, shown.get(one))):
        _step(decided, Look(now, decided.memory, policy), name, shown.get(name))
    _steer(decided, Look(now, decided.memory, policy), shown)
    for finding in decided.memory.open:
        if finding.state in WAITING and (symptom := shown.get(finding.name)) is not None:
            _judge(decided, Case(finding, symptom, now, decided.memory, policy))
    if digest_is_due(memory, now.at_ms, policy):
        decided.note(events.DigestTold(now.at_ms))
        decided.messages.append(digest(decided.memory, now.at_ms))
    looked = events.Looked(now.at_ms, now.are_brokers_read, isinstance(now.moves_of_others, Known))
    if is_sign_due(decided.memory, looked, policy.care.interval):
        decided.note(looked)
    return decided


def _order(name: Name, symptom: Symptom | None) -> tuple[int, bool, str]:
    return name.kind.urgency, symptom is None or not symptom.is_urgent, name.subject


def _steer(decided: Decision, look: Look, shown: Mapping[Name, Symptom]) -> None:
    """Hold, pause, resume or end the running repair; orders follow from its state, so that a lost one is given again.

    It holds while the brake is pulled, acting is off, many brokers are gone or others move partitions, and ends for
    what is more urgent, or where it is not wanted any more. What is held, or outside its windows, is left with its
    throttle restored; a process of people cannot be left, and holds. What people paused, people let go on.
    """
    act, now, run = decided.memory.running, look.now, look.now.run
    if act is None:
        return
    people = act.held_by_people if run.is_unread else run.people
    if people != act.held_by_people:
        decided.note(events.PeopleHeld(now.at_ms, act.name, people))
        if people:
            resume = f"kreassign resume {act.run_id}"
            decided.tell(act.name, f"{people} paused its repair, and it stays so", commands=(resume,))
    why = None if act.is_end_asked else _unwanted(look, act, shown)
    if why:
        decided.note(events.EndAsked(now.at_ms, act.name, why))
        decided.tell(act.name, "its repair ends early", why)
    act = decided.memory.running or act
    if people and act.is_end_asked:
        _let_rest(decided, now.at_ms, act, is_new=bool(why))
    if act.is_end_asked:
        decided.order = EndRun(act.run_id) if run.is_left or not run.is_ending else None
        return
    if people:
        return
    stop = gates.hold_of(look._replace(memory=decided.memory), act)
    if (stop and stop.gate) != (act.held and act.held.gate):
        decided.note(events.HoldAsked(now.at_ms, act.name, stop))
        if stop and not act.held:
            decided.tell(act.name, "its repair holds, and starts nothing", stop.why)
    symptom = shown.get(act.name)
    is_closed = gates.window_text(gates.hours_of(act, look.policy), now.at_ms) is not None
    if is_closed and symptom is not None and gates.at_any_time(look.policy, act.name.kind, is_urgent=symptom.is_urgent):
        decided.note(events.WindowsLifted(now.at_ms, act.name))
        is_closed = False
    decided.order = _order_of_run(act.run_id, run, is_stopped=bool(stop), may_not_run=bool(stop) or is_closed)


def _let_rest(decided: Decision, at_ms: int, act: Act, *, is_new: bool) -> None:
    """Let findings rest whose repair people paused before its end; also where a process died before it wrote that.

    Once for each repair: not where people have silenced the finding while it ran, for they said for how long, nor where
    they take back its rest while moves in flight go to their end.
    """
    for name in act.names:
        finding, people = decided.memory.findings[name], act.held_by_people
        silence, is_there = finding.silence, is_new or not finding.is_gone
        is_taken_back = silence is not None and silence.at_ms >= (act.end_asked_ms or 0)
        if is_there and not is_taken_back and not rests_since(finding, act):
            decided.note(events.Silenced(at_ms, 0, *name, at_ms + SILENT_MS, people, f"{people} had paused its repair"))


def _order_of_run(run_id: str, run: RunSeen, *, is_stopped: bool, may_not_run: bool) -> Order | None:
    if run.is_left and not may_not_run:
        return ResumeRun(run_id)
    if run.is_left:
        return None if run.is_at_rest else SettleRun(run_id)
    is_to_hold = may_not_run if run.is_elsewhere else is_stopped
    if is_to_hold and not run.held_by:
        return HoldRun(run_id)
    if run.held_by and not is_to_hold:
        return ReleaseRun(run_id)
    return PauseRun(run_id) if may_not_run and not run.is_elsewhere else None


def _unwanted(look: Look, act: Act, shown: Mapping[Name, Symptom]) -> str | None:
    """Why the running repair is to end early: for a more urgent one, or since people want it no more."""
    if urgent := _more_urgent(look, act, shown):
        return f"{urgent} is more urgent; it is planned again"
    not_by_level = gates.level_text(look.policy, act.name.kind) or gates.unapproved_text(look.policy, act)
    return not_by_level or next(filter(None, (_unwanted_for(look, act, name) for name in act.names)), None)


def _unwanted_for(look: Look, act: Act, name: Name) -> str | None:
    """Why the repair of one of the findings that a run repairs is not wanted any more."""
    now, is_gone = look.now, name.kind is Kind.BROKER_GONE
    if is_gone and name.broker in now.in_maintenance:
        return f"broker {name.broker} is in maintenance {now.entered.get(name.broker, '')}".rstrip()
    if is_gone and name != act.name and name.broker in now.live and _is_mostly_back(now, act, name):
        return f"broker {name.broker} is back; the rest is planned again"
    return gates.silence_text(look.memory.findings[name], now.at_ms)


def _is_mostly_back(now: Observation, act: Act, name: Name) -> bool:
    """True if less is to copy by catching up than by going on; not where all that it held is elsewhere by now."""
    moves = frozenset(act.moves)
    share = now.caught_up(name.broker, moves)
    is_held = any(one.topic_partition in moves for one in now.holding(name.broker))
    return share is not None and share >= MOSTLY and is_held


def _more_urgent(look: Look, act: Act, shown: Mapping[Name, Symptom]) -> Name | None:
    """A finding that would be repaired now, were it not for this repair.

    One that runs at any time is more urgent while this repair waits for its window, and so is one of the same kind that
    is urgent, where what this one repairs is not.
    """
    is_waiting = gates.window_text(gates.hours_of(act, look.policy), look.now.at_ms) is not None
    own = shown.get(act.name)
    may_give_way = own is not None and not _is_urgent(look, look.memory.findings[act.name], own)
    for finding in look.memory.open:
        name, symptom = finding.name, shown.get(finding.name)
        if finding.state not in WAITING or symptom is None or finding.failures or name in act.names:
            continue
        runs_now = is_waiting and gates.at_any_time(look.policy, name.kind, is_urgent=symptom.is_urgent)
        comes_first = name.kind is act.name.kind and symptom.is_urgent and may_give_way
        if not (name.kind.urgency < act.name.kind.urgency or comes_first or runs_now):
            continue
        if evidence_of(look, name, symptom, finding.since_ms) != Evidence.RIPE:
            continue
        if gates.closed_gates(Case(finding, symptom, *look)).keys() <= {"running", "settling", "two looks"}:
            return name
    return None


def _judge(decided: Decision, case: Case) -> None:
    """Write down closed gates when others are closed than before; their sentences, which count time, once an hour.

    People are told once of a repair that is kept for long by gates of which they may not know.
    """
    before, at_ms, name = case.finding.gates, case.now.at_ms, case.finding.name
    closed = tuple(ClosedGate(*one) for one in gates.closed_gates(case).items())
    closed_names = [one.gate for one in closed]
    keeping = [] if gates.KNOWN_OF.intersection(closed_names) else [one for one in closed if one.gate in gates.TOLD_OF]
    since_ms = ((before and before.kept_since_ms) or at_ms) if keeping else None
    was_told = before is not None and before.is_told and since_ms == before.kept_since_ms
    kept_ms = 0 if since_ms is None else at_ms - since_ms
    is_due = bool(keeping) and not was_told and kept_ms >= gates.told_after_ms(case.kind)
    is_same = before is not None and [one.gate for one in before.closed] == closed_names
    is_old = before is not None and before.closed != closed and is_long_ago(before.at_ms, at_ms, HOUR_MS)
    if is_due or is_old or not is_same:
        decided.note(events.GatesJudged(at_ms, name, closed, since_ms, is_due or was_told))
    if is_due:
        why = "; ".join(f"{one.gate}: {one.why}" for one in keeping)
        what = f"its repair has been kept for {format_seconds(kept_ms / 1000)}"
        decided.tell(name, what, why, (*COMMANDS, "kreassign doctor"))


# Symptoms, and the evidence that they are.


def symptoms(look: Look) -> dict[Name, Symptom]:
    """All symptoms of a look; kinds that need what was not read show none."""
    return {
        Name(kind, symptom.subject): symptom
        for kind, detector in DETECTORS.items()
        if detector.blind(look, "") is None
        for symptom in detector.find(look)
    }


def evidence_of(look: Look, name: Name, symptom: Symptom | None, since_ms: int) -> Evidence:
    """Judge by a look how a finding stands that is there since then."""
    if symptom is None:
        is_blind = DETECTORS[name.kind].blind(look, name.subject) is not None
        return Evidence.UNKNOWN if is_blind else Evidence.GONE
    age_s = (look.now.at_ms - since_ms) / 1000
    if age_s < symptom.tell_s:
        return Evidence.FRESH
    return Evidence.LASTING if age_s < symptom.propose_s else Evidence.RIPE


def _evidence(step: Stepped) -> Evidence:
    """The evidence that moves a finding: what was not read, or has to ripen again, takes no plan back.

    Proposal and signatures wait for that, and so does the judgement of a repair: a break shows no health. Nor do they
    go while urgency is away for less than an hour.
    """
    finding, symptom, now = step.finding, step.symptom, step.look.now
    evidence = evidence_of(step.look, step.name, symptom, finding.since_ms)
    if symptom is None or evidence is Evidence.RIPE or finding.state not in PLANNED:
        return evidence
    waits = symptom.propose_s < NEVER_S or gates.hides_urgency(finding, symptom)
    is_lately = finding.state is State.PROPOSED and _was_urgent_lately(finding, now.at_ms)
    return Evidence.UNKNOWN if waits or is_lately or gates.unread(now, finding.name.kind) else evidence


def _was_urgent_lately(finding: Finding, at_ms: int) -> bool:
    is_calm = finding.calm_ms is not None and at_ms - finding.calm_ms >= URGENT_MS
    return finding.urgent_ms is not None and not is_calm


def _is_urgent(look: Look, finding: Finding, symptom: Symptom) -> bool:
    """True if a finding is urgent, or was and what made it so may be what was not read."""
    is_hidden = gates.hides_urgency(finding, symptom) or bool(gates.unread(look.now, finding.name.kind))
    return symptom.is_urgent or (finding.urgent_ms is not None and is_hidden)


class Stepped(NamedTuple):
    """A finding on its way by the table, with what the look shows of it."""

    decided: Decision
    look: Look
    name: Name
    symptom: Symptom | None

    @property
    def finding(self) -> Finding:
        """The finding as it is by now."""
        return self.decided.memory.findings[self.name]

    @property
    def seen(self) -> str:
        """The sentence of this look, or the last one that is remembered."""
        return self.finding.seen if self.symptom is None else self.symptom.seen

    @property
    def case(self) -> Case:
        """The finding as one that may be repaired now."""
        assert self.symptom is not None, "only what is there is ripe"
        return Case(self.finding, self.symptom, self.look.now, self.decided.memory, self.look.policy)

    @property
    def is_settled(self) -> bool:
        """True if it has been in its state for as long as repairs settle."""
        return self.look.now.at_ms - self.finding.state_ms >= self.look.policy.care.settle * 1000

    def note(self, to: State, why: str, **more: Any) -> None:
        """Write down that the finding came into a state, or how it stands in its own."""
        self.decided.note(events.FindingMoved(self.look.now.at_ms, self.name, to, why, self.seen, **more))

    def tell(self, what: str, why: str) -> None:
        """Tell people of it."""
        self.decided.tell(self.name, what, why, COMMANDS)

    def move(self, to: State, why: str) -> None:
        """Move the finding once more, and tell that."""
        _note_gain(self)
        self.note(to, why)
        self.tell(why, f"{self.seen}{_gain_text(self)}")


def _step(decided: Decision, look: Look, name: Name, symptom: Symptom | None) -> None:
    """Move one finding by the table, and take what follows."""
    before = decided.memory.findings.get(name)
    if before is None or before.state is State.CLOSED:
        if symptom is None:
            return
        brokers = tuple(sorted(symptom.brokers))
        begun = events.FindingMoved(look.now.at_ms, name, State.SEEN, "it is there", symptom.seen, symptom.since_ms)
        decided.note(replace(begun, brokers=brokers, by_growth=symptom.by_growth))
    step = Stepped(decided, look, name, symptom)
    _follow_sight(step)
    if _fills_again(step.finding, symptom):
        step.move(State.TOLD, "it was below its limits, and fills again")
    for _ in range(len(State)):  # what is old when it is first seen passes several states at once
        state, evidence = step.finding.state, _evidence(step)
        to, follow = STEPS[state, evidence]
        if to is not state:
            _note_gain(step)
            urgency: dict[str, bool | None] = {}
            if symptom is not None and symptom.is_urgent and to is State.TOLD:
                urgency = {"is_urgent": True, "urgent_by_growth": symptom.urgent_by_growth}
            step.note(to, f"the evidence is {evidence}", **urgency)
        if follow is not None:
            follow(step)
        if to is state or to is State.CLOSED:
            break
    if symptom is not None and step.finding.state is not State.SEEN:
        _tell_late(step)
        _tell_growth(step, symptom)
        _tell_urgency(step, symptom)


def _tell_urgency(step: Stepped, symptom: Symptom) -> None:
    """Tell a finding again when it becomes urgent, or a disk by its used share, too; note by what it is there."""
    finding, by = step.finding, {"by_growth": symptom.by_growth}
    by_other = {**by, "urgent_by_growth": symptom.urgent_by_growth}
    is_calm = finding.urgent_ms is not None and not _is_urgent(step.look, finding, symptom)
    is_full = symptom.urgent_by_growth is False and not finding.was_full
    if symptom.is_urgent and finding.urgent_ms is None:
        step.note(finding.state, "it is urgent", is_urgent=True, **by_other)
        step.tell(f"it is urgent now: {symptom.seen}", finding.why)
    elif is_calm and not _was_urgent_lately(finding, step.look.now.at_ms):
        step.note(finding.state, finding.why, is_urgent=False, **by)
    elif is_calm if finding.calm_ms is None else symptom.is_urgent:
        step.note(finding.state, finding.why, is_calm=is_calm, **by)
    elif _is_by_other(finding, symptom):
        step.note(finding.state, finding.why, **by_other)
        if is_full and finding.urgent_ms is not None:
            step.tell(f"its used share alone makes it urgent now: {symptom.seen}", finding.why)


def _fills_again(finding: Finding, symptom: Symptom | None) -> bool:
    """True if a disk was below its limits since its repair, or since people look into it, and is not any more."""
    is_full = symptom is not None and symptom.by_growth is False
    return finding.state in {State.SETTLING, State.GIVEN_UP} and finding.was_low and is_full


def _is_by_other(finding: Finding, symptom: Symptom) -> bool:
    """True if growth of a disk took over from its used share, or the share from growth."""
    is_urgent_by_other = symptom.urgent_by_growth not in {None, finding.urgent_by_growth}
    return symptom.by_growth not in {None, finding.by_growth} or is_urgent_by_other


def _note_gain(step: Stepped) -> None:
    """Write down what a repair has gained when it has settled: of one for several findings, with the first of them."""
    act = last_act(step.decided.memory, step.name)
    is_own = act is not None and act.name == step.name
    if is_own and step.finding.state is State.SETTLING and (gain := gained(step.look, act)):
        step.decided.note(gain)


def _gain_text(step: Stepped) -> str:
    """Sentences for people about the repair of a finding, beside the finding itself."""
    act = last_act(step.decided.memory, step.name)
    is_of_this = act is not None and act.begun_ms >= step.finding.since_ms
    return f"; its repair: {act.account}" if act is not None and act.gain and is_of_this else ""


def _tell_growth(step: Stepped, symptom: Symptom) -> None:
    """Tell a finding about the cluster again when it is about more brokers."""
    finding = step.finding
    if more := symptom.brokers - finding.brokers:
        why = f"it is about {counted(len(more), 'broker')} more, such as {min(more)}"
        step.note(finding.state, why, brokers=tuple(sorted(symptom.brokers)))
        if finding.is_told:
            step.tell(f"{why}: {symptom.seen}", finding.why)


def _follow_sight(step: Stepped) -> None:
    """Write down when a finding is seen no more, and again: time for which nobody saw it is no evidence."""
    finding, at_ms, name = step.finding, step.look.now.at_ms, step.name
    if step.symptom is not None:
        if finding.lost_ms:
            is_new = finding.is_gone or at_ms - finding.lost_ms > MISSED_MS
            step.decided.note(events.SightBack(at_ms, name, at_ms if is_new else finding.since_ms))
        return
    is_gone, low = evidence_of(step.look, name, None, finding.since_ms) is Evidence.GONE, is_low(step.look, name)
    if is_gone and finding.state is not State.RUNNING:
        return  # it closes
    if not finding.lost_ms or is_gone > finding.is_gone or low > finding.was_low:
        step.decided.note(events.SightLost(at_ms, name, is_gone, low))


def _tell_late(step: Stepped) -> None:
    """Tell what came and went too often to be told each time, once it lasts."""
    finding, look = step.finding, step.look
    is_ripe = evidence_of(look, step.name, step.symptom, finding.since_ms) is Evidence.RIPE
    if not finding.is_told and (is_ripe or look.now.at_ms - finding.since_ms >= LASTS_MS):
        step.note(finding.state, "it came and went, and lasts", is_told_late=True)
        _tell(step)


def _tell(step: Stepped) -> None:
    """Tell that it is there."""
    if step.finding.is_told:
        step.decided.messages.append(told_message(step.finding, step.look.policy))


def _tell_less(step: Stepped) -> None:
    """Tell that nothing is to be repaired now."""
    if step.finding.is_told:
        step.tell(step.seen, f"nothing is to be repaired now{_gain_text(step)}")


def _tell_over(step: Stepped) -> None:
    """Tell that it is over."""
    if step.finding.is_told:
        now, name = step.look.now, step.name
        over, commands = over_text(now, name), tuple[str, ...]()
        is_broker = name.kind is Kind.SLOW_BROKER and name.subject != CLUSTER
        is_idle = is_broker and not any(one.leader == name.broker for one in now.placed)
        if is_idle and name.broker in now.live & now.replica_counts.keys():
            over, commands = "it is in sync again, and leads nothing any more", (LEADERS_BACK,)
        step.decided.tell(name, over, f"{step.finding.seen}{_gain_text(step)}", commands, is_over=True)


def _plan(step: Stepped) -> None:
    """Plan a repair, where the level says so."""
    if step.decided.order is None and _may_plan(step.case):
        step.decided.order = PlanRepair(step.name)


def _act(step: Stepped) -> None:
    """Run the repair, where the level says so and all gates are open."""
    if step.decided.order is None:
        step.decided.order = _next_order(step.case)


def _measure(step: Stepped) -> None:
    """Write down what was gained when the settling time is over, whether the finding is over or not."""
    if step.is_settled:
        _note_gain(step)


def _end_run(step: Stepped) -> None:
    """End the repair, where that copies less than going on."""
    act, name = step.decided.memory.running, step.name
    if name.kind not in gates.REDUNDANCY or act is None or act.name != name or act.is_end_asked:
        return
    if _is_mostly_back(step.look.now, act, name):
        step.decided.note(events.EndAsked(step.look.now.at_ms, name, "what it repairs is over"))


def _judge_repair(step: Stepped) -> None:
    """Plan again for what the repair did not move, else give up when the settling time is over."""
    repair, still = last_act(step.decided.memory, step.name), step.case.symptom.partitions
    if still is not None and (repair is None or not still.intersection(repair.moves)):
        step.move(State.TOLD, "it is there with partitions that its repair did not move: it is planned again")
    elif step.is_settled:
        step.move(State.GIVEN_UP, "it is still there after its repair: look into it")


def _reconsider(step: Stepped) -> None:
    """Plan a repair again when people had a day, where it is about the whole cluster."""
    # By then it may be about other partitions of the cluster; those that were moved rest.
    if step.name.subject == CLUSTER and step.look.now.at_ms - step.finding.state_ms >= DAY_MS:
        step.move(State.TOLD, "people had a day to look into it: a repair is planned again")


class Evidence(StrEnum):
    """The part of a look that moves a finding."""

    GONE = "gone"  # it is not there
    UNKNOWN = "unknown"  # what shows it could not be read
    FRESH = "fresh"  # too young to be told
    LASTING = "lasting"  # told, and too young to be proposed
    RIPE = "ripe"  # due for a proposal


class Step(NamedTuple):
    """Where evidence leads from a state, and what follows besides."""

    to: State
    follow: Callable[[Stepped], None] | None = None


STEPS: Mapping[tuple[State, Evidence], Step] = MappingProxyType({
    **{(state, evidence): Step(state) for state in State for evidence in Evidence},
    (State.SEEN, Evidence.GONE): Step(State.CLOSED),
    (State.SEEN, Evidence.LASTING): Step(State.TOLD, _tell),
    (State.SEEN, Evidence.RIPE): Step(State.TOLD, _tell),
    (State.TOLD, Evidence.GONE): Step(State.CLOSED, _tell_over),
    (State.TOLD, Evidence.RIPE): Step(State.TOLD, _plan),
    (State.PROPOSED, Evidence.GONE): Step(State.CLOSED, _tell_over),
    (State.PROPOSED, Evidence.FRESH): Step(State.TOLD, _tell_less),
    (State.PROPOSED, Evidence.LASTING): Step(State.TOLD, _tell_less),
    (State.PROPOSED, Evidence.RIPE): Step(State.PROPOSED, _act),
    (State.RUNNING, Evidence.GONE): Step(State.RUNNING, _end_run),
    (State.SETTLING, Evidence.GONE): Step(State.CLOSED, _tell_over),
    (State.SETTLING, Evidence.UNKNOWN): Step(State.SETTLING, _measure),
    (State.SETTLING, Evidence.FRESH): Step(State.TOLD, _tell_less),
    (State.SETTLING, Evidence.LASTING): Step(State.TOLD, _tell_less),
    (State.SETTLING, Evidence.RIPE): Step(State.SETTLING, _judge_repair),
    (State.CLOSED, Evidence.FRESH): Step(State.SEEN),
    (State.CLOSED, Evidence.LASTING): Step(State.SEEN),
    (State.CLOSED, Evidence.RIPE): Step(State.SEEN),
    (State.GIVEN_UP, Evidence.GONE): Step(State.CLOSED, _tell_over),
    (State.GIVEN_UP, Evidence.RIPE): Step(State.GIVEN_UP, _reconsider),
})  # fmt: skip
"""Steps by state and evidence: a finding stays as it is unless a row says otherwise."""


def _may_plan(case: Case) -> bool:
    """True where the level wants a plan, and neither back-off, rest, silence, a run nor many losses forbid it."""
    finding, at_ms = case.finding, case.now.at_ms
    return (
        level_of(finding.name, case.policy) is not Level.TELL
        and finding.not_before_ms <= at_ms
        and gates.silence_text(finding, at_ms) is None
        and case.memory.running is None
        and gates.many_text(case.look) is None
        and not gates.unread(case.now, case.kind)
        and gates.rest_text(case) is None
        and gates.together_text(case) is None
    )


def _next_order(case: Case) -> Order | None:
    """Run what is due; else plan again what is to be compared, or is an hour old."""
    proposal = case.finding.proposal
    assert proposal is not None, f"{case.finding.name} is proposed without a plan"
    closed = gates.closed_gates(case)
    if not closed:
        return RunRepair(case.finding.name, proposal.plan_id, gates.begins_at_any_time(case))
    level = case.policy.level(case.kind)
    look = case.look
    is_tried = not closed.keys() & {"two looks", "rehearsal"}
    is_compared = level in {Level.ASK, Level.ACT} and not is_tried and closed.keys() <= gates.UNTIL_IT_RUNS
    if is_compared and gates.is_unrehearsed(case):
        every_ms = 0.0
    elif is_compared and not ("rehearsal" in closed and counts_still(look, case.finding)):
        every_ms = case.policy.care.looks_apart * 1000
    else:
        every_ms = PLANNED_AGAIN_MS
    is_unasked = level is Level.ASK and case.finding.asked is None and not gates.is_restless(look, case.finding.name)
    is_due = is_unasked or case.now.at_ms - proposal.at_ms >= every_ms
    return PlanRepair(case.finding.name) if is_due and _may_plan(case) else None
