"""Modules of the commands on pages, loaded once for all of them, and the compiled loops of the search."""

from __future__ import annotations

from kreassign.cli.main import COMMANDS
from kreassign.model import TopicPartition
from kreassign.planner import BrokerFacts, PartitionFacts, problem_of, solve

for command in COMMANDS.values():
    command.load()

solve(problem_of(
    [BrokerFacts(number) for number in range(3)],
    [PartitionFacts(TopicPartition("t", number), replicas=(0, 1), size_bytes=1_000_000) for number in range(6)],
))  # fmt: skip
