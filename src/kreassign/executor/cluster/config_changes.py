"""Changing settings through the port: those of a topic anywhere, those of a broker at that broker.

A broker that is down keeps nobody waiting. It takes no request, but the active controller of a KRaft cluster takes its
settings (Kafka 4.3.1; the broker finds them when it starts), so they go there, where controllers were given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kreassign.errors import ClusterError, OutcomeUnknown, Unreachable
from kreassign.executor.cluster import answers, queries
from kreassign.executor.cluster.port import ClusterPort, ConfigPort
from kreassign.executor.events import Unwritten
from kreassign.model import Batch, ConfigChange, ConfigResource, ResourceType
from kreassign.model.authorization import error_text
from kreassign.model.error_codes import BROKER_ID_NOT_REGISTERED, has_code

CHANGE_TIMEOUT_MS = 20_000
"""Longer than a cluster takes to notice that a broker died (broker.session.timeout.ms, 9 s), and not by much."""

Changes = Mapping[ConfigResource, Sequence[ConfigChange]]


@dataclass(frozen=True, slots=True)
class Changed:
    """What became of changes, where they were not just made.

    `problems` has a sentence per topic or broker where they failed, or may have failed; `failed` names those that are
    not gone; `unwritten` the brokers that are down and to which nobody could carry them; `by_controller` those that are
    down and whose controller took them, `unregistered` those of `unwritten` that the cluster does not know any more.
    They `may_pass` when nobody refused for good: the same again, which changes nothing twice, may be answered well.
    """

    problems: tuple[str, ...] = ()
    unwritten: tuple[Unwritten, ...] = ()
    by_controller: tuple[int, ...] = ()
    failed: tuple[ConfigResource, ...] = ()
    unregistered: tuple[int, ...] = ()
    may_pass: bool = True

    def and_then(self, later: Changed) -> Changed:
        """What became of these changes and of others after them."""
        return Changed(
            (*self.problems, *later.problems),
            (*self.unwritten, *later.unwritten),
            tuple(sorted({*self.by_controller, *later.by_controller})),
            tuple(dict.fromkeys((*self.failed, *later.failed))),
            tuple(sorted({*self.unregistered, *later.unregistered})),
            self.may_pass and later.may_pass,
        )


def change_configs(port: ClusterPort, controllers: ConfigPort | None, changes: Changes) -> Changed:
    """Make all these changes that can be made now. Raises nothing."""
    if not changes:
        return Changed()
    brokers = {resource: int(resource.name) for resource in changes if resource.type is ResourceType.BROKER}
    try:
        live = port.describe_cluster().broker_ids if brokers else ()
        reachable = {one: changes[one] for one in changes if one not in brokers or brokers[one] in live}
        outcome = port.incremental_alter_configs(reachable, timeout_ms=CHANGE_TIMEOUT_MS)
        # One that died just now is listed until its session is over.
        live = port.describe_cluster().broker_ids if _silent(outcome, brokers) else live
    except ClusterError as error:
        problem = f"throttle settings could not be changed: {error_text(error)}"
        return Changed((problem,), failed=tuple(changes), may_pass=not answers.is_final(error))
    down = {one: broker for one, broker in brokers.items() if broker not in live}
    carried = _carry_to(controllers, {one: changes[one] for one in down})
    return Changed(
        tuple(f"{one}: {error_text(error)}" for one, error in outcome.failed.items() if one not in down),
        tuple(Unwritten(down[one], error_text(error)) for one, error in sorted(carried.failed.items())),
        tuple(sorted(down[one] for one in carried.ok)),
        tuple(one for one, error in outcome.failed.items() if one not in down and not queries.is_unknown_topic(error)),
        _unregistered(port, {down[one]: error for one, error in carried.failed.items()}),
        not any(answers.is_final(error) for one, error in outcome.failed.items() if one not in down),
    )


def _silent(outcome: Batch[ConfigResource, None], brokers: Iterable[ConfigResource]) -> bool:
    """Whether a broker gave no answer."""
    unanswered = (Unreachable, OutcomeUnknown)
    return any(isinstance(outcome.failed.get(resource), unanswered) for resource in brokers)


def _carry_to(controllers: ConfigPort | None, changes: Changes) -> Batch[ConfigResource, None]:
    if controllers is None:
        nobody = Unreachable("it is down, and no controller is known (--bootstrap-controller)")
        return Batch({}, dict.fromkeys(changes, nobody))
    if not changes:
        return Batch()
    try:
        return controllers.incremental_alter_configs(changes, timeout_ms=CHANGE_TIMEOUT_MS)
    except ClusterError as error:
        return Batch({}, dict.fromkeys(changes, error))


def _unregistered(port: ClusterPort, failed: Mapping[int, ClusterError]) -> tuple[int, ...]:
    """Those of brokers that are down that the controller does not know, or that brokers do not list as registered."""
    found = {broker for broker, error in failed.items() if has_code(error, BROKER_ID_NOT_REGISTERED)}
    if unsure := failed.keys() - found:
        with suppress(ClusterError):  # Before Kafka 4.0 brokers cannot tell.
            found |= unsure - {one.id for one in port.describe_cluster(include_fenced=True).brokers}
    return tuple(sorted(found))
