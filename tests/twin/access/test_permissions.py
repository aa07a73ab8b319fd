import pytest

from kreassign.twin.access import ALL_TOPICS, Allow, Operation, Permissions

ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"
PERMISSIONS = Permissions(
    frozenset({
        Allow(ALICE, Operation.ALTER, "orders"), Allow(ALICE, Operation.READ, ALL_TOPICS), Allow(BOB, Operation.ALTER),
        Allow(BOB, Operation.ALTER_CONFIGS), Allow(BOB, Operation.READ, group="readers"),
    }),
    super_users=frozenset({CAROL}),
)  # fmt: skip


@pytest.mark.parametrize(("principal", "operation", "owner", "is_allowed"), [
    (ALICE, Operation.ALTER, {"topic": "orders"}, True),
    (BOB, Operation.ALTER, {"topic": "orders"}, False),
    (ALICE, Operation.ALTER, {"topic": "payments"}, False),
    (ALICE, Operation.ALTER, {}, False),
    (ALICE, Operation.DELETE, {"topic": "orders"}, False),
    # A rule for all topics does not hold for the cluster or a group.
    (ALICE, Operation.READ, {"topic": "payments"}, True),
    (ALICE, Operation.READ, {}, False),
    (ALICE, Operation.READ, {"group": "readers"}, False),
    (BOB, Operation.READ, {"group": "readers"}, True),
    (BOB, Operation.READ, {"group": "others"}, False),
    # Who may change may look.
    (BOB, Operation.DESCRIBE, {}, True),
    (BOB, Operation.DESCRIBE_CONFIGS, {}, True),
    (ALICE, Operation.DESCRIBE, {"topic": "payments"}, True),
    (ALICE, Operation.DESCRIBE_CONFIGS, {"topic": "orders"}, False),
    # A super user may do everything.
    (CAROL, Operation.CLUSTER_ACTION, {}, True),
    (CAROL, Operation.DELETE, {"topic": "orders"}, True),
    (ALICE, Operation.CLUSTER_ACTION, {}, False),
])  # fmt: skip
def test_what_no_rule_allows_is_denied(
    principal: str, operation: Operation, owner: dict[str, str], is_allowed: bool
) -> None:
    assert PERMISSIONS.allows(principal, operation, **owner) is is_allowed
