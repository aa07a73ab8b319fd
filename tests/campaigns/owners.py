"""Whose the throttles of a cluster are over a sequence of runs, hosts and operators, judged from outside. Values.

No journal is asked: whoever plays the sequence says who wrote what. A rate has one entry, its value; a list has those
of which it consists. What others set by hand is changed only where somebody agreed to that; what runs wrote is not in
force after the last run that knew of it has ended, unless that is said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from kreassign.executor.throttle_ledger import ConfigKey, items
from kreassign.model.throttle import TOPIC_THROTTLES

Entries = frozenset[str]
NONE: Entries = frozenset()
HAND, ORPHANED = "an operator", "a run whose journal is lost"


def entries(key: ConfigKey, value: str | None) -> Entries:
    """Entries of a list of throttled replicas; of any other setting its value."""
    if value is None:
        return NONE
    return items(value) if key.name in TOPIC_THROTTLES else frozenset({value})


@dataclass(slots=True)
class Agreement:
    """Entries that the run of a host may take away: those that it has to put back, and those to put back or to name."""

    taken: dict[ConfigKey, Entries] = field(default_factory=dict)
    kept: dict[ConfigKey, Entries] = field(default_factory=dict)
    displaced: dict[ConfigKey, Entries] = field(default_factory=dict)
    written: dict[ConfigKey, dict[str, str]] = field(default_factory=dict)

    def writer_of(self, key: ConfigKey, entry: str, host: str) -> str:
        """Who has written an entry that this run of a host sets: what it puts back stays that of its writer."""
        if entry in self.kept.get(key, NONE):
            return self.written[key][entry]
        return HAND if entry in self.displaced.get(key, NONE) else host

    def without(self, key: ConfigKey, others: Iterable[str]) -> None:
        """Take away entries that others have changed since."""
        for agreed in (self.taken, self.kept, self.displaced):
            if key in agreed:
                agreed[key] = agreed[key].difference(others)


_Of = TypeVar("_Of")


def _without(settings: Mapping[ConfigKey, _Of], topic: str) -> dict[ConfigKey, _Of]:
    return {key: of for key, of in settings.items() if key.broker is not None or key.resource.name != topic}


@dataclass(slots=True)
class Owners:
    """Writers of the entries in force, by setting; `broken` has a sentence per change that nobody agreed to."""

    written: dict[ConfigKey, dict[str, str]] = field(default_factory=dict)
    agreements: dict[str, Agreement] = field(default_factory=lambda: defaultdict(Agreement))
    broken: list[str] = field(default_factory=list)

    def take_in(self, key: ConfigKey, value: str | None, writer: str) -> None:
        """A writer has set this value: `HAND`, or the host of a run."""
        of, now = self.written.get(key, {}), entries(key, value)
        gone, new = of.keys() - now, now - of.keys()
        for host, agreement in self.agreements.items():
            if host != writer:
                agreement.without(key, gone | new)
        if writer != HAND:
            for entry in sorted(gone - self.agreements[writer].taken.get(key, NONE)):
                if of[entry] == HAND:
                    self.broken.append(f"{key} was {entry!r} by hand, and a run of {writer} made it {value!r}")
        after = {entry: was for entry, was in of.items() if entry in now}
        self.written[key] = after | {entry: self.agreements[writer].writer_of(key, entry, writer) for entry in new}

    def forget(self, topic: str) -> None:
        """A topic was deleted, with its settings: nobody has to put them back."""
        self.written = _without(self.written, topic)
        for one in self.agreements.values():
            one.taken, one.kept, one.displaced = (
                _without(each, topic) for each in (one.taken, one.kept, one.displaced)
            )

    def lose(self, host: str) -> None:
        """The journals of a host are lost: nobody can say any more what its runs wrote."""
        for of in self.written.values():
            of.update({entry: ORPHANED for entry, writer in of.items() if writer == host})

    def agree(self, host: str, *, takes: bool = True, is_kept: bool = False) -> None:
        """A run begins, and may take away all that is set now; perhaps it has to put it back at its end.

        But for what runs of the host wrote: by their journals that was not there before.
        """
        now = self.of() if takes else {}
        own = self.of(host)
        kept = {key: of_others for key, all_of in now.items() if (of_others := all_of - own.get(key, NONE))}
        written = {key: dict(of) for key, of in self.written.items()}
        self.agreements[host] = Agreement(dict(now), kept if is_kept else {}, written=written)

    def agree_to_rates(self, host: str) -> None:
        """Ask a run for a throttle: it may replace the present rate, and says so."""
        for key in self.of():
            if key.broker is not None:
                self.agree_to_rate(host, key)

    def agree_to_rate(self, host: str, key: ConfigKey) -> None:
        """A requested throttle may take the place of what is set there now."""
        agreement, by_hand = self.agreements[host], self.of(HAND).get(key, NONE)
        taken = agreement.taken.get(key, NONE)
        agreement.displaced[key] = agreement.displaced.get(key, NONE) | by_hand - taken
        agreement.taken[key] = taken | self.of().get(key, NONE)

    def left(self, host: str, said: str) -> Iterator[str]:
        """The run of a host is over: sentences about what is left of it, or was not put back, and is not told."""
        for key, of in sorted(self.of(host).items()):
            if str(key) not in said:
                yield f"left in force and not told: {key} is {','.join(sorted(of))}"
        for key, wanted in sorted(self.agreements[host].kept.items()):
            if (missing := wanted - self.of().get(key, NONE)) and str(key) not in said:
                yield f"to be kept, and not put back: {key} was {','.join(sorted(missing))}"
        for key, wanted in sorted(self.agreements[host].displaced.items()):
            if (missing := wanted - self.of().get(key, NONE)) and str(key) not in said:
                yield f"overwritten as requested, and not told: {key} was {','.join(sorted(missing))}"

    def of(self, *writers: str) -> dict[ConfigKey, Entries]:
        """Entries in force of these writers, by setting; of all if none is named."""
        found = {
            key: frozenset(entry for entry, writer in of.items() if not writers or writer in writers)
            for key, of in self.written.items()
        }
        return {key: those for key, those in found.items() if those}
