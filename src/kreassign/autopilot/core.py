"""One tick: from what is remembered and what a look shows, to events, messages, and at most one thing to do. Pure.

    look ──▶ symptoms ──▶ evidence of each finding ──▶ its next state (`lifecycle.STEPS`) ──▶ messages
                                                             │
                             the most urgent that is due ────┴──▶ plan it, run it, or end its run

What is decided is written down before it is done; what came of it is an event as well. So a process that is killed
anywhere is replaced by any other, and a tick in virtual time is a tick.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from kreassign.autopilot.detectors import DETECTORS, Look, Symptom, use_of
from kreassign.autopilot.gates import (
    REDUNDANCY,
    Case,
    at_any_time,
    closed_gates,
    many_text,
    others_now,
    stopped,
    unread,
    window_text,
)
from kreassign.autopilot.lifecycle import (
    STEPS,
    Act,
    BrokerCame,
    BrokerWent,
    ClosedGate,
    DigestTold,
    DisksMeasured,
    EndAsked,
    Event,
    Evidence,
    Finding,
    FindingMoved,
    GatesJudged,
    HoldAsked,
    Looked,
    Memory,
    Name,
    NextAction,
    OthersMoved,
    Planned,
    ReplicasHeld,
    State,
    WentOn,
    remember,
)
from kreassign.autopilot.observation import Known, Observation
from kreassign.autopilot.policy import Level, Policy
from kreassign.model.text import DAY_MS, HOUR_MS, counted, format_amount

MISSED_MS = 600_000
"""Longest break between two looks after which evidence still counts."""

SIGN_OF_LIFE_MS = 300_000
"""A look is written down so often, whatever it shows: else one that shows much is taken for a break."""

WAITING = frozenset({State.TOLD, State.PROPOSED})
"""States in which gates keep a repair from running."""

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
class EndRun:
    """Let the running repair end once its moves in flight are done."""

    run_id: str


@dataclass(frozen=True, slots=True)
class HoldRun:
    """Let the running repair start no moves for now."""

    run_id: str


@dataclass(frozen=True, slots=True)
class ReleaseRun:
    """Let the running repair start moves again."""

    run_id: str


@dataclass(frozen=True, slots=True)
class PauseRun:
    """Let the process of the running repair leave it, with its throttle restored, once nothing is in flight."""

    run_id: str


@dataclass(frozen=True, slots=True)
class ResumeRun:
    """Go on with the running repair, which no process executes."""

    run_id: str


Order = PlanRepair | RunRepair | EndRun | HoldRun | ReleaseRun | PauseRun | ResumeRun


@dataclass(frozen=True, slots=True)
class Message:
    """One message to people: what and what it costs, why, and what they can do; without a `name` it is the digest."""

    name: Name | None
    what: str
    why: str
    commands: tuple[str, ...] = ()
    is_over: bool = False

    def __str__(self) -> str:
        return "\n".join((self.what, self.why, *(f"    {one}" for one in self.commands)))


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


def tick(memory: Memory, now: Observation, policy: Policy, shown: Mapping[Name, Symptom] | None = None) -> Decision:
    """Decide on one look, by the symptoms that it shows unless others are given."""
    decided = Decision(memory)
    for event in _facts(memory, now):
        decided.note(event)
    shown = symptoms(Look(now, decided.memory, policy)) if shown is None else shown
    for name in sorted({*shown, *(one.name for one in decided.memory.open)}, key=_order):
        _step(decided, Look(now, decided.memory, policy), name, shown.get(name))
    _steer(decided, Look(now, decided.memory, policy), shown, memory.running)
    for finding in decided.memory.open:
        if finding.state in WAITING and (symptom := shown.get(finding.name)) is not None:
            _judge(decided, Case(finding, symptom, now, decided.memory, policy))
    if digest_is_due(memory, now.at_ms, policy):
        decided.note(DigestTold(now.at_ms))
        decided.messages.append(digest(decided.memory, now.at_ms))
    if _is_due(decided.memory.looked_ms, now.at_ms, SIGN_OF_LIFE_MS):
        decided.note(Looked(now.at_ms))
    return decided


def _order(name: Name) -> tuple[int, str]:
    return name.kind.urgency, name.subject


def _is_due(last_ms: int | None, at_ms: int, every_ms: float) -> bool:
    return last_ms is None or at_ms - last_ms >= every_ms


def _steer(decided: Decision, look: Look, shown: Mapping[Name, Symptom], before: Act | None) -> None:
    """Hold, pause, resume or end the running repair.

    It holds while the brake is pulled, acting is off or many brokers are gone, and ends for what is more urgent. What
    is held, or outside its windows, is left with its throttle restored.
    """
    act, now = decided.memory.running, look.now
    if act is None:
        return
    if not act.is_end_asked and (urgent := _more_urgent(look, act, shown)):
        why = f"{urgent} is more urgent"
        decided.note(EndAsked(now.at_ms, act.name, why))
        decided.messages.append(Message(act.name, f"{act.name}: its repair ends early, and is planned again", why))
        act = act._replace(is_end_asked=True)
    if act.is_end_asked:
        is_asked = before is not None and before.is_end_asked and not now.is_run_left
        decided.order = None if is_asked else EndRun(act.run_id)
        return
    stop = stopped(now, decided.memory)
    waits = stop or (None if act.at_any_time else window_text(look.policy, now.at_ms))
    if stop and not act.held:
        decided.note(HoldAsked(now.at_ms, act.name, stop))
        decided.messages.append(Message(act.name, f"{act.name}: its repair holds, and starts nothing", stop))
        decided.order = HoldRun(act.run_id)
    elif act.held and not stop:
        decided.note(HoldAsked(now.at_ms, act.name, ""))
        decided.order = ReleaseRun(act.run_id)
    elif waits and not now.is_run_left:
        decided.order = PauseRun(act.run_id)
    elif now.is_run_left and not waits:
        decided.order = ResumeRun(act.run_id)


def _more_urgent(look: Look, act: Act, shown: Mapping[Name, Symptom]) -> Name | None:
    """A finding that would be repaired by itself now, were it not for this repair."""
    for finding in look.memory.open:
        name, symptom = finding.name, shown.get(finding.name)
        if name.kind.urgency >= act.name.kind.urgency:
            return None
        if symptom is None or finding.failures or evidence_of(look, name, symptom, finding.since_ms) != Evidence.RIPE:
            continue
        closed = closed_gates(Case(finding, symptom, *look))
        if look.policy.level(name.kind) is Level.ACT and closed.keys() <= {"running", "settling", "two looks"}:
            return name
    return None


def _judge(decided: Decision, case: Case) -> None:
    """Write down closed gates when others are closed than before; their sentences, which count time, once an hour."""
    before = case.finding.gates
    closed = tuple(ClosedGate(*one) for one in closed_gates(case).items())
    is_same = before is not None and [one.gate for one in before.closed] == [one.gate for one in closed]
    if before is None or not is_same or (before.closed != closed and _is_due(before.at_ms, case.now.at_ms, HOUR_MS)):
        decided.note(GatesJudged(case.now.at_ms, case.finding.name, closed))


# Facts: what changed since the last look, whatever it means.


def _facts(memory: Memory, now: Observation) -> Iterator[Event]:
    if memory.looked_ms is not None and now.at_ms - memory.looked_ms > MISSED_MS:
        yield WentOn(now.at_ms)
    if isinstance(now.brokers, Known) and isinstance(now.partitions, Known):
        yield from (BrokerWent(now.at_ms, broker) for broker in sorted(now.down - memory.away.keys()))
        held = tuple(sorted(now.replica_counts))
        if not now.unread_topics and (memory.held is None or memory.held.brokers != held):
            yield ReplicasHeld(now.at_ms, held)  # before those that came: they were emptied while they were down
        yield from (BrokerCame(now.at_ms, broker) for broker in sorted(memory.away.keys() & now.live))
    seen = others_now(now)
    if seen is not None and _is_due(memory.others.at_ms if memory.others else None, now.at_ms, SIGN_OF_LIFE_MS):
        yield OthersMoved(now.at_ms, seen)
    if _is_due(memory.disks[-1].at_ms if memory.disks else None, now.at_ms, HOUR_MS):
        uses = [use for broker, dirs in now.directories() for one in dirs if (use := use_of(broker, one)) is not None]
        if uses:
            yield DisksMeasured(now.at_ms, tuple(uses))


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


def _step(decided: Decision, look: Look, name: Name, symptom: Symptom | None) -> None:
    """Move one finding by the table, and take what follows."""
    at_ms = look.now.at_ms
    before = decided.memory.findings.get(name)
    if before is None or before.state is State.CLOSED:
        if symptom is None:
            return
        decided.note(FindingMoved(at_ms, name, State.SEEN, "it is there", symptom.seen, symptom.since_ms))
    for _ in range(len(State)):  # what is old when it is first seen passes several states at once
        finding = decided.memory.findings[name]
        evidence = evidence_of(look, name, symptom, finding.since_ms)
        to, action = STEPS[finding.state, evidence]
        if to is not finding.state:
            seen = finding.seen if symptom is None else symptom.seen
            decided.note(FindingMoved(at_ms, name, to, f"the evidence is {evidence}", seen))
        _follow(decided, look, name, symptom, action)
        if to is finding.state or to is State.CLOSED:
            return


def _follow(decided: Decision, look: Look, name: Name, symptom: Symptom | None, action: NextAction) -> None:
    finding = decided.memory.findings[name]
    match action:
        case NextAction.TELL:
            decided.messages.append(_told(finding, look.policy))
        case NextAction.TELL_OVER:
            decided.messages.append(Message(name, f"{name}: it is over", finding.seen, is_over=True))
        case NextAction.PLAN:
            if _may_plan(finding, look) and decided.order is None:
                decided.order = PlanRepair(name)
        case NextAction.ACT:
            assert symptom is not None, "only what is there is ripe"
            if decided.order is None:
                decided.order = _next_order(Case(finding, symptom, look.now, decided.memory, look.policy))
        case NextAction.END_RUN:
            act = decided.memory.running
            if name.kind in REDUNDANCY and act is not None and act.name == name and not act.is_end_asked:
                decided.note(EndAsked(look.now.at_ms, name, "what it repairs is over"))
        case NextAction.JUDGE:
            if look.now.at_ms - finding.state_ms >= look.policy.care.settle * 1000:
                why = "it is still there after its repair: look into it"
                decided.note(FindingMoved(look.now.at_ms, name, State.GIVEN_UP, why, finding.seen))
                decided.messages.append(Message(name, f"{name}: {why}", finding.seen, _COMMANDS))
        case NextAction.NOTHING:
            pass


# The digest.


def digest_is_due(memory: Memory, at_ms: int, policy: Policy) -> bool:
    """True if there are receivers, and its time of day has come since the last digest, or the last look without one."""
    since_ms, clock = memory.digest_ms or memory.looked_ms, policy.messages.digest_at
    if since_ms is None or not clock or not policy.messages.files:
        return False
    hour, minute = map(int, clock.split(":"))
    local = datetime.fromtimestamp(at_ms / 1000, tz=ZoneInfo(policy.runs.time_zone))
    due = local.replace(hour=hour, minute=minute, second=0, microsecond=0)
    due_ms = round((due if due <= local else due - timedelta(days=1)).timestamp() * 1000)
    return since_ms < due_ms


def digest(memory: Memory, at_ms: int) -> Message:
    """Message about open findings, and repairs of the last 24 hours."""
    acts = [one for one in memory.acts if one.begun_ms > at_ms - DAY_MS]
    copied = format_amount(sum(one.copied_bytes for one in acts), "B")
    what = f"digest: {counted(len(memory.open), 'open finding')}, {counted(len(acts), 'repair')} in 24 h, {copied}"
    lines = (
        *(f"{one.name} ({one.state}): {one.seen}" for one in memory.open),
        *(f"repair of {one.name}, run {one.run_id}: {one.outcome or 'runs'}" for one in acts),
        *((f"off by {memory.off.by}: {memory.off.why}",) if memory.off and memory.off.until_ms > at_ms else ()),
    )
    return Message(None, what, "\n".join(lines) or "nothing to report", _COMMANDS[:1])


_COMMANDS = ("kreassign autopilot why", "kreassign doctor")


def _told(finding: Finding, policy: Policy) -> Message:
    level = policy.level(finding.name.kind)
    why = "it is only told" if level is Level.TELL else "a repair is planned when it lasts"
    return Message(finding.name, f"{finding.name}: {finding.seen}", f'{why} (level = "{level}")', _COMMANDS)


def proposed_message(planned: Planned) -> Message:
    """The message about a proposal."""
    what, *why = planned.sentences
    return Message(planned.name, f"{planned.name}: {what}", "; ".join(why), _COMMANDS)


def _may_plan(finding: Finding, look: Look) -> bool:
    """True where the level wants a plan, and neither back-off, silence, the end of a run nor many losses forbid it."""
    silence = finding.silence
    return (
        look.policy.level(finding.name.kind) is not Level.TELL
        and finding.not_before_ms <= look.now.at_ms
        and (silence is None or silence.until_ms <= look.now.at_ms)
        and look.memory.running is None
        and many_text(look.memory) is None
        and not unread(look.now, finding.name.kind)
    )


UNTIL_IT_RUNS = frozenset({"two looks", "approvals"})
"""Gates that a proposal itself has to pass."""


def _next_order(case: Case) -> Order | None:
    """Run what is due; else plan again what is to be compared, or is an hour old."""
    proposal = case.finding.proposal
    assert proposal is not None, f"{case.finding.name} is proposed without a plan"
    closed = closed_gates(case)
    if not closed:
        return RunRepair(case.finding.name, proposal.plan_id, at_any_time(case))
    level = case.policy.level(case.kind)
    is_compared = level in {Level.ASK, Level.ACT} and "two looks" in closed and closed.keys() <= UNTIL_IT_RUNS
    every_ms = case.policy.care.looks_apart * 1000 if is_compared else PLANNED_AGAIN_MS
    is_unasked = level is Level.ASK and case.finding.asked is None
    is_due = is_unasked or case.now.at_ms - proposal.at_ms >= every_ms
    return (
        PlanRepair(case.finding.name)
        if is_due and _may_plan(case.finding, Look(case.now, case.memory, case.policy))
        else None
    )
