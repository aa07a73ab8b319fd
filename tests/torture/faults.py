"""All kinds of faults."""

from __future__ import annotations

import signal

from testbed import Listener
from testbed.proxy import Deed
from tests.torture.broker_faults import Role, freeze, kill, lose_broker, restart, stop_quorum
from tests.torture.fault import Fault
from tests.torture.log_dir_faults import fill_log_dir, protect_log_dir
from tests.torture.network_faults import (
    arm,
    cut_answers,
    cut_links,
    delay_answers,
    fall_silent,
    lead_elsewhere,
    slow_links,
    spoil_replication,
    spring,
)
from tests.torture.operator_faults import (
    add_partitions,
    cancel_another,
    cancel_move,
    clear_lists,
    clear_rates,
    move_another,
    override_move,
    raise_rates,
    recreate_topic,
    second_run,
    verify_away,
    while_dead,
)
from tests.torture.process_faults import (
    close_output,
    damage_journal,
    fill_disk,
    freeze_run,
    kill_at_random,
    signal_run,
    step_clock,
    suspend_all_machines,
    suspend_machine,
    with_small_disk,
    write_protect_disk,
)
from tests.torture.rolling_faults import roll, slowly, upgrade
from tests.torture.security_faults import lock_out, outlive_logins, revoke_permissions

PROXIED, SASL = Listener.PROXIED, Listener.SASL_PLAINTEXT
PROCESS_FAULTS = (
    Fault("SIGKILL to the run while it moves", signal_run(signal.SIGKILL), harmless=True),
    Fault("SIGKILL to the run at random", kill_at_random, harmless=True, is_early=True),
    Fault("SIGTERM to the run", signal_run(signal.SIGTERM), harmless=True),
    Fault("SIGHUP to the run", signal_run(signal.SIGHUP), harmless=True),
    Fault("the run stopped for seconds", freeze_run, harmless=True),
    Fault("machine of the run suspended for 30 s", suspend_machine, listener=PROXIED, harmless=True),
    Fault("all machines suspended for 12 s", suspend_all_machines),
    Fault("reader of its output gone", close_output, harmless=True),
    Fault("clock set an hour ahead", step_clock(ahead=True), harmless=True),
    Fault("clock set an hour back", step_clock(ahead=False), harmless=True),
    Fault("journal damaged", damage_journal, harmless=True),
)
DISK_FAULTS = (
    Fault("disk of the journal full", fill_disk, with_small_disk, harmless=True),
    Fault("state directory read-only", write_protect_disk, with_small_disk, harmless=True),
)
FULL_LOG_DIR = Fault("log dir of a broker full", fill_log_dir)
LOG_DIR_FAULTS = (Fault("log dir of a broker read-only", protect_log_dir), FULL_LOG_DIR)
UPGRADE = Fault("rolling upgrade of all nodes", upgrade, slowly, once=True)
BROKER_FAULTS = (
    *(Fault(f"{role.value} killed", kill(role)) for role in Role),
    *(Fault(f"{role.value} stopped for 30 s", freeze(role)) for role in Role),
    *(Fault(f"{role.value} restarted", restart(role)) for role in Role),
    Fault("broker lost for good", lose_broker(is_unregistered=False)),
    Fault("broker lost and unregistered", lose_broker(is_unregistered=True)),
    Fault("two of three controllers down for seconds", stop_quorum(5, 25)),
    UPGRADE,
    Fault("two of three controllers down for three minutes", stop_quorum(180, 180), once=True),
    Fault("rolling restart of all nodes", roll, slowly),
)
NETWORK_FAULTS = (
    Fault("answers cut in the middle", cut_answers, listener=PROXIED, harmless=True),
    Fault(
        "1 to 4 writes cut off before they were carried out",
        spring(Deed.LOSE_REQUEST, "writes cut off before they were carried out"),
        arm(Deed.LOSE_REQUEST),
        listener=PROXIED,
        harmless=True,
    ),
    Fault(
        "1 to 4 writes cut off after they were carried out",
        spring(Deed.LOSE_ANSWER, "writes cut off after they were carried out"),
        arm(Deed.LOSE_ANSWER),
        listener=PROXIED,
        harmless=True,
    ),
    Fault("answers 10 s late", delay_answers, listener=PROXIED, harmless=True),
    Fault("network silent for 20 s", fall_silent, listener=PROXIED, harmless=True),
    Fault("links of the run cut", cut_links, listener=PROXIED, harmless=True),
    Fault("links of the run slowed", slow_links, listener=PROXIED, harmless=True),
    Fault("addresses that lead to another cluster", lead_elsewhere, listener=PROXIED, harmless=True),
    Fault("links to a leader cut", spoil_replication(Deed.SEVER, "cut", 15)),
    Fault("links to a leader slowed", spoil_replication(Deed.SLOW, "slowed", 20)),
)
SECURITY_FAULTS = (
    Fault("permissions revoked and given back", revoke_permissions, listener=SASL),
    Fault("logins that end while the run goes on", outlive_logins, listener=SASL, harmless=True),
    Fault("password changed and put back", lock_out, listener=SASL, harmless=True),
)
OPERATOR_FAULTS = (
    Fault("move cancelled by others", cancel_move, tells="else", moves=True),
    Fault("move overridden by others", override_move, tells="else", moves=True),
    Fault("all rates removed by others", clear_rates, tells="throttle"),
    Fault("another plan cancelled by Kafka's tool", cancel_another, tells="throttle"),
    Fault("a rate raised by others", raise_rates, tells="throttle"),
    Fault("throttled replicas removed by others", clear_lists, tells="throttle"),
    Fault("topic deleted and recreated", recreate_topic, tells="deleted", moves=True),
    Fault("partitions added by others", add_partitions, harmless=True),
    Fault("another partition moved by others", move_another, harmless=True),
    Fault("second run from elsewhere", second_run, harmless=True),
    Fault("move cancelled while the run was dead", while_dead(cancel_move), tells="else", moves=True),
    Fault("move overridden while the run was dead", while_dead(override_move), tells="else", moves=True),
    Fault("all rates removed while the run was dead", while_dead(clear_rates), tells="throttle"),
    Fault("rates verified away while the run was dead", while_dead(verify_away), tells="throttle"),
    Fault("a rate raised while the run was dead", while_dead(raise_rates), tells="throttle"),
    Fault("throttled replicas removed while the run was dead", while_dead(clear_lists), tells="throttle"),
    Fault("topic recreated while the run was dead", while_dead(recreate_topic), tells="deleted", moves=True),
)
ROOTS_FAULTS = (*DISK_FAULTS, *LOG_DIR_FAULTS)
"""Those for which something is mounted."""
FAULTS = (
    *PROCESS_FAULTS,
    *DISK_FAULTS,
    *BROKER_FAULTS,
    *LOG_DIR_FAULTS,
    *NETWORK_FAULTS,
    *SECURITY_FAULTS,
    *OPERATOR_FAULTS,
)
