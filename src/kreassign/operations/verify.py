"""Whether the cluster is as a plan says, or as a run was to leave it, and whether any throttle is left."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.executor.cluster import queries
from kreassign.executor.cluster.verify import Expectations, Facts, Finding
from kreassign.executor.cluster.verify import verify as compare
from kreassign.executor.history.run_history import fold
from kreassign.executor.journal import read_events
from kreassign.executor.throttle.ledger import ConfigKey, ConfigValue, command_to_restore
from kreassign.model import ConfigResource
from kreassign.model.plan import Plan
from kreassign.model.throttle import BROKER_THROTTLES, TOPIC_THROTTLES


@dataclass(frozen=True, slots=True)
class Verification:
    """What was to be, what is, and every difference."""

    expected: Expectations
    facts: Facts
    findings: tuple[Finding, ...]

    @property
    def remedies(self) -> tuple[str, ...]:
        """A command for each setting that a run has left, with Kafka's own tool."""
        left = (one for one in self.expected.overrides if one.key in self.facts.configs)
        return tuple(
            command_to_restore(one, self.facts.configs[one.key])
            for one in left
            if not one.is_restored(self.facts.configs[one.key])
        )

    @property
    def is_ok(self) -> bool:
        """Whether all is as it was to be."""
        return not self.findings


def verify_plan(client: AdminClient, plan: Plan, *, ignore_throttles: bool = False) -> Verification:
    """Compare the cluster with a plan: no throttle shall be left on its topics, nor on any broker."""
    configs = () if ignore_throttles else _no_throttles(plan, client.describe_cluster().broker_ids)
    return _verified(client, Expectations(plan.replicas, plan.log_dirs, configs, checks_sizes=True))


def verify_run(client: AdminClient, journal: Path, *, ignore_throttles: bool = False) -> Verification:
    """Compare the cluster with what a run was to leave: its moves made, and nothing left of whatever it ever set."""
    run = fold(read_events(journal))
    changed = () if ignore_throttles else tuple(run.overrides.values())
    moves = [record.move for record in run.records.values()]
    targets = {move.topic_partition: move.target for move in moves}
    log_dirs = {copy: path for move in moves for copy, path in move.log_dir_paths.items()}
    return _verified(client, Expectations(targets, log_dirs, overrides=changed, checks_sizes=True))


def _verified(client: AdminClient, expected: Expectations) -> Verification:
    facts = queries.read_facts(client, expected)
    return Verification(expected, facts, compare(expected, facts))


def _no_throttles(plan: Plan, brokers: tuple[int, ...]) -> tuple[ConfigValue, ...]:
    keys = [ConfigKey(ConfigResource.topic(topic), name) for topic in plan.topics for name in TOPIC_THROTTLES]
    keys += [ConfigKey(ConfigResource.broker(broker), name) for broker in brokers for name in BROKER_THROTTLES]
    return tuple(ConfigValue(key, None) for key in keys)
