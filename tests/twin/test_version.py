import pytest

from kreassign.errors import InputError
from kreassign.twin.version import DEFAULT, kafka_version


def test_a_release_is_found_by_its_line_or_a_patch_of_it() -> None:
    assert kafka_version("4.4") is kafka_version("4.4.0") is DEFAULT
    assert kafka_version("3.9.1").name == "3.9"


@pytest.mark.parametrize("name", ["4.30", "2.8", "", "latest"])
def test_any_other_release_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"choose one of 3\.7, 3\.9, 4\.2, 4\.3, 4\.4"):
        kafka_version(name)
