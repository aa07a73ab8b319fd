"""Brokers whose writes take long, by the metric that the policy names for them. Pure.

A broker is slow above a least time, above three times its own 90th percentile of a week, and above three times the
median of the others: what is slow every evening, or everywhere at once, is no broker. What was not read is not slow,
and not well; nor is a broker beside which too few others have times.
"""

from __future__ import annotations

from statistics import median

from kreassign.autopilot.observation import Known, Observation, Unknown
from kreassign.autopilot.policy import SlowBroker
from kreassign.model.cluster import named_brokers

TIMES = 3.0
"""So many times its usual time, and that of the others, a broker takes that is slow."""

LEAST_OTHERS = 2
"""Other live brokers of which the times must be known."""

WRITES = "its writes"
"""Beginning of the sentence on a broker that is slow by the metric."""

SUBJECT = "write times"
"""Subject of the finding that write times could not be read."""


def slow_text(now: Observation, policy: SlowBroker, broker: int, *, was_told: bool = False) -> str | None:
    """Sentence on a broker that is slow by the metric of the policy; None where it is not, or is not known to be.

    One that `was_told` by it is not compared with its own week: after 17 hours a tenth of that is slow, too.
    """
    times = now.write_times.value if isinstance(now.write_times, Known) else {}
    others = [one.now_s for other, one in times.items() if other != broker and other in now.live]
    if broker not in times or len(others) < LEAST_OTHERS:
        return None
    own, usual = times[broker].now_s, median(others)
    if own <= max(policy.slow_above, 0.0 if was_told else TIMES * times[broker].usual_s, TIMES * usual):
        return None
    return (
        f"{WRITES} take {own:.2g} s, by the metric of the policy; its own 90th percentile of a week is "
        f"{times[broker].usual_s:.2g} s, the median of the other brokers {usual:.2g} s"
    )


def unread_text(now: Observation, policy: SlowBroker, broker: int | None = None) -> str | None:
    """Why the metric of the policy does not tell whether a live broker, or any, is slow; None without a metric."""
    if not policy.metric or (broker is not None and broker not in now.live):
        return None
    match now.write_times:
        case Unknown(why):
            return f"write times of brokers: {why}"
        case Known(times):
            missing = (now.live if broker is None else {broker}) - times.keys()
            if missing:
                return f"write times of {named_brokers(sorted(missing))}: the metric has no value, now or of their week"
            if len(now.live & times.keys()) <= LEAST_OTHERS:
                return f"a broker is compared with {LEAST_OTHERS} others at least that have write times"
            return None
