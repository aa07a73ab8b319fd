"""Read which brokers receive no replicas, and ask whether the cluster takes lists that name them; changes nothing.

What brokers report does not tell whether their cordons bind: Kafka 4.3.1 and a later 4.3 look alike. So the controller
is asked to validate, without creating it, a topic with one replica on the broker, and one on an open broker: a topic
on dead brokers alone would be refused for that. It is believed only if all live
brokers offer the same versions of everything: in a rolling upgrade the next controller may answer otherwise.

    all live brokers alike, and the controller accepts the topic            →  the broker may be named
    refused, not answered, not allowed (CREATE), or brokers that differ     →  it may not
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kreassign.errors import ClusterError
from kreassign.executor.cluster.port import ClusterPort
from kreassign.executor.cluster.readings import ask_twice, read_log_dirs
from kreassign.model import LogDir
from kreassign.model.closures import Closure, closure_of
from kreassign.model.requests import NewTopic


def read_closures(port: ClusterPort, brokers: Iterable[int]) -> dict[int, Closure]:
    """Each of these live brokers that receives nothing, with the reasons. Raises ClusterError."""
    log_dirs = read_log_dirs(port, sorted(set(brokers)), copies_of=())
    return closures_of(port, {*log_dirs.ok, *log_dirs.failed}, log_dirs.ok)


def closures_of(
    port: ClusterPort,
    brokers: Iterable[int],
    log_dirs: Mapping[int, tuple[LogDir, ...]],
    in_maintenance: Collection[int] = (),
) -> dict[int, Closure]:
    """Like `read_closures`, from log directories that brokers reported, and with those `in_maintenance`."""
    asked = sorted(set(brokers))
    named = nameable_brokers(port, asked, log_dirs)
    found = {
        broker: closure_of(
            _cordons(log_dirs.get(broker, ())), in_maintenance=broker in in_maintenance, may_be_named=named.get(broker)
        )
        for broker in asked
    }
    return {broker: closure for broker, closure in found.items() if closure}


def nameable_brokers(
    port: ClusterPort, brokers: Iterable[int], log_dirs: Mapping[int, tuple[LogDir, ...]]
) -> dict[int, bool]:
    """For each broker without an open log directory: True if changed lists may name it. Raises nothing."""
    closed = [broker for broker in sorted(set(brokers)) if False not in _cordons(log_dirs.get(broker, ()))]
    if not closed:
        return {}
    opened = tuple(broker for broker in sorted(set(brokers)) if broker not in closed)[:1]
    topics = {f"kreassign-asks-whether-broker-{broker}-may-be-named": broker for broker in closed}
    try:
        offered = ask_twice(port.offered_versions, port.describe_cluster().broker_ids)
        if offered.failed or len(set(offered.ok.values())) != 1:
            return dict.fromkeys(closed, False)
        wanted = [NewTopic(name, assignments=((*opened, broker),)) for name, broker in topics.items()]
        answer = port.create_topics(wanted, validate_only=True)
    except ClusterError:
        return dict.fromkeys(closed, False)
    return {broker: name in answer.ok and name not in answer.failed for name, broker in topics.items()}


def _cordons(log_dirs: Iterable[LogDir]) -> list[bool]:
    """Working directories, each with True if it is cordoned."""
    return [one.is_cordoned for one in log_dirs if one.error is None]
