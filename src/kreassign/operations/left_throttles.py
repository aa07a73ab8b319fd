"""Remove throttles that were left behind: settings that no move and no run of these state directories needs.

Nothing is removed while a run may still need it: one that a process executes here, one that holds the lease of the
cluster, or one whose journal cannot be read. A setting whose use could not be read is named and stays.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from kreassign.admin import AdminClient
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import ClusterError, InputError, OutcomeUnknown
from kreassign.executor.cluster import requests
from kreassign.executor.cluster.changes import CHANGE_TIMEOUT_MS
from kreassign.executor.cluster.port import ConfigPort, confirmed_writes
from kreassign.executor.cluster.readings import every_topic_of_two, ongoing_moves, read_log_dirs, settings_of_two
from kreassign.executor.history.run_history import explained_settings, read_view
from kreassign.executor.journal import active_run
from kreassign.executor.journal.folder import cluster_folder
from kreassign.executor.state import RunView
from kreassign.executor.throttle_ledger import ConfigKey, ConfigValue, ThrottleUses, command_to_set, throttle_keys
from kreassign.model import ConfigChange, ConfigResource
from kreassign.model.authorization import error_text
from kreassign.model.run import Operator
from kreassign.model.throttle import LOG_DIR_RATE, TOPIC_THROTTLES
from kreassign.operations.broker_changes import sole_change
from kreassign.operations.doctor import copying_brokers, lease_of, unfinished_runs
from kreassign.operations.run import RunContext
from kreassign.operations.snapshot import cluster_as_two_show
from kreassign.operations.whole_file import write_state


@dataclass(frozen=True, slots=True)
class LeftThrottles:
    """Throttle settings of a cluster that were `left`; sentences about those that are `needed`, or `unread`."""

    cluster_id: str
    left: tuple[ConfigValue, ...]
    needed: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RemovedThrottles:
    """Settings that were `removed`, and the reason for each that was not, or of which nobody knows.

    `record` is the file that has their values, operator and time; None where nothing was sent.
    """

    removed: tuple[ConfigValue, ...]
    kept: tuple[tuple[ConfigValue, str], ...] = ()
    unknown: tuple[tuple[ConfigValue, str], ...] = ()
    record: Path | None = None


def find_left_throttles(
    client: AdminClient, state_dir: Path, *, beside: Iterable[Path] = (), is_sole: bool = False
) -> LeftThrottles:
    """Find throttles that were left behind by runs here and in the state directories `beside`; changes nothing.

    Brokers that are down are named as unread: they answer nothing. Who `is_sole` has the lease of the cluster. Raises
    ClusterError, and InputError while a run is active.
    """
    whole, state_dirs = cluster_as_two_show(client), tuple(dict.fromkeys((state_dir, *beside)))
    read = cache(read_view)  # a journal is asked twice, and may take long to read
    owned = _settings_of_runs(client, state_dirs, whole.cluster_id, read, is_sole=is_sole)
    topics = every_topic_of_two(client)
    live = sorted(broker.id for broker in whole.brokers if not broker.is_fenced)
    settings = requests.read_configs(client, throttle_keys(topics.known, live), settings_of_two)
    throttles = tuple(present for present in settings.values if present.value is not None)
    with_rate = sorted({one.key.resource for one in throttles if one.key.name == LOG_DIR_RATE})
    log_dirs = read_log_dirs(client, [int(resource.name) for resource in with_rate])
    # Last, so that a move that began meanwhile is seen.
    reassigned = frozenset(name.topic for name in ongoing_moves(client))
    uses = ThrottleUses(owned, reassigned, copying_brokers(throttles, log_dirs.ok))
    unsure = {broker: error_text(error) for broker, error in log_dirs.failed.items()}
    known = [one for one in throttles if one.key.name != LOG_DIR_RATE or one.key.broker not in unsure]
    explained = explained_settings(state_dirs, whole.cluster_id, known, read=read)
    for journal in explained.damaged:
        raise journal.error
    replaced = {
        one.present: f"run {one.run_id} set it in place of {one.before!r}, which the next run restores"
        for one in explained.settings
        if one.before is not None
    }
    needs = {one: uses.use_of(one.key) or replaced.get(one) for one in known}
    return LeftThrottles(
        whole.cluster_id,
        tuple(one for one, use in needs.items() if use is None),
        tuple(f"{one}: {use}" for one, use in needs.items() if use is not None),
        (
            *(f"topic {name} could not be read: {error_text(error)}" for name, error in topics.unknown.items()),
            *(f"{resource} {problem}" for resource, problem in settings.unread.items()),
            *(f"broker {one.id} is down, so its settings were not read" for one in whole.brokers if one.is_fenced),
            *(
                f"{LOG_DIR_RATE} of broker {broker} stays: its log directories could not be read: {error}"
                for broker, error in unsure.items()
            ),
        ),
    )


def remove_left_throttles(
    client: AdminClient, context: RunContext, wanted: Collection[ConfigValue], clock: Clock = SYSTEM_CLOCK
) -> RemovedThrottles:
    """Remove these settings that were left, unless they have changed or are needed by now.

    Nobody else's run begins meanwhile, and of lists only the entries go that were seen: others may add some. What is
    about to be removed is on disk first. Raises ClusterError, ExecutionError when the lease is lost, InputError as
    `find_left_throttles`, and if that cannot be written.
    """
    with sole_change(client, context, "throttle", clock) as confirm:
        writes = confirmed_writes(client, confirm)
        found = find_left_throttles(client, context.state_dir, beside=context.beside, is_sole=True)
        still = {*found.left}
        removable = [one for one in wanted if one in still]
        kept = tuple((one, "it was changed, or is needed by now") for one in wanted if one not in still)
        if not removable:
            return RemovedThrottles((), kept)
        record = _record(context.state_dir, found.cluster_id, removable, context.operator, clock.now_ms())
        failed = _change(writes, [(one.key, _removal(one)) for one in removable])
        lists = [one.key for one in removable if one.value and one.key.name in TOPIC_THROTTLES]
        rest = requests.read_configs(client, [key for key in lists if key not in failed], settings_of_two)
        emptied = [(one.key, ConfigChange.delete(one.key.name)) for one in rest.values if one.value == ""]
        failed |= _change(writes, emptied)
    errors = [(one, failed[one.key]) for one in removable if one.key in failed]
    return RemovedThrottles(
        tuple(one for one in removable if one.key not in failed),
        (*((one, error_text(error)) for one, error in errors if not isinstance(error, OutcomeUnknown)), *kept),
        tuple((one, error_text(error)) for one, error in errors if isinstance(error, OutcomeUnknown)),
        record,
    )


def _removal(one: ConfigValue) -> ConfigChange:
    if one.value and one.key.name in TOPIC_THROTTLES:
        return ConfigChange.subtract(one.key.name, one.value)
    return ConfigChange.delete(one.key.name)


def _change(port: ConfigPort, wanted: Sequence[tuple[ConfigKey, ConfigChange]]) -> dict[ConfigKey, ClusterError]:
    """Make these changes; return the error of each that was refused, or of which nobody knows."""
    changes: dict[ConfigResource, list[ConfigChange]] = {}
    for key, change in wanted:
        changes.setdefault(key.resource, []).append(change)
    if not changes:
        return {}
    failed = port.incremental_alter_configs(changes, timeout_ms=CHANGE_TIMEOUT_MS).failed
    return {key: failed[key.resource] for key, _ in wanted if key.resource in failed}


def _record(state_dir: Path, cluster_id: str, settings: Iterable[ConfigValue], operator: Operator, at_ms: int) -> Path:
    """Write what is about to be removed into a file of its own beside the journals of the cluster."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    document = {
        "at": at.isoformat(timespec="milliseconds"),
        "by": operator.name,
        "cluster_id": cluster_id,
        "removed": [
            {"resource": str(one.key.resource), "name": one.key.name, "value": one.value,
             "to_set_again": shlex.join(command_to_set(one))}
            for one in settings
        ],
    }  # fmt: skip
    folder = cluster_folder(state_dir, cluster_id)
    path = folder / f"removed-throttles-{at:%Y%m%dT%H%M%S}.{at_ms % 1000:03}Z.json"
    said = "which keeps the values of the throttles", "Nothing was removed"
    write_state(path, f"{json.dumps(document, indent=2)}\n", *said)
    return path


def _settings_of_runs(
    client: AdminClient, state_dirs: Iterable[Path], cluster_id: str, read: Callable[[Path], RunView], *, is_sole: bool
) -> dict[ConfigKey, str]:
    """Settings that interrupted runs still have to restore, each with the id of its run.

    Raises InputError while another run may need what nobody here knows of.
    """
    if active := next(filter(None, (active_run(folder, cluster_id) for folder in state_dirs)), None):
        raise InputError(
            f"run {active} is being executed, and may need every throttle. Wait for its end, or end it with "
            f"`kreassign cancel {active}`; then look again"
        )
    unfinished = unfinished_runs(state_dirs, cluster_id, read)
    for journal in unfinished.unreadable:
        raise journal.error
    holder, problems = (None, ()) if is_sole else lease_of(client)
    if problems:
        raise InputError(
            f"whether a run of another machine needs the throttles is not known: {problems[0]}. Nothing was removed; "
            "try again"
        )
    if holder is not None and holder.run_id not in {run.run_id for run in unfinished.readable}:
        raise InputError(f"{holder} holds the lease of the cluster, and may need every throttle. Wait for its end")
    return {key: run.run_id for run in unfinished.readable for key in run.pending_restores}
