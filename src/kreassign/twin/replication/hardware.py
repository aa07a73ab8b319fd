"""What a broker of the twin is built of: network, and log directories that are disks of their own."""

from __future__ import annotations

from dataclasses import dataclass

from kreassign.errors import InputError

TEN_GIGABIT = 1_250_000_000
"""Bytes per second of a ten gigabit network."""
TWO_TERABYTES = 2_000_000_000_000
FAST_DISK = 500_000_000
"""Bytes per second that an ordinary solid state disk reads or writes in a row."""


@dataclass(frozen=True, slots=True)
class LogDirHardware:
    """One log directory, as if it had a disk to itself: bytes it holds, bytes per second it reads and writes."""

    path: str
    capacity_bytes: int = TWO_TERABYTES
    read_bytes_per_s: float = FAST_DISK
    write_bytes_per_s: float = FAST_DISK

    def __post_init__(self) -> None:
        if not self.path.startswith("/"):
            raise InputError(f"log directory {self.path!r} is not an absolute path")
        _refuse_nothing(
            f"log directory {self.path}", self.capacity_bytes, self.read_bytes_per_s, self.write_bytes_per_s
        )


@dataclass(frozen=True, slots=True)
class BrokerHardware:
    """One broker: its log directories in the order of its configuration, and its network in bytes per second."""

    log_dirs: tuple[LogDirHardware, ...]
    net_in_bytes_per_s: float = TEN_GIGABIT
    net_out_bytes_per_s: float = TEN_GIGABIT

    def __post_init__(self) -> None:
        _refuse_nothing("the network of a broker", self.net_in_bytes_per_s, self.net_out_bytes_per_s)
        paths = [log_dir.path for log_dir in self.log_dirs]
        if not paths or len(set(paths)) != len(paths):
            raise InputError(f"a broker needs log directories, each named once; given: {paths}")


def _refuse_nothing(what: str, *amounts: float) -> None:
    if not all(0 < amount < float("inf") for amount in amounts):
        raise InputError(f"{what} needs sizes and speeds above zero and finite; given: {list(amounts)}")
