"""Why a repair does not run now: gates, each open or with the sentence that says what would open it. Pure.

All are asked before a repair begins, and `kreassign autopilot why` prints them all. What could not be read keeps the
gate closed that needs it. Nothing here starts anything: `core` does, when all are open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from kreassign.autopilot.detectors import DETECTORS, at_once, flapping, growth_text, in_maintenance, price_of, went_ms
from kreassign.autopilot.events import CLUSTER, ClosedGate, Name, PlanLoads, Rehearsed, State
from kreassign.autopilot.memory import Act, Finding, Memory
from kreassign.autopilot.observation import Known, Observation, Perhaps, Unknown
from kreassign.autopilot.policy import Kind, Level, Policy
from kreassign.autopilot.symptoms import NEVER_S, Look, Symptom, has_remedy
from kreassign.executor.scheduling.windows import local_time, open_interval
from kreassign.model import TopicPartition
from kreassign.model.pace import Schedule
from kreassign.model.text import DAY_MS, HOUR_MS, counted, format_amount, format_seconds, rough_span, some_of

WEEK_MS = 7 * DAY_MS
REDUNDANCY = frozenset({Kind.BROKER_GONE, Kind.DIRECTORY_FAILED})
"""Kinds that bring back copies that are lost. They end when the copies are back by themselves; others go to their end:
what they are about is over with their first move, and not what they are for."""

COPYLESS = frozenset({Kind.LEADERS, Kind.SLOW_BROKER})
"""Kinds whose repairs change leaders, and copy nothing."""

RESTING: Mapping[Kind, frozenset[Kind]] = MappingProxyType({
    Kind.BAND_LEFT: COPYLESS, Kind.PLACEMENT: COPYLESS | REDUNDANCY,
})  # fmt: skip
"""Kinds whose plans leave alone what was moved lately, each with the kinds of repairs after which they do not.

A full disk or a lost copy cannot wait for that; and where lost copies went in haste, racks are repaired.
"""


BALANCING = COPYLESS | {Kind.NEW_BROKER, Kind.BAND_LEFT}
"""Kinds whose repairs a balancer of others would undo, or make itself."""


class Case(NamedTuple):
    """A finding that may be repaired now, and what speaks for it and against it."""

    finding: Finding
    symptom: Symptom
    now: Observation
    memory: Memory
    policy: Policy

    @property
    def kind(self) -> Kind:
        """Kind of the finding."""
        return self.finding.name.kind

    @property
    def look(self) -> Look:
        """The look that shows it."""
        return Look(self.now, self.memory, self.policy)


Gate = Callable[[Case], str | None]
"""None if it is open, else why it is closed and what opens it."""


def _since(case: Case, at_ms: int) -> float:
    return (case.now.at_ms - at_ms) / 1000


# People: the policy, the brake, off, silence.


def level_text(policy: Policy, kind: Kind) -> str | None:
    """Why no repair of this kind runs by the policy."""
    if policy.level(kind) in {Level.ASK, Level.ACT}:
        return None
    return f'the policy has level = "{policy.level(kind)}" for {kind}; "act" would let it run'


def unapproved_text(policy: Policy, act: Act) -> str | None:
    """Why a repair that runs may not go on by the policy as it is now, though it may run by its level."""
    if act.is_approved or policy.level(act.name.kind) is not Level.ASK:
        return None
    return f'the policy has level = "ask" for {act.name.kind} now, and nobody approved this run'


def _approvals(case: Case) -> str | None:
    finding = case.finding
    if case.policy.level(case.kind) is not Level.ASK:
        return None
    if finding.asked is None:
        return "it is not proposed for approval yet"
    if finding.judged is None:
        return "no signature has been read yet; `kreassign autopilot approve` signs"
    return finding.judged.lacking or None


def _unless_absent(reading: Perhaps[str], known: str, unknown: str) -> str | None:
    """Why a thing that may be there keeps repairs: what it is, or why that is not known."""
    match reading:
        case Known(what):
            return known.format(what)
        case Unknown(why):
            return f"{unknown} ({why})"
    return None


def brake_text(now: Observation) -> str | None:
    """Why nothing may begin by the brake of the cluster."""
    return _unless_absent(now.brake, "the brake is pulled: {}", "whether the brake is pulled could not be read")


def watcher_text(now: Observation) -> str | None:
    """Why nothing may begin or go on by another autopilot, which may look after the cluster."""
    return _unless_absent(now.watcher, "{}", "whether another autopilot looks after the cluster is not known")


def off_text(now: Observation, memory: Memory) -> str | None:
    """Why nothing may begin by an operator's `kreassign autopilot off`."""
    off = memory.off
    if off is None or off.until_ms <= now.at_ms:
        return None
    left = format_seconds((off.until_ms - now.at_ms) / 1000)
    return f"{off.by} turned it off ({off.why}), for another {left}; `kreassign autopilot on`"


def stopped(look: Look) -> str | None:
    """Why nothing may begin, nor go on, whatever the finding."""
    return brake_text(look.now) or off_text(look.now, look.memory) or many_text(look)


WITHOUT_LOOK = frozenset({"other autopilot", "brake", "off"})
"""Gates that hold a repair by readings of their own."""


def hold_of(look: Look, act: Act) -> ClosedGate | None:
    """The gate that lets a running repair start nothing: of people, or of the cluster, in the order of `GATES`.

    A look that may hide what the cluster holds it for releases nothing, nor does a moment between two moves of others,
    or between two restarts.
    """
    now = look.now
    reasons = {
        "other autopilot": watcher_text(now),
        "brake": brake_text(now),
        "off": off_text(now, look.memory),
        "many gone": many_text(look),
        "others": moved_by_others(now),
        "brokers down": None if act.name.kind in COPYLESS else away_text(now, act.name.kind),
    }
    before, closed = act.held, [ClosedGate(gate, why) for gate, why in reasons.items() if why is not None]
    if closed or before is None or before.gate in WITHOUT_LOOK:
        return next(iter(closed), None)
    # Log directories show copies of others, too; lost copies wait for no broker that reports none.
    if now.unread(with_sizes=before.gate == "others" and act.name.kind not in REDUNDANCY):
        return before
    why = others_lately(look) if before.gate == "others" else returned_lately(look)
    return None if why is None else ClosedGate(before.gate, why)


def silence_text(finding: Finding, at_ms: int) -> str | None:
    """Why nothing is done about a finding because people asked for that."""
    silence = finding.silence
    if silence is None or silence.until_ms <= at_ms:
        return None
    left = format_seconds((silence.until_ms - at_ms) / 1000)
    return f"{silence.by} silenced it ({silence.why}), for another {left}"


def _people(case: Case) -> str | None:
    """Leave to people what they decide, and what a balancer of others balances that is certainly at work."""
    why, balancer = case.symptom.may_act, case.now.sure_balancer
    if not why and balancer and case.kind in BALANCING and case.policy.level(case.kind) is not Level.ASK:
        why = f"{balancer}, balances this cluster"
    return f"{why}: people decide" if why else None


# The cluster: others who change it, brokers that are away.


def many_text(look: Look) -> str | None:
    """Why nothing may begin by brokers that went at once; people who know better silence that finding.

    They know of the brokers that were down then: the loss of as many others at once stops everything again.
    """
    memory, policy = look.memory, look.policy.many_gone
    many = memory.findings.get(Name(Kind.MANY_GONE, CLUSTER))
    if many is None or many.state is State.CLOSED:
        return None
    held = memory.away if memory.held is None else memory.held.brokers
    others = at_once(went_ms(look, {*held} - many.silent_about - in_maintenance(look)), policy.within * 1000)
    is_silenced = silence_text(many, look.now.at_ms) is not None and others < policy.brokers
    return None if is_silenced else f"everything stops: {many.seen}"


def unread(now: Observation, kind: Kind) -> str:
    """Readings that failed and that a repair of this kind needs: copies that are lost do not wait for loads."""
    return now.unread(with_sizes=kind not in REDUNDANCY)


def hides_urgency(finding: Finding, symptom: Symptom) -> bool:
    """True if a disk was urgent by its growth, which is not known now."""
    return finding.may_be_urgent_by_growth and not symptom.is_growth_known


def _read(case: Case) -> str | None:
    if unread_now := unread(case.now, case.kind):
        return f"it could not be read: {unread_now}"
    is_due = case.symptom.propose_s < NEVER_S
    return growth_text(case.finding.name.subject) if hides_urgency(case.finding, case.symptom) and not is_due else None


def _lease(case: Case) -> str | None:
    return _unless_absent(
        case.now.lease, "{} holds the lease of the cluster", "the holder of the lease could not be read"
    )


def _running(case: Case) -> str | None:
    act = case.memory.running
    if act is None:
        return None
    unread = "; its journal cannot be read: moves of its partitions, and throttles, may be its own"
    return f"the repair of {act.name} runs ({act.run_id}){unread if case.now.run.is_unread else ''}"


def moved_by_others(now: Observation) -> str | None:
    """Moves of others at this time, to other brokers or directories; None if there are none, or that is unknown."""
    moves = now.moves_of_others.value if isinstance(now.moves_of_others, Known) else frozenset()
    if moves:
        return f"{_others_of(now)} move {counted(len(moves), 'partition')}, such as {min(moves)}"
    if copies := now.future_copies - now.moves_of_ours:
        count = counted(len(copies), "partition")
        return f"{_others_of(now)} move {count} between directories, such as {min(copies)}"
    return None


def others_now(now: Observation) -> str | None:
    """Moves and throttles of others at this time, as a sentence; None if nothing, or if that is unknown."""
    throttles = now.throttles_of_others.value if isinstance(now.throttles_of_others, Known) else ()
    set_text = f"{_others_of(now)} have set throttles, such as {throttles[0]}" if throttles else None
    return moved_by_others(now) or set_text


def _others_of(now: Observation) -> str:
    return f"others (perhaps {' or '.join(now.balancers)})" if now.balancers else "others"


def _others(case: Case) -> str | None:
    if seen := others_now(case.now):
        return f"{seen}; they are left alone, and waited for"
    return others_lately(case.look)


def others_lately(look: Look) -> str | None:
    """Why nothing goes on so soon after moves or throttles of others."""
    last, quiet_s = look.memory.others, look.policy.care.quiet
    since_s = 0.0 if last is None else (look.now.at_ms - last.at_ms) / 1000
    if last is None or since_s >= quiet_s:
        return None
    return f"{last.what}, until {format_seconds(since_s)} ago; it waits {format_seconds(quiet_s)}"


def returned_lately(look: Look) -> str | None:
    """Why nothing goes on so soon after a broker came back; one that comes and goes keeps nothing waiting."""
    restless, quiet_s = flapping(look.memory, look.now.at_ms), look.policy.care.quiet
    steady = (one for one in look.memory.outages if one.broker not in restless)
    latest = max(steady, key=lambda one: one.to_ms, default=None)
    since_s = 0.0 if latest is None else (look.now.at_ms - latest.to_ms) / 1000
    if latest is None or since_s >= quiet_s:
        return None
    return (
        f"broker {latest.broker} came back {format_seconds(since_s)} ago: brokers may be restarted one by one; it "
        f"waits until {format_seconds(quiet_s)} after the last"
    )


def is_restless(look: Look, name: Name) -> bool:
    """True while other brokers go and come back: people who sign now would sign again a minute later."""
    went = (at_ms for broker, at_ms in look.memory.away.items() if f"broker {broker}" != name.subject)
    quiet_ms = look.policy.care.quiet * 1000
    return returned_lately(look) is not None or any(0 <= look.now.at_ms - at_ms < quiet_ms for at_ms in went)


def away_text(now: Observation, kind: Kind) -> str | None:
    """Why no repair of this kind goes on: only lost copies and full disks are worth moving while a broker is away."""
    if kind in REDUNDANCY | {Kind.DISK_FILLS}:
        return None
    if now.missing:
        return f"brokers {sorted(now.missing)} are down: that comes first"
    if planned := sorted(now.in_maintenance):
        return f"brokers {planned} are in maintenance: it waits until they are back"
    # An empty one is waited for by nobody.
    cordoned = sorted(now.cordoned() & now.replica_counts.keys())
    is_shut = bool(cordoned) and kind not in COPYLESS
    return f"brokers {cordoned} are cordoned by others: it waits until they take replicas again" if is_shut else None


# Time and cost.


def _age(case: Case) -> str | None:
    due_s = case.symptom.act_s
    age_s = _since(case, case.finding.since_ms)
    return None if age_s >= due_s else f"it is there for {format_seconds(age_s)} of {format_seconds(due_s)}"


LIKE_THIS = 3
"""Past outages of a broker, longer than this one, by which its return is expected."""


def _returns(case: Case) -> str | None:
    """A broker that comes back at about this time as a rule is waited for, unless it has last copies."""
    if case.kind is not Kind.BROKER_GONE:
        return None
    name = case.finding.name
    since_ms = case.memory.away.get(name.broker, case.now.at_ms)
    price = price_of(case.look, name.broker, since_ms)
    if price.last_copies or price.longer < LIKE_THIS or 2 * price.soon <= price.longer:
        return None
    return (
        f"it was away for longer {counted(price.longer, 'time')} before, and of these it came back within the next "
        f"hour {counted(price.soon, 'time')}: it waits until this outage is longer than most of them"
    )


def _back_off(case: Case) -> str | None:
    left_s = -_since(case, case.finding.not_before_ms)
    return f"{case.finding.problem}; the next try is in {format_seconds(left_s)}" if left_s > 0 else None


def rest_text(case: Case) -> str | None:
    """Why a plan would move nothing: all that the finding is about was moved lately."""
    found, tired = case.symptom.partitions, resting(case.look, case.kind)
    every = frozenset(one.topic_partition for one in case.now.placed) if found is None else found
    if not every or not tired >= every:
        return None
    rest = format_seconds(case.policy.care.rest)
    return f"all of {some_of(sorted(every), 3)} were moved within {rest}, and rest for so long after they were"


def at_any_time(policy: Policy, kind: Kind, *, is_urgent: bool) -> bool:
    """True if a repair, urgent or not, runs outside the windows, too."""
    return kind is Kind.DISK_FILLS and is_urgent and policy.disk_fills.urgent_any_time


def hours_of(act: Act, policy: Policy) -> Schedule:
    """Hours of a repair: those of the policy, unless its finding is urgent and the policy says so."""
    return Schedule() if act.at_any_time and policy.disk_fills.urgent_any_time else policy.runs.hours


def begins_at_any_time(case: Case) -> bool:
    """True if the repair may begin outside the windows, by what the look shows."""
    return at_any_time(case.policy, case.kind, is_urgent=case.symptom.is_urgent)


def _window(case: Case) -> str | None:
    return None if begins_at_any_time(case) else window_text(case.policy.runs.hours, case.now.at_ms)


def window_text(hours: Schedule, at_ms: int) -> str | None:
    """Why nothing may begin by the time of the day."""
    interval = open_interval(hours, at_ms)
    if interval is not None and interval.begins_ms <= at_ms:
        return None
    begins = "" if interval is None else f"; the next one begins at {local_time(hours, interval.begins_ms)}"
    return f"no window is open{begins}"


def _settling(case: Case) -> str | None:
    is_no_wait = case.kind in REDUNDANCY  # where no copy was made, none settles
    whole = (one for one in case.memory.begun if not (one.is_end_asked or (is_no_wait and one.name.kind in COPYLESS)))
    ended = max((one.ended_ms for one in whole if one.ended_ms is not None), default=None)
    settle = case.policy.care.settle
    if ended is None or _since(case, ended) >= settle or case.symptom.is_urgent:
        return None
    return f"the last repair ended {format_seconds(_since(case, ended))} ago; it settles for {format_seconds(settle)}"


# Several brokers by one plan: each alone would wait for the one before to settle, and copies would go to and fro.

TOGETHER = frozenset({Kind.BROKER_GONE, Kind.NEW_BROKER})
"""Kinds of which a plan for one broker covers the others that are due."""


def _due(look: Look, kind: Kind) -> Mapping[str, Finding]:
    """Findings of a kind, by subject, that nothing of their own keeps from repair, in the order of their plans."""
    found: dict[str, Finding] = {}
    if kind not in TOGETHER or DETECTORS[kind].blind(look, "") is not None:
        return found
    for symptom in sorted(DETECTORS[kind].find(look), key=lambda one: (not one.is_urgent, one.subject)):
        finding = look.memory.findings.get(Name(kind, symptom.subject))
        if finding is not None and finding.state in {State.TOLD, State.PROPOSED}:
            case = Case(finding, symptom, *look)
            is_ripe = _since(case, finding.since_ms) >= symptom.propose_s
            if is_ripe and not any(GATES[gate](case) for gate in OF_ITS_OWN):
                found[symptom.subject] = finding
    return found


def together(look: Look, name: Name) -> tuple[int, ...]:
    """Other brokers that the plan for a finding is to cover, in their order; those before it have plans of their own.

    A proposal that was rehearsed, or that people were asked to sign, covers no others; one that failed covers none.
    """
    due = list(_due(look, name.kind).values())
    place = next((place for place, one in enumerate(due) if one.name == name), None)
    if place is None:
        return ()
    finding, *later = due[place:]
    proposal = finding.proposal
    rehearsal = None if proposal is None else proposal.last_rehearsal
    if proposal is None or (finding.asked is None and rehearsal is None):
        return tuple(one.name.broker for one in later if one.asked is None)
    if rehearsal is not None and rehearsal.problem:
        return ()
    return tuple(one.name.broker for one in later if one.name.broker in proposal.also)


def together_text(case: Case) -> str | None:
    """Why a finding needs no repair of its own: that of another one covers it."""
    if case.kind not in TOGETHER:
        return None
    name = case.finding.name
    plans = {one.name.subject: one.proposal for one in case.memory.open if one.name.kind is name.kind}
    covering = {subject for subject, plan in plans.items() if plan is not None and name.broker in plan.also}
    if not covering:
        return None
    due = list(_due(case.look, case.kind))
    before = due[: due.index(name.subject)] if name.subject in due else due
    first = next((one for one in before if one in covering), None)
    return first and f"the repair of {name.kind} {first} is to repair it, too"


def spent_bytes(memory: Memory, at_ms: int, span_ms: int) -> int:
    """Bytes of the repairs that ran within this time: one that pauses by day counts for both nights."""
    return sum(one.copied_bytes for one in memory.acts if one.runs_since(at_ms - span_ms))


def most_bytes_per_day(now: Observation, policy: Policy) -> int:
    """Bytes that repairs copy within 24 hours at most: an amount, and a share of what the cluster holds."""
    amount = policy.budget.bytes_per_day
    # A journal that is played again shows no partitions, and so no sizes.
    return min(amount, round(policy.budget.share_per_day * now.held_bytes)) if now.placed else amount


def _least_bytes(case: Case) -> int:
    """Bytes that a repair copies at least, before it is planned: what is lost is copied once."""
    lost = case.symptom.partitions if case.kind in REDUNDANCY else None
    return sum(case.now.sizes.get(name, 0) for name in lost or ())


def overspent(look: Look, size_bytes: int) -> str | None:
    """The budget of which so many bytes more would be too many, with what is spent of it; None if they fit."""
    now, memory, policy = look
    for name, span_ms, most in (
        ("day", DAY_MS, most_bytes_per_day(now, policy)),
        ("week", WEEK_MS, policy.budget.bytes_per_week),
    ):
        spent = spent_bytes(memory, now.at_ms, span_ms)
        if spent + size_bytes > most:
            return f"{format_amount(spent, 'B')} of {format_amount(most, 'B')} a {name} are spent"
    return None


def _budget(case: Case) -> str | None:
    budget, at_ms = case.policy.budget, case.now.at_ms
    proposal = case.finding.proposal
    size = _least_bytes(case) if proposal is None else proposal.copied_bytes
    if spent := overspent(case.look, size):
        return f"{spent}, and it copies {'at least ' if proposal is None else ''}{format_amount(size, 'B')}"
    runs = sum(one.begun_ms > at_ms - DAY_MS and one.name.kind is not Kind.LEADERS for one in case.memory.begun)
    if runs >= budget.runs_per_day and case.kind is not Kind.LEADERS:
        return f"{counted(runs, 'repair')} began within 24 hours, of {budget.runs_per_day} a day"
    return None


def resting(look: Look, kind: Kind) -> frozenset[TopicPartition]:
    """Partitions that plans of this kind leave where they are, since a repair, or others, moved them lately.

    What others moved is where they want it, but no reason to leave it in one rack.
    """
    if (after := RESTING.get(kind)) is None:
        return frozenset()
    return _moved_by_repairs(look, after) | (_moved_by_others(look) if kind is Kind.BAND_LEFT else frozenset())


def spared(look: Look) -> frozenset[TopicPartition]:
    """Partitions that plans for new brokers leave where they are if others fill these: they were moved lately."""
    return _moved_by_repairs(look, COPYLESS) | _moved_by_others(look)


def _moved_by_repairs(look: Look, after: frozenset[Kind]) -> frozenset[TopicPartition]:
    """Partitions that repairs of other kinds than these moved within the time of rest."""
    since_ms = look.now.at_ms - look.policy.care.rest * 1000
    acts = (one for one in look.memory.begun if one.name.kind not in after and one.begun_ms > since_ms)
    return frozenset(name for one in acts for name in one.moves)


def _moved_by_others(look: Look) -> frozenset[TopicPartition]:
    since_ms = look.now.at_ms - look.policy.care.rest * 1000
    return frozenset(name for name, at_ms in look.memory.foreign_ms.items() if at_ms > since_ms)


def stale_text(loads: PlanLoads, policy: Policy, at_ms: int) -> str | None:
    """Why loads of the tables are no reason to move anything."""
    most = policy.loads
    if loads.problem or loads.measured_ms is None:
        return f"the loads of {most.tables} could not be read ({loads.problem})"
    age_s = (at_ms - loads.measured_ms) / 1000
    if age_s > most.most_age:
        return f"loads were last measured {rough_span(age_s)} ago, and are stale after {format_seconds(most.most_age)}"
    if loads.doubtful_share > most.most_doubtful:
        return f"loads of {loads.doubtful_share:.0%} of the partitions are doubtful, more than {most.most_doubtful:.0%}"
    return None


def _loads(case: Case) -> str | None:
    proposal = case.finding.proposal
    if case.kind is not Kind.BAND_LEFT or proposal is None or proposal.loads is None:
        return None
    stale = stale_text(proposal.loads, case.policy, case.now.at_ms)
    return stale and f"{stale}; `kreassign load` brings them up to date"


def is_unrehearsed(case: Case) -> bool:
    """True if the proposal needs a rehearsal before it runs, and has none with the hours that its run would have."""
    return case.finding.proposal is not None and _rehearsed(case) is None and case.kind is not Kind.LEADERS


def _rehearsed(case: Case) -> Rehearsed | None:
    proposal = case.finding.proposal
    return None if proposal is None else proposal.rehearsal_of(at_any_time=begins_at_any_time(case))


def _rehearsal(case: Case) -> str | None:
    rehearsal = _rehearsed(case)
    if rehearsal is None or not rehearsal.problem or case.kind is Kind.LEADERS:
        return None
    if rehearsal.until_ms <= case.now.at_ms:
        return f"{rehearsal.problem}; it is rehearsed again at the next look that finds all else open"
    again = local_time(case.policy.runs.hours, rehearsal.until_ms)
    return f"{rehearsal.problem}; it is rehearsed again from {again} on, or once its plan, brokers or the policy change"


def _looks(case: Case) -> str | None:
    proposal, apart = case.finding.proposal, case.policy.care.looks_apart
    if proposal is None:
        return case.finding.problem or "there is no plan yet"
    steady_s = (proposal.at_ms - case.finding.steady_ms) / 1000
    if steady_s < apart:
        return f"plans were the same for {format_seconds(max(0.0, steady_s))} of {format_seconds(apart)}"
    return "its plan is rehearsed at the next look that finds all else open" if is_unrehearsed(case) else None


GATES: Mapping[str, Gate] = MappingProxyType({
    "level": lambda case: level_text(case.policy, case.kind),
    "other autopilot": lambda case: watcher_text(case.now),
    "brake": lambda case: brake_text(case.now),
    "off": lambda case: off_text(case.now, case.memory),
    "silence": lambda case: silence_text(case.finding, case.now.at_ms),
    "approvals": _approvals,
    "people": _people,
    "many gone": lambda case: many_text(case.look),
    "unread": _read,
    "lease": _lease,
    "running": _running,
    "together": together_text,
    "others": _others,
    "restarts": lambda case: returned_lately(case.look),
    "brokers down": lambda case: away_text(case.now, case.kind),
    "age": _age,
    "returns": _returns,
    "back-off": _back_off,
    "rest": rest_text,
    "window": _window,
    "settling": _settling,
    "budget": _budget,
    "loads stale": _loads,
    "rehearsal": _rehearsal,
    "two looks": _looks,
})  # fmt: skip


OF_ITS_OWN = ("silence", "people", "age", "returns", "back-off")
"""Gates that a finding is kept by for itself, whatever goes on in the cluster."""

UNTIL_IT_RUNS = frozenset({"rehearsal", "two looks", "approvals"})
"""Gates that a proposal itself has to pass."""

TOLD_OF = frozenset({
    "other autopilot", "brake", "unread", "lease", "others", "restarts", "brokers down", "budget", "loads stale",
    "rehearsal",
})  # fmt: skip
"""Gates that may stay closed without anybody's noticing: of the others people know, or they open in time."""
KNOWN_OF = frozenset({"level", "off", "silence", "people"})
"""Gates that people have closed, who wait for nothing."""


def told_after_ms(kind: Kind) -> int:
    """How long a repair is kept by such gates until people are told."""
    return HOUR_MS if kind in REDUNDANCY else DAY_MS


def gates_of(case: Case) -> dict[str, str | None]:
    """The gates that a repair of this finding has to pass, with what keeps each closed; None for one that is open."""
    if not has_remedy(case.finding.name, case.policy):
        return {"level": "there is no repair of it: people see to it"}
    return {name: gate(case) for name, gate in GATES.items()}


def closed_gates(case: Case) -> dict[str, str]:
    """The gates that are closed, with what they say."""
    return {name: text for name, text in gates_of(case).items() if text is not None}
