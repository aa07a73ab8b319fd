"""Random faults: the same seed and the same cluster give the same faults."""

from __future__ import annotations

import random
from collections.abc import Callable

from kreassign.twin.cluster import Twin
from kreassign.twin.faults.plan import PlannedFault
from kreassign.twin.faults.read import read_fault

LONGEST_MS = 300_000
_Draw = Callable[[random.Random, "Twin"], str]


def draw_faults(rng: random.Random, twin: Twin, count: int, within_ms: int) -> tuple[PlannedFault, ...]:
    """So many faults of any kind, beginning within so long, each of which is over after `LONGEST_MS` at the most.

    The twin must have two brokers or more.
    """
    return tuple(_draw(rng, twin, within_ms) for _ in range(count))


def _draw(rng: random.Random, twin: Twin, within_ms: int) -> PlannedFault:
    what = rng.choice(_DRAWS if twin.metadata.topics else _DRAWS_WITHOUT_TOPICS)(rng, twin)
    return read_fault(f"{what}@{rng.randrange(within_ms)}ms+{rng.randint(1, LONGEST_MS)}ms")


def _broker(rng: random.Random, twin: Twin) -> int:
    return rng.choice(twin.processes.ids)


def _of_a_broker(kind: str) -> _Draw:
    return lambda rng, twin: f"{kind}:{_broker(rng, twin)}"


def _of_a_dir(kind: str, suffix: str = "") -> _Draw:
    def draw(rng: random.Random, twin: Twin) -> str:
        broker = _broker(rng, twin)
        log_dir = rng.choice(twin.metadata.brokers[broker].log_dirs)
        return f"{kind}:{broker}:{log_dir.path}{suffix}"

    return draw


def _cut(rng: random.Random, twin: Twin) -> str:
    one, other = rng.sample(twin.processes.ids, 2)
    return f"cut:{one}:{other}"


def _stale(rng: random.Random, twin: Twin) -> str:
    return f"stale:{_broker(rng, twin)}{rng.choice(('', ':0', ':1', ':10'))}"


def _delay(rng: random.Random, twin: Twin) -> str:
    del twin
    return f"delay:{rng.randint(1, 5_000)}ms"


def _topic(rng: random.Random, twin: Twin) -> str:
    return rng.choice(sorted(twin.metadata.topics))


def _stale_answers(rng: random.Random, twin: Twin) -> str:
    api = rng.choice(("ListPartitionReassignments", "Metadata", "DescribeConfigs"))
    return f"stale-answers:{api}:{_broker(rng, twin)}{rng.choice(('', ':1', ':10'))}"


def _refuse(rng: random.Random, twin: Twin) -> str:
    del twin
    api = rng.choice(("AlterPartitionReassignments", "IncrementalAlterConfigs", "ElectLeaders"))
    return f"{rng.choice(('refuse', 'refuse-after'))}:{rng.choice((-1, 89))}:{api}"


def _throttle(rng: random.Random, twin: Twin) -> str:
    del twin
    return f"set-throttles:{rng.choice((1_000_000, 20_000_000))}"


def _list_replica(rng: random.Random, twin: Twin) -> str:
    return f"list-replica:{_topic(rng, twin)}:0:{_broker(rng, twin)}"


def _plain(text: str) -> _Draw:
    return lambda _chance, _twin: text


_DRAWS: tuple[_Draw, ...] = (
    _of_a_broker("crash"), _of_a_broker("crash"), _of_a_broker("stop"), _of_a_broker("freeze"),
    _of_a_broker("freeze"), _cut, _stale, _of_a_dir("slow", ":0.1"), _of_a_dir("fail"), _of_a_dir("fill"),
    _plain("failover"), _plain("failover-in"), _plain("lose"), _plain("duplicate"), _delay,
    _plain("drop"), _refuse, _stale_answers, _plain("empty-lists"), _of_a_broker("unregister"),
    _plain("clear-throttles"), _throttle, _list_replica,
)  # fmt: skip
_DRAWS_WITHOUT_TOPICS = tuple(draw for draw in _DRAWS if draw is not _list_replica)
