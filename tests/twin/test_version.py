import pytest

from kreassign.errors import InputError
from kreassign.twin.version import DEFAULT, RELEASES, Endpoint, kafka_version

# What real nodes answered to ApiVersions, as far as the twin has the API.
BROKER_4_3 = (
    "0:0-13 1:4-18 2:1-11 3:0-13 8:2-10 9:1-10 10:0-6 11:0-9 12:0-4 13:0-5 14:0-5 15:0-6 16:0-5 17:0-1 18:0-4 19:2-7 "
    "20:1-6 21:0-2 29:1-3 30:1-3 31:1-3 32:1-4 33:0-2 34:1-2 35:1-5 36:0-2 37:0-3 42:0-2 43:0-2 44:0-1 45:0-1 "
    "46:0-0 47:0-0 48:0-1 49:0-1 50:0-0 51:0-0 55:0-2 57:0-2 60:0-2 61:0-0 64:0-0 65:0-0 66:0-2 68:0-1 74:0-1 75:0-0"
)
CONTROLLER_4_3 = (
    "17:0-1 18:0-4 19:2-7 20:1-6 29:1-3 30:1-3 31:1-3 32:1-4 33:0-2 36:0-2 37:0-3 43:0-2 44:0-1 45:0-1 46:0-0 49:0-1 "
    "50:0-0 51:0-0 55:0-2 57:0-2 60:0-2 "
    "64:0-0"
)
BROKER_3_9 = (
    "0:0-11 1:0-17 2:0-9 3:0-12 8:0-9 9:0-9 10:0-6 11:0-9 12:0-4 13:0-5 14:0-5 15:0-5 16:0-5 17:0-1 18:0-4 19:0-7 "
    "20:0-6 21:0-2 29:0-3 30:0-3 31:0-3 32:0-4 33:0-2 34:0-2 35:0-4 36:0-2 37:0-3 42:0-2 43:0-2 44:0-1 45:0-0 "
    "46:0-0 47:0-0 48:0-1 49:0-1 50:0-0 51:0-0 55:0-2 57:0-1 60:0-1 61:0-0 64:0-0 65:0-0 66:0-1 68:0-0 74:0-0 75:0-0"
)


@pytest.mark.parametrize(
    ("release", "endpoint", "seen"),
    [
        ("4.3", Endpoint.BROKER, BROKER_4_3),
        ("4.3", Endpoint.CONTROLLER, CONTROLLER_4_3),
        ("3.9", Endpoint.BROKER, BROKER_3_9),
    ],
)
def test_nodes_offer_what_real_ones_do(release: str, endpoint: Endpoint, seen: str) -> None:
    offered = kafka_version(release).all_versions(endpoint)
    assert " ".join(f"{key}:{low}-{high}" for key, (low, high) in offered.items()) == seen


def test_each_release_offers_what_the_one_before_did_not() -> None:
    older, old, newer, newest, _ = RELEASES
    assert older.versions(75) is None
    assert old.versions(75) == (0, 0)
    assert old.versions(45) == (0, 0)
    assert newer.versions(45) == (0, 1)
    assert newer.versions(35) == (1, 4)
    assert newest.versions(35) == (1, 5)


def test_a_release_is_found_by_its_line_or_a_patch_of_it() -> None:
    assert kafka_version("4.4") is kafka_version("4.4.0") is DEFAULT
    assert kafka_version("3.9.1").name == "3.9"


@pytest.mark.parametrize("name", ["4.30", "2.8", "", "latest"])
def test_any_other_release_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"choose one of 3\.7, 3\.9, 4\.2, 4\.3, 4\.4"):
        kafka_version(name)
