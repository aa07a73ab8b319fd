"""Whether the cluster is as a plan says, or as a run was to leave it, and whether any throttle is left."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.executor.cluster import queries
from kreassign.executor.cluster.verify import Expectations, Facts, Finding
from kreassign.executor.cluster.verify import verify as compare
from kreassign.executor.events import topic_ids_of_moves
from kreassign.executor.history.run_history import fold
from kreassign.executor.journal import read_events
from kreassign.executor.state import RunView
from kreassign.executor.throttle.ledger import ConfigOverride, ConfigValue, command_to_restore, throttle_keys
from kreassign.model.plan import Plan
from kreassign.operations.plan_files import PlanFile


@dataclass(frozen=True, slots=True)
class Verification:
    """What was to be, what is, and every difference."""

    expected: Expectations
    facts: Facts
    findings: tuple[Finding, ...]

    @property
    def remedies(self) -> tuple[tuple[str, ...], ...]:
        """A command for each setting that a run has left, as words of Kafka's own tool without the address."""
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


def verify_plan(client: AdminClient, file: PlanFile, *, ignore_throttles: bool = False) -> Verification:
    """Compare the cluster with a plan: no throttle shall be left on its topics, nor on any broker."""
    cluster, plan, facts = client.describe_cluster(), file.plan, file.facts
    configs = () if ignore_throttles else _no_throttles(plan, cluster.broker_ids)
    topic_ids = facts.topic_ids if facts is not None and facts.cluster_id == cluster.cluster_id else {}
    return _verified(
        client, Expectations(plan.replicas, plan.log_dirs, configs, checks_sizes=True, topic_ids=topic_ids)
    )


def verify_run(client: AdminClient, journal: Path, *, ignore_throttles: bool = False) -> Verification:
    """Compare the cluster with what a run was to leave: its moves made, and nothing left of whatever it ever set."""
    run = fold(read_events(journal))
    changed = () if ignore_throttles else _to_be_restored(client, run)
    moves = [record.wanted for record in run.records.values()]
    targets = {move.topic_partition: move.target for move in moves}
    log_dirs = {copy: path for move in moves for copy, path in move.log_dir_paths.items()}
    topic_ids = topic_ids_of_moves(moves)
    return _verified(client, Expectations(targets, log_dirs, overrides=changed, checks_sizes=True, topic_ids=topic_ids))


def _to_be_restored(client: AdminClient, run: RunView) -> tuple[ConfigOverride, ...]:
    """All that the run changed, but for rates that were left to moves of others while those go on."""
    left = run.left_to_others
    excused = left if left and client.list_partition_reassignments() else frozenset()
    return tuple(override for key, override in run.overrides.items() if key not in excused)


def _verified(client: AdminClient, expected: Expectations) -> Verification:
    facts = queries.read_facts(client, expected)
    return Verification(expected, facts, compare(expected, facts))


def _no_throttles(plan: Plan, brokers: tuple[int, ...]) -> tuple[ConfigValue, ...]:
    return tuple(ConfigValue(key, None) for key in throttle_keys(plan.topics, brokers))
