"""Some sequences, and whether each of their checkers can fail; more on demand: `make torture-twin RUNS=0`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from click.testing import CliRunner

from kreassign.executor.throttle_ledger import ConfigKey, FoundThrottles
from kreassign.model import ConfigOperation, ConfigResource, TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan
from kreassign.model.throttle import (
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    ThrottleRates,
)
from kreassign.twin import (
    Blueprint,
    BrokerHardware,
    BrokerPlan,
    LogDirHardware,
    PartitionPlan,
    TopicPlan,
    Traffic,
    Twin,
)
from kreassign.twin.faults import inject, read_fault
from tests.campaigns.owners import HAND, Owners
from tests.simulation import sequence
from tests.simulation.__main__ import campaign, main
from tests.simulation.sequence import Call, Command, Deed, Lost, Meanwhile, Quiet, Sequence, draw_sequence, try_sequence
from tests.simulation.watch import MIN_ISR, Configure, OtherTool, Produce, Watch
from tests.twin.memory_log import MemoryLog

QUICK_SEEDS = (1, 3)
RATE, LIST = (
    ConfigKey(ConfigResource.broker(1), LEADER_THROTTLED_RATE),
    ConfigKey(ConfigResource.topic("t"), FOLLOWER_THROTTLED_REPLICAS),
)
HOST, OTHER = "host-1", "host-2"


def test_a_few_sequences_keep_what_is_promised() -> None:
    tally = campaign("sequences", QUICK_SEEDS)
    assert tally.broken == []
    assert tally.ends == {"kept": len(QUICK_SEEDS)}


@pytest.mark.thorough
def test_sequences_keep_what_is_promised() -> None:
    tally = campaign("sequences", range(4, 20))
    assert tally.broken == []
    assert {"run", "resume", "rollback", "maintenance enter"} <= tally.counts["calls"].keys()
    assert {"done", "died", "refused"} <= tally.counts["ends"].keys()


def test_a_seed_is_the_same_sequence_with_the_same_end_each_time() -> None:
    assert draw_sequence(3) == draw_sequence(3)
    assert try_sequence(draw_sequence(3)).ends == try_sequence(draw_sequence(3)).ends


def test_a_sequence_that_goes_wrong_is_printed_with_its_least_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence.Played, "_clear_up", lambda self: self.failures.append("it is never over"))
    result = CliRunner().invoke(main, ["sequences", "1"])
    assert result.exit_code == 1, result.output
    seed, step, so, *_, sentence, again = result.stderr.strip().splitlines()
    assert (seed.partition(",")[0], so, sentence) == ("seed 1", "so that:", "it is never over")
    assert step, "one step is left"
    assert again == "reproduce with: make torture-twin RUNS=0 SEQUENCES=1"


# --- whose a setting is --------------------------------------------------------------------------------------------


def test_a_run_that_changes_what_an_operator_set_is_found() -> None:
    owners = Owners()
    owners.take_in(RATE, "7", HAND)
    owners.take_in(RATE, None, HOST)
    owners.take_in(LIST, "0:1,9:9", HAND)
    owners.take_in(LIST, "0:1", HOST)
    assert [*owners.broken] == [
        f"{RATE} was '7' by hand, and a run of {HOST} made it None",
        f"{LIST} was '9:9' by hand, and a run of {HOST} made it '0:1'",
    ]


def test_entries_that_others_add_to_a_list_of_a_run_stay_theirs() -> None:
    owners = Owners()
    owners.take_in(LIST, "0:1", HOST)
    owners.take_in(LIST, "0:1,9:9", HAND)
    owners.take_in(LIST, "9:9", HOST)
    assert (owners.broken, owners.of(HAND), owners.of(HOST)) == ([], {LIST: {"9:9"}}, {})


def test_what_a_run_leaves_in_force_has_to_be_told() -> None:
    owners = Owners()
    owners.agree(HOST, takes=False)
    owners.take_in(RATE, "5", HOST)
    assert [*owners.left(HOST, "")] == [f"left in force and not told: {RATE} is 5"]
    assert [*owners.left(HOST, f"{RATE} is still 5")] == []
    owners.lose(HOST)
    assert [*owners.left(HOST, "")] == []
    assert owners.of() == {RATE: {"5"}}


def test_a_run_has_to_put_back_what_it_took() -> None:
    owners = Owners()
    owners.take_in(RATE, "7", HAND)
    owners.agree(HOST, is_kept=True)
    owners.take_in(RATE, "5", HOST)
    assert "to be kept, and not put back" in " ".join(owners.left(HOST, str(LIST)))
    owners.take_in(RATE, "7", HOST)
    assert ([*owners.left(HOST, "")], owners.of(HAND)) == ([], {RATE: {"7"}})
    owners.take_in(RATE, "8", HAND)
    owners.take_in(RATE, "7", HOST)
    assert owners.broken == [f"{RATE} was '8' by hand, and a run of {HOST} made it '7'"]


def test_no_setting_of_a_deleted_topic_has_to_be_put_back() -> None:
    """Nor one that a run of the host itself had set."""
    owners = Owners()
    owners.take_in(LIST, "9:9", HAND)
    owners.take_in(RATE, "5", HOST)
    owners.agree(HOST, is_kept=True)
    owners.take_in(RATE, None, HOST)
    owners.forget(LIST.resource.name)
    assert [*owners.left(HOST, "")] == []


def test_a_rate_that_a_requested_throttle_displaces_is_named_or_put_back() -> None:
    owners = Owners()
    owners.take_in(RATE, "7", HAND)
    owners.agree_to_rates(HOST)
    owners.take_in(RATE, "5", HOST)
    owners.take_in(RATE, None, HOST)
    assert [*owners.left(HOST, "")] == [f"overwritten as requested, and not told: {RATE} was 7"]
    assert [*owners.left(HOST, f"{RATE} was 7")] == []
    owners.take_in(RATE, "7", HOST)
    assert ([*owners.left(HOST, "")], owners.of(HAND), owners.broken) == ([], {RATE: {"7"}}, [])


def test_a_requested_throttle_ends_no_duty_to_put_back_a_rate() -> None:
    owners = Owners()
    owners.take_in(RATE, "7", HAND)
    owners.agree(HOST, is_kept=True)
    owners.take_in(RATE, "5", HOST)
    owners.agree_to_rates(HOST)
    assert "to be kept, and not put back" in " ".join(owners.left(HOST, str(LIST)))


# --- what is watched on a twin -------------------------------------------------------------------------------------

MB = 1_000_000
TP = TopicPartition("t", 0)


@pytest.fixture
def watch() -> Watch:
    """Three brokers whose directories hold a gigabyte, and a partition of 900 MB on two of them."""
    log_dirs = (LogDirHardware("/d", 1_000 * MB),)
    brokers = tuple(BrokerPlan(number, BrokerHardware(log_dirs)) for number in range(3))
    topic = TopicPlan("t", (PartitionPlan((0, 1), Traffic(980 * MB)),), {"min.insync.replicas": "2"})
    others = (
        TopicPlan("small", (PartitionPlan((0,), Traffic(300 * MB)),)),
        TopicPlan("middle", (PartitionPlan((0,), Traffic(900 * MB)),)),
    )
    twin = Twin(Blueprint(brokers, (topic, *others)), log=MemoryLog())
    watch = Watch(twin)
    watch.begin(HOST, is_allowed=False)
    return watch


def test_a_copy_without_room_beside_the_reserve_is_found(watch: Watch) -> None:
    inject(watch.twin, "move:t:0:0,2")
    watch.twin.advance(1)
    assert "t-0 was sent to /d of broker 2, which will have" in " ".join(watch.broken)


def test_a_lost_min_isr_is_found(watch: Watch) -> None:
    inject(watch.twin, "move:t:0:0")
    assert "min.insync.replicas 2 is lost without consent" in " ".join(watch.broken)


def test_a_run_that_takes_over_the_move_of_an_operator_is_found(watch: Watch) -> None:
    with watch.by_hand():
        inject(watch.twin, "move:t:0:0,2")
    assert [*watch.not_refused(HOST, Plan(()))] == [f"began, though others move {[TP]}"]
    inject(watch.twin, "move:t:0:1,2")
    assert "changed a move of an operator: t-0" in " ".join(watch.broken)


def test_space_that_an_operators_copy_just_took_is_no_fault_of_a_run(watch: Watch) -> None:
    watch.twin.replication.set_write_rate(TP, 0)
    with watch.by_hand():
        inject(watch.twin, "move:small:0:0,2")
    watch.twin.advance(5_000)
    inject(watch.twin, "move:middle:0:0,2")
    watch.twin.advance(1)
    assert watch.broken == ()


def test_moves_of_other_hosts_and_of_operators_are_moves_by_others(watch: Watch) -> None:
    inject(watch.twin, "move:t:0:2,1")
    assert (watch.moved_by_others([TP], HOST, 0), watch.moved_by_others([TP], OTHER, 0)) == (set(), {TP})
    with watch.by_hand():
        inject(watch.twin, "move:t:0:0,1")
    assert (watch.moved_by_others([TP], HOST, 0), watch.moved_by_others([TP], HOST, 1)) == ({TP}, set())


@pytest.mark.parametrize("trouble_until_ms", [-1, 90_000])
def test_a_requested_throttle_replaces_rates_of_meanwhile_in_trouble_only(watch: Watch, trouble_until_ms: int) -> None:
    watch.ask_for_throttle(HOST)
    watch.trouble_until_ms = trouble_until_ms
    with watch.by_hand():
        Configure(*RATE, "7").inject(watch.twin)
    watch.twin.advance(60_000)
    Configure(*RATE, "5").inject(watch.twin)
    Configure(*RATE, None, ConfigOperation.DELETE).inject(watch.twin)
    told = [*watch.owners.left(HOST, "")]
    if trouble_until_ms > 0:
        assert (watch.broken, told) == ((), [f"overwritten as requested, and not told: {RATE} was 7"])
    else:
        assert "was '7' by hand" in " ".join(watch.broken)


def test_a_setting_that_is_no_throttle_is_changed_by_no_run(watch: Watch) -> None:
    Configure(ConfigResource.topic("t"), "retention.ms", "5").inject(watch.twin)
    assert watch.broken == (f"{HOST} set retention.ms of topic t to 5",)


def test_a_host_that_is_lost_leaves_what_the_next_run_names() -> None:
    """By hand in the middle of a run; then its host is lost, and another one has to go on."""
    twin = sequence.sequence_twin(1, MemoryLog())
    state = next(state for state in sequence.partitions_of(twin) if len(state.replicas) > 1)
    target = (*state.replicas[1:], next(one for one in twin.processes.ids if one not in state.replicas))
    run = Call(Command.RUN, HOST, Plan((PartitionAssignment(state.topic_partition, target),)), rates=ThrottleRates(MB))
    steps = (
        Meanwhile(6_000, Configure(*RATE, "7000001")), Meanwhile(9_000, Deed.DIE), run, Lost(HOST),
        Call(Command.RUN, OTHER, run.plan, FoundThrottles.REFUSE, run.rates),
    )  # fmt: skip
    played = try_sequence(Sequence(1, steps, has_lease=False, gives_way=False))
    assert played.broken == ()
    assert played.ends["refused"] >= 1


@pytest.mark.parametrize("command", [Command.CANCEL, Command.ROLLBACK])
def test_a_cancelled_run_leaves_a_move_that_was_sent_elsewhere(command: Command) -> None:
    """An operator overrides a move of a run that dies then; who ends the run must not end that move."""
    of_run = next(
        step for step in draw_sequence(23).steps if isinstance(step, Call) and len(step.plan.assignments) == 7
    )
    call = replace(of_run, host=HOST, command=Command.RUN, consents=True, found=FoundThrottles.REFUSE)
    steps = (
        Meanwhile(5_846, OtherTool("move:topic-0:2:1,2,3")), Meanwhile(9_000, Deed.DIE), call,
        Call(command, HOST),
    )  # fmt: skip
    assert try_sequence(Sequence(23, steps, has_lease=False, gives_way=True)).broken == ()


def test_the_last_run_moves_a_topic_whose_producers_need_consent() -> None:
    """The run moves the first partition, which has one replica left, of a topic that asks for two in sync."""
    state = sequence.partitions_of(sequence.sequence_twin(1556, MemoryLog()))[0]
    topic, number = state.topic_partition
    steps = (
        Meanwhile(0, OtherTool(f"move:{topic}:{number}:{state.replicas[0]}")),
        Meanwhile(0, Configure(ConfigResource.topic(topic), MIN_ISR, "2")),
        Quiet(600_000),
    )  # fmt: skip
    assert try_sequence(Sequence(1556, steps, has_lease=False, gives_way=False)).broken == ()


def test_followers_behind_an_operators_throttle_are_in_sync_without_it() -> None:
    state = next(one for one in sequence.partitions_of(sequence.sequence_twin(1721, MemoryLog())) if one.replicas[1:])
    topic, leader = ConfigResource.topic(state.topic_partition.topic), state.leader
    steps = (
        Meanwhile(0, Configure(topic, LEADER_THROTTLED_REPLICAS, "*")),
        Meanwhile(0, Configure(ConfigResource.broker(leader), LEADER_THROTTLED_RATE, "1000001")),
        Meanwhile(0, Produce(state.topic_partition, 5.0 * MB)),
        Meanwhile(0, read_fault(f"stop:{state.replicas[1]}@0+40s")),
    )  # fmt: skip
    assert try_sequence(Sequence(1721, steps, has_lease=False, gives_way=False)).broken == ()
