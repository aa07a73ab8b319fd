import pytest

from kreassign.wire import api
from kreassign.wire.api import Api
from tests.wire.peer import APIS

# What brokers and controllers of real clusters offer: API key → first and last version.
KAFKA_4_3 = {
    2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 11: (0, 9), 12: (0, 4), 13: (0, 5), 14: (0, 5), 15: (0, 6),
    42: (0, 2), 17: (0, 1), 18: (0, 4), 19: (2, 7), 20: (1, 6), 32: (1, 4), 34: (1, 2), 35: (1, 5),
    36: (0, 2), 37: (0, 3), 43: (0, 2), 44: (0, 1), 45: (0, 1), 46: (0, 0), 60: (0, 2), 75: (0, 0),
}  # fmt: skip
KAFKA_3_9_ZOOKEEPER = {
    2: (0, 9), 3: (0, 12), 17: (0, 1), 18: (0, 4), 19: (0, 7), 20: (0, 6), 32: (0, 4), 34: (0, 2), 35: (0, 4),
    36: (0, 2), 37: (0, 3), 43: (0, 2), 44: (0, 1), 45: (0, 0), 46: (0, 0), 60: (0, 1),
}  # fmt: skip
KAFKA_2_4 = {
    3: (0, 9), 8: (0, 8), 9: (0, 6), 10: (0, 3), 11: (0, 6), 12: (0, 4), 13: (0, 4), 14: (0, 4), 15: (0, 5), 42: (0, 2),
    18: (0, 3), 19: (0, 5), 20: (0, 4), 32: (0, 2), 34: (0, 1), 35: (0, 1), 37: (0, 1), 43: (0, 2),
    44: (0, 1), 45: (0, 0), 46: (0, 0),
}  # fmt: skip


@pytest.mark.parametrize("known", APIS.values(), ids=lambda known: known.name)
def test_an_api_has_the_key_and_the_name_of_its_messages(known: Api) -> None:
    assert known.key == known.request.API_KEY == known.response.API_KEY
    assert (known.request.__name__, known.response.__name__) == (f"{known.name}Request", f"{known.name}Response")


@pytest.mark.parametrize("offered", [KAFKA_4_3, KAFKA_3_9_ZOOKEEPER, KAFKA_2_4], ids=["4.3", "3.9 ZooKeeper", "2.4"])
def test_we_share_a_version_of_everything_that_these_releases_offer(offered: dict[int, tuple[int, int]]) -> None:
    shared = {key: APIS[key].common_version(versions) for key, versions in offered.items()}
    assert None not in shared.values()
    assert all(offered[key][0] <= version <= offered[key][1] for key, version in shared.items() if version is not None)


def test_the_options_that_need_a_version_are_reached_on_a_new_cluster() -> None:
    assert api.ALTER_PARTITION_REASSIGNMENTS.common_version(KAFKA_4_3[45]) == 1  # KIP-860
    assert api.DESCRIBE_CLUSTER.common_version(KAFKA_4_3[60]) == 2  # fenced brokers
    assert api.DESCRIBE_LOG_DIRS.common_version(KAFKA_4_3[35]) == 5  # cordoned directories


@pytest.mark.parametrize(
    ("offered", "version"),
    [((0, 9), 4), ((3, 9), 4), ((0, 2), 2), ((4, 9), 4), ((2, 2), 2), ((5, 9), None), ((0, 1), None), (None, None)],
)
def test_the_highest_version_of_both_ranges_is_chosen(offered: tuple[int, int] | None, version: int | None) -> None:
    assert Api(1, "Some", object, object, 2, 4).common_version(offered) == version


def test_an_api_is_printed_with_name_and_number() -> None:
    assert str(api.ALTER_PARTITION_REASSIGNMENTS) == "AlterPartitionReassignments (API 45)"
