"""All kinds of faults."""

from __future__ import annotations

import signal

from testbed.proxy import Deed
from tests.torture.broker_faults import (
    freeze_broker,
    freeze_controller,
    kill_broker,
    kill_controller,
    lose_broker,
    restart_broker,
    stop_quorum,
)
from tests.torture.fault import Fault
from tests.torture.network_faults import arm, behind_proxy, cut_answers, delay_answers, fall_silent, spring
from tests.torture.operator_faults import (
    add_partitions,
    cancel_another_by_kafkas_tool,
    cancel_move,
    clear_lists,
    clear_rates,
    move_another,
    override_move,
    raise_rates,
    recreate_topic,
    second_run,
    while_dead,
)
from tests.torture.process_faults import (
    close_output,
    damage_journal,
    fill_disk,
    freeze_run,
    signal_run,
    step_clock,
    with_small_disk,
    write_protect_disk,
)

PROCESS_FAULTS = (
    Fault("SIGKILL to the run", signal_run(signal.SIGKILL), harmless=True),
    Fault("SIGTERM to the run", signal_run(signal.SIGTERM), harmless=True),
    Fault("SIGHUP to the run", signal_run(signal.SIGHUP), harmless=True),
    Fault("the run stopped for seconds", freeze_run, harmless=True),
    Fault("reader of its output gone", close_output, harmless=True),
    Fault("clock set an hour ahead", step_clock(ahead=True), harmless=True),
    Fault("clock set an hour back", step_clock(ahead=False), harmless=True),
    Fault("journal damaged", damage_journal, harmless=True),
)
DISK_FAULTS = (
    Fault("disk of the journal full", fill_disk, with_small_disk, harmless=True),
    Fault("state directory read-only", write_protect_disk, with_small_disk, harmless=True),
)
BROKER_FAULTS = (
    Fault("destination killed", kill_broker(leading=False)),
    Fault("leader killed", kill_broker(leading=True)),
    Fault("broker stopped for 30 s", freeze_broker),
    Fault("broker restarted", restart_broker),
    Fault("broker lost for good", lose_broker(is_unregistered=False)),
    Fault("broker lost and unregistered", lose_broker(is_unregistered=True)),
    Fault("active controller killed", kill_controller),
    Fault("active controller stopped for 15 s", freeze_controller),
    Fault("two of three controllers down", stop_quorum),
)
NETWORK_FAULTS = (
    Fault("answers cut in the middle", cut_answers, behind_proxy, harmless=True),
    Fault(
        "answers to writes lost",
        spring(Deed.LOSE_ANSWER, "answers to writes lost"),
        arm(Deed.LOSE_ANSWER),
        harmless=True,
    ),
    Fault(
        "writes lost on their way",
        spring(Deed.LOSE_REQUEST, "writes lost on their way"),
        arm(Deed.LOSE_REQUEST),
        harmless=True,
    ),
    Fault("answers 10 s late", delay_answers, behind_proxy, harmless=True),
    Fault("network silent for 20 s", fall_silent, behind_proxy, harmless=True),
)
OPERATOR_FAULTS = (
    Fault("move cancelled by others", cancel_move, tells="else", moves=True),
    Fault("move overridden by others", override_move, tells="else", moves=True),
    Fault("all rates removed by others", clear_rates, tells="throttle"),
    Fault("another plan cancelled by Kafka's tool", cancel_another_by_kafkas_tool, tells="throttle"),
    Fault("a rate raised by others", raise_rates, tells="throttle"),
    Fault("throttled replicas removed by others", clear_lists, tells="throttle"),
    Fault("topic deleted and recreated", recreate_topic, tells="deleted", moves=True),
    Fault("partitions added by others", add_partitions, harmless=True),
    Fault("another partition moved by others", move_another, harmless=True),
    Fault("second run from elsewhere", second_run, harmless=True),
    Fault("move cancelled while the run was dead", while_dead(cancel_move), tells="else", moves=True),
    Fault("move overridden while the run was dead", while_dead(override_move), tells="else", moves=True),
    Fault("all rates removed while the run was dead", while_dead(clear_rates), tells="throttle"),
    Fault("a rate raised while the run was dead", while_dead(raise_rates), tells="throttle"),
    Fault("throttled replicas removed while the run was dead", while_dead(clear_lists), tells="throttle"),
    Fault("topic recreated while the run was dead", while_dead(recreate_topic), tells="deleted", moves=True),
)
FAULTS = (*PROCESS_FAULTS, *DISK_FAULTS, *BROKER_FAULTS, *NETWORK_FAULTS, *OPERATOR_FAULTS)
