"""Which names topics may have."""

from __future__ import annotations

import re

from kreassign.model.error_codes import INVALID_TOPIC_EXCEPTION
from kreassign.twin.controller.decision import DONE, Outcome

MAX_LENGTH = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]*")


def check_topic_name(name: str) -> Outcome:
    """Judge a name for a topic."""
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > MAX_LENGTH:
        reason = f"the length of '{name}' is longer than the max allowed length {MAX_LENGTH}"
    elif not _LEGAL.fullmatch(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return DONE
    return Outcome(INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def unified(name: str) -> str:
    """The name as metrics have it, for which a dot is an underscore: two topics must not differ in that alone."""
    return name.replace(".", "_")
