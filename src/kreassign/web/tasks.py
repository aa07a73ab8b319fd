"""Tasks that people can choose on the page: one table, of which the form and the plans are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kreassign.errors import InputError
from kreassign.executor.history.findings import Words
from kreassign.model.text import printable, shortened
from kreassign.operations import plan_tasks
from kreassign.planner.tasks import TopicChoice


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """A task to plan for the cluster as it is; `task` is one of those of `kreassign plan`.

    Brokers are needed by add-brokers, drain-brokers and demote, the replication factor by replication-factor; topics
    may be given for rebalance and replication-factor, all without. Loads are measured, or `from_tables` of the page.
    """

    task: str
    brokers: tuple[int, ...] = ()
    topics: tuple[str, ...] = ()
    replication_factor: int | None = None
    from_tables: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A task with its label, the fields that it `needs`, and those that it may take."""

    label: str
    make: Callable[[TaskRequest], plan_tasks.Task]
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()


CHOICES = {
    "rebalance": Choice(
        "Balance the brokers", lambda one: plan_tasks.Rebalance(TopicChoice(one.topics)), takes=("topics",)
    ),
    "repair": Choice(
        "Repair: replace lost replicas, add missing ones, spread over racks", lambda _: plan_tasks.Repair()
    ),
    "drain-brokers": Choice("Empty brokers", lambda one: plan_tasks.DrainBrokers(one.brokers), needs=("brokers",)),
    "add-brokers": Choice(
        "Fill brokers that joined", lambda one: plan_tasks.AddBrokers(one.brokers), needs=("brokers",)
    ),
    "leaders": Choice("Balance leaders; copy nothing", lambda _: plan_tasks.BalanceLeaders()),
    "demote": Choice(
        "Move leaders off brokers; copy nothing", lambda one: plan_tasks.DemoteBrokers(one.brokers), ("brokers",)
    ),
    "disks": Choice("Balance the disks of each broker", lambda _: plan_tasks.BalanceLogDirs()),
    "replication-factor": Choice(
        "Change the replication factor",
        lambda one: plan_tasks.ChangeReplicationFactor(one.replication_factor or 0, TopicChoice(one.topics)),
        needs=("replication_factor",),
        takes=("topics",),
    ),
}
FIELDS = ("brokers", "topics", "replication_factor")


def task_of(request: TaskRequest) -> plan_tasks.Task:
    """The task of a request. Raises InputError for an unknown one, and for fields that it lacks or does not take."""
    choice = CHOICES.get(request.task)
    if choice is None:
        raise InputError(f"{shortened(printable(request.task))!r} is no task; it is one of {', '.join(CHOICES)}")
    for name in FIELDS:
        is_given, words = bool(getattr(request, name)), name.replace("_", " ")
        if name in choice.needs and not is_given:
            raise InputError(f"{request.task} needs the field {words}")
        if is_given and name not in (*choice.needs, *choice.takes):
            raise InputError(f"{request.task} takes no {words}; leave the field empty")
    return choice.make(request)


def task_of_remedy(words: Words) -> TaskRequest | None:
    """The task that a command of a remedy plans; None if it is none that the page can plan."""
    match words:
        case ("kreassign", "plan", "--out", _):
            return TaskRequest("rebalance")
        case ("kreassign", "plan", "drain-brokers", brokers, "--out", _):
            return TaskRequest("drain-brokers", brokers=tuple(map(int, brokers.split(","))))
        case ("kreassign", "plan", "replication-factor", count, "--topic", topic, "--out", _):
            return TaskRequest("replication-factor", topics=(topic,), replication_factor=int(count))
        case ("kreassign", "plan", task, "--out", _) if task in CHOICES:
            return TaskRequest(task)
    return None
