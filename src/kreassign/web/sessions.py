"""Sessions of browsers that may read: random names, kept in memory, for half a day."""

from __future__ import annotations

import secrets
from hashlib import sha256

from kreassign.clock import Clock

LONGEST_S = 12 * 3_600
MOST = 100


class Sessions:
    """The sessions that are open. Only the hashes of their names are kept."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._opened: dict[bytes, float] = {}

    def begin(self) -> str:
        """Begin a session; its name. The oldest ones end where there are too many."""
        name = secrets.token_urlsafe(32)
        self._opened[_key(name)] = self._clock.monotonic_s()
        while len(self._opened) > MOST:
            del self._opened[next(iter(self._opened))]
        return name

    def is_open(self, name: str | None) -> bool:
        """Whether there is a session of this name. Looked up by its hash: how long that takes tells nothing of it."""
        opened_s = None if name is None else self._opened.get(_key(name))
        return opened_s is not None and self._clock.monotonic_s() - opened_s < LONGEST_S

    def close(self, name: str | None) -> None:
        """End a session, if there is one of this name."""
        if name is not None:
            self._opened.pop(_key(name), None)


def _key(name: str) -> bytes:
    return sha256(name.encode(errors="surrogatepass")).digest()
