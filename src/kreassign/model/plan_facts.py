"""Facts about a plan besides its replica lists, as stored in the facts file of a plan.

Kafka's reassignment JSON has room for target replica lists only. The facts record what they were made from,
why, and what it costs to reach them; before a plan is executed they show whether the cluster is still the one it
was made for. Bytes, and bytes per second; prices are per GB (10^9 bytes).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kreassign.errors import IllegalPlan, InputError
from kreassign.model.cluster import TopicPartition
from kreassign.model.documents import finite
from kreassign.model.load import LoadBasis
from kreassign.model.plan import Plan, format_plan
from kreassign.model.text import format_amount, shortened

ID_LENGTH = 16
MOST_UNEVEN = 20


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a replica moves or a leader changes.

    `goal` is the name of a goal, or one of `drain`, `drain-dirs`, `factor`, `racks`, `repair`, `cordoned`, `demote`,
    `log-dirs`, `together` (only the changes as a whole relieve something), or `capacity:` and a resource (the task does
    not demand the change, but without it the source would exceed its limit of that). `amount` in `unit` is what would
    miss the bands again, or break the rule, if only this change were undone. `source` is the relieved broker,
    `destination` the one that takes over; None without one. `leading` distinguishes a change of leader from a copy.
    """

    goal: str
    source: int | None = None
    destination: int | None = None
    amount: float = 0.0
    unit: str = ""
    leading: bool = False

    @property
    def limit(self) -> str:
        """The resource whose limit a broker would exceed without the change; empty for other reasons."""
        kind, _, resource = self.goal.partition(":")
        return resource if kind == "capacity" else ""

    @property
    def cause(self) -> str:
        """The reason without brokers: the same text for all changes with one cause."""
        if self.goal in _FORCED:
            return _FORCED[self.goal][1]
        return f"a limit of {self.limit}" if self.limit else f"balancing {self.goal}"

    def __str__(self) -> str:
        if self.goal in _FORCED:
            return f"{self._way}: {_FORCED[self.goal][0].format(source=self.source)}"
        if self.limit:
            amount = format_amount(self.amount, self.unit)
            return f"{self._way}: without it broker {self.source} would exceed its limit of {self.limit} by {amount}"
        return _balancing(self._way, [self])

    @property
    def balances(self) -> str:
        """The change that brings a goal closer to balance; empty for other reasons."""
        return "" if self.goal in _FORCED or self.limit else self._way

    @property
    def _way(self) -> str:
        if self.source is None and self.destination is None:
            return "the order of followers changes"
        if self.source is None:
            return f"broker {self.destination} gets a copy"
        if self.destination is None:
            return f"the copy on broker {self.source} goes"
        if self.source == self.destination:
            return f"a copy goes to another log directory of broker {self.source}"
        what = "leading" if self.leading else "a copy"
        return f"{what} goes from broker {self.source} to broker {self.destination}"


def reason_sentences(reasons: Iterable[Reason]) -> tuple[str, ...]:
    """Sentences about the reasons of a change, those of what one move balances as one."""
    balancing: dict[str, list[Reason]] = {}
    for one in reasons:
        balancing.setdefault(one.balances or str(one), []).append(one)
    return tuple(_balancing(way, found) if found[0].balances else way for way, found in balancing.items())


def _balancing(way: str, reasons: Iterable[Reason]) -> str:
    amounts = ", ".join(f"{one.goal} {format_amount(one.amount, one.unit)}" for one in reasons)
    return f"{way}: brings {amounts} closer to balance"


_FORCED = {
    "drain": ("broker {source} is to be emptied", "a broker is to be emptied"),
    "drain-dirs": ("its log directory is to be emptied", "a log directory is to be emptied"),
    "repair": ("broker {source} is dead", "a broker is dead"),
    "cordoned": (
        "broker {source} is cordoned, or may be, and Kafka refuses changed lists that name it",
        "a cordoned broker that changed lists cannot name",
    ),
    "broker-sets": ("broker {source} is not of the broker set of the topic", "replicas outside of their broker set"),
    "factor": ("the number of replicas is to change", "another number of replicas"),
    "demote": ("broker {source} is to lead nothing", "a broker is to lead nothing"),
    "leader-racks": ("another rack is preferred for leaders of the topic", "leaders in the preferred rack"),
    "racks": ("too many replicas are in one rack", "too many replicas in one rack"),
    "log-dirs": ("its log directories are uneven", "uneven log directories"),
    "failover": (
        "it spreads what others take over when a broker or rack is lost",
        "room for the loss of a broker or rack",
    ),
    "topic-leaders": ("it spreads the leaders of the topic", "leaders of topics spread"),
    "topic-spread": ("it spreads the replicas of the topic", "replicas of topics spread"),
    "together": (
        "together with other changes it brings brokers nearer to their bands",
        "together with others nearer to the bands",
    ),
}
"""Goals that force a change: the reason of a single one, and the cause of all of them."""


@dataclass(frozen=True, slots=True)
class PlannedPartition:
    """One partition of the plan as it was when the plan was made; `log_dirs` is empty if they were unknown."""

    topic_partition: TopicPartition
    replicas: tuple[int, ...]
    size_bytes: int
    log_dirs: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedBroker:
    """One broker: its load per goal before and after, bytes received and sent, and its fullest moment."""

    broker: int
    before: Mapping[str, float]
    after: Mapping[str, float]
    bytes_in: int = 0
    bytes_out: int = 0
    peak_bytes: int = 0


@dataclass(frozen=True, slots=True)
class GoalMean:
    """The mean load of a goal in `unit`, over the brokers that should have any of it, before and after the plan."""

    goal: str
    unit: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """Duration of the plan at a rate that each broker may send and receive; no order of its copies is faster.

    `longest_move_s` is the longest single copy; infinite if its partition grows faster than it is copied. `least_s` is
    the least time of any plan with as much effect, 0 if unknown.
    """

    rate_bytes_per_s: float
    seconds: float
    longest_move_s: float
    least_s: float = 0.0

    @property
    def gap(self) -> float | None:
        """The fraction by which the time exceeds the bound; None if the bound is 0 or the plan never ends."""
        return self.seconds / self.least_s - 1 if self.least_s and math.isfinite(self.seconds) else None


@dataclass(frozen=True, slots=True)
class WorstLoss:
    """The worst effect of losing one broker or rack, for one goal.

    `state` is `before` or `after` the plan, `lost` the lost part (`broker 3`, `rack a`), `broker` the remaining broker
    that comes nearest to its `limit`, or exceeds it most, with `load` in `unit`. `offline` partitions would have no
    replica left.
    """

    state: str
    goal: str
    lost: str
    broker: int
    load: float
    limit: float
    unit: str = ""
    offline: int = 0

    @property
    def use(self) -> float:
        """The load as a fraction of the limit; infinite for any load if the limit is 0."""
        return self.load / self.limit if self.limit else math.inf if self.load else 0.0


@dataclass(frozen=True, slots=True)
class RackBytes:
    """Bytes that a plan copies from one rack to another, or within one; None is an unknown rack.

    `cost` is in the currency of the prices; None without a price.
    """

    source: str | None
    target: str | None
    size_bytes: int
    cost: float | None = None

    @property
    def crosses(self) -> bool:
        """True if both racks are known, and differ."""
        return self.source is not None and self.target is not None and self.source != self.target


@dataclass(frozen=True, slots=True)
class LeaderRacks:
    """Number of partitions with preferred leader racks, and of leaders there `before` and `after` the plan."""

    partitions: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class TopicLeaders:
    """Number of `topics` with uneven leaders before and after the plan, and the number of surplus leaders in all."""

    topics: int
    uneven_before: int
    uneven_after: int
    missed_before: int
    missed_after: int


@dataclass(frozen=True, slots=True)
class GoalLimit:
    """The limit of `brokers` for a goal, from `least` to `most` in `unit`, and its source."""

    goal: str
    unit: str
    source: str
    brokers: int
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class UnevenTopic:
    """The largest `partition` of a topic, its size, the mean size of the others, and the number of partitions."""

    partition: str
    size_bytes: int
    other_bytes: int
    partitions: int


@dataclass(frozen=True, slots=True)
class Totals:
    """The cost of a plan. `moves` are replicas copied to another broker; `least_bytes` is the lower bound.

    `binding` says what the bound counts: copies that are `forced`, the `excess` that brokers cannot keep, or the `lack`
    of others that must arrive there; empty if the bound is 0.
    """

    moved_bytes: int
    moves: int
    leader_changes: int
    log_dir_bytes: int = 0
    log_dir_moves: int = 0
    least_bytes: int = 0
    binding: str = ""

    @property
    def gap(self) -> float | None:
        """The fraction by which the copied bytes exceed the bound; None if the bound is 0."""
        return self.moved_bytes / self.least_bytes - 1 if self.least_bytes else None


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """The facts file of a plan. `remaining` lists in sentences what the plan leaves undone.

    `factors` has a sentence per change of replication factors, those that fall first.

    `topic_ids` are those of its topics, by name, as far as the cluster reported them; a recreated topic has another.
    `loads` is the basis of its loads; None if unknown. `losses` is empty without the goal `failover`.
    `racks` is empty if no rack is known, or nothing is copied. `leader_racks` is None if none are preferred,
    and `topic_leaders` unless that is a goal. `limits` are those of brokers; goals without one are unlimited.
    `unknown_goals` were requested, and left out because no load of them is known. `uneven_topics` has the topics with
    the largest partitions of unequal size, at most `MOST_UNEVEN`. `means` is the reference of the loads of `brokers`,
    by goal.
    """

    plan_id: str
    input_hash: str
    task: str
    totals: Totals
    cluster_id: str | None = None
    snapshot_id: str | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    prediction: Prediction | None = None
    remaining: tuple[str, ...] = ()
    factors: tuple[str, ...] = ()
    loads: LoadBasis | None = None
    leader_racks: LeaderRacks | None = None
    topic_leaders: TopicLeaders | None = None
    losses: tuple[WorstLoss, ...] = ()
    limits: tuple[GoalLimit, ...] = ()
    unknown_goals: tuple[str, ...] = ()
    uneven_topics: tuple[UnevenTopic, ...] = ()
    racks: tuple[RackBytes, ...] = ()
    means: tuple[GoalMean, ...] = ()
    brokers: tuple[PlannedBroker, ...] = ()
    partitions: tuple[PlannedPartition, ...] = ()

    @property
    def expected(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The replica list that each partition of the plan must still have when the plan starts."""
        return {fact.topic_partition: fact.replicas for fact in self.partitions}


def plan_id(plan: Plan) -> str:
    """ID of the assignments, from the SHA-256 of the formatted plan; independent of the file's layout."""
    return hashlib.sha256(format_plan(plan).encode()).hexdigest()[:ID_LENGTH]


# Prices of copies between racks, in any currency per GB, like cloud charges for traffic between zones.

GIGABYTE = 1_000_000_000
HIGHEST_PRICE = 1e9
EXAMPLE_PRICE = "write for example 0.01, or a:b=0.02"


@dataclass(frozen=True, slots=True)
class RackPrices:
    """Prices per GB (10^9 bytes): `between` any two racks, except for `pairs` of source and target; None: unknown.

    Within a rack copies are free, unless `pairs` has that rack.
    """

    between: float | None = None
    pairs: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def cost(self, source: str | None, target: str | None, size_bytes: int) -> float | None:
        """The cost of copying these bytes; None if a rack or a price is unknown."""
        if source is None or target is None:
            return None
        price = self.pairs.get((source, target), 0.0 if source == target else self.between)
        return None if price is None or not (self.pairs or self.between is not None) else price * size_bytes / GIGABYTE


NO_PRICES = RackPrices()


def parse_price(text: str) -> RackPrices:
    """Parse a price: `0.01` between any two racks, or `a:b=0.02` from rack a to rack b. Raises InputError."""
    pair, equals, number = text.rpartition("=")
    source, colon, target = pair.partition(":")
    try:
        price = finite(number)
    except ValueError as error:
        raise InputError(f"{shortened(text)!r} is no price; {EXAMPLE_PRICE}") from error
    if (
        price > HIGHEST_PRICE
        or price < 0
        or math.copysign(1.0, price) < 0
        or (equals and not (colon and source and target))
    ):
        raise InputError(f"{shortened(text)!r} is no price; {EXAMPLE_PRICE}")
    return RackPrices(pairs={(source, target): price}) if equals else RackPrices(price)


def joined_prices(one: RackPrices, other: RackPrices) -> RackPrices:
    """Join both; where both have a price, `other` wins."""
    between = one.between if other.between is None else other.between
    return RackPrices(between, {**one.pairs, **other.pairs})


# What a plan, a run or a file was made for: one comparison for every command that reads any.

NOT_SAID = "not known, so its topics are compared by name only"
"""For which cluster a plan was made that names none."""


def other_cluster(what: str, made_for: str | None, here: str) -> str | None:
    """Say that something was made for another cluster, in one sentence; None if not, or if that is unknown.

    It begins with `what`, such as "the plan is for".
    """
    if not made_for or not here or made_for == here:
        return None
    return f"{what} cluster {made_for}, and this is cluster {here}: check which of the two is meant"


def refuse_other_cluster(what: str, made_for: str | None, here: str) -> None:
    """Raise InputError with the sentence of `other_cluster`."""
    if strange := other_cluster(what, made_for, here):
        raise InputError(strange)


def is_another(topic_id: str | None, present: str | None) -> bool:
    """True if both ids of a topic are known and differ; False where one is unknown."""
    return topic_id is not None and present is not None and topic_id != present


@dataclass(frozen=True, slots=True)
class PlanOrigin:
    """Ids of the cluster and the topics for which a plan was made, where recorded."""

    cluster_id: str | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    def objections(self, plan: Plan, cluster_id: str, topic_ids: Mapping[str, str]) -> Iterator[str]:
        """One sentence per thing of the plan that is not the one that it was made for."""
        if strange := other_cluster("the plan is for", self.cluster_id, cluster_id):
            yield strange
            return
        for topic in plan.topics:
            before, now = self.topic_ids.get(topic), topic_ids.get(topic)
            if is_another(before, now):
                yield (
                    f"topic {topic} is not the one that the plan was made for: that was deleted, and another one "
                    f"created under its name (id {before} then, {now} now); replan"
                )

    def refuse_others(self, plan: Plan, cluster_id: str, topic_ids: Mapping[str, str]) -> None:
        """Raise IllegalPlan with these sentences."""
        if wrong := tuple(self.objections(plan, cluster_id, topic_ids)):
            raise IllegalPlan(wrong)


UNKNOWN_ORIGIN = PlanOrigin()
