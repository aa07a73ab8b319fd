"""Follow one setting of a throttle through a run: its states, and what each value read means in each state.

    unchanged ──▶ intended ──▶ in force ──▶ restoring ──▶ restored, theirs
                     └────────────┴─────────────┴───────▶ left, gone, carried, forgotten

A setting is the run's to restore, and open, from the journal entry of its first change until a row of `RULES` ends it.
Whether a process died before or after a write is unknown, so an intended setting may have the old value or ours; one in
force has ours, and the old value there is a change by others like any other: others delete throttles that they take for
forgotten (Kafka's own `--cancel` deletes all).

No single reading makes a value foreign, because a broker may answer with the value from before our last change, seen
11 ms after it on 4.3.1. An odd value is a doubt, beside the state: it passes when the value is read as set, and counts
as a change by others once it is read again `PROPAGATION_MS` later.

A change that had no answer may be made at any later time, as a move may (`attempts.py`): the old value counts as
restored `LAST_WORD_MS` after it, and until then it is read, and written, again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from kreassign.executor.state.attempts import LAST_WORD_MS
from kreassign.executor.throttle_ledger import ConfigKey, ConfigOverride, ConfigValue
from kreassign.model import ConfigResource

PROPAGATION_MS = 10_000
"""A broker that is behind the controller for longer than broker.session.timeout.ms, 9 s, is fenced: settings of a
broker that is down are not read.
"""


class SettingState(StrEnum):
    """State of a setting. Those of `OPEN` are to be restored."""

    UNCHANGED = "unchanged"  # the run has written down no change of it
    INTENDED = "intended"  # a change was written down, and may or may not have been made
    IN_FORCE = "in force"  # the cluster took a value of the run
    RESTORING = "restoring"  # the old value was sent, and was not read back
    RESTORED = "restored"  # the old value was read back
    THEIRS = "theirs"  # others certainly set another value, which is kept
    LEFT = "left"  # a rate that others had before the run: their moves go on under it
    GONE = "gone"  # its topic was deleted or created again
    CARRIED = "carried"  # its broker was down, and a controller took, or has, the old value
    FORGOTTEN = "forgotten"  # its broker is lost for good


OPEN = frozenset({SettingState.INTENDED, SettingState.IN_FORCE, SettingState.RESTORING})
SETTLED = frozenset({SettingState.RESTORED, SettingState.THEIRS})
"""Settings that the run has nothing to do with any more: what was agreed about them is over."""
UNREADABLE = frozenset({SettingState.LEFT, SettingState.CARRIED, SettingState.FORGOTTEN})
"""Settings that need not, or cannot, show their old value at the end."""


class SettingEvent(StrEnum):
    """Events of a setting besides readings."""

    BEGIN = "a change from the old value is written down"
    CHANGE = "a change from a value of the run is written down"
    CONFIRM = "the change is made"
    UNWATCHED = "others may have restored it: the run was left, or could not restore it for a minute"
    WRITE_BACK = "the old value is about to be sent"
    READ_BACK = "the old value is read"
    FOREIGN = "a value of others is certain"
    LEAVE = "moves of others go on that had it before"
    TOPIC_GONE = "its topic is gone"
    CONTROLLER_TOOK = "a controller takes, or has, the old value of a broker that is down"
    FORGET = "its broker is given up, or the cluster does not know it"


def _open(state: SettingState) -> Mapping[SettingState, SettingState]:
    return dict.fromkeys(OPEN, state)


RULES: Mapping[SettingEvent, Mapping[SettingState, SettingState]] = MappingProxyType({
    SettingEvent.BEGIN: dict.fromkeys(SettingState, SettingState.INTENDED),
    SettingEvent.CHANGE: {**_open(SettingState.INTENDED), SettingState.IN_FORCE: SettingState.IN_FORCE},
    SettingEvent.CONFIRM: _open(SettingState.IN_FORCE),
    SettingEvent.UNWATCHED: {SettingState.IN_FORCE: SettingState.INTENDED},
    SettingEvent.WRITE_BACK: _open(SettingState.RESTORING),
    # The old value of a setting in force is not ours: it is written, and read again, before it counts.
    SettingEvent.READ_BACK: {
        SettingState.INTENDED: SettingState.RESTORED, SettingState.RESTORING: SettingState.RESTORED
    },
    SettingEvent.FOREIGN: _open(SettingState.THEIRS),
    SettingEvent.LEAVE: _open(SettingState.LEFT),
    SettingEvent.TOPIC_GONE: _open(SettingState.GONE),
    SettingEvent.CONTROLLER_TOOK: _open(SettingState.CARRIED),
    SettingEvent.FORGET: _open(SettingState.FORGOTTEN),
})  # fmt: skip
"""The next state. States that an event does not name stay as they are."""


class Seen(StrEnum):
    """A value that was read, against the old value and those of the run."""

    OURS = "as set"
    BOTH = "as set, which is the old value"
    COVERED = "as set, with `*` by others"
    OLD = "the old value, nothing of the run"
    EMPTY = "an empty list where there was none"
    PARTLY = "some entries of the run"
    EARLIER = "an earlier rate of the run"
    OTHER = "any other"


class Conclusion(StrEnum):
    """Conclusion from a reading."""

    AS_SET = "no doubt"
    DOUBT = "doubt"
    WRITE = "the old value is written"
    RESTORED = "restored"
    THEIRS = "kept as theirs"


class Meaning(NamedTuple):
    """Conclusions from a value: while the run moves, at its end, and there once a doubt is certain.

    `in_force` of a setting in force, else of one that is intended or restoring.
    """

    in_force: Conclusion
    intended: Conclusion
    in_force_at_end: Conclusion
    intended_at_end: Conclusion
    certain: Conclusion


_AS_SET, _DOUBT, _WRITE = Conclusion.AS_SET, Conclusion.DOUBT, Conclusion.WRITE
_BACK, _THEIRS = Conclusion.RESTORED, Conclusion.THEIRS

# A broker can be behind for longer than any doubt, so the old value is written even where it, or an earlier one of
# ours, is shown: if the old value is really set, nothing changes.
READINGS: Mapping[Seen, Meaning] = MappingProxyType({
    Seen.OURS: Meaning(_AS_SET, _AS_SET, _WRITE, _WRITE, _WRITE),
    Seen.BOTH: Meaning(_AS_SET, _AS_SET, _WRITE, _BACK, _WRITE),
    Seen.COVERED: Meaning(_AS_SET, _AS_SET, _THEIRS, _DOUBT, _THEIRS),
    Seen.OLD: Meaning(_DOUBT, _AS_SET, _DOUBT, _BACK, _WRITE),
    Seen.EMPTY: Meaning(_DOUBT, _AS_SET, _DOUBT, _WRITE, _WRITE),
    Seen.PARTLY: Meaning(_DOUBT, _DOUBT, _DOUBT, _WRITE, _WRITE),
    Seen.EARLIER: Meaning(_DOUBT, _DOUBT, _DOUBT, _DOUBT, _WRITE),
    Seen.OTHER: Meaning(_DOUBT, _DOUBT, _DOUBT, _DOUBT, _THEIRS),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Doubt:
    """Another value than ours, first read at `since_ms`.

    It `is_foreign` once it was read so again later than a stale answer can be: others have changed it.
    """

    value: ConfigValue
    since_ms: int
    is_foreign: bool = False


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of one topic or broker, in the life of a run."""

    key: ConfigKey
    state: SettingState = SettingState.UNCHANGED
    found: ConfigValue | None = None
    """Value before the run; None while this process does not know it."""
    original: ConfigValue | None = None
    """Value to restore instead of the one read, because others had changed it before the run; until it is restored."""
    adopted: ConfigValue | None = None
    """Value that others left behind; this run restores it, needed or not, once."""
    override: ConfigOverride | None = None
    """The last change of the run; None while UNCHANGED."""
    given: frozenset[str] = frozenset()
    """Every rate that the run ever set, or every entry that it ever added to a list."""
    doubt: Doubt | None = None
    told: ConfigValue | None = None
    """Value of others that was reported, so that it is reported once."""
    is_due: bool = False
    """True if it is to be set again, whatever its value: the run was resumed, or an operator requested it."""
    is_unread: bool = False
    """True if it is to be read before it is set again: the run was resumed, or an operator requested another rate."""
    was_given_up: bool = False
    """True if it was once GONE or FORGOTTEN. It may show again: a broker may come back, and Kafka shows the settings of
    a former topic of the name after a restart.
    """

    was_ended: bool = False
    """True if an earlier process ended this rate, as RESTORED or THEIRS: whoever has set it since owns it."""

    @property
    def is_open(self) -> bool:
        """True if the setting is to be restored."""
        return self.state in OPEN

    @property
    def pending(self) -> ConfigOverride:
        """The change to undo. Only of an open setting."""
        assert self.override is not None, f"{self.key} was never changed"
        return self.override

    @property
    def expected(self) -> ConfigOverride:
        """The value that a check expects. Of a setting that is not open, and in doubt, none: others have one there."""
        return self.pending if self.is_open else ConfigOverride(self.key, None, None)

    @property
    def is_undecided(self) -> bool:
        """True if a second reading has to decide about it."""
        return self.doubt is not None and not self.doubt.is_foreign

    @property
    def is_foreign(self) -> bool:
        """True if others have certainly changed it."""
        return self.doubt is not None and self.doubt.is_foreign

    @property
    def ever_ours(self) -> ConfigOverride | None:
        """The last change with every value that the run ever gave: any of them may still be there."""
        if self.override is None or self.given <= (known := self._possible(self.override)):
            return self.override
        if self.override.is_list:
            return replace(self.override, unconfirmed=(",".join(sorted(self.given)),))
        return replace(self.override, unconfirmed=(*self.override.unconfirmed, *sorted(self.given - known)))

    def first_read(self, present: ConfigValue) -> Setting:
        """The setting with its value before the run, given the present one.

        What was agreed about it holds for the value of that time; any other is of somebody who set it since. A broker
        that was given up may be back with a value of the run, and moves of others may have gone on under one.
        """
        ours = self.ever_ours if self.was_given_up or self.state is SettingState.LEFT else None
        if ours is not None and ours.wrote(present.value):
            return replace(self, found=ConfigValue(self.key, ours.before))
        is_as_agreed = self.override is None and (self.adopted is None or self.adopted == present)
        if self.original is not None and is_as_agreed:
            return replace(self, found=self.original)
        return replace(self, found=present, original=None, adopted=None)

    def change_to(self, value: str | None, *, again: bool = False, is_needed: bool = False) -> ConfigOverride | None:
        """The change that gives it this value; None if it has that already, or was not found.

        An open setting is changed `again` to the same value. One that `is_needed` is set though others had it so
        before: only what the run has set is watched.
        """
        if self.found is None:
            return None
        if not self.is_open:
            has_it = value == self.found.value and not is_needed
            return None if has_it else ConfigOverride(self.key, self.found.value, value)
        if value == self.pending.value and not again:
            return None
        return ConfigOverride(self.key, self.found.value, value, self.pending.possible_values)

    def after(self, event: SettingEvent) -> Setting:
        """The setting in its next state; one that ends has no doubts, and is neither set nor read again."""
        state = RULES[event].get(self.state, self.state)
        if state in OPEN or not self.is_open:
            return replace(self, state=state)
        was_given_up = self.was_given_up or state in {SettingState.GONE, SettingState.FORGOTTEN}
        ended = replace(self, state=state, was_given_up=was_given_up, doubt=None, is_due=False, is_unread=False)
        return replace(ended, original=None, adopted=None) if state in SETTLED else ended

    def intended(self, override: ConfigOverride) -> Setting:
        """The setting once this change is written down. That overwrites what others have set."""
        has_ours = self.is_open and self.pending.is_open
        given = {override.value} if override.is_open and not override.is_list and override.value is not None else ()
        return replace(
            self.after(SettingEvent.CHANGE if has_ours else SettingEvent.BEGIN).settled(),
            override=override,
            was_ended=False,
            given=self.given.union(override.our_items if override.is_list else given),
        )

    def confirmed(self) -> Setting:
        """The setting once the change is made: earlier values of the run are gone."""
        return replace(self.after(SettingEvent.CONFIRM), override=self.pending.confirmed())

    def resumed(self, *, reads_first: bool) -> Setting:
        """The setting as another process begins with it: nothing is known but what is in the journal."""
        was_ended = self.was_ended or (self.key.broker is not None and self.state in SETTLED)
        begun = replace(self, found=None, doubt=None, was_ended=was_ended)
        begun = replace(begun, is_due=self.is_open, is_unread=self.is_open and reads_first)
        return begun if reads_first else begun.after(SettingEvent.UNWATCHED)

    def seen(self, value: str | None) -> Seen:
        """Compare a value with the old one and those of the run."""
        override = self.pending
        is_ours = override.is_ours(value)
        if override.is_in_force(value):
            return Seen.BOTH if override.is_restored(value) else Seen.OURS if is_ours else Seen.COVERED
        if override.is_restored(value):
            return Seen.OLD
        if is_ours:
            return Seen.EMPTY if override.is_without_ours(value) else Seen.PARTLY
        return Seen.EARLIER if not override.is_list and value in self.given else Seen.OTHER

    def meaning(self, value: str | None) -> Conclusion:
        """Conclude from a reading while the run moves."""
        meaning = READINGS[self.seen(value)]
        return meaning.in_force if self.state is SettingState.IN_FORCE else meaning.intended

    def meaning_at_end(self, value: str | None, *, is_gone: bool = False) -> Conclusion:
        """Conclude from a reading while settings are restored. A topic that is gone has none: that is no doubt."""
        meaning = READINGS[self.seen(value)]
        if self.state is not SettingState.IN_FORCE:
            return meaning.intended_at_end
        return _WRITE if is_gone and meaning.intended_at_end is _BACK else meaning.in_force_at_end

    def certain(self, value: str | None) -> Conclusion:
        """Conclude from a value about which the doubt is certain."""
        return READINGS[self.seen(value)].certain

    def doubted(self, value: ConfigValue, at_ms: int) -> Setting:
        """The setting after an odd reading."""
        since_ms = at_ms if self.doubt is None else self.doubt.since_ms
        return replace(self, doubt=Doubt(value, since_ms, at_ms - since_ms >= PROPAGATION_MS))

    def settled(self) -> Setting:
        """The setting without its doubt, if there was one: a later change by others is reported again."""
        return self if self.doubt is None else replace(self, doubt=None, told=None)

    def _possible(self, override: ConfigOverride) -> frozenset[str]:
        return override.our_items if override.is_list else frozenset(override.possible_values)


@dataclass(slots=True)
class ThrottleLedger:
    """The settings of a run, and what is known of all of them."""

    settings: dict[ConfigKey, Setting] = field(default_factory=dict)
    live_brokers: tuple[int, ...] = ()
    awaited: frozenset[int] = frozenset()
    """Brokers that are down and whose rates are set when they are back."""
    unset: frozenset[ConfigResource] = frozenset()
    """Topics and brokers that may not have taken their last settings; these are set again."""
    unset_since_ms: int | None = None
    intended_ms: int | None = None
    """Time at which changes were written down whose outcome is not known yet; None without any."""
    late_ms: int | None = None
    """Time of the last changes that had no answer: they may be made later."""
    checked_ms: int | None = None
    """Time of the last throttle check."""
    unread: tuple[ConfigResource, ...] = ()
    """Resources that were unreadable then; nothing is started meanwhile."""
    is_lost: bool = False
    """True if others had changed the throttle of moves in flight when they ended."""
    full_lists: frozenset[str] = frozenset()
    """Topics of which moves wait for room in the lists of throttled replicas."""
    takes_found: bool = False
    """True if an operator said that throttles of others are meant to be there: the run takes and restores them."""
    is_alongside: bool = False
    """True if moves of others go on under the rates of this run."""
    is_asked_for: bool = False
    """True if an operator requested a throttle meanwhile: then changes of others are reported, and overwritten."""
    was_found_changed: bool = False
    """True if others had changed it when the run was resumed."""

    def of(self, key: ConfigKey) -> Setting:
        """The setting of this key, a new one if it is not known."""
        return self.settings.get(key) or Setting(key)

    def put(self, setting: Setting) -> None:
        """Keep the setting in its new state."""
        self.settings[setting.key] = setting

    def intend(self, override: ConfigOverride) -> None:
        """Record that this change is about to be made. Open settings are in the order of their first change."""
        setting = self.of(override.key)
        if not setting.is_open:
            self.settings.pop(override.key, None)
        self.put(setting.intended(override))

    def apply(self, event: SettingEvent, settings: Iterable[Setting]) -> tuple[Setting, ...]:
        """Let this happen to settings; return them as they were."""
        before = tuple(settings)
        self.settings |= {setting.key: setting.after(event) for setting in before}
        return before

    def may_change_later(self, at_ms: int) -> bool:
        """True if a change that had no answer may still be made: what is restored now would be set again."""
        return self.late_ms is not None and at_ms - self.late_ms < LAST_WORD_MS

    @property
    def open(self) -> tuple[Setting, ...]:
        """Settings to restore."""
        return tuple(setting for setting in self.settings.values() if setting.is_open)

    @property
    def pending(self) -> dict[ConfigKey, ConfigOverride]:
        """Changes to undo."""
        return {setting.key: setting.pending for setting in self.open}

    @property
    def in_force(self) -> tuple[Setting, ...]:
        """Settings that must have our values."""
        return tuple(setting for setting in self.settings.values() if setting.state is SettingState.IN_FORCE)

    @property
    def watched(self) -> tuple[Setting, ...]:
        """Settings that must have our values, and those where the run found a value of others, and waits."""
        others = (setting for setting in self.doubtful if not setting.is_open)
        return (*self.in_force, *others)

    @property
    def doubtful(self) -> tuple[Setting, ...]:
        """Settings that were read with another value than ours."""
        return tuple(setting for setting in self.settings.values() if setting.doubt is not None)

    @property
    def foreign(self) -> tuple[ConfigValue, ...]:
        """Settings that others have certainly changed, sorted."""
        doubts = (setting.doubt for setting in self.settings.values())
        foreign = (doubt.value for doubt in doubts if doubt is not None and doubt.is_foreign)
        return tuple(sorted(foreign, key=lambda value: value.key))

    @property
    def found(self) -> dict[ConfigKey, str | None]:
        """Values before the run, as far as this process knows them."""
        return {one.key: one.found.value for one in self.settings.values() if one.found is not None}

    @property
    def adopted(self) -> dict[ConfigKey, str | None]:
        """Values that others left behind and that the run restores."""
        return {one.key: one.adopted.value for one in self.settings.values() if one.adopted is not None}

    @property
    def is_due(self) -> bool:
        """True if settings are to be set again; nothing starts before."""
        return any(setting.is_due for setting in self.settings.values())

    @property
    def is_unread(self) -> bool:
        """True if settings are to be read before they are set again."""
        return any(setting.is_unread for setting in self.settings.values())

    def forget(self, brokers: Collection[int]) -> tuple[Setting, ...]:
        """Give up restoring on these brokers; settings there stay as the run set them."""
        self.awaited = self.awaited.difference(brokers)
        return self.apply(SettingEvent.FORGET, (one for one in self.open if one.key.broker in brokers))

    def close_gone(self, topics: Collection[ConfigResource]) -> None:
        """Close settings of deleted topics; new topics of the same names are not the run's."""
        self.apply(SettingEvent.TOPIC_GONE, (one for one in self.open if one.key.resource in topics))

    def settle(self, setting: Setting) -> None:
        """End a doubt. A change that may not have been made was not repeated meanwhile, or not made yet."""
        if setting.doubt is not None and (not setting.is_open or setting.pending.unconfirmed):
            self.unset |= {setting.key.resource}
        found = setting.found if setting.is_open else ConfigValue(setting.key, None)
        self.put(replace(setting.settled(), found=found))
