"""A look of the autopilot at its cluster, the plan of each kind of repair, and the reasons that a look gives."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from kreassign.admin import AdminClient
from kreassign.autopilot.core import symptoms, tick
from kreassign.autopilot.detectors import DETECTORS
from kreassign.autopilot.events import Name, State
from kreassign.autopilot.gates import WEEK_MS, Case, closed_gates, gates_of, spent_bytes, stopped
from kreassign.autopilot.memory import Act, Memory
from kreassign.autopilot.observation import Absent, Asked, Known, Observation, Perhaps, RunSeen, Unknown, WriteTime
from kreassign.autopilot.policy import Policy, parse_policy
from kreassign.autopilot.symptoms import Look
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import ClusterError, InputError, JournalUnreadable
from kreassign.executor.cluster.readings import ask_by_name, every_topic_confirmed, listed_moves, read_log_dirs
from kreassign.executor.cluster.requests import read_throttles
from kreassign.executor.history.run_history import Explained, explained_settings, read_view
from kreassign.executor.journal import journal_path
from kreassign.executor.lease import OF_AUTOPILOTS, present_holder
from kreassign.executor.maintenance.record import brokers_in_maintenance
from kreassign.executor.state import RunView
from kreassign.executor.throttle_ledger import ConfigValue
from kreassign.model import Broker, ConfigEntry, ConfigResource, LogDir
from kreassign.model.authorization import error_text
from kreassign.model.distributions import UNKNOWN, balancers, recognise, sure_balancer
from kreassign.model.run import Phase
from kreassign.model.text import DAY_MS, parse_whole
from kreassign.monitoring.client_signals import ask_series
from kreassign.monitoring.metrics import AutopilotStatus, RepairAccount
from kreassign.operations.autopilot_journal import BRAKE
from kreassign.operations.snapshot import cluster_as_two_show
from kreassign.operations.text_files import read_text


def read_policy(path: Path) -> Policy:
    """Read a policy file. Raises InputError, which names file, key, value and what is allowed."""
    return parse_policy(read_text(path), str(path))


# Observe.


Explain = Callable[[Collection[ConfigValue]], Explained]
"""Finds those of these throttles that runs here have set: they are not those of others."""


def observe(
    client: AdminClient, at_ms: int, ours: RunView | None = None, explain: Explain = lambda _: Explained()
) -> Observation:
    """Read the cluster; whatever does not answer is unknown in the result. `ours` is the run of the autopilot."""
    cluster = _asked(lambda: cluster_as_two_show(client))
    brokers: Asked[tuple[Broker, ...]] = Known(cluster.value.brokers) if isinstance(cluster, Known) else cluster
    live = sorted(one.id for one in brokers.value if not one.is_fenced) if isinstance(brokers, Known) else []
    before = _asked(lambda: listed_moves(client))
    topics = _asked(lambda: every_topic_confirmed(client).whole)
    partitions = (
        Known(tuple(each for one in topics.value.ok.values() for each in one.partitions))
        if isinstance(topics, Known)
        else topics
    )
    of_ours = frozenset(() if ours is None else ours.records)
    after = _asked(lambda: listed_moves(client))
    unread_moves = next((one for one in (before, after) if isinstance(one, Unknown)), None)
    others = unread_moves or Known(frozenset({*before.value, *after.value}) - of_ours)
    log_dirs = _log_dirs(client, live)
    paths = {one.path for asked in log_dirs.values() if isinstance(asked, Known) for one in asked.value}
    names = {*topics.value.ok, *topics.value.failed} if isinstance(topics, Known) else set()
    distribution = recognise(cluster.value, paths, names) if isinstance(cluster, Known) else UNKNOWN
    return Observation(
        at_ms,
        cluster.value.cluster_id if isinstance(cluster, Known) else "",
        brokers,
        partitions,
        log_dirs,
        others,
        Known(()) if ours is not None else _throttles(client, live, explain),
        _asked(lambda: brokers_in_maintenance(client)),
        Absent() if ours is not None else _lease(client),
        _brake(client),
        of_ours,
        {name: error_text(error) for name, error in topics.value.failed.items()} if isinstance(topics, Known) else {},
        balancers=balancers(distribution, names),
        sure_balancer=sure_balancer(distribution),
        run=RunSeen()
        if ours is None
        else RunSeen(ours.control.held_by, ours.control.wind_down is not None, is_at_rest=ours.phase is Phase.PAUSED),
    )


def _asked(ask: Callable[[], Any]) -> Any:
    try:
        return Known(ask())
    except ClusterError as error:
        return Unknown(error_text(error))


def _log_dirs(client: AdminClient, live: list[int]) -> Mapping[int, Asked[tuple[LogDir, ...]]]:
    answer = _asked(lambda: read_log_dirs(client, live)) if live else Unknown("no broker is live")
    if isinstance(answer, Unknown):
        return dict.fromkeys(live, answer)
    failed = {broker: Unknown(error_text(error)) for broker, error in answer.value.failed.items()}
    return {**{broker: Known(dirs) for broker, dirs in answer.value.ok.items()}, **failed}


def _throttles(client: AdminClient, live: list[int], explain: Explain) -> Asked[tuple[str, ...]]:
    answer = _asked(lambda: read_throttles(client, (), live))
    if isinstance(answer, Unknown):
        return answer
    for resource, error in answer.value.unknown.items():
        return Unknown(f"{resource}: {error_text(error)}")
    present = [one for values in answer.value.known.values() for one in values if one.value is not None]
    explained = {one.present for one in explain(present).settings}
    return Known(tuple(str(one) for one in present if one not in explained))


def _lease(client: AdminClient) -> Perhaps[str]:
    holder = _asked(lambda: present_holder(client))
    if isinstance(holder, Unknown):
        return holder
    return Absent() if holder.value is None else Known(str(holder.value))


def write_times(policy: Policy, clock: Clock) -> Asked[Mapping[int, WriteTime]]:
    """Write times of brokers by the metric of a policy; none without one."""
    guard = policy.write_times
    if guard is None:
        return Known({})
    try:
        now, usual = ask_series(guard, policy.slow_broker.label, lambda path: read_text(Path(path)), clock)
        shared = now.keys() & usual.keys()
        found = {parse_whole(one): WriteTime(now[one], usual[one]) for one in shared}
    except ValueError:
        return Unknown(f"label {policy.slow_broker.label} of the metric has no ids of brokers")
    except InputError as error:
        return Unknown(str(error))
    if len(found) < len(shared):
        return Unknown(f"some series have the same broker as label {policy.slow_broker.label}")
    return Known(found)


def _brake(client: AdminClient) -> Perhaps[str]:
    place = ConfigResource.all_brokers()

    def look(broker: int) -> Mapping[ConfigResource, Mapping[str, ConfigEntry]]:
        return client.describe_configs([place], names=[BRAKE], broker=broker).raise_if_any()

    # A broker that lags does not show it yet.
    looks = _asked(lambda: ask_by_name(client, look))
    if isinstance(looks, Unknown):
        return looks
    is_pulled = any(BRAKE in answer[place] for answer in looks.value)
    text = f"{BRAKE} is set for all brokers; `kafka-configs --alter --delete-config {BRAKE}` releases it"
    return Known(text) if is_pulled else Absent()


@dataclass(frozen=True, slots=True)
class Reasons:
    """A finding, with each gate: None if it is open, else what keeps it closed."""

    name: Name
    state: State
    seen: str
    gates: Mapping[str, str | None]


def status_of(now: Observation, memory: Memory, policy: Policy) -> AutopilotStatus:
    """The status after a look, as metrics have it."""
    shown = symptoms(Look(now, memory, policy))
    proposed = (one for one in memory.open if one.state is State.PROPOSED and one.name in shown)
    blocked = (gate for one in proposed for gate in closed_gates(Case(one, shown[one.name], now, memory, policy)))
    return AutopilotStatus(
        memory.cluster_id,
        now.at_ms,
        tuple((one.name.kind.value, one.state.value) for one in memory.open),
        tuple(map(_account, memory.acts)),
        {kind.value: count for kind, count in memory.totals.findings.items()},
        {(kind.value, result): count for (kind, result), count in memory.totals.acts.items()},
        memory.totals.copied_bytes,
        spent_bytes(memory, now.at_ms, DAY_MS),
        spent_bytes(memory, now.at_ms, WEEK_MS),
        tuple(blocked),
        stopped(Look(now, memory, policy)) is not None,
    )


def _account(act: Act) -> RepairAccount:
    spent_s = None if act.ended_ms is None else (act.ended_ms - act.begun_ms) / 1000
    copied_bytes = None if act.ended_ms is None else act.copied_bytes
    return RepairAccount(act.name.kind.value, act.run_id, act.promised_bytes, copied_bytes, act.promised_s, spent_s)


def run_of(memory: Memory, state_dir: Path) -> RunView | None:
    """The run of the repair that runs, as its journal has it; None if there is none yet. Raises JournalUnreadable."""
    act = memory.running
    path = None if act is None else journal_path(state_dir, memory.cluster_id, act.run_id)
    return read_view(path) if path is not None and path.exists() else None


def with_unread_run(now: Observation, act: Act) -> Observation:
    """The cluster where the journal of the running repair cannot be read: what it may do is not that of others."""
    moves, ours = now.moves_of_others, frozenset(act.moves)
    others = Known(moves.value - ours) if isinstance(moves, Known) else moves
    run = now.run._replace(is_unread=True)
    return replace(now, moves_of_others=others, moves_of_ours=ours, throttles_of_others=Known(()), run=run)


def why(
    client: AdminClient, policy: Policy, memory: Memory, state_dir: Path, clock: Clock = SYSTEM_CLOCK
) -> Iterator[Reasons]:
    """Each open finding with all gates, by a look of now; changes and writes nothing."""
    ours = [one.run_id for one in memory.acts]
    explain = partial(explained_settings, (state_dir,), memory.cluster_id, left_by=ours)
    run, unread = None, memory.running
    with suppress(JournalUnreadable):
        run, unread = run_of(memory, state_dir), None
    now = observe(client, clock.now_ms(), run, explain)
    if unread is not None:
        now = with_unread_run(now, unread)
    watched = _asked(lambda: present_holder(client, OF_AUTOPILOTS))
    watcher = watched if isinstance(watched, Unknown) else Absent()
    now = replace(now, watcher=watcher, write_times=write_times(policy, clock))
    decision = tick(memory, now, policy)
    look = Look(now, decision.memory, policy)
    shown = symptoms(look)
    for finding in decision.memory.open:
        symptom = shown.get(finding.name)
        if symptom is None:
            yield Reasons(finding.name, finding.state, finding.seen, {"evidence": _unseen(look, finding.name)})
            continue
        case = Case(finding, symptom, now, decision.memory, policy)
        yield Reasons(finding.name, finding.state, symptom.seen, gates_of(case))


def _unseen(look: Look, name: Name) -> str:
    """Why a look shows no symptom of a finding: it is gone, or its detector is blind."""
    blind = DETECTORS[name.kind].blind(look, name.subject)
    return "it is not seen now" if blind is None else f"whether it is still there is not known: {blind}"
