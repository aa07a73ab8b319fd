"""When a move ends: the rule that is looked at with every change of a partition."""

from __future__ import annotations

from typing import NamedTuple, assert_never

from kreassign.twin.controller.rules import CompletionRule


class Lists(NamedTuple):
    """The lists that a move is made of; `replicas` are all of them, those being removed last."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


def completed(rule: CompletionRule, lists: Lists) -> Lists | None:
    """The lists after the move has ended; None if there is no move or it cannot end yet."""
    if not lists.adding and not lists.removing:
        return None
    isr = without(lists.isr, lists.removing)
    if lists.removing and not isr:
        return None
    target = without(lists.replicas, lists.removing)
    if not _is_satisfied(rule, lists, frozenset(isr), frozenset(target)):
        return None
    return Lists(target, isr, (), ())


def _is_satisfied(rule: CompletionRule, lists: Lists, isr: frozenset[int], target: frozenset[int]) -> bool:
    match rule:
        case CompletionRule.V1:
            return isr.issuperset(lists.adding)
        case CompletionRule.V2:
            return isr >= target
        case CompletionRule.V3:
            shrinks = len(lists.adding) < len(lists.removing)
            return isr.issuperset(lists.adding) and (not shrinks or isr >= target)
        case CompletionRule.BY_PHASES:
            return False
        case _:
            assert_never(rule)


def without(brokers: tuple[int, ...], unwanted: tuple[int, ...]) -> tuple[int, ...]:
    """The brokers that are not unwanted, in their order."""
    return tuple(broker for broker in brokers if broker not in unwanted)
