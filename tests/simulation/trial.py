"""What one run has to stand, by seed: a plan, and incidents in order. Values; `ordeal.py` lets it happen.

The cluster and the settings of the run follow from the seed alone, so that a trial with fewer incidents, or with fewer
moves, is one of the same run: see `minimise.py`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kreassign.errors import InputError
from kreassign.executor.state import STATES
from kreassign.executor.state.phases import Cancelled, Done, New
from kreassign.model import TopicPartition
from kreassign.model.plan import ANY_LOG_DIR, PartitionAssignment
from kreassign.twin import Twin
from kreassign.twin.faults import draw_faults, read_fault
from tests.simulation import aims
from tests.simulation.clusters import draw_twin
from tests.simulation.incidents import ONLY_IN_A_STATE, Deed, Happening, Incident, Request
from tests.twin.memory_log import MemoryLog

TROUBLE_MS = 6 * 60_000
MOST_FAULTS, MOST_FOREIGN, MOST_REQUESTS, MOST_DEEDS = 6, 3, 4, 4
MOST_IN_STATES, MOST_BESIDE_AIM = 3, 2
LONGEST_MS = 3 * 60_000
_STRUCK = tuple(state.__name__ for state in STATES if state not in {New, Done, Cancelled})
"""States in which something can still happen to a run."""
_AT_ANY_TIME = tuple(deed for deed in Deed if deed not in ONLY_IN_A_STATE)


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
        """When everything that lasts is over, but for what happens in a state."""
        return max((one.at_ms + one.lasts_ms for one in self.incidents), default=0)

    def __str__(self) -> str:
        lines = [f"seed {self.seed}", *(f"  move {one}" for one in self.moves), *(f"  {one}" for one in self.incidents)]
        return "\n".join(lines)


def twin_of(seed: int, log: MemoryLog) -> Twin:
    """The cluster of a seed, always the same."""
    return draw_twin(random.Random(f"{seed}:cluster"), log)


def drawn(seed: int) -> Trial:
    """The trial of a seed. Of those that aim at no row a fourth have only what must not make any difference."""
    chance = random.Random(f"{seed}:trial")
    twin = twin_of(seed, MemoryLog())
    aim = aims.aim_of(seed)
    if aim is not None:
        moves = aims.shaped(aim, twin, tuple(_moves(chance, twin)))
        incidents = aims.incidents(aim, chance, twin, moves) + _beside(chance, twin)
    else:
        incidents = _harmless(chance) if chance.random() < 0.25 else _harmful(chance, twin)
        moves = tuple(_moves(chance, twin))
    return Trial(seed, moves, tuple(sorted(incidents, key=lambda one: one.at_ms)))


def _harmless(chance: random.Random) -> list[Incident]:
    """Deaths, pauses, clocks: the run has to end as if nothing had been."""
    found = [_client_fault(chance) for _ in range(chance.randint(0, 3))]
    deaths = (Deed.DIE_WRITTEN, Deed.DIE_UNWRITTEN, Deed.STOP)
    found += [Incident(_at(chance), chance.choice(deaths)) for _ in range(chance.randint(0, 4))]
    in_states = (chance.choice((Deed.DIE, Deed.STOP, None)) for _ in range(chance.randint(0, MOST_IN_STATES)))
    return [*found, *(_in_a_state(chance, what or _client_fault(chance).what) for what in in_states)]


def _harmful(chance: random.Random, twin: Twin) -> list[Incident]:
    faults = draw_faults(chance, twin, chance.randint(0, MOST_FAULTS), TROUBLE_MS)
    shortened = (replace(one, lasts_ms=min(one.lasts_ms or LONGEST_MS, LONGEST_MS)) for one in faults)
    return [
        *(Incident(one.at_ms, one) for one in shortened),
        *(_foreign(chance, twin) for _ in range(chance.randint(0, MOST_FOREIGN))),
        *(_client_fault(chance) for _ in range(chance.randint(0, 2))),
        *(Incident(_at(chance), chance.choice(list(Request))) for _ in range(chance.randint(0, MOST_REQUESTS))),
        *(Incident(_at(chance), chance.choice(_AT_ANY_TIME)) for _ in range(chance.randint(0, MOST_DEEDS))),
        *(_in_a_state(chance, _any(chance, twin)) for _ in range(chance.randint(0, MOST_IN_STATES))),
    ]


def _beside(chance: random.Random, twin: Twin) -> list[Incident]:
    """What happens beside an aim: nothing in most trials, for it may miss it then."""
    if chance.random() < 0.7:
        return []
    return [_in_a_state(chance, _any(chance, twin)) for _ in range(chance.randint(1, MOST_BESIDE_AIM))]


def _any(chance: random.Random, twin: Twin) -> Happening:
    """A request, a deed, or a fault that begins when it is its turn."""
    kind = chance.random()
    if kind < 0.7:
        return chance.choice((*Request, *Deed))
    if kind < 0.8:
        return _client_fault(chance).what
    if kind < 0.9:
        return _foreign(chance, twin).what
    (fault,) = draw_faults(chance, twin, 1, TROUBLE_MS)
    return replace(fault, lasts_ms=min(fault.lasts_ms or LONGEST_MS, LONGEST_MS))


def _in_a_state(chance: random.Random, what: Happening) -> Incident:
    """Early in the run more often than late, and mostly the first time that it is in the state."""
    at_ms = chance.choice((0, 0, _at(chance)))
    return Incident(at_ms, what, chance.choice(_STRUCK), chance.choice((1, 1, 1, 2, 3)))


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
