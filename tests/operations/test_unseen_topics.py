"""Topics that a client may not see: a listing leaves them out without a word, so whoever goes by it must be told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import Rejected
from kreassign.executor.brokers import Blocked
from kreassign.executor.cluster.permissions import unseen_topics
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.operations.decommission import DecommissionRequest, decommission, preview_decommission
from kreassign.operations.doctor import diagnose_cluster
from kreassign.operations.maintenance import Way, maintain
from kreassign.operations.plan_files import PlanFile
from kreassign.operations.run import RunContext
from kreassign.operations.snapshot import observe
from kreassign.operations.verify import placement_of_cluster
from kreassign.twin.access import ANONYMOUS, CLUSTER_OPERATIONS, TOPIC_OPERATIONS, Allow, Permissions
from kreassign.twin.cluster import Twin
from kreassign.twin.transport import TwinTransport
from tests.executor.odd_port import OddPort, Real, not_reached
from tests.twin.asking import twin

TOPICS = {"seen": [[0, 1]], "hidden": [[1, 0], [2, 1]]}
GRANT = "kafka-acls --add --allow-principal User:{} --operation Describe --topic hidden"


@dataclass
class Asked:
    """A twin, and a client of it who may do everything to one topic, and whatever else is said."""

    twin: Twin
    transport: TwinTransport
    client: AdminClient
    context: RunContext

    def offset(self) -> int:
        """Number of records in the metadata log: more after any change."""
        return self.twin.metadata.offset


def asked(folder: Path, *topics: str) -> Iterator[Asked]:
    rules = {Allow(ANONYMOUS, one) for one in CLUSTER_OPERATIONS}
    rules |= {Allow(ANONYMOUS, one, topic) for one in TOPIC_OPERATIONS for topic in topics}
    found = twin(TOPICS, permissions=Permissions(frozenset(rules)))
    transport = TwinTransport(found)
    with AdminClient.connect(
        client_settings(bootstrap_servers="broker-0:9092"), clock=transport, transport=transport
    ) as client:
        yield Asked(found, transport, client, RunContext(folder, warn=lambda _: None))


@pytest.fixture
def half(tmp_path: Path) -> Iterator[Asked]:
    yield from asked(tmp_path, "seen")


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Asked]:
    yield from asked(tmp_path, "seen", "hidden")


def test_a_snapshot_says_which_topics_are_not_in_it(half: Asked, whole: Asked) -> None:
    warnings: list[str] = []
    assert [topic.name for topic in observe(half.client, 0, warnings.append).topics] == ["seen"]
    said, of_maintenance = warnings
    assert "which brokers are in maintenance could not be read (permission is missing: Describe on" in of_maintenance
    assert "replicas of 1: permission is missing: Describe on topic hidden" in said
    assert GRANT.format("ANONYMOUS") in said
    warnings.clear()
    observe(whole.client, 0, warnings.append)
    assert warnings == [of_maintenance]


def test_a_topic_that_is_made_between_two_readings_is_not_taken_for_one(half: Asked) -> None:
    log_dirs = [one for dirs in half.client.describe_log_dirs().ok.values() for one in dirs]
    assert unseen_topics(half.client, ["seen"], log_dirs) == ("hidden",)
    assert unseen_topics(half.client, [], log_dirs) == ("hidden",)


@pytest.mark.parametrize("silent", range(3))
def test_a_hidden_topic_is_not_overlooked_beside_a_silent_broker(half: Asked, silent: int) -> None:
    log_dirs = [one for dirs in half.client.describe_log_dirs().ok.values() for one in dirs]
    odd = OddPort(half.client)

    def hang(real: Real, *names: object, broker: int | None = None, **named: object) -> object:
        return not_reached(real) if broker == silent else real(*names, broker=broker, **named)

    odd.answer_always("describe_topics", hang)
    assert unseen_topics(odd.port, ["seen"], log_dirs) == ("hidden",)


def test_no_broker_is_called_empty_while_no_other_tells_of_a_topic_on_it(half: Asked) -> None:
    """A broker that is down tells nothing, and others have replicas of a topic that the listing leaves out."""
    half.twin.stop(2)
    half.transport.sleep(30)
    odd = OddPort(half.client)

    def only_list(real: Real, names: object, *, broker: int | None = None, **named: object) -> object:
        return not_reached(real) if names is not None and broker is not None else real(names, broker=broker, **named)

    odd.answer_always("describe_topics", only_list)
    request = DecommissionRequest((2,), unregisters=True)
    found = decommission(cast(AdminClient, odd), request, half.context)
    assert isinstance(found.next_step, Blocked)
    assert "topic hidden could not be read: could not connect" in str(found.next_step)


def test_no_maintenance_begins_while_min_isr_is_unknown(half: Asked, whole: Asked) -> None:
    before = half.offset()
    found = maintain(half.client, (2,), Way.ENTER, half.context, clock=half.transport)
    assert isinstance(found.next_step, Blocked)
    assert "cannot list what is on broker 2" in str(found.next_step)
    assert GRANT.format("ANONYMOUS") in str(found.next_step)
    assert (half.offset(), found.steps) == (before, ())
    # Who sees it is told the truth: it is the only other replica of nothing, and leads hidden-1.
    assert maintain(whole.client, (2,), Way.ENTER, whole.context, clock=whole.transport).is_finished


@pytest.mark.parametrize("is_live", [True, False])
def test_no_broker_is_called_empty_that_has_a_replica_of_a_hidden_topic(half: Asked, is_live: bool) -> None:
    if not is_live:
        half.twin.stop(2)
        half.transport.sleep(30)
    before, request = half.offset(), DecommissionRequest((2,), unregisters=True)
    assert isinstance(preview_decommission(half.client, request, half.context, half.transport).next_step, Blocked)
    found = decommission(half.client, request, half.context)
    assert isinstance(found.next_step, Blocked)
    assert "cannot list what is on broker 2" in str(found.next_step)
    assert (half.offset(), found.steps) == (before, ())


def test_the_doctor_names_them_with_the_command_that_shows_them(half: Asked, whole: Asked) -> None:
    issues = diagnose_cluster(half.client, half.context.state_dir, clock=half.transport).issues
    commands = [" ".join(command) for issue in issues for command in issue.commands]
    assert GRANT.format("ANONYMOUS") in commands
    issues = diagnose_cluster(whole.client, whole.context.state_dir, clock=whole.transport).issues
    assert not [issue for issue in issues if "hidden" in issue.seen]


def test_a_declared_topic_that_is_hidden_now_stays_in_its_file(half: Asked) -> None:
    """A listing leaves it out like one that was deleted; asked for by name, the cluster refuses."""
    declared = PlanFile(Plan((PartitionAssignment(TopicPartition("hidden", 0), (0,)),)))
    with pytest.raises(Rejected, match="hidden"):
        placement_of_cluster(half.client, declared, is_written=True)
    assert {one.topic for one in placement_of_cluster(half.client, declared, topics=["seen"])} == {"seen"}
