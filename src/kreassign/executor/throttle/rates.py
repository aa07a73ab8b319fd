"""How fast the brokers of a run may send and receive for its moves: one rate for all, others for some. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kreassign.executor.throttle.adaptive import Auto


@dataclass(frozen=True, slots=True, order=True)
class BrokerRate:
    """What one broker may send, and receive, in bytes per second; None for no limit."""

    broker: int
    bytes_per_s: int | None


@dataclass(frozen=True, slots=True)
class Rates:
    """The throttle of a run: a rate for every broker, or None for no limit, but for those with a rate of their own.

    With `auto` the others get what their traffic leaves over, and nobody knows beforehand what that is.
    """

    bytes_per_s: int | None = None
    own: tuple[BrokerRate, ...] = ()
    auto: Auto | None = None

    @property
    def is_limited(self) -> bool:
        """Whether any broker is throttled."""
        return self.auto is not None or bool(self._known)

    @property
    def slowest_bytes_per_s(self) -> int | None:
        """The lowest rate of any broker; None where nothing is limited, or nobody knows."""
        return None if self.auto is not None else min(self._known, default=None)

    @property
    def fastest_bytes_per_s(self) -> int | None:
        """The highest rate of any broker; None where one has no limit."""
        return None if self.bytes_per_s is None or len(self._known) <= len(self.own) else max(self._known)

    @property
    def _known(self) -> list[int]:
        rates = (self.bytes_per_s, *(one.bytes_per_s for one in self.own))
        return [rate for rate in rates if rate is not None]

    def of(self, broker: int | None) -> int | None:
        """What this broker may send and receive; None for no limit."""
        return next((one.bytes_per_s for one in self.own if one.broker == broker), self.bytes_per_s)

    def is_own(self, broker: int | None) -> bool:
        """Whether this broker has a rate, or no limit, of its own."""
        return any(one.broker == broker for one in self.own)

    def changed(self, bytes_per_s: int | None, brokers: Iterable[int] = (), auto: Auto | None = None) -> Rates:
        """The same with another rate for these brokers; without any, with this one rate, or `auto`, for all."""
        others = tuple(BrokerRate(broker, bytes_per_s) for broker in sorted({*brokers}))
        if not others:
            return Rates(bytes_per_s, (), auto)
        names = {one.broker for one in others}
        kept = (one for one in self.own if one.broker not in names)
        return Rates(self.bytes_per_s, tuple(sorted((*kept, *others), key=lambda one: one.broker)), self.auto)


NO_THROTTLE = Rates()
