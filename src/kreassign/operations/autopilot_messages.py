"""Messages of an autopilot to the receivers of its policy, from threads of their own: they delay and fail nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from kreassign.autopilot.messages import Message
from kreassign.autopilot.policy import Kind, Messages
from kreassign.clock import Clock
from kreassign.errors import InputError
from kreassign.monitoring.notices import DIGEST, RECEIVERS, Notice, printable_notice, receiver_of
from kreassign.monitoring.webhooks import AGAIN_S, LAST_S, RETRIES_S, Sender, Webhook
from kreassign.operations.text_files import naming, read_text

SEVERITIES: Mapping[Kind, str] = MappingProxyType({
    Kind.MANY_GONE: "critical",
    **dict.fromkeys((Kind.UNREAD, Kind.BROKER_GONE, Kind.DISK_FILLS, Kind.DIRECTORY_FAILED), "error"),
})  # fmt: skip
"""Severities by kind, in the words of PagerDuty; others are warnings."""

Tell = Callable[[Message], None]


def notice_of(message: Message, cluster_id: str, at_ms: int) -> Notice:
    """A message of the core as receivers get it."""
    name = message.name
    kind = DIGEST if name is None else name.kind.value
    severity = "info" if name is None else SEVERITIES.get(name.kind, "warning")
    key = DIGEST if name is None else str(name)
    texts = message.what, message.why, message.commands, message.is_over
    return printable_notice(Notice(cluster_id, key, kind, severity, at_ms, *texts))


def receivers(policy: Messages) -> dict[str, Webhook]:
    """Read the files of the receivers that a policy names. Raises InputError, which names the file."""
    found = {}
    for name, file in policy.files.items():
        try:
            with naming(Path(file)):
                found[name] = receiver_of(name, read_text(Path(file)))
        except OSError as error:
            raise InputError(f"{file}, which [messages] names for {name}: {error.strerror}") from error
    return found


@contextmanager
def messaging(
    policy: Messages,
    cluster_id: str,
    clock: Clock,
    warn: Callable[[str], None],
    *,
    last_s: float = LAST_S,
    retries_s: tuple[float, ...] = RETRIES_S,
    again_s: float = AGAIN_S,
) -> Iterator[Tell]:
    """Yield a function that queues messages for all receivers during the block; it returns at once.

    A message that does not arrive (no answer, refused, queue full) is warned of, by the receiver's name and host alone;
    the latest one of each finding is sent again each `again_s` seconds, until it arrives or its receiver refuses it.
    At the end it waits for at most `last_s` seconds for each receiver. Raises InputError.
    """
    senders = {
        name: (to, Sender(to, clock, retries_s, on_loss=_loss(name, warn), again_s=again_s))
        for name, to in receivers(policy).items()
    }

    def tell(message: Message) -> None:
        notice = notice_of(message, cluster_id, clock.now_ms())
        for name, (to, sender) in senders.items():
            for document in RECEIVERS[name].documents(notice, to):
                sender.send(document, notice.key)

    for _, sender in senders.values():
        sender.start()
    try:
        yield tell
    finally:
        for _, sender in senders.values():
            sender.close(last_s)


def _loss(name: str, warn: Callable[[str], None]) -> Callable[[str], None]:
    return lambda why: warn(f"a message to {name} was not delivered ({why})")
