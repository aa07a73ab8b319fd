"""Text from elsewhere, fit to be shown: brokers, files and arguments may hold what makes a terminal or a page lie.

An escape sequence rewrites lines that were printed before; a direction override shows a name backwards; half a
surrogate pair cannot be encoded at all. Each such character is shown by its number, as JSON spells it, so that JSON
stays JSON. Values that are compared, stored or sent back stay as they are: only what is shown goes through here.
"""

from __future__ import annotations

import re
from typing import TextIO

# C0 but for line end and tab, DEL, C1; marks and overrides of direction; ends of lines that are none on a terminal;
# half surrogate pairs.
_SHOWN = 40
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""The text with such characters as `\\u001b`; any other text as it is."""
    return _UNFIT.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def shortened(text: str) -> str:
    """The text, or how it begins where it is too long for a message."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class PrintableStream:
    """An output stream on which only printable text appears, whoever writes.

    It has no `buffer`, so that nobody gets around it. `inner` is the stream below, for those who draw on a terminal and
    see to their texts themselves.
    """

    def __init__(self, inner: TextIO) -> None:
        self.inner = inner
        self.encoding = inner.encoding
        self.errors = inner.errors

    def write(self, text: str) -> int:
        """Write the text, printable; the number of characters that were given."""
        self.inner.write(printable(text))
        return len(text)

    def flush(self) -> None:
        """Hand over what was written."""
        self.inner.flush()

    def isatty(self) -> bool:
        """Whether a person may be looking."""
        return self.inner.isatty()

    def fileno(self) -> int:
        """The descriptor of the stream below."""
        return self.inner.fileno()
