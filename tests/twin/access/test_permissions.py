from kreassign.twin.access import ALL_TOPICS, Allow, Operation, Permissions

ALICE, BOB = "User:alice", "User:bob"


def test_what_no_rule_allows_is_denied() -> None:
    assert not Permissions(frozenset()).allows(ALICE, Operation.ALTER)


def test_a_rule_holds_for_its_principal_operation_and_resource_only() -> None:
    permissions = Permissions(frozenset({Allow(ALICE, Operation.ALTER, "orders")}))
    assert permissions.allows(ALICE, Operation.ALTER, "orders")
    assert not permissions.allows(BOB, Operation.ALTER, "orders")
    assert not permissions.allows(ALICE, Operation.ALTER, "payments")
    assert not permissions.allows(ALICE, Operation.ALTER)
    assert not permissions.allows(ALICE, Operation.DELETE, "orders")


def test_a_rule_for_all_topics_does_not_hold_for_the_cluster() -> None:
    permissions = Permissions(frozenset({Allow(ALICE, Operation.DESCRIBE, ALL_TOPICS)}))
    assert permissions.allows(ALICE, Operation.DESCRIBE, "orders")
    assert not permissions.allows(ALICE, Operation.DESCRIBE)


def test_who_may_change_may_look() -> None:
    permissions = Permissions(frozenset({Allow(ALICE, Operation.ALTER), Allow(BOB, Operation.ALTER_CONFIGS)}))
    assert permissions.allows(ALICE, Operation.DESCRIBE)
    assert permissions.allows(BOB, Operation.DESCRIBE_CONFIGS)
    assert not permissions.allows(BOB, Operation.DESCRIBE)


def test_a_super_user_may_do_everything() -> None:
    permissions = Permissions(frozenset(), super_users=frozenset({BOB}))
    assert permissions.allows(BOB, Operation.CLUSTER_ACTION)
    assert permissions.allows(BOB, Operation.DELETE, "orders")
    assert not permissions.allows(ALICE, Operation.CLUSTER_ACTION)
