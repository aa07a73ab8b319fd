"""Messages to people about findings, and the daily digest. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from kreassign.autopilot.events import CLUSTER, Name, Planned
from kreassign.autopilot.memory import MOST_TOLD, Finding, Memory
from kreassign.autopilot.observation import Observation
from kreassign.autopilot.policy import Kind, Level, Policy
from kreassign.autopilot.symptoms import has_remedy, level_of
from kreassign.model.text import DAY_MS, counted, format_amount

COMMANDS = ("kreassign autopilot why", "kreassign doctor")


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


def about(name: Name, what: str, why: str = "", commands: tuple[str, ...] = (), *, is_over: bool = False) -> Message:
    """The message about a finding, which its first line names."""
    return Message(name, f"{name}: {what}", why, commands, is_over)


def told_message(finding: Finding, policy: Policy) -> Message:
    """The message about a finding that is there, with how far the policy goes with it."""
    level = level_of(finding.name, policy)
    why = "it is only told" if level is Level.TELL else "a repair is planned when it lasts"
    if len(finding.told_ms) == MOST_TOLD:
        why = f"it comes and goes, {MOST_TOLD} times within a day: further times are not told; {why}"
    by = f' (level = "{level}")' if has_remedy(finding.name, policy) else ""
    return about(finding.name, finding.seen, f"{why}{by}", COMMANDS)


def proposed_message(planned: Planned, commands: tuple[str, ...] = ()) -> Message:
    """The message about a proposal, with commands that people may give."""
    return about(planned.name, planned.sentences[0], "; ".join(planned.reasons), (*commands, *COMMANDS))


def over_text(now: Observation, name: Name) -> str:
    """Sentence for a finding that the look shows no more; of a broker that is hidden rather than well it says so."""
    planned = {one: f"in maintenance {entered}" for one, entered in now.entered.items()}
    if name.kind is Kind.MANY_GONE and now.missing:
        left = (f"broker {one} is {planned.get(one, 'down still')}" for one in sorted(now.missing))
        return f"it is over: {', '.join(left)}"
    if name.kind is Kind.UNREAD or name.subject == CLUSTER:
        return "it is over"
    broker = name.broker
    is_empty = broker in now.live | now.down and broker not in now.replica_counts
    is_hidden = {
        Kind.BROKER_GONE: broker in now.missing,
        Kind.NEW_BROKER: is_empty,
        Kind.SLOW_BROKER: broker in now.down,
    }.get(name.kind, False)
    state = planned.get(broker, "down" if broker in now.down else "cordoned")
    return f"the broker is {state}; not repaired" if is_hidden else "it is over"


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
        *(f"repair of {one.name}, run {one.run_id}: {one.outcome or 'runs'}; {one.account}" for one in acts),
        *((f"off by {memory.off.by}: {memory.off.why}",) if memory.off and memory.off.until_ms > at_ms else ()),
    )
    return Message(None, what, "\n".join(lines) or "nothing to report", COMMANDS[:1])
