"""What became of each part of a call that covers many: partial failure as a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kreassign.errors import ClusterError

Key = TypeVar("Key")
Value = TypeVar("Value")
Other = TypeVar("Other")


@dataclass(frozen=True, slots=True)
class Batch(Generic[Key, Value]):
    """Outcome per key: either in `ok` with its value, or in `failed` with its error, never both.

    Keys keep the order in which the cluster answered. A call whose whole request failed says so by raising, not
    by a batch, unless some of its keys did get an answer.
    """

    ok: Mapping[Key, Value] = field(default_factory=dict)
    failed: Mapping[Key, ClusterError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert not self.ok.keys() & self.failed.keys(), "a key cannot both succeed and fail"

    def __len__(self) -> int:
        return len(self.ok) + len(self.failed)

    def __iter__(self) -> Iterator[Key]:
        yield from self.ok
        yield from self.failed

    def __getitem__(self, key: Key) -> Value:
        """The value of a key; raises the key's own error if it failed."""
        if key in self.failed:
            raise self.failed[key]
        return self.ok[key]

    def raise_if_any(self) -> Mapping[Key, Value]:
        """Raise the first error if any key failed; else return all values."""
        for error in self.failed.values():
            raise error
        return self.ok

    def map(self, change: Callable[[Value], Other]) -> Batch[Key, Other]:
        """The same outcomes with every value changed."""
        return Batch({key: change(value) for key, value in self.ok.items()}, self.failed)


def join(parts: list[Batch[Key, Value]]) -> Batch[Key, Value]:
    """Put the outcomes of several calls about different keys together."""
    ok: dict[Key, Value] = {}
    failed: dict[Key, ClusterError] = {}
    for part in parts:
        ok.update(part.ok)
        failed.update(part.failed)
    return Batch(ok, failed)
