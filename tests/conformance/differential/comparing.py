"""Both clusters side by side: one step after the other, until they differ or all steps are done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kreassign.twin.cluster import Twin
from testbed import ClusterSpec, KafkaCluster
from tests.conformance.differential.generator import Generator
from tests.conformance.differential.side import Side
from tests.conformance.differential.steps import Answer, State, Step
from tests.conformance.worlds import InProcess, RealKafka, World, small_twin

BROKERS = 4
REST_MS = 12_000
"""So long the twin is left alone after a step: a killed broker is missed, a started one is back."""
QUIET_S = 0.25
"""So long Kafka is left alone at least: brokers tell of the directories of new copies after a tenth of a second."""
# Followers take one small batch at a time, so that a throttle of next to nothing holds for many steps; they ask often,
# so that what is not throttled is soon done.
SPEC = ClusterSpec(
    version="4.3.1",
    brokers=BROKERS,
    broker_config={
        "replica.fetch.max.bytes": "4000",
        "replica.fetch.response.max.bytes": "4000",
        "replica.fetch.wait.max.ms": "50",
        "replica.fetch.backoff.ms": "100",
        "replica.lag.time.max.ms": "20000",
        "broker.heartbeat.interval.ms": "300",
        "unclean.leader.election.interval.ms": "3600000",
    },
)


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where the twin and Kafka went different ways: after which step, and what differs."""

    number: int
    step: Step
    differences: tuple[str, ...]
    before: tuple[Step, ...]

    def __str__(self) -> str:
        lines = [f"step {self.number} diverges: {self.step}", *self.differences, "the steps before it:"]
        return "\n".join([*lines, *(f"  {step}" for step in self.before)])


@dataclass(slots=True)
class Course:
    """What was done so far, by kind of step; `held` counts partitions in progress at rest, over all steps."""

    steps: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    held: int = 0
    divergence: Divergence | None = None


@contextmanager
def both_sides(cluster: KafkaCluster) -> Iterator[tuple[Side, Side]]:
    """A new twin and real Kafka."""
    twin = small_twin("4.3", BROKERS)
    with World(InProcess("4.3", twin), "d") as one, World(RealKafka(cluster, batch_bytes=0), "d") as other:
        yield Side(one), Side(other)


def compare(twin: Side, kafka: Side, seed: int, steps: int, tell: Callable[[str], None] = lambda _: None) -> Course:
    """Go on for so many steps, or until the two differ."""
    generator, course, done = Generator(seed, twin.world.brokers), Course(), []
    for side in (twin, kafka):
        side.prepare()
    state: State = {}
    for number in range(1, steps + 1):
        step = generator.next(state)
        tell(f"{number} {step}")
        answers = twin.carry_out(step), kafka.carry_out(step)
        _rest(twin)
        state, differences = _settled(twin, kafka)
        course.steps[type(step).__name__] += 1
        course.refused += _has_refusal(answers[0])
        course.held += sum(one.is_moving for one in state.values())
        if answers[0] != answers[1]:
            differences = (f"  twin answers  {answers[0]}", f"  Kafka answers {answers[1]}", *differences)
        if differences:
            course.divergence = Divergence(number, step, differences, tuple(done[-12:]))
            return course
        done.append(step)
    return course


def _rest(twin: Side) -> None:
    cluster = twin.world.cluster
    assert isinstance(cluster, InProcess)
    _advance(cluster.twin)


def _advance(twin: Twin) -> None:
    twin.advance(REST_MS)


def _settled(twin: Side, kafka: Side) -> tuple[State, tuple[str, ...]]:
    """The state of the twin, and how Kafka's differs from it after all the time that it gets."""
    expected = twin.state()
    seen = [kafka.state()]
    clock = kafka.world.cluster.clock
    quiet_s = clock.monotonic_s() + QUIET_S

    def is_alike() -> bool:
        seen[0] = kafka.state()
        return seen[0] == expected and clock.monotonic_s() >= quiet_s

    try:
        kafka.world.until(is_alike, "Kafka as the twin")
    except TimeoutError:
        return expected[0], tuple(_differences(expected, seen[0]))
    return expected[0], ()


def _differences(twin: tuple[State, frozenset[int]], kafka: tuple[State, frozenset[int]]) -> Iterator[str]:
    if twin[1] != kafka[1]:
        yield f"  live brokers: twin {sorted(twin[1])}, Kafka {sorted(kafka[1])}"
    for place in sorted(twin[0].keys() | kafka[0].keys()):
        one, other = twin[0].get(place), kafka[0].get(place)
        if one != other:
            yield f"  {place}\n    twin  {one}\n    Kafka {other}"


def _has_refusal(answer: Answer) -> bool:
    """Whether any item of an answer has a text, which only refusals have."""
    return any(
        isinstance(item, tuple) and any(isinstance(part, str) and " " in part for part in item) for item in answer
    )
