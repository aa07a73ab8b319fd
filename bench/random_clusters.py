"""Random planning problems: small clusters of every kind, the same for the same seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from kreassign.model import TopicPartition
from kreassign.planner import BrokerFacts, Budget, LogDirFacts, PartitionFacts, Problem, RackRule, Rules, problem_of
from kreassign.planner.problem.holds import Hold

GIGABYTE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class RandomCluster:
    """A problem with the words that say what is special about it."""

    seed: int
    problem: Problem
    traits: tuple[str, ...]


_TAKEN_AWAY: dict[str, Callable[[BrokerFacts], BrokerFacts]] = {
    "drain": lambda host: replace(host, must_empty=True),
    "dead": lambda host: replace(host, is_live=False),
    "no copies": lambda host: replace(host, may_receive=False),
    "demoted": lambda host: replace(host, may_lead=False),
}


def random_cluster(seed: int) -> RandomCluster:
    """3 to 24 brokers, 20 to 1,800 partitions, and a random choice of everything that a problem can ask for."""
    random = Random(seed)
    hosts, traits = _brokers(random)
    loads = _partitions(random, hosts, traits)
    hosts = _with_capacity(random, hosts, loads, traits)
    problem = problem_of(hosts, loads)
    rules = Rules(
        racks=random.choice((RackRule.EVEN, RackRule.EVEN, RackRule.NONE)),
        repair_racks=_sometimes(random, "repair racks", traits),
    )
    problem = replace(problem, rules=rules, budget=_budget(random, loads, traits))
    return RandomCluster(seed, problem, tuple(traits))


def _sometimes(random: Random, trait: str, traits: list[str], chance: float = 0.25) -> bool:
    if random.random() >= chance:
        return False
    traits.append(trait)
    return True


def _brokers(random: Random) -> tuple[list[BrokerFacts], list[str]]:
    traits: list[str] = []
    count = random.randint(3, 24)
    racks = random.choice((1, 2, 3, 3, 5)) if _sometimes(random, "racks", traits, 0.7) else 0
    hosts = [BrokerFacts(broker, rack=f"rack-{broker % racks}" if racks else None) for broker in range(count)]
    if _sometimes(random, "log dirs", traits, 0.3):
        hosts = [
            replace(host, log_dirs=tuple(LogDirFacts(f"/data/{n}") for n in range(random.randint(1, 4))))
            for host in hosts
        ]
    if _sometimes(random, "unequal shares", traits):
        hosts = [replace(host, share=random.choice((1.0, 2.0, 3.0))) for host in hosts]
    # Each of the following takes brokers away, so that enough must be left.
    spare = count - 5
    for trait, changed in _TAKEN_AWAY.items():
        if spare > 0 and _sometimes(random, trait, traits):
            spare -= 1
            place = random.randrange(count)
            hosts[place] = changed(hosts[place])
    return hosts, traits


def _partitions(random: Random, hosts: list[BrokerFacts], traits: list[str]) -> list[PartitionFacts]:
    weights = [random.uniform(1, 3) for _ in hosts]
    raises = _sometimes(random, "factors", traits)
    excludes = _sometimes(random, "excluded topics", traits)
    loads = []
    for topic in range(random.randint(4, 30)):
        factor = min(random.choice((1, 2, 3, 3)), len(hosts) - 4) if len(hosts) > 5 else random.randint(1, 2)
        wanted = max(1, factor + random.choice((-1, 1))) if raises and random.random() < 0.3 else None
        typical = random.lognormvariate(0, 1) * GIGABYTE
        fixed = excludes and random.random() < 0.2
        for partition in range(random.randint(5, 60)):
            chosen = _distinct(random, hosts, weights, factor)
            size = int(typical * random.lognormvariate(0, 0.5))
            loads.append(_load(random, TopicPartition(f"topic-{topic:02}", partition), chosen, size))
            stuck = fixed and all(host.is_live and not host.must_empty for host in chosen)
            loads[-1] = replace(
                loads[-1], wanted_factor=None if stuck else wanted, hold=Hold.STAYS if stuck else Hold.NONE
            )
    return loads


def _distinct(random: Random, hosts: list[BrokerFacts], weights: list[float], count: int) -> list[BrokerFacts]:
    chosen: list[BrokerFacts] = []
    while len(chosen) < count:
        (host,) = random.choices(hosts, weights)
        if host not in chosen:
            chosen.append(host)
    return chosen


def _load(random: Random, name: TopicPartition, chosen: list[BrokerFacts], size: int) -> PartitionFacts:
    write = size / 86_400 * random.uniform(0.5, 2)
    return PartitionFacts(
        name,
        tuple(host.id for host in chosen),
        size_bytes=size,
        write_bytes_per_s=write,
        read_bytes_per_s=write * random.choice((1, 2, 5)),
        leader_cpu=write * 1.5,
        follower_cpu=write * 0.5,
        log_dirs=tuple(random.choice(host.log_dirs).path for host in chosen) if chosen[0].log_dirs else (),
    )


def _with_capacity(
    random: Random, hosts: list[BrokerFacts], loads: list[PartitionFacts], traits: list[str]
) -> list[BrokerFacts]:
    """Disks that hold what the brokers must carry in the end, some of them tight and unequal."""
    if not _sometimes(random, "disk limits", traits, 0.4):
        return hosts
    total = sum(load.size_bytes * (load.wanted_factor or len(load.replicas)) for load in loads)
    mean = total / sum(host.is_live and not host.must_empty for host in hosts)
    return [replace(host, capacity={"disk": mean * random.uniform(1.6, 3.5)}) for host in hosts]


def _budget(random: Random, loads: list[PartitionFacts], traits: list[str]) -> Budget:
    if not _sometimes(random, "budget", traits):
        return Budget()
    total = sum(load.size_bytes * len(load.replicas) for load in loads)
    return random.choice(
        (
            Budget(moved_bytes=int(total * random.uniform(0.01, 0.1))),
            Budget(moves=random.randint(0, 20)),
            Budget(leader_changes=random.randint(0, 20)),
            Budget(bytes_in_per_broker=int(total / len(loads) * random.uniform(1, 6))),
        )
    )
