"""Text: printable, counted, parsed as whole numbers or amounts of bytes, hashed as Java does, or of a file of ours."""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Iterable
from decimal import Decimal
from difflib import get_close_matches
from io import TextIOWrapper
from pkgutil import get_data
from typing import TextIO, TypeVar

from kreassign.errors import InputError

Named = TypeVar("Named")

# Make external text safe to show: brokers, files and arguments may hold characters that deceive a terminal or page.
#
# An escape sequence rewrites earlier lines; a direction override shows a name backwards; half a
# surrogate pair cannot be encoded at all. Each such character is shown by its number, as JSON spells it, so that JSON
# stays JSON. Values that are compared, stored or sent stay as they are: only displayed text passes here.

# C0 except line end and tab, DEL, C1; marks and overrides of direction; line ends that a terminal does not break at;
# half surrogate pairs.
_SHOWN = 40
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""The text with such characters as `\\u001b`; any other text as it is."""
    return _UNFIT.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def packaged_text(module: str, name: str) -> str:
    """Return a file of kreassign from the folder of a module (its `__name__`), in an archive too.

    `spark-submit --py-files` imports from a zip, where no path leads to a file. importlib.resources would do; it
    imports twenty modules, and the command line starts faster without them.
    """
    content = get_data(module.rpartition(".")[0], name)
    assert content is not None
    return content.decode()


_IN_ASCII = "kreassign.in-ascii"
_OF_ASCII = {
    "…": "...", "→": "->", "↔": "<->", "×": "x", "±": "+-", "–": "-", "·": "-", "─": "-", "│": "|", "├": "+", "└": "+",
    "┴": "+", "┘": "+", "█": "#", "▒": "+", "░": "-", "²": "2", "³": "3",
}  # fmt: skip
"""Signs of our own texts, for outputs whose encoding lacks them, such as that of a terminal in ISO 8859."""


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Replace what cannot be encoded: our signs by those of ASCII, any other character by its number."""
    assert isinstance(error, UnicodeEncodeError)
    unfit = error.object[error.start : error.end]
    return "".join(_OF_ASCII.get(one) or _numbered(one) for one in unfit), error.end


def _numbered(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True))


codecs.register_error(_IN_ASCII, _in_ascii)


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 finding", "2 findings"."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


_SINGULAR = {
    "are": "is", "have": "has", "were": "was", "finish": "finishes", "go": "goes", "carry": "carries",
}  # fmt: skip


def agreeing(count: int, words: str) -> str:
    """The words, which begin with a verb in the plural, as they go with the count: "is", "are"."""
    verb, space, rest = words.partition(" ")
    return f"{_SINGULAR.get(verb, f'{verb}s') if count == 1 else verb}{space}{rest}"


def some_of(items: Iterable[object], most: int, *, count: int = 0, by: str = ",") -> str:
    """The first `most` items, and how many more there are; `count` is the number of all if not all are given."""
    names = [*map(str, items)]
    left = max(len(names), count) - len(names[:most])
    more = f"{'' if by == ',' else by} and {left} more" if left else ""
    return f"{by} ".join(names[:most]) + more


def each_partition(names: Collection[object], most: int, text: str) -> str:
    """One sentence about all partitions of which the same is to say: how many, and the first `most` by name."""
    return f"{partitions_by_name(names, most)}{' each' if len(names) != 1 else ''} {text}"


def by_reason(reasons: Iterable[tuple[Named, str]]) -> dict[str, list[Named]]:
    """Names by what is to say of each, so that it is said once of all of them; in the order in which they come."""
    found: dict[str, list[Named]] = {}
    for name, reason in reasons:
        found.setdefault(reason, []).append(name)
    return found


def partitions_by_name(names: Collection[object], most: int) -> str:
    """The name of one partition; of several how many they are, and the first `most` by name."""
    if len(names) == 1:
        return str(next(iter(names)))
    return f"{counted(len(names), 'partition')} ({some_of(names, most)})"


_ESCAPED = re.compile(r"\\.", re.DOTALL)
_SET_WITHIN_SET = re.compile(r"\[\^?\]?[^\]]*?(?:\[|&&|\|\||--|~~)")
"""A set up to what Java or Python may read as another one in it; a bracket right after the first is a character."""


class SetWithinSetError(InputError):
    """A regular expression has a set of characters that Java and Python read differently."""


def name_pattern(text: str) -> re.Pattern[str]:
    """Compile a regular expression for names. Raises InputError if it is none, or has a set within a set.

    Such a set matches other names in Java than here, and a topic that was not meant would be deleted or moved.
    """
    if _SET_WITHIN_SET.search(_ESCAPED.sub("x", text)):
        raise SetWithinSetError(
            f"{shortened(text)!r} has a set of characters within a set, or &&, ||, -- or ~~ in one: tools read that "
            "differently; write it without"
        )
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        glob = f"; for any beginning write {shortened(f'.{text}')!r}" if text.startswith("*") else ""
        raise InputError(f"{shortened(text)!r} is not a regular expression: {why}{glob}") from error


def shortened(text: str) -> str:
    """The text, or its beginning if it is too long for a message."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def likely(word: str, known: Iterable[str]) -> list[str]:
    """Three names that were probably meant: that begin as the word does or the other way round, else similar ones.

    A name is similar also by the part before its first dash.
    """
    names = sorted(known)
    if found := [one for one in names if one.startswith(word) or word.startswith(one)]:
        return found[:3]
    if similar := get_close_matches(word, names, cutoff=0.75):
        return similar
    heads = get_close_matches(word, {name.partition("-")[0] for name in names}, cutoff=0.75)
    return [name for name in names if name.partition("-")[0] in heads][:3]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question about the names that were probably meant; "" if there are none."""
    found = likely(word, known)
    return f"did you mean {' or '.join(found)}?" if found else ""


class PrintableStream:
    """An output stream that makes all text printable, whoever writes, also where its encoding lacks characters.

    It has no `buffer`, so that nothing bypasses it. `inner` is the wrapped stream, for writers that draw on a terminal
    and make their text printable themselves.
    """

    def __init__(self, inner: TextIO) -> None:
        # Python sets the latter in the locale C; either ends a run at the first sign that cannot be encoded.
        if isinstance(inner, TextIOWrapper) and inner.errors in {"strict", "surrogateescape"}:
            inner.reconfigure(errors=_IN_ASCII)
        self.inner = inner
        self.encoding = inner.encoding
        self.errors = inner.errors

    def write(self, text: str | bytes) -> int:
        """Write the text, made printable; return the number of characters given. Click writes bytes."""
        self.inner.write(printable(text.decode(errors="replace") if isinstance(text, bytes) else text))
        return len(text)

    def flush(self) -> None:
        """Flush the wrapped stream."""
        self.inner.flush()

    def isatty(self) -> bool:
        """True on a terminal."""
        return self.inner.isatty()

    def fileno(self) -> int:
        """The file descriptor of the wrapped stream."""
        return self.inner.fileno()


# Parse whole numbers in external text: plain digits, and no more than Kafka's numbers have.
#
# `int` is unfit for such texts. It takes digits of every script, blanks and underscores; `str.isdigit` accepts `²`,
# which `int` refuses; and for more than 4,300 digits `int` raises another error. Pure.

LARGEST_ID = 2**31 - 1
"""Kafka's ids and counts are signed numbers of 32 bits."""

LARGEST_PORT = 2**16 - 1

_PORT = re.compile(r":(-?\d+)(?=[/?#]|$)", re.ASCII)


def port_mistake(address: str) -> str:
    """Say that the port of an address is out of range; "" if it is not, or there is none."""
    port = _PORT.search(address)
    is_port = port is None or 1 <= int(port[1][:_MOST_DIGITS]) <= LARGEST_PORT
    return "" if is_port else f": its port must be from 1 to {LARGEST_PORT}"


MOST_REPLICAS = 2**15 - 1
"""A replication factor is a signed number of 16 bits."""


def check_ids(item: object, ids: Iterable[int]) -> None:
    """Raise InputError, which names the item, for an id that a field of 32 bits cannot hold.

    Whether smaller ids exist is the cluster's question.
    """
    for number in ids:
        if not -LARGEST_ID - 1 <= number <= LARGEST_ID:
            raise InputError(f"{item}: the id {number} is too large; Kafka's ids are at most {LARGEST_ID}")


MOST_TEXT_BYTES = 2**15 - 1
"""The longest text in a request, the value of a setting too: at a longer one a broker closes the connection."""


def check_texts(item: object, texts: Iterable[str]) -> None:
    """Raise InputError, which names the item, for a text that no request can carry."""
    for text in texts:
        try:
            length = len(text.encode())
        except UnicodeEncodeError:
            raise InputError(f"{shortened(str(item))}: {shortened(text)!r} is not text in UTF-8") from None
        if length > MOST_TEXT_BYTES:
            raise InputError(
                f"{shortened(str(item))}: {shortened(text)!r} has {length:,} bytes; Kafka takes at most "
                f"{MOST_TEXT_BYTES:,} in a text"
            )


HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
LONGEST_WAIT_S = 366 * 86_400
"""A year: no interval or measurement is longer, and much longer waits exceed the system's clock."""


def check_wait(name: str, seconds: float) -> None:
    """Raise InputError, which names the value, unless it is a number of seconds from 0 to a year."""
    if not 0 <= seconds <= LONGEST_WAIT_S:
        raise InputError(f"{name} is {seconds}, and it must be between 0 and {LONGEST_WAIT_S} seconds (a year)")


_SPELT = re.compile(r"([+-]?)0*(\d+)", re.ASCII)
_MOST_DIGITS = 19
"""Numbers of 64 bits have no more digits."""


def parse_whole(text: str, *, least: int = 0, most: int = LARGEST_ID) -> int:
    """Parse a whole number. Raises ValueError, which names the text, for other text or a number out of bounds."""
    found = signed_number(text) if text[:1] != "+" else None
    if found is None or not least <= found <= most:
        raise ValueError(f"{shortened(text)!r} is not a whole number from {least} to {most}")
    return found


def signed_number(text: str) -> int | None:
    """Parse a number of digits with an optional sign; None for other text, or a number far beyond 64 bits."""
    match = _SPELT.fullmatch(text)
    return None if match is None or len(match[2]) > _MOST_DIGITS else int(match[1] + match[2])


# Amounts of bytes, and of bytes per second, as people write them.

# Decimal units, as for Kafka's throttles; binary units are accepted too.
_FACTORS: dict[str, int] = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgtpe", start=1)},
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgtpe", start=1)},
}
LAST_MS = 253_402_300_799_999
"""The end of the year 9999: no later time can be shown."""
LARGEST_AMOUNT = 2**63 - 1
"""The most that Kafka can hold: its sizes, offsets and rates are signed numbers of 64 bits."""

_BITS = re.compile(r"[KMGTPE]i?b|(?i:[KMGTPE]i?b(?:its?|ps))")
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*?)\s*(/s|(?-i:(?<=B)ps))?\s*", re.IGNORECASE)


# Decimal units, as `format_amount` writes them.
_UNITS = ("", "k", "M", "G", "T", "P", "E")


def format_amount(amount: float, unit: str) -> str:
    """Format an amount with three digits: `1.23 GB`, `45.6 MB/s`, `789 B`; six in other units; percent of the mean."""
    if unit == OF_MEAN:
        return f"{amount:.0%} {unit}"
    if unit not in {"B", "B/s"}:
        return f"{amount:.6g} {unit}".rstrip()
    for prefix in _UNITS[:-1]:
        if abs(amount) < 999.5:
            return f"{amount:.0f} {unit}" if not prefix else f"{amount:.3g} {prefix}{unit}"
        amount /= 1000
    return f"{amount:.3g} {_UNITS[-1]}{unit}"


def least_rate_option(bytes_per_s: int) -> str:
    """The rate as an option value of three digits, rounded up, so that it suffices: 40,584,125 is `40.6MB/s`."""
    step: int = 10 ** max(0, len(str(bytes_per_s)) - 3)
    rounded = -(-bytes_per_s // step) * step
    power = (len(str(rounded)) - 1) // 3
    return f"{rounded / 1000**power:g}{_UNITS[power]}B/s"


ESTIMATED = "estimated"
"""The unit of loads known only in proportion, which mean something only relative to the mean."""
OF_MEAN = "of the mean"
"""The unit of a load divided by the mean."""


def told_load(amount: float, unit: str, mean: float) -> tuple[float, str]:
    """A load and its unit for display: an estimate becomes a fraction of the mean, if that is known."""
    return (amount / mean, OF_MEAN) if unit == ESTIMATED and mean else (amount, unit)


def format_load(amount: float, unit: str, mean: float = 0.0) -> str:
    """Format a load: `1.23 GB`, `45.6 MB/s`, `0.7 of a CPU`, and for estimates `108% of the mean`."""
    return format_amount(*told_load(amount, unit, mean))


def parse_amount(text: str) -> int:
    """Parse bytes, or bytes per second: `20MB/s`, `512KiB`, `1.5 GB` or a plain count. Raises InputError."""
    match = _AMOUNT.fullmatch(text)
    factor = _FACTORS.get(match[2].lower()) if match else None
    if match is not None and _BITS.fullmatch(match[2]):
        of_time = "/s" if match[3] or match[2].lower().endswith("ps") else ""
        meant = f"{match[1]}{match[2].lower().partition('b')[0].capitalize()}B{of_time}"
        raise InputError(f"{shortened(text)!r} would be bits: write {meant} if bytes are meant, else an eighth of it")
    if match is None or factor is None:
        raise InputError(f"{shortened(text)!r} is not an amount; write for example 20MB/s, 512KiB or 1000000")
    amount = Decimal(match[1]) * factor  # a float would turn 8.2 MB into 8199999, and refuse the largest amount
    if amount > LARGEST_AMOUNT:
        raise InputError(f"{shortened(text)!r} is too large; the largest amount is {LARGEST_AMOUNT} (2^63 - 1)")
    return int(amount)


_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "": 1.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)\s*", re.ASCII)


def parse_seconds(text: str) -> float:
    """Parse a duration: `5s`, `500ms`, `1.5m`, `2h`, `7d` or a plain number of seconds. Raises InputError."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise InputError(f"{shortened(text)!r} is not a duration; write for example 5s, 500ms or 1m")
    seconds = float(match[1]) * _UNIT_SECONDS[match[2]]
    if seconds > LONGEST_WAIT_S:
        raise InputError(f"{shortened(text)!r} is too long; the longest duration is {LONGEST_WAIT_S / 3600:.0f}h")
    return seconds


def format_seconds(seconds: float) -> str:
    """Format a duration by its largest unit that divides it: `45s`, `30m`, `72h`; days from four on."""
    whole = round(seconds)
    for unit, size, least in (("d", 86_400, 4), ("h", 3600, 1), ("m", 60, 1)):
        if whole >= least * size and whole % size == 0:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def rough_span(seconds: float) -> str:
    """Format a span in the largest unit that fits: `7 s`, `12 min`, `5 h`, `3 days`."""
    sizes = ((86_400, "day", "days"), (3600, "h", "h"), (60, "min", "min"))
    for size, one, many in sizes:
        if (count := int(seconds // size)) >= 1:
            return f"{count} {one if count == 1 else many}"
    return f"{round(seconds)} s"


# Java's hash of a text, by which Kafka spreads groups over partitions and copies over threads.
#
# Kafka's rules use `String.hashCode` (computed by the Java Language Specification over UTF-16 units, in
# signed 32 bits) and `Utils.abs`, which unlike `Math.abs` has a result for the least integer.

_UTF_16 = "utf-16-be"
_FACTOR = 31
_WORD = 1 << 32
_SIGN = 1 << 31


def string_hash(text: str) -> int:
    """`String.hashCode`, from -2**31 to 2**31 - 1."""
    data = text.encode(_UTF_16, "surrogatepass")
    value = 0
    for high, low in zip(data[::2], data[1::2], strict=True):
        value = (_FACTOR * value + (high << 8 | low)) % _WORD
    return _signed(value)


def combined_hash(text: str, number: int) -> int:
    """`31 * text.hashCode() + number` as Java computes it, with overflow."""
    return _signed(_FACTOR * string_hash(text) + number)


def share_of(hash_code: int, count: int) -> int:
    """The bucket of a hash among `count`: Kafka's `Utils.abs(hash) % count`, where the least integer counts as 0."""
    return (0 if hash_code == -_SIGN else abs(hash_code)) % count


def hash_map_bucket(text: str, count: int) -> int:
    """The bucket of a text in a `HashMap` of so many texts, which iterates over them in the order of buckets."""
    size = 16
    while count > size * 3 // 4:
        size *= 2
    value = string_hash(text) % _WORD
    return (value ^ value >> 16) % size


def _signed(value: int) -> int:
    return (value % _WORD ^ _SIGN) - _SIGN
