"""Clusters, plans, settings and incidents of trials, drawn by seed; or those of a scenario of an adversary.

Clusters are small enough to live through hours in a blink, and odd enough to meet every rule.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kreassign.errors import InputError
from kreassign.executor.guards import DEFAULTS, GuardName, Reaction
from kreassign.executor.state import STATES
from kreassign.executor.state.phases import Cancelled, Done, New
from kreassign.model import TopicPartition
from kreassign.model.pace import Cap, Caps, Order, Pace
from kreassign.model.plan import ANY_LOG_DIR, PartitionAssignment
from kreassign.model.throttle import AdaptiveThrottle, ThrottleRates
from kreassign.operations.twin import SCENARIOS
from kreassign.twin import (
    Blueprint,
    BrokerHardware,
    LogDirHardware,
    PartitionPlan,
    TopicPlan,
    Traffic,
    Twin,
    TwinSettings,
    small_cluster,
)
from kreassign.twin.faults import draw_faults, read_fault
from kreassign.twin.scenario import Scenario, parse_scenario
from kreassign.twin.version import RELEASES
from tests.simulation import aims
from tests.simulation.scene import partitions_of
from tests.simulation.trial import ONLY_IN_A_STATE, Deed, Happening, Incident, Request, Settings, Trial
from tests.twin.memory_log import MemoryLog

MB = 1_000_000
TB = 1_000_000 * MB
TROUBLE_MS = 6 * 60_000
MOST_FAULTS, MOST_FOREIGN, MOST_REQUESTS, MOST_DEEDS = 6, 3, 4, 4
MOST_IN_STATES, MOST_BESIDE_AIM = 3, 2
LONGEST_MS = 3 * 60_000
_STRUCK = tuple(state.__name__ for state in STATES if state not in {New, Done, Cancelled})
"""States in which something can still happen to a run."""
_AT_ANY_TIME = tuple(deed for deed in Deed if deed not in ONLY_IN_A_STATE)


# --- clusters ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scale:
    """Bytes of partitions, and of log directories that hold little more; without any they hold whatever comes.

    A log grows by so many bytes until its retention; of large ones without small directories most grow without end.
    """

    sizes: tuple[int, ...] = (0, MB, 100 * MB, 5_000 * MB)
    capacities: tuple[int, ...] = ()
    growth: int = 50 * MB


LARGE = Scale()


def draw_twin(chance: random.Random, log: MemoryLog, scale: Scale = LARGE) -> Twin:
    """A twin of any release with this metadata log and some topics, to some of which records are written."""
    broker_count = chance.randint(3, 6)
    shape = small_cluster(broker_count, racks=chance.choice(((), ("a", "b"), ("a", "b", "c"))))
    brokers = tuple(replace(broker, hardware=_hardware(chance, broker.id, scale)) for broker in shape.brokers)
    topics = tuple(_topic(chance, f"topic-{number}", broker_count, scale) for number in range(chance.randint(1, 4)))
    blueprint: Blueprint = replace(shape, brokers=brokers, topics=topics)
    settings = TwinSettings(chance.choice(RELEASES), chance.randrange(1_000), controller_count=chance.randint(1, 3))
    return Twin(blueprint, settings, log)


def _hardware(chance: random.Random, broker: int, scale: Scale) -> BrokerHardware:
    speed, network = chance.choice((50, 200, 500)) * MB, chance.choice((100, 1_250)) * MB
    log_dirs = range(chance.randint(1, 3))
    sizes = [chance.choice(scale.capacities) for _ in log_dirs] if scale.capacities else [TB for _ in log_dirs]
    dirs = (LogDirHardware(f"/data/{broker}/d{number}", size, speed, speed) for number, size in enumerate(sizes))
    return BrokerHardware(tuple(dirs), network, network)


def _topic(chance: random.Random, name: str, broker_count: int, scale: Scale) -> TopicPlan:
    factor = chance.randint(1, min(3, broker_count))
    configs = {}
    if chance.random() < 0.3:
        configs["min.insync.replicas"] = str(chance.randint(1, factor))
    if chance.random() < 0.2:
        configs["unclean.leader.election.enable"] = "true"
    plans = (_partition(chance, factor, broker_count, scale) for _ in range(chance.randint(1, 5)))
    return TopicPlan(name, tuple(plans), configs)


def _partition(chance: random.Random, factor: int, broker_count: int, scale: Scale) -> PartitionPlan:
    size, rate = chance.choice(scale.sizes), chance.choice((0, 0, 0.01, 1)) * MB
    retention = None if chance.random() < 0.7 and not scale.capacities else size + scale.growth
    replicas = tuple(chance.sample(range(broker_count), factor))
    return PartitionPlan(replicas, Traffic(size, rate, retention_bytes=retention))


def twin_of(trial: Trial, log: MemoryLog) -> Twin:
    """The cluster of a trial, always the same."""
    if trial.scenario:
        return Twin(scenario(trial.scenario).blueprint, TwinSettings(seed=trial.seed, controller_count=3), log)
    return _twin_of_seed(trial.seed, log)


def _twin_of_seed(seed: int, log: MemoryLog) -> Twin:
    return draw_twin(random.Random(f"{seed}:cluster"), log)


# --- trials of adversaries -----------------------------------------------------------------------------------------

ADVERSARIES = tuple(sorted(file.stem for file in (SCENARIOS / "adversary").glob("*.toml")))
LATEST_MS = 20_000
"""Faults of an adversary begin up to so much later than their file says, and so meet the run in another state."""
MOVED, SHIFT = "orders", 2
"""The topic whose replicas move, and by how many brokers."""


def scenario(name: str) -> Scenario:
    file = SCENARIOS / "adversary" / f"{name}.toml"
    return parse_scenario(file.read_text(encoding="utf-8"), file.name)


def adversary(name: str, seed: int) -> Trial:
    """A plan that moves every partition of a scenario while its faults happen."""
    chance = random.Random(f"{name}:{seed}")
    delayed = [replace(fault, at_ms=fault.at_ms + chance.randrange(LATEST_MS)) for fault in scenario(name).faults]
    trial = Trial(seed, (), tuple(Incident(fault.at_ms, fault) for fault in delayed), name)
    twin = twin_of(trial, MemoryLog())
    count, states = len(twin.processes.ids), twin.metadata.topics[MOVED].partitions.values()
    moves = (
        PartitionAssignment(state.topic_partition, tuple((broker + SHIFT) % count for broker in state.replicas))
        for state in states
    )
    return replace(trial, moves=tuple(moves))


# --- trials by seed ------------------------------------------------------------------------------------------------


def draw_trial(seed: int) -> Trial:
    """The trial of a seed. Of those that aim at no row a fourth have only what must not make any difference."""
    chance = random.Random(f"{seed}:trial")
    twin = _twin_of_seed(seed, MemoryLog())
    aim = aims.aim_of(seed)
    if aim is not None:
        moves = aims.shaped(aim, twin, tuple(draw_moves(chance, twin)))
        incidents = aims.incidents(aim, chance, twin, moves) + _beside(chance, twin)
    else:
        incidents = _harmless(chance) if chance.random() < 0.25 else _harmful(chance, twin)
        moves = tuple(draw_moves(chance, twin))
    return Trial(seed, moves, tuple(sorted(incidents, key=lambda incident: incident.at_ms)))


def settings_of(trial: Trial, chance: random.Random) -> Settings:
    """Draw the settings of the run of a trial; for a scenario they are always the same."""
    if trial.scenario:
        return Settings(ThrottleRates(20 * MB), DEFAULTS, patience_ms=10 * 60_000)
    has_lease, reaches_controllers = chance.random() < 0.4, chance.random() < 0.5
    more = random.Random(f"{trial.seed}:more settings")
    adaptive = AdaptiveThrottle(chance.choice((50, 500)) * MB) if chance.random() < 0.15 else None
    rate = None if adaptive or chance.random() < 0.2 else chance.choice((5, 20, 100)) * MB
    guards = {guard: chance.choice(list(Reaction)) for guard in GuardName if chance.random() < 0.2}
    caps = Caps(cluster=Cap(chance.choice((None, None, 1, 3))), destination=Cap(chance.choice((None, 1))))
    pace = Pace(
        chance.choice(list(Order)),
        caps,
        elections_per_step=chance.choice((1, 100)),
        is_eager=chance.random() < 0.3,
        is_stepwise=chance.random() < 0.2,
    )
    settings = Settings(
        ThrottleRates(rate, adaptive=adaptive),
        guards,
        pace,
        replans=chance.random() < 0.25,
        has_lease=has_lease,
        has_offsets_topic=more.random() < 0.8,
        reaches_controllers=reaches_controllers,
        keeps_snapshots=more.random() < 0.5,
    )
    aim = aims.aim_of(trial.seed)
    return settings if aim is None else aims.settings(aim, settings)


def _harmless(chance: random.Random) -> list[Incident]:
    """Deaths, pauses, clocks: the run has to end as if nothing had happened."""
    incidents = [_client_fault(chance) for _ in range(chance.randint(0, 3))]
    deaths = (Deed.DIE_WRITTEN, Deed.DIE_UNWRITTEN, Deed.STOP)
    incidents += [Incident(_at(chance), chance.choice(deaths)) for _ in range(chance.randint(0, 4))]
    in_states = (chance.choice((Deed.DIE, Deed.STOP, None)) for _ in range(chance.randint(0, MOST_IN_STATES)))
    return [*incidents, *(_in_a_state(chance, what or _client_fault(chance).what) for what in in_states)]


def _harmful(chance: random.Random, twin: Twin) -> list[Incident]:
    faults = draw_faults(chance, twin, chance.randint(0, MOST_FAULTS), TROUBLE_MS)
    shortened = (replace(fault, lasts_ms=min(fault.lasts_ms or LONGEST_MS, LONGEST_MS)) for fault in faults)
    return [
        *(Incident(fault.at_ms, fault) for fault in shortened),
        *(_foreign(chance, twin) for _ in range(chance.randint(0, MOST_FOREIGN))),
        *(_client_fault(chance) for _ in range(chance.randint(0, 2))),
        *(Incident(_at(chance), chance.choice(list(Request))) for _ in range(chance.randint(0, MOST_REQUESTS))),
        *(Incident(_at(chance), chance.choice(_AT_ANY_TIME)) for _ in range(chance.randint(0, MOST_DEEDS))),
        *(_in_a_state(chance, _any(chance, twin)) for _ in range(chance.randint(0, MOST_IN_STATES))),
    ]


def _beside(chance: random.Random, twin: Twin) -> list[Incident]:
    """Incidents beside an aim: none in most trials, for they may make it miss."""
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
    """Changes by a second operator to the run's partitions."""
    topic = chance.choice(sorted(twin.metadata.topics))
    brokers = twin.processes.ids
    replicas = ",".join(map(str, chance.sample(brokers, chance.randint(1, min(3, len(brokers))))))
    kinds = ("cancel-moves", f"move:{topic}:0:{replicas}", f"recreate:{topic}", f"delete:{topic}", "clear-throttles")
    return _fault(chance, chance.choice(kinds))


def draw_moves(chance: random.Random, twin: Twin) -> Iterator[PartitionAssignment]:
    brokers = twin.processes.ids
    states = partitions_of(twin)
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
    paths = [log_dir.path for log_dir in twin.metadata.brokers[broker].log_dirs]
    return chance.choice([ANY_LOG_DIR, *paths])
