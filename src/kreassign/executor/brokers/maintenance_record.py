"""Which brokers are in maintenance, and in which order the lists were from which they do not lead any more. Pure.

The cluster itself does not tell either: an order that was changed looks like any other. So it is written down before it
is changed, with what it is changed to; a list that is neither of both was changed by somebody else, and is left alone.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from kreassign.model import TopicPartition

Lists = Mapping[TopicPartition, tuple[int, ...]]
_FORM = 1


@dataclass(frozen=True, slots=True)
class Entered:
    """Since when a broker is in maintenance, by whom, and whether that cordoned it."""

    since_ms: int
    by: str
    is_cordoned: bool


@dataclass(frozen=True, slots=True)
class Order:
    """A replica list as it was, and as the maintenance leaves it: the same brokers."""

    original: tuple[int, ...]
    ours: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MaintenanceRecord:
    """What was written down at this time: brokers, and lists by partition."""

    at_ms: int = 0
    brokers: Mapping[int, Entered] = field(default_factory=dict)
    orders: Mapping[TopicPartition, Order] = field(default_factory=dict)

    def entered(self, brokers: Collection[int], at_ms: int, by: str, cordoned: Collection[int]) -> MaintenanceRecord:
        """With these brokers in maintenance, of which these get their cordon now. Since when and by whom stays."""
        begun = {broker: self.brokers.get(broker, Entered(at_ms, by, is_cordoned=False)) for broker in brokers}
        new = {broker: replace(one, is_cordoned=one.is_cordoned or broker in cordoned) for broker, one in begun.items()}
        return replace(self, at_ms=self._after(at_ms), brokers={**self.brokers, **new})

    def reordered(
        self,
        present: Mapping[TopicPartition, tuple[int, ...]],
        ours: Mapping[TopicPartition, tuple[int, ...]],
        at_ms: int,
    ) -> MaintenanceRecord:
        """With the lists that are about to be changed. What an earlier step changed keeps its first original."""
        orders = dict(self.orders)
        for name, target in ours.items():
            known = orders.get(name)
            is_known = known is not None and present[name] in {known.ours, known.original}
            orders[name] = Order(known.original if known is not None and is_known else present[name], target)
        return replace(self, at_ms=self._after(at_ms), orders=orders)

    def left(self, brokers: Collection[int], at_ms: int) -> MaintenanceRecord:
        """Without these brokers, and without the lists that only they were in the way of."""
        remaining = {broker: one for broker, one in self.brokers.items() if broker not in brokers}
        orders = {name: order for name, order in self.orders.items() if order.original[0] in remaining}
        return MaintenanceRecord(self._after(at_ms), remaining, orders)

    def _after(self, at_ms: int) -> int:
        """Later than this record, whatever the clock of the machine says."""
        return max(at_ms, self.at_ms + 1)


def format_record(record: MaintenanceRecord) -> str:
    """A record as JSON."""
    brokers = [[broker, one.since_ms, one.by, one.is_cordoned] for broker, one in sorted(record.brokers.items())]
    orders: dict[str, list[list[object]]] = {}
    for (topic, partition), order in sorted(record.orders.items()):
        orders.setdefault(topic, []).append([partition, order.original, order.ours])
    return json.dumps([_FORM, record.at_ms, brokers, orders], separators=(",", ":"))


def parse_record(text: str) -> MaintenanceRecord:
    """The record in a text. Raises ValueError if it is none."""
    try:
        form, at_ms, brokers, orders = json.loads(text)
        if form != _FORM:
            raise ValueError("it is not in the form that this version of kreassign writes")
        return MaintenanceRecord(
            int(at_ms),
            {int(broker): Entered(int(since), str(by), bool(cordoned)) for broker, since, by, cordoned in brokers},
            {
                TopicPartition(topic, int(number)): Order(tuple(map(int, original)), tuple(map(int, ours)))
                for topic, lists in orders.items()
                for number, original, ours in lists
            },
        )
    except (TypeError, AttributeError) as error:
        raise ValueError(str(error)) from error
