"""Missing permissions of a run are found before it changes anything, with the grants."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.admin import AdminClient, client_settings
from kreassign.errors import IllegalPlan
from kreassign.executor.preflight import RunSettings, prepare
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.throttle import ThrottleRates
from kreassign.twin.access import ALL_TOPICS, ANONYMOUS, Allow, Operation, Permissions
from kreassign.twin.transport import TwinTransport
from tests.executor.twin_runs import TwinRig, tp
from tests.twin.asking import twin

CLUSTER = (Operation.ALTER, Operation.DESCRIBE, Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS)
TOPIC = (Operation.DESCRIBE, Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS)
PLAN = Plan((PartitionAssignment(tp(0), (2, 1)),))


def prepared(*without: Allow) -> None:
    """Prepare a run as somebody who may do all that a run does, but for this."""
    rules = {Allow(ANONYMOUS, operation) for operation in CLUSTER}
    rules |= {Allow(ANONYMOUS, operation, ALL_TOPICS) for operation in TOPIC}
    asked = twin({"t": [[0, 1]]}, permissions=Permissions(frozenset(rules.difference(without))))
    before = dict(asked.metadata.configs)
    transport = TwinTransport(asked)
    settings = client_settings(bootstrap_servers="broker-0:9092")
    with AdminClient.connect(settings, clock=transport, transport=transport) as client:
        prepare(client, PLAN, RunSettings("run-1", 0, ThrottleRates(1_000_000)))
    assert asked.metadata.configs == before


@pytest.mark.parametrize(
    ("without", "text"),
    [
        (Allow(ANONYMOUS, Operation.ALTER), r"Alter on the cluster; .* --operation Alter --cluster"),
        (Allow(ANONYMOUS, Operation.ALTER_CONFIGS), r"AlterConfigs on the cluster; .*--operation AlterConfigs --clus"),
        (Allow(ANONYMOUS, Operation.ALTER_CONFIGS, ALL_TOPICS), r"AlterConfigs on topic t; .*AlterConfigs --topic t"),
    ],
)
def test_a_missing_permission_is_named_with_the_command_that_gives_it(without: Allow, text: str) -> None:
    with pytest.raises(IllegalPlan, match=text):
        prepared(without)


def test_all_that_is_missing_is_named_at_once() -> None:
    with pytest.raises(IllegalPlan) as error:
        prepared(
            *(Allow(ANONYMOUS, one) for one in CLUSTER[::2]), Allow(ANONYMOUS, Operation.ALTER_CONFIGS, ALL_TOPICS)
        )
    assert len(error.value.violations) == 3


def test_a_move_of_a_partition_without_a_leader_is_refused(tmp_path: Path) -> None:
    rig = TwinRig(tmp_path, [[3, 4]])
    for broker in (3, 4):
        rig.twin.crash(broker)
        rig.transport.sleep(30)
    with pytest.raises(IllegalPlan, match=r"t-0: it has no leader, so nothing can be copied to \[1, 2\]"):
        rig.prepared({0: (1, 2)})
