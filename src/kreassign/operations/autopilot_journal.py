"""The journal of an autopilot's decisions, and what other processes read in it and ask by it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import get_args

from kreassign.autopilot import events
from kreassign.autopilot.events import State
from kreassign.autopilot.memory import Memory, memory_of
from kreassign.autopilot.policy import Policy
from kreassign.autopilot.replay import Replayed, replay
from kreassign.clock import SYSTEM_CLOCK, Clock
from kreassign.errors import InputError
from kreassign.executor.journal import active_run_in, post_request, read_events
from kreassign.executor.journal.file import Form
from kreassign.executor.journal.folder import cluster_folder, cluster_of_folder
from kreassign.executor.lease import LeaseHolder
from kreassign.model.approvals import ApprovalRequest
from kreassign.operations.approvals import approve_request, request_of
from kreassign.operations.plan_files import REQUEST_SUFFIX
from kreassign.operations.run_journals import InForce
from kreassign.operations.text_files import read_text

BRAKE = "kreassign-autopilot-off"
"""Broker setting that stops the autopilot, whatever its value: brokers show the values of strange settings to nobody.

`kafka-configs --alter --entity-type brokers --entity-default --add-config kreassign-autopilot-off=true` pulls it.
"""

DECISIONS = Form(
    0x6B726570, events.Began, MappingProxyType({kind.__name__: kind for kind in get_args(events.Event)}),
    (events.RunBegan, events.RunEnded), get_args(events.Request), keeps_requests=True, number="number",
    goes_on=events.Resumed,
)  # fmt: skip
"""Journals of autopilots. Requests hold whether a process is there when they are made or not."""


def decisions_path(state_dir: Path, cluster_id: str, *, is_dry: bool = False) -> Path:
    """Path of the journal of decisions: below the folder of the cluster, so that runs do not take it for theirs."""
    return cluster_folder(state_dir, cluster_id) / ("autopilot-dry-run" if is_dry else "autopilot") / "decisions.sqlite"


def clusters_looked_after(state_dir: Path, *, is_dry: bool = False) -> tuple[str, ...]:
    """Ids of the clusters whose journals of decisions are in the state directory."""
    folder = decisions_path(state_dir, "", is_dry=is_dry).parent.name
    return tuple(cluster_of_folder(path.parents[1]) for path in sorted(state_dir.glob(f"*/{folder}/decisions.sqlite")))


def looked_after(state_dir: Path, here: InForce, *, is_dry: bool = False) -> str:
    """Id of the cluster in force; where none is named, of the only one with an autopilot in the state directory.

    Raises InputError where there is none, where several could be meant, or the cluster that is named did not answer.
    """
    if here.why is not None:
        raise InputError(
            f"{here.why}, so which cluster is meant is not known; name brokers that answer (--bootstrap-server)"
        )
    known = clusters_looked_after(state_dir, is_dry=is_dry)
    if here.cluster_id in known:
        return here.cluster_id
    if here.cluster_id is None and len(known) == 1:
        return known[0]
    if here.cluster_id is None and known:
        raise InputError(
            f"several clusters are looked after with state directory {state_dir}: {', '.join(known)}; name one "
            "(--bootstrap-server, or --cluster of the configuration file)"
        )
    what, begin = ("a dry run of the autopilot", " --dry-run") if is_dry else ("the autopilot", "")
    which = "looked after no cluster" if here.cluster_id is None else f"not looked after cluster {here.cluster_id}"
    others = f" (it has: {', '.join(known)})" if known else ""
    raise InputError(
        f"{what} has {which} with state directory {state_dir}{others}; begin with `kreassign autopilot watch "
        f"POLICY{begin}`, or name another --state-dir"
    )


def approval_path(journal: Path, name: events.Name) -> Path:
    """Path of the request for approval of a finding's repair, in a folder beside the journal of decisions."""
    return journal.parent / "approvals" / f"{_file_name(name)}{REQUEST_SUFFIX}"


def proposal_path(journal: Path, name: events.Name) -> Path:
    """Path of the plan that repairs a finding, in a folder beside the journal of decisions."""
    return journal.parent / "proposals" / f"{_file_name(name)}.json"


def _file_name(name: events.Name) -> str:
    subject = hashlib.sha256(name.subject.encode()).hexdigest()[:8]
    return f"{name.kind}-{subject}"


Watcher = Callable[[], LeaseHolder | None]
"""Reads who has the lease of autopilots; None where nobody has it, or that is not known."""


def decided(state_dir: Path, cluster_id: str, *, is_dry: bool = False) -> tuple[events.Event, ...]:
    """All decisions about a cluster, oldest first. Raises InputError without any, JournalDamaged."""
    return read_events(_journal(state_dir, cluster_id, is_dry=is_dry), DECISIONS)


def replayed(state_dir: Path, cluster_id: str, policy: Policy, *, is_dry: bool = False) -> Replayed:
    """Play a policy over the journal of decisions of a cluster. Raises InputError without one, JournalDamaged."""
    return replay(decided(state_dir, cluster_id, is_dry=is_dry), policy)


def remembered(state_dir: Path, cluster_id: str, *, is_dry: bool = False) -> Memory:
    """Return the memory of a cluster's autopilot. Raises InputError without one, JournalDamaged."""
    return memory_of(decided(state_dir, cluster_id, is_dry=is_dry))


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests of people to the autopilot of a cluster, given on this host. Each raises InputError if none hears it."""

    state_dir: Path
    cluster_id: str
    clock: Clock = SYSTEM_CLOCK
    watcher: Watcher = lambda: None
    is_dry: bool = False

    def off(self, for_s: float, by: str, why: str) -> None:
        """Let the autopilot act on nothing for a while; it holds a repair that runs."""
        self._post(lambda at_ms, number: events.TurnedOff(at_ms, number, at_ms + round(for_s * 1000), by, why))

    def on(self, by: str) -> None:
        """Let the autopilot act again."""
        self._post(lambda at_ms, number: events.TurnedOn(at_ms, number, by))

    def silence(self, name: events.Name, for_s: float, by: str, why: str) -> None:
        """Let the autopilot do nothing about a finding for a while."""
        self._post(lambda at_ms, number: events.Silenced(at_ms, number, *name, at_ms + round(for_s * 1000), by, why))

    def approve(self, name: events.Name, key: Path, user: str) -> ApprovalRequest:
        """Sign the proposal of a finding, and return what was signed. Raises InputError if none is asked for."""
        finding = remembered(self.state_dir, self.cluster_id, is_dry=self.is_dry).findings.get(name)
        if finding is None or finding.asked is None or finding.state is not State.PROPOSED:
            raise InputError(
                f"the autopilot asks for no approval of {name}; `kreassign autopilot status` shows its findings"
            )
        path = approval_path(self._heard_here(), name)
        approve_request(path, key, user)
        return request_of(path)

    def _post(self, make: Callable[[int, int], events.Request]) -> None:
        post_request(self._heard_here(), partial(make, self.clock.now_ms()), DECISIONS)

    def _heard_here(self) -> Path:
        """Path of the journal. Raises InputError if another host looks after it, and hears nothing asked here."""
        path = _journal(self.state_dir, self.cluster_id, is_dry=self.is_dry)
        if active_run_in(path.parent) is not None:
            return path
        kept_in, elsewhere = memory_of(read_events(path, DECISIONS)).kept_in, ""
        if kept_in is not None:
            elsewhere = (
                f"another host may, by the decisions in {kept_in}: give this there (`kreassign autopilot "
                f"status --journal-from {kept_in}` names it)"
            )
        elif not self.is_dry and (holder := self.watcher()) is not None and not was_here(path.parent, holder):
            elsewhere = f"{holder.user}@{holder.host} does ({holder.run_id}): give this there"
        if elsewhere:
            raise InputError(
                f"no process here looks after cluster {self.cluster_id}, and {elsewhere}, or pull the brake: "
                f"`kafka-configs --alter --entity-type brokers --entity-default --add-config {BRAKE}=true`"
            )
        return path


FORMER = "lease"
"""File in the folder of decisions that names the last process here which had the lease of autopilots."""


def was_here(folder: Path, holder: LeaseHolder) -> bool:
    """True if the holder of the lease of autopilots is, or was, a process with this folder of decisions."""
    former = folder / FORMER
    return former.exists() and read_text(former) == holder.run_id


def _journal(state_dir: Path, cluster_id: str, *, is_dry: bool = False) -> Path:
    path = decisions_path(state_dir, cluster_id, is_dry=is_dry)
    if not path.exists():
        raise InputError(
            f"{'a dry run of the' if is_dry else 'the'} autopilot has not looked after cluster {cluster_id} with this "
            f"state directory: {path} is not there; begin with `kreassign autopilot watch POLICY"
            f"{' --dry-run' if is_dry else ''}`, or name another --state-dir"
        )
    return path
