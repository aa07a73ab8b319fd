"""When the plan of a repair is rehearsed, and until when a rehearsal counts. Pure.

It costs minutes on a large cluster: it waits until nothing else keeps the repair, and after each failure longer.
"""

from __future__ import annotations

import hashlib
import math

from kreassign.autopilot.detectors import DETECTORS
from kreassign.autopilot.events import Rehearsed
from kreassign.autopilot.gates import REDUNDANCY, UNTIL_IT_RUNS, Case, at_any_time, begins_at_any_time, closed_gates
from kreassign.autopilot.memory import Finding
from kreassign.autopilot.symptoms import Look
from kreassign.executor.scheduling.windows import open_interval
from kreassign.model.pace import Schedule
from kreassign.model.text import HOUR_MS


def counts_still(look: Look, finding: Finding) -> bool:
    """True if the last rehearsal of a proposal need not be made again yet, whatever it showed.

    A good one is made again where the look could not read all that it may have failed by.
    """
    last = _last(look, finding)
    if last is None or look.now.at_ms >= last.until_ms or last.basis != _basis_of(look, finding):
        return False
    return bool(last.problem) or not look.now.unread()


def _last(look: Look, finding: Finding) -> Rehearsed | None:
    """The last rehearsal of a proposal with the hours that its run would have now: urgency may come and go."""
    proposal = finding.proposal
    return None if proposal is None else proposal.rehearsal_of(at_any_time=runs_at_any_time(look, finding))


def _basis_of(look: Look, finding: Finding) -> str:
    """Digest of what a rehearsal may fail by, besides the plan: a change of it is a reason to try again."""
    now, policy = look.now, look.policy
    brokers = [sorted(one) for one in (now.live, now.down, now.in_maintenance, now.cordoned())]
    offline = [(broker, one.path) for broker, dirs in now.directories() for one in dirs if one.error is not None]
    basis = (brokers, sorted(offline), policy.runs.throttle, _hours_of(look, finding))
    return hashlib.sha256(repr(basis).encode()).hexdigest()[:16]


def _case(look: Look, finding: Finding) -> Case | None:
    shown = DETECTORS[finding.name.kind].find(look)
    symptom = next((one for one in shown if one.subject == finding.name.subject), None)
    return None if symptom is None else Case(finding, symptom, *look)


def runs_at_any_time(look: Look, finding: Finding) -> bool:
    """True if the run that is rehearsed may begin outside the windows, as the gate has it."""
    is_possible = at_any_time(look.policy, finding.name.kind, is_urgent=True)
    case = _case(look, finding) if is_possible else None
    return case is not None and begins_at_any_time(case)


def _hours_of(look: Look, finding: Finding) -> Schedule:
    return Schedule() if runs_at_any_time(look, finding) else look.policy.runs.hours


def _opened_ms(look: Look, finding: Finding, at_ms: int) -> float:
    """Time at which the window that is open now was opened: failures of an earlier one cost this one nothing."""
    interval = open_interval(_hours_of(look, finding), at_ms)
    return -math.inf if interval is None or interval.begins_ms > at_ms else interval.begins_ms


def may_rehearse(look: Look, finding: Finding) -> bool:
    """True if nothing keeps the proposal from its run but what it passes by itself, and signatures."""
    case = _case(look, finding)
    return case is not None and closed_gates(case).keys() <= UNTIL_IT_RUNS


def dated(rehearsal: Rehearsed, look: Look, finding: Finding, at_ms: int) -> Rehearsed:
    """A rehearsal of a proposal that ended now, with the time until which it counts; the proposal has the one before.

    A good one counts for the two looks and the run, and besides for as long as plan and rehearsal took: no look reads
    the traffic that it was made with. One that failed again, in the same window, counts twice as long as the last one.
    """
    last = _last(look, finding)
    basis, apart_ms = _basis_of(look, finding), round(look.policy.care.looks_apart * 1000)
    if not rehearsal.problem:
        wait_ms = 3 * apart_ms + max(0, at_ms - look.now.at_ms)
    elif last is None or not last.problem or last.basis != basis or last.at_ms < _opened_ms(look, finding, at_ms):
        wait_ms = apart_ms
    else:
        most_ms = HOUR_MS if finding.name.kind in REDUNDANCY else LONGEST_WAIT_MS
        wait_ms = max(apart_ms, min(most_ms, 2 * (last.until_ms - last.at_ms)))
    return rehearsal._replace(at_ms=at_ms, until_ms=at_ms + wait_ms, basis=basis)


LONGEST_WAIT_MS = 4 * HOUR_MS
"""Longest time between two rehearsals of the same plan that fails; an hour where copies are lost."""
