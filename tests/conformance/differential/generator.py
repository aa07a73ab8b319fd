"""Random steps that mean something: drawn by a seed, with an eye on the state that the twin is in.

About one step in eight is one that must be refused. Moves are held open by brokers that are down and by throttles on
topics that have something to copy; what is in progress is overridden, cancelled, elected in and deleted more often than
what is at rest. Cordoned brokers are named as others are: where cordons bind, more is refused. Where there is something
to copy nobody out of sync may become leader: how much would be lost then, and so whether a throttle still holds
anything, depends on the moment.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.conformance.differential.steps import (
    Alter,
    Brokers,
    Configure,
    Cordon,
    Create,
    Delete,
    Elect,
    Grow,
    Partition,
    Place,
    Start,
    State,
    Step,
    Stop,
    Throttle,
    Uncordon,
)

MOST_TOPICS, LEAST_TOPICS = 9, 4
MOST_DOWN = MOST_CORDONED = 2
MOST_LASTING = 3
UNCLEAN = "unclean.leader.election.enable"
NOBODY = 9
"""An id that no broker has."""


class Generator:
    """Draws one step after another. `brokers` are all that there are."""

    def __init__(self, seed: int, brokers: Brokers) -> None:
        self._random = random.Random(seed)
        self._brokers = brokers
        self._down: set[int] = set()
        self._cordoned: set[int] = set()
        self._throttled: set[str] = set()
        self._big: set[str] = set()
        self._settings: dict[str, set[str]] = {}
        self._lasting: set[str] = set()
        self._topics: list[str] = []
        self._made = 0

    def next(self, state: State) -> Step:
        """A step that makes sense in this state."""
        self._forget({topic for topic, _ in state})
        if len(self._topics) < LEAST_TOPICS:
            return self._create(state)
        while True:
            (draw,) = self._random.choices(*zip(*self._weights(), strict=True))
            step: Step | None = draw(state)
            if step is not None:
                return step

    def _weights(self) -> list[tuple[Callable[[State], Step | None], float]]:
        return [
            (self._alter, 54),
            (self._elect, 11),
            (self._create, 7),
            (self._delete, 5),
            (self._grow, 6),
            (self._configure, 5),
            (self._throttle, 9),
            (self._stop, 2.5 if len(self._down) < MOST_DOWN else 0),
            (self._start, 1.5 * len(self._down)),
            (self._cordon, 3),
            (self._uncordon, 2 * len(self._cordoned)),
        ]

    # --- topics -----------------------------------------------------------------------------------------------

    def _create(self, _: State) -> Step | None:
        if self._chance(0.12) and self._topics:
            return self._bad_create()
        if len(self._topics) >= MOST_TOPICS:
            return None
        self._made += 1
        topic = f"d{self._made}"
        factor = self._random.randint(1, 3)
        lists = tuple(self._replicas(factor) for _ in range(self._random.randint(1, 3)))
        is_big = self._chance(0.6) and not self._down
        self._topics.append(topic)
        if is_big:
            self._big.add(topic)
        return Create(topic, lists, is_big)

    def _forget(self, present: set[str]) -> None:
        """Forget the topic of the last step if it was refused: nobody there is alive, or a cordon binds."""
        for topic in set(self._topics) - present:
            self._topics.remove(topic)
            self._big.discard(topic)

    def _bad_create(self) -> Step:
        topic = self._random.choice(self._topics)
        kind = self._random.randrange(3)
        if kind == 0:
            return Create(topic, (self._replicas(2),))
        return Create(f"{topic}-bad", ((0, NOBODY),) if kind == 1 else ((1, 1),))

    def _delete(self, _: State) -> Step | None:
        if self._chance(0.1):
            return Delete("absent")
        if len(self._topics) <= LEAST_TOPICS:
            return None
        free = [topic for topic in self._topics if topic not in self._lasting]
        if not free:
            return None
        topic = self._random.choice(free)
        self._topics.remove(topic)
        self._big.discard(topic)
        self._throttled.discard(topic)
        self._settings.pop(topic, None)
        return Delete(topic)

    def _grow(self, state: State) -> Step | None:
        topic = self._random.choice(self._topics)
        numbers = [number for name, number in state if name == topic]
        if not numbers:
            return None
        if self._chance(0.25):
            return Grow(topic, self._random.randint(0, len(numbers)), ())
        if len(numbers) >= 5:
            return None
        factor = len(state[topic, 0].replicas) + (self._random.choice((-1, 1)) if self._chance(0.1) else 0)
        replicas = self._replicas(max(1, min(factor, len(self._brokers))))
        return Grow(topic, len(numbers) + 1, (replicas,))

    def _configure(self, _: State) -> Step | None:
        """Only topics that are never deleted get a least ISR.

        It makes brokers eligible that are no replicas any more. Kafka 4.3.1 and 4.4.0 do not forget them with their
        topic, and then let them never register again after they were killed.
        """
        topic = self._random.choice(self._topics)
        lasts = topic in self._lasting or len(self._lasting) < MOST_LASTING
        if lasts:
            self._lasting.add(topic)
        keys = [key for key, fits in (("min.insync.replicas", lasts), (UNCLEAN, topic not in self._big)) if fits]
        if not keys:
            return None
        settings, key = self._settings.setdefault(topic, set()), self._random.choice(keys)
        if key in settings and self._chance(0.6):
            settings.discard(key)
            return Configure(topic, key, None)
        settings.add(key)
        return Configure(topic, key, "true" if key == UNCLEAN else str(self._random.randint(1, 3)))

    def _throttle(self, _: State) -> Step | None:
        if self._throttled and self._chance(0.35):
            topic = self._random.choice(sorted(self._throttled))
            self._throttled.discard(topic)
            return Throttle(topic, is_on=False)
        free = sorted(self._big - self._throttled)
        if not free or len(self._throttled) >= 3:
            return None
        topic = self._random.choice(free)
        self._throttled.add(topic)
        return Throttle(topic, is_on=True)

    # --- moves and elections ----------------------------------------------------------------------------------

    def _alter(self, state: State) -> Step | None:
        if not state:
            return None
        count = self._random.choice((1, 1, 1, 2, 3))
        # A partition comes once: what two entries make of it depends on whether brokers reported their directories.
        places = list(dict.fromkeys(self._place(state) for _ in range(count)))
        targets = [(place, self._sober(state[place], self._target(state, place))) for place in places]
        if self._chance(0.04):
            targets.append((("absent", 0), (0,)))
        if self._chance(0.04):
            targets.append(((places[0][0], 77), (0,)))
        return Alter(tuple(targets), may_change_factor=self._chance(0.85))

    def _place(self, state: State) -> Place:
        """A partition: one that is being moved, one that is held back, or any."""
        moving = [place for place in state if state[place].is_moving]
        held = [place for place in state if place[0] in self._throttled]
        for some, probability in ((moving, 0.4), (held, 0.5)):
            if some and self._chance(probability):
                return self._random.choice(some)
        return self._random.choice(list(state))

    def _target(self, state: State, place: Place) -> Brokers | None:
        partition = state[place]
        kinds: list[tuple[Callable[[Partition], Brokers | None], float]] = [
            (lambda _: self._replicas(self._random.randint(1, 3)), 30),
            (lambda one: tuple(self._random.sample(one.replicas, len(one.replicas))), 6),
            (self._exchanged, 22),
            (self._extended, 10),
            (self._shortened, 10),
            (lambda _: None, 25 if partition.is_moving else 4),
            (lambda one: tuple(each for each in one.replicas if each not in one.adding), 8 * partition.is_moving),
            (lambda one: tuple(each for each in one.replicas if each not in one.removing), 4 * partition.is_moving),
            (lambda one: one.replicas, 3),
            (lambda _: self._impossible(), 7),
        ]
        (draw,) = self._random.choices(*zip(*kinds, strict=True))
        return draw(partition)

    def _sober(self, partition: Partition, target: Brokers | None) -> Brokers | None:
        """The target with the leader in it where it would depend on chance who leads next.

        That is so where a replica that is not yet in sync, and is not waited for, may or may not be before the others.
        Without a leader, whoever is eligible leads again. A list that leaves nobody out takes back no removal that is
        under way: there only a cancellation keeps the leader.
        """
        late = {broker for broker in target or () if broker in partition.replicas and broker not in partition.isr}
        if not target or not late:
            return target
        leaders = {partition.leader} if partition.leader >= 0 else {*partition.eligible, *partition.last_known}
        if {*partition.replicas} <= {*target} and leaders.intersection(partition.removing):
            return None
        return (*target, *sorted(leaders.difference(target)))

    def _exchanged(self, partition: Partition) -> Brokers:
        """One replica exchanged for a broker that has none, or left out if there is no such broker."""
        others = [broker for broker in self._brokers if broker not in partition.replicas]
        kept = list(partition.replicas)
        place = self._random.randrange(len(kept))
        if others:
            kept[place] = self._random.choice(others)
        elif len(kept) > 1:
            kept.pop(place)
        return tuple(kept)

    def _extended(self, partition: Partition) -> Brokers:
        others = [broker for broker in self._brokers if broker not in partition.replicas]
        return (*partition.replicas, *self._random.sample(others, min(1, len(others))))

    def _shortened(self, partition: Partition) -> Brokers:
        count = self._random.randint(1, len(partition.replicas))
        return tuple(self._random.sample(partition.replicas, count))

    def _impossible(self) -> Brokers:
        return self._random.choice(((), (0, NOBODY), (1, 1), (-1, 0)))

    def _elect(self, state: State) -> Step | None:
        if not state:
            return None
        is_unclean = self._chance(0.35)
        fragile = {place for place in state if is_unclean and place[0] in self._big and state[place].leader < 0}
        if self._chance(0.15):
            return None if fragile else Elect(is_unclean, None)
        places = [self._place(state) for _ in range(self._random.randint(1, 3))]
        if fragile.intersection(places):
            return None
        if self._chance(0.1):
            places.append((places[0][0], 77))
        return Elect(is_unclean, tuple(places))

    # --- brokers ----------------------------------------------------------------------------------------------

    def _stop(self, _: State) -> Step:
        broker = self._random.choice([each for each in self._brokers if each not in self._down])
        self._down.add(broker)
        return Stop(broker, is_clean=self._chance(0.6))

    def _start(self, state: State) -> Step | None:
        """A broker that is down, but none that may be elected at once, unclean, for a partition that it is added to.

        Whether it tells its directory after that, which ends the move, or before, depends on the moment.
        """
        led_by_nobody = [place for place, one in state.items() if one.leader < 0]
        unclean = [place for place in led_by_nobody if UNCLEAN in self._settings.get(place[0], ())]
        choice = sorted(self._down - {broker for place in unclean for broker in state[place].adding})
        if not choice:
            return None
        broker = self._random.choice(choice)
        self._down.discard(broker)
        return Start(broker)

    def _cordon(self, _: State) -> Step | None:
        """All directories of a broker, one of its two, or (refused) all by way of the controller."""
        broker = self._random.choice([each for each in self._brokers if each not in self._down])
        if broker not in self._cordoned and (len(self._cordoned) >= MOST_CORDONED or self._chance(0.15)):
            return Cordon(broker, None, asks_controller=True)
        self._cordoned.add(broker)
        return Cordon(broker, None if self._chance(0.6) else (self._random.randrange(2),))

    def _uncordon(self, _: State) -> Step:
        broker = self._random.choice(sorted(self._cordoned))
        self._cordoned.discard(broker)
        return Uncordon(broker)

    def _replicas(self, count: int) -> Brokers:
        return tuple(self._random.sample(self._brokers, count))

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability
