"""Bootstrap addresses as Kafka's tools take them."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r".+:\d+", re.ASCII)


def portless(addresses: str) -> str | None:
    """The first address of a list that has no port, on which Kafka's tools insist; None if all have one."""
    found = filter(None, map(str.strip, addresses.split(",")))
    return next((address for address in found if not _ADDRESS.fullmatch(address)), None)
