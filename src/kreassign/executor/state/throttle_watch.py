"""Is the throttle still ours? What to read again, and what an odd value means.

While a setting is in force, every value but ours is a breach, also the one from before the run: others delete
throttles that they take for left over (Kafka's own `--cancel` deletes all). One odd answer proves nothing, because a
broker may answer with what it knew before our last change, seen 11 ms after it on 4.3.1. So nothing is started after
the first, and someone else is named only after a second one, `PROPAGATION_MS` later.
"""

from __future__ import annotations

from collections.abc import Iterable

from kreassign.executor.events import ConfigsRead
from kreassign.executor.guards import GuardName, Reaction
from kreassign.executor.instructions import CheckThrottle
from kreassign.executor.state.phases import Names
from kreassign.executor.state.run import Doubt, Run
from kreassign.executor.throttle import ledger
from kreassign.executor.throttle.ledger import ConfigKey, ConfigOverride, ConfigValue
from kreassign.model import ConfigResource

PROPAGATION_MS = 10_000
"""A broker that is behind the controller for longer than broker.session.timeout.ms, 9 s, is fenced: the settings of a
broker that is not live are not read."""

DOUBT_EVERY_MS = 5_000
"""What is doubtful is read again at least so often, and sooner at first; also while nothing is about to start."""


def is_due(run: Run, starting: Names) -> bool:
    """Whether to read the throttle again before going on; the time is that of the last look."""
    throttle, now_ms = run.throttle, run.moves.observed_ms
    if not run.identity.rereads_throttle or not _reaction(run) or not throttle.in_force:
        return False
    if not throttle.doubts or throttle.checked_ms is None:
        return bool(starting) or bool(throttle.doubts)
    # A stale answer is over at once, and what somebody changed stays so for long.
    age_ms = now_ms - min(doubt.since_ms for doubt in throttle.doubts.values())
    return now_ms - throttle.checked_ms >= min(age_ms, DOUBT_EVERY_MS)


def question(run: Run, starting: Names) -> CheckThrottle:
    """Rates, the lists of the topics of these moves, and whatever is in doubt."""
    topics = {ConfigResource.topic(name.topic) for name in starting}
    throttle = run.throttle
    concerned = (
        key
        for key in throttle.pending
        if key in throttle.in_force and (key.broker is not None or key.resource in topics or key in throttle.doubts)
    )
    return CheckThrottle(tuple(throttle.pending[key] for key in concerned))


def in_force(run: Run) -> tuple[ConfigOverride, ...]:
    """The settings that have to be as they were set."""
    return tuple(override for key, override in run.throttle.pending.items() if key in run.throttle.in_force)


def take_in(
    run: Run, at_ms: int, read: Iterable[ConfigKey], differ: Iterable[ConfigValue], unread: Iterable[ConfigResource]
) -> None:
    """Draw the conclusions from reading these settings. What could not be read is as doubtful as before."""
    throttle, odd, silent = run.throttle, {present.key: present for present in differ}, set(unread)
    for key in read:
        if key in odd:
            known = throttle.doubts.get(key)
            since_ms = at_ms if known is None else known.since_ms
            throttle.doubts[key] = Doubt(odd[key], since_ms, at_ms - since_ms >= PROPAGATION_MS)
        elif key.resource not in silent:
            throttle.doubts.pop(key, None)


def take_in_at_end(run: Run, event: ConfigsRead, *, is_end: bool) -> None:
    """The same for settings that are about to be restored, or were just now; what guards had told is not told again."""
    throttle, told = run.throttle, set(foreign(run))
    kept = {key: throttle.pending[key] for key in throttle.in_force if key.resource not in event.gone}
    odd = ledger.differing(kept.values(), (present for present in event.values if present.key in kept))
    rest = (one for key, one in throttle.pending.items() if key not in kept)
    theirs = ledger.restoration(rest, event.values).foreign
    take_in(run, event.at_ms, (present.key for present in event.values), (*odd, *theirs), ())
    for present in odd:
        if throttle.doubts[present.key].is_foreign:
            override = kept[present.key]
            stays = not (override.is_restored(present.value) or override.is_ours(present.value))
            if present not in told and not stays:
                ours = f"the run had set it to {override.value!r}"
                run.note(f"someone else changed a throttle during the run: {present}, and {ours}")
            throttle.is_lost = throttle.is_lost or is_end


def is_undecided(run: Run, key: ConfigKey) -> bool:
    """Whether a second reading has to tell what this setting is."""
    doubt = run.throttle.doubts.get(key)
    return doubt is not None and not doubt.is_foreign


def was_lost(run: Run) -> bool:
    """Whether moves ended without the throttle that they were to have, unless the run was only to warn of that."""
    return run.throttle.is_lost and _reaction(run) not in {None, Reaction.WARN}


def allows_start(run: Run) -> bool:
    """Whether nothing speaks against starting moves. Who chose to be only warned takes the risk."""
    return not run.throttle.doubts or _reaction(run) in {None, Reaction.WARN}


def is_left_alone(run: Run, key: ConfigKey) -> bool:
    """Whether this setting is not adapted for now: that would hide what others did to it, and undo it unasked.

    Lists of a run that is only warned are: without its entries its next moves would start unthrottled.
    """
    return key in run.throttle.doubts and not (key.broker is None and allows_start(run))


def foreign(run: Run) -> tuple[ConfigValue, ...]:
    """What others have changed, as far as is certain."""
    return tuple(doubt.found for _, doubt in sorted(run.throttle.doubts.items()) if doubt.is_foreign)


def _reaction(run: Run) -> Reaction | None:
    return run.identity.reactions.get(GuardName.FOREIGN_THROTTLE)
