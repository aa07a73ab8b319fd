"""Both clusters side by side: one step after the other, until they differ or all steps are done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kreassign.twin.cluster import Twin
from kreassign.twin.replication.hardware import ReplicationSettings
from testbed import ClusterSpec, KafkaCluster
from tests.conformance.clusters import NEWEST, Cluster, InProcess, RealKafka, small_twin
from tests.conformance.differential.generator import Generator
from tests.conformance.differential.side import Side
from tests.conformance.differential.steps import Answer, Start, State, Step, Stop

BROKERS = 4
REST_MS = 3_000
LONG_REST_MS = 12_000
"""So long the twin is left alone after a step; longer where a killed broker is to be missed, or a started one back."""
QUIET_S = 0.25
"""So long Kafka is left alone at least: brokers report the directories of new copies after a tenth of a second."""
# Followers take one small batch at a time, so that a throttle of next to nothing holds for many steps; they ask often,
# so that what is not throttled is soon done.
FETCH_BYTES, BATCH_BYTES, WAIT_MS, BACKOFF_MS, LAG_MS = 4_000, 3_000, 50, 100, 20_000
SPEC = ClusterSpec(
    brokers=BROKERS,
    broker_config={
        "replica.fetch.max.bytes": str(FETCH_BYTES),
        "replica.fetch.response.max.bytes": str(FETCH_BYTES),
        "replica.fetch.wait.max.ms": str(WAIT_MS),
        "replica.fetch.backoff.ms": str(BACKOFF_MS),
        "replica.lag.time.max.ms": str(LAG_MS),
        "broker.heartbeat.interval.ms": "300",
        "unclean.leader.election.interval.ms": "3600000",
    },
)


def differential_twin(release: str = NEWEST) -> Twin:
    """A twin that is set up as the real brokers of the comparison."""
    replication = ReplicationSettings(
        fetch_bytes=FETCH_BYTES,
        response_bytes=FETCH_BYTES,
        batch_bytes=BATCH_BYTES,
        fetch_wait_ms=WAIT_MS,
        fetch_backoff_ms=BACKOFF_MS,
        lag_time_max_ms=LAG_MS,
    )
    return small_twin(release, BROKERS, replication)


@dataclass(frozen=True, slots=True)
class Divergence:
    """Difference between the twin and Kafka: the step after which it shows, and the values."""

    number: int
    step: Step
    differences: tuple[str, ...]
    before: tuple[Step, ...]

    def __str__(self) -> str:
        lines = [f"step {self.number} diverges: {self.step}", *self.differences, "the steps before it:"]
        return "\n".join([*lines, *(f"  {step}" for step in self.before)])


@dataclass(slots=True)
class Course:
    """Steps so far, by kind; `held` counts partitions in progress at rest, over all steps."""

    steps: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    held: int = 0
    divergence: Divergence | None = None


@contextmanager
def both_sides(cluster: KafkaCluster) -> Iterator[tuple[Side, Side]]:
    """A new twin and real Kafka."""
    with (
        Cluster(InProcess(NEWEST, differential_twin()), "d") as one,
        Cluster(RealKafka(cluster, batch_bytes=0), "d") as other,
    ):
        yield Side(one), Side(other)


def compare(twin: Side, kafka: Side, seed: int, steps: int, report: Callable[[str], None] = lambda _: None) -> Course:
    """Go on for so many steps, or until the two differ."""
    generator, course, done = Generator(seed, twin.cluster.brokers), Course(), []
    for side in (twin, kafka):
        side.prepare()
    state: State = {}
    for number in range(1, steps + 1):
        step = generator.next(state)
        report(f"{number} {step}")
        answers = twin.execute(step), kafka.execute(step)
        _rest(twin, LONG_REST_MS if isinstance(step, Start | Stop) else REST_MS)
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


def _rest(twin: Side, milliseconds: int) -> None:
    assert isinstance(twin.cluster.backend, InProcess)
    twin.cluster.backend.twin.advance(milliseconds)


def _settled(twin: Side, kafka: Side) -> tuple[State, tuple[str, ...]]:
    """The state of the twin, and how Kafka's differs from it after all the time that it gets."""
    expected = twin.state()
    seen = [kafka.state()]
    clock = kafka.cluster.backend.clock
    quiet_s = clock.monotonic_s() + QUIET_S

    def is_alike() -> bool:
        seen[0] = kafka.state()
        return seen[0] == expected and clock.monotonic_s() >= quiet_s

    try:
        kafka.cluster.until(is_alike, "Kafka as the twin")
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
    """True if any item of an answer has a text, which only refusals have."""
    return any(
        isinstance(item, tuple) and any(isinstance(part, str) and " " in part for part in item) for item in answer
    )
