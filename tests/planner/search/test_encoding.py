"""From the arrays of the search back to replica lists."""

from __future__ import annotations

from kreassign.model import TopicPartition
from kreassign.planner import BrokerFacts, PartitionFacts, problem_of
from kreassign.planner.search.compiled.kernels import REMOVED
from kreassign.planner.search.encoding import decode, encode


def test_a_replica_that_took_the_slot_of_one_that_goes_is_in_the_list_once() -> None:
    facts = PartitionFacts(TopicPartition("t", 0), (0, 1), size_bytes=1)
    search = encode(problem_of([BrokerFacts(0), BrokerFacts(1)], [facts]))
    search.state.places[:] = [1, REMOVED]
    assert decode(search).lists() == [[1]]
