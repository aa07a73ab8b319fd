"""Names that want to take over a terminal, and what must never reach one: judged without the code that sees to it."""

from __future__ import annotations

import unicodedata

EVIL_NAMES = (
    "\x1b[2J\x1b]0;owned\x07", "\x9b31mred", "\u202eexe.txt", "\u2066a\u2069", "\u200f", "a\nb", "a\rb", "a\tb",
    "\x08\x7f", "\x00", "\x85next", "\u2028line", "\ud800", "[red]bold[/red]", "<script>", "é" * 50, "t\u0301", "|a|b|",
    "=1+1", "\ufeff",
)  # fmt: skip
_LINES = {"\n", "\t"}
_MARKS_OF_DIRECTION = {"\u061c", "\u200e", "\u200f", *map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))}
_ENDS_OF_LINES = {"\u2028", "\u2029"}


def unfit(text: str) -> str:
    """The first character that may make a terminal lie, and its surroundings; "" if there is none."""
    for at, one in enumerate(text):
        is_control = unicodedata.category(one) in {"Cc", "Cs"} and one not in _LINES
        if is_control or one in _MARKS_OF_DIRECTION or one in _ENDS_OF_LINES:
            return repr(text[max(0, at - 30) : at + 30])
    return ""
