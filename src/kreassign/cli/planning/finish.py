"""The end of every planning task: make the plan, write it where it is wanted, and show it."""

from __future__ import annotations

from kreassign.cli.collector import uncollected
from kreassign.cli.options.plan import PlanOptions
from kreassign.cli.planning.placements import said
from kreassign.cli.planning.show import Shown, show
from kreassign.cli.working import working
from kreassign.model import TopicPartition
from kreassign.operations.leaders_first import leaders_alone
from kreassign.operations.new_partitions import savings_of_leaders
from kreassign.operations.plan import make_plan
from kreassign.operations.plan_files import write_plan
from kreassign.operations.plan_tasks import Rebalance, Task, WhatIf
from kreassign.planner.results.explain import explain


def finish(options: PlanOptions, task: Task, *, savings: bool = False) -> None:
    """Make the plan, write it where it is wanted, and show it; with what leaders alone would save.

    With `savings` a rebalance is searched without and with the plan, to tell what it saves.
    """
    with uncollected():
        inputs = options.inputs()
        with working("searching a plan") as watch:
            outcome = make_plan(inputs, task, options.request, watch)
        explained = [line for name in options.explain for line in explain(outcome, TopicPartition.parse(name))]
        if savings:
            explained.append(said(savings_of_leaders(outcome), "after this, if it changes no leader"))
        if isinstance(task, Rebalance) and (alone := leaders_alone(outcome)) is not None:
            explained.append(str(alone))
        if options.out:
            write_plan(options.out, outcome.plan, outcome.facts)
        if options.current_out:
            write_plan(options.current_out, outcome.current)
    show(
        outcome,
        options.out,
        explained,
        options.output_format,
        Shown(options.is_wide, options.max_load_age_s, not isinstance(task, WhatIf)),
    )
