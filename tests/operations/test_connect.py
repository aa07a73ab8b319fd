"""Clients from properties: what is wrong with them is told with the file that has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kreassign.errors import InputError
from kreassign.operations.connect import connect, connect_controllers


@pytest.mark.parametrize("call", [connect, connect_controllers])
def test_a_property_that_is_wrong_is_named_with_its_file(tmp_path: Path, call: type) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=NONE\n")
    with pytest.raises(InputError, match=r"client\.properties: security\.protocol=NONE is not one of"):
        call("localhost:1", file)
    with pytest.raises(InputError, match=r"^security\.protocol=NONE is not one of"):
        call("localhost:1", {"security.protocol": "NONE"})
