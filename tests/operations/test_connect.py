"""Clients from properties: what is wrong with them is told with the file that has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.errors import InputError, Unreachable
from kreassign.operations.connect import connect, connect_controllers


@pytest.mark.parametrize("call", [connect, connect_controllers])
def test_a_property_that_is_wrong_is_named_with_its_file(tmp_path: Path, call: type) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=NONE\n")
    with pytest.raises(InputError, match=r"client\.properties: security\.protocol=NONE is not one of"):
        call("localhost:1", file)
    with pytest.raises(InputError, match=r"^security\.protocol=NONE is not one of"):
        call("localhost:1", {"security.protocol": "NONE"})


def test_properties_name_the_servers_of_a_program(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=localhost:1\n")
    for properties in (file, {"bootstrap.servers": "localhost:1"}):
        with connect(properties=properties) as client, pytest.raises(Unreachable, match="localhost:1"):
            client.list_topics()
