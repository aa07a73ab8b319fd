"""What became of each part of a call that covers many: partial failure as a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, NoReturn, TypeVar

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
            _raise(key, self.failed[key])
        return self.ok[key]

    def raise_if_any(self) -> Mapping[Key, Value]:
        """Raise the first error, which names its key as its `item`, if any key failed; else return all values."""
        for key, error in self.failed.items():
            _raise(key, error)
        return self.ok

    def map(self, change: Callable[[Value], Other]) -> Batch[Key, Other]:
        """The same outcomes with every value changed."""
        return Batch({key: change(value) for key, value in self.ok.items()}, self.failed)


def _raise(key: object, error: ClusterError) -> NoReturn:
    """Raise the error of a key. One error can stand for all keys of a request, so it does not know them."""
    if error.item is None:
        raise error.about(key) from error
    raise error


def join(parts: list[Batch[Key, Value]]) -> Batch[Key, Value]:
    """Put the outcomes of several calls about different keys together."""
    ok: dict[Key, Value] = {}
    failed: dict[Key, ClusterError] = {}
    for part in parts:
        ok.update(part.ok)
        failed.update(part.failed)
    return Batch(ok, failed)
