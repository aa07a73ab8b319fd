"""Why a plan must leave a partition where it is, and what lets it move: one answer for every command. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import IntFlag

from kreassign.model import TopicPartition
from kreassign.model.reassignment import WAIT_OR_CANCEL
from kreassign.model.text import counted, some_of


class Hold(IntFlag):
    """Reason that fixes a partition, as a value of the array `Partitions.holds`; several may hold it at once."""

    NONE = 0
    OUT_OF_REACH = 1
    MOVING = 2
    UNSIZED = 4
    DEAD_COPY = 8
    EXCLUDED = 16
    NOT_CHOSEN = 32
    TOO_LARGE = 64
    STAYS = 128
    CORDONED = 256
    LEADERLESS = 512

    @property
    def why(self) -> str:
        """The reason, without its subject."""
        return " and ".join(_WORDS[one][0] for one in self._told)

    @property
    def remedy(self) -> str:
        """Step after which they can move, as an imperative."""
        return ", and ".join(_WORDS[one][1] for one in self._told)

    def keeps(self, what: str = "must stay") -> str:
        """A sentence without its subject: that it must stay, or `what` it keeps; why, and what to do."""
        return f"{what} ({self.why}); {self.remedy}"

    @property
    def _told(self) -> tuple[Hold, ...]:
        # A copy that no live broker has also has no known size, and cannot be copied by any reassignment.
        return (Hold.OUT_OF_REACH,) if Hold.OUT_OF_REACH in self else tuple(self)


_WORDS = {
    Hold.OUT_OF_REACH: (
        "no live broker has a copy to replicate from",
        "start a broker that has one, or delete the topic if its data may be lost, then plan again",
    ),
    Hold.MOVING: (
        "being reassigned",
        f"{WAIT_OR_CANCEL}, then plan again",
    ),
    Hold.UNSIZED: (
        "no broker reported the size",
        "see to the log directories of its brokers (`kreassign doctor`), then plan again",
    ),
    Hold.DEAD_COPY: (
        "a broker of it is not live, or lost its copy with a log directory",
        "start that, or let `kreassign plan repair` replace the copy",
    ),
    Hold.EXCLUDED: (
        "of an excluded topic",
        "take the topic out of `excluded-topics` of the goals file and of --exclude-topics",
    ),
    Hold.NOT_CHOSEN: ("not chosen", "choose its topic too"),
    Hold.TOO_LARGE: ("one copy takes longer than --fit-in", "give more time, or a higher --rate"),
    Hold.STAYS: ("to stay", "plan without that"),
    Hold.LEADERLESS: (
        "it has no leader to copy from",
        "bring back a replica that may lead it (`kreassign doctor`), then plan again, or plan again if one was elected",
    ),
    Hold.CORDONED: (
        "a broker of it is cordoned, or may be, and Kafka refuses every changed list that names that",
        "open the broker, or take it out of the cluster (`kreassign doctor` says how)",
    ),
}


def held_sentences(held: Iterable[tuple[TopicPartition, Hold]]) -> Iterator[str]:
    """One sentence per reason: which partitions must stay, why, and what to do."""
    by_reason: dict[Hold, set[TopicPartition]] = {}
    for name, hold in held:
        by_reason.setdefault(hold, set()).add(name)
    for hold, names in sorted(by_reason.items()):
        yield f"{first_names(sorted(names))} {hold.keeps()}"


SHOWN_EXAMPLES = 5
NOT_ELECTED = "not in sync, and Kafka elects only what is"


def first_names(names: Collection[TopicPartition]) -> str:
    """The first partitions by name, and how many more there are."""
    return some_of(names, SHOWN_EXAMPLES)


def lagging_copies(names: Collection[TopicPartition]) -> str:
    """The end of a sentence about a broker that leads too little: its copies of these partitions lag."""
    if not names:
        return ""
    its = "its copy of {} is" if len(names) == 1 else "its copies of {} are"
    return f"; {its.format(first_names(names))} {NOT_ELECTED}"


def too_few_partitions(topic: str, partitions: int, least: int, brokers: int) -> str:
    """A sentence on a topic that has too few partitions for so many leaders on each broker; empty if it has enough."""
    if (missing := least * brokers - partitions) <= 0:
        return ""
    few = f"topic {topic} has {counted(partitions, 'partition')}, {missing} too few"
    return f"{few} for {counted(least, 'leader')} on each of {counted(brokers, 'broker')}"
