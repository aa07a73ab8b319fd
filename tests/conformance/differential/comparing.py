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
from tests.conformance.differential.steps import Answer, Shown, Start, State, Step, Stop

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
    """Steps so far, by kind; `held` counts partitions in progress at rest, over all steps.

    `refused` are answers with a refusal, `cordoned` those of them in which a list names a cordoned broker.
    """

    steps: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    cordoned: int = 0
    held: int = 0
    divergence: Divergence | None = None

    @property
    def equal(self) -> int:
        """Steps after which answer and state were the same."""
        return sum(self.steps.values()) - (self.divergence is not None)


@contextmanager
def both_sides(cluster: KafkaCluster) -> Iterator[tuple[Side, Side]]:
    """Real Kafka and a new twin of its release."""
    kafka = RealKafka(cluster, batch_bytes=0)
    twin = InProcess(kafka.release, differential_twin(kafka.release))
    with Cluster(twin, "d") as one, Cluster(kafka, "d") as other:
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
        refusals = _refusals(answers[0])
        course.refused += bool(refusals)
        course.cordoned += any("log directories are cordoned" in text for text in refusals)
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
        return expected.partitions, tuple(_differences(expected, seen[0]))
    return expected.partitions, ()


def _differences(twin: Shown, kafka: Shown) -> Iterator[str]:
    for what, one, other in (
        ("live brokers", sorted(twin.live), sorted(kafka.live)),
        ("cordoned (broker, directory)", sorted(twin.cordoned), sorted(kafka.cordoned)),
        ("a topic wider than the cluster", twin.placement, kafka.placement),
    ):
        if one != other:
            yield f"  {what}: twin {one}, Kafka {other}"
    for place in sorted(twin.partitions.keys() | kafka.partitions.keys()):
        mine, theirs = twin.partitions.get(place), kafka.partitions.get(place)
        if mine != theirs:
            yield f"  {place}\n    twin  {mine}\n    Kafka {theirs}"


def _refusals(answer: Answer) -> list[str]:
    """The texts of an answer about single items, which only refusals have."""
    return [
        part for item in answer if isinstance(item, tuple) for part in item if isinstance(part, str) and " " in part
    ]
