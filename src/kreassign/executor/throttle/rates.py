"""How fast the brokers of a run may send and receive for its moves: one rate for all, others for some. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kreassign.executor.throttle.adaptive import AdaptiveThrottle


@dataclass(frozen=True, slots=True, order=True)
class BrokerRate:
    """What one broker may send, and receive, in bytes per second; None for no limit."""

    broker: int
    bytes_per_s: int | None


@dataclass(frozen=True, slots=True)
class ThrottleRates:
    """The throttle of a run: a rate for every broker, or None for no limit, but for those with a rate of their own.

    With `adaptive` the others get what their traffic leaves over, and nobody knows beforehand what that is.
    """

    bytes_per_s: int | None = None
    per_broker: tuple[BrokerRate, ...] = ()
    adaptive: AdaptiveThrottle | None = None

    @property
    def is_limited(self) -> bool:
        """Whether any broker is throttled."""
        return self.adaptive is not None or bool(self._known)

    @property
    def slowest_bytes_per_s(self) -> int | None:
        """The lowest rate of any broker; None where nothing is limited, or nobody knows."""
        return None if self.adaptive is not None else min(self._known, default=None)

    @property
    def fastest_bytes_per_s(self) -> int | None:
        """The highest rate of any broker; None where one has no limit."""
        return None if self.bytes_per_s is None or len(self._known) <= len(self.per_broker) else max(self._known)

    @property
    def _known(self) -> list[int]:
        rates = (self.bytes_per_s, *(one.bytes_per_s for one in self.per_broker))
        return [rate for rate in rates if rate is not None]

    def of(self, broker: int | None) -> int | None:
        """What this broker may send and receive; None for no limit."""
        return next((one.bytes_per_s for one in self.per_broker if one.broker == broker), self.bytes_per_s)

    def has_own_rate(self, broker: int | None) -> bool:
        """Whether this broker has a rate, or no limit, of its own."""
        return any(one.broker == broker for one in self.per_broker)

    def changed(
        self, bytes_per_s: int | None, brokers: Iterable[int] = (), adaptive: AdaptiveThrottle | None = None
    ) -> ThrottleRates:
        """The same with another rate for these brokers; without any, with this one rate, or `adaptive`, for all."""
        others = tuple(BrokerRate(broker, bytes_per_s) for broker in sorted({*brokers}))
        if not others:
            return ThrottleRates(bytes_per_s, (), adaptive)
        names = {one.broker for one in others}
        kept = (one for one in self.per_broker if one.broker not in names)
        return ThrottleRates(
            self.bytes_per_s, tuple(sorted((*kept, *others), key=lambda one: one.broker)), self.adaptive
        )


NO_THROTTLE = ThrottleRates()
