"""What one run has to stand, by seed: a plan, and incidents in order. Values; `ordeal.py` lets it happen.

The cluster and the settings of the run follow from the seed alone, so that a trial with fewer incidents, or with fewer
moves, is one of the same run: see `minimise.py`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from kreassign.errors import InputError
from kreassign.model import TopicPartition
from kreassign.model.plan import ANY_LOG_DIR, PartitionAssignment
from kreassign.twin import Twin
from kreassign.twin.faults import PlannedFault, draw_faults, read_fault
from tests.simulation.clusters import draw_twin
from tests.twin.memory_log import MemoryLog

TROUBLE_MS = 6 * 60_000
MOST_FAULTS, MOST_FOREIGN, MOST_REQUESTS, MOST_DEEDS = 6, 3, 4, 4
LONGEST_MS = 3 * 60_000


class Request(StrEnum):
    """What another terminal asks of the run."""

    HOLD = "hold"
    RELEASE = "release"
    CANCEL = "cancel"
    CANCEL_NOW = "cancel --now"
    FASTER = "throttle 200 MB/s"
    SLOWER = "throttle 2 MB/s"
    UNTHROTTLED = "throttle none"
    ADAPTIVE = "throttle auto"
    PACE = "pace --max-moves 1"


class Deed(StrEnum):
    """What happens to the process of the run, or to its lease."""

    DIE_WRITTEN = "dies right after it wrote"
    DIE_UNWRITTEN = "dies right before it writes"
    STOP = "asked to pause"
    LOSE_LEASE = "another run has the lease"


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that happens so long after the run began. Faults of the twin say themselves how long they last."""

    at_ms: int
    what: Request | Deed | PlannedFault

    @property
    def kind(self) -> str:
        """What it is counted as."""
        if isinstance(self.what, PlannedFault):
            fault = self.what.fault
            return type(getattr(fault, "fault", fault)).__name__
        return self.what.value

    def __str__(self) -> str:
        what = self.what
        shown = f"{what.fault} for {what.lasts_ms} ms" if isinstance(what, PlannedFault) else what.value
        return f"{self.at_ms} ms: {shown}"


@dataclass(frozen=True, slots=True)
class Trial:
    """One run and what it has to stand."""

    seed: int
    moves: tuple[PartitionAssignment, ...]
    incidents: tuple[Incident, ...]

    @property
    def kinds(self) -> set[str]:
        """Every kind of incident in it."""
        return {one.kind for one in self.incidents}

    @property
    def over_ms(self) -> int:
        """When everything that lasts is over."""
        lasting = (one.what.lasts_ms or 0 if isinstance(one.what, PlannedFault) else 0 for one in self.incidents)
        return max((one.at_ms + lasts for one, lasts in zip(self.incidents, lasting, strict=True)), default=0)

    def __str__(self) -> str:
        lines = [f"seed {self.seed}", *(f"  move {one}" for one in self.moves), *(f"  {one}" for one in self.incidents)]
        return "\n".join(lines)


def twin_of(seed: int, log: MemoryLog) -> Twin:
    """The cluster of a seed, always the same."""
    return draw_twin(random.Random(f"{seed}:cluster"), log)


def drawn(seed: int) -> Trial:
    """The trial of a seed. A fourth of them have only what must not make any difference."""
    chance = random.Random(f"{seed}:trial")
    twin = twin_of(seed, MemoryLog())
    incidents = _harmless(chance) if chance.random() < 0.25 else _harmful(chance, twin)
    moves = tuple(_moves(chance, twin))
    return Trial(seed, moves, tuple(sorted(incidents, key=lambda one: one.at_ms)))


def _harmless(chance: random.Random) -> list[Incident]:
    """Deaths, pauses, clocks: the run has to end as if nothing had been."""
    found = [_client_fault(chance) for _ in range(chance.randint(0, 3))]
    deaths = (Deed.DIE_WRITTEN, Deed.DIE_UNWRITTEN, Deed.STOP)
    return [*found, *(Incident(_at(chance), chance.choice(deaths)) for _ in range(chance.randint(0, 4)))]


def _harmful(chance: random.Random, twin: Twin) -> list[Incident]:
    faults = draw_faults(chance, twin, chance.randint(0, MOST_FAULTS), TROUBLE_MS)
    shortened = (replace(one, lasts_ms=min(one.lasts_ms or LONGEST_MS, LONGEST_MS)) for one in faults)
    return [
        *(Incident(one.at_ms, one) for one in shortened),
        *(_foreign(chance, twin) for _ in range(chance.randint(0, MOST_FOREIGN))),
        *(_client_fault(chance) for _ in range(chance.randint(0, 2))),
        *(Incident(_at(chance), chance.choice(list(Request))) for _ in range(chance.randint(0, MOST_REQUESTS))),
        *(Incident(_at(chance), chance.choice(list(Deed))) for _ in range(chance.randint(0, MOST_DEEDS))),
    ]


def _at(chance: random.Random) -> int:
    """Early more often than late: most runs are short."""
    return round(TROUBLE_MS * chance.random() ** 2)


def _fault(chance: random.Random, text: str) -> Incident:
    at_ms = _at(chance)
    return Incident(at_ms, read_fault(f"{text}@{at_ms}ms"))


def _client_fault(chance: random.Random) -> Incident:
    if chance.random() < 0.7:
        return _fault(chance, f"step-clock:{chance.choice(('', '-'))}{chance.choice((61, 3_600, 86_400))}s")
    return _fault(chance, f"suspend:{chance.randint(5, 300)}s")


def _foreign(chance: random.Random, twin: Twin) -> Incident:
    """What a second operator does to what the run moves."""
    topic = chance.choice(sorted(twin.metadata.topics))
    brokers = twin.processes.ids
    replicas = ",".join(map(str, chance.sample(brokers, chance.randint(1, min(3, len(brokers))))))
    kinds = ("cancel-moves", f"move:{topic}:0:{replicas}", f"recreate:{topic}", f"delete:{topic}", "clear-throttles")
    return _fault(chance, chance.choice(kinds))


def _moves(chance: random.Random, twin: Twin) -> Iterator[PartitionAssignment]:
    brokers = twin.processes.ids
    states = [state for topic in twin.metadata.topics.values() for state in topic.partitions.values()]
    chosen = [state for state in states if chance.random() < 0.7] or states[:1]
    for state in chosen:
        factor = len(state.replicas) if chance.random() < 0.7 else chance.randint(1, min(4, len(brokers)))
        replicas = tuple(chance.sample(brokers, factor))
        log_dirs = tuple(_log_dir(chance, twin, broker) for broker in replicas) if chance.random() < 0.2 else ()
        yield _assignment(state.topic_partition, replicas, log_dirs)


def _assignment(partition: TopicPartition, replicas: tuple[int, ...], log_dirs: tuple[str, ...]) -> PartitionAssignment:
    try:
        return PartitionAssignment(partition, replicas, log_dirs)
    except InputError:
        return PartitionAssignment(partition, replicas)


def _log_dir(chance: random.Random, twin: Twin, broker: int) -> str:
    paths = [one.path for one in twin.metadata.brokers[broker].log_dirs]
    return chance.choice([ANY_LOG_DIR, *paths])
