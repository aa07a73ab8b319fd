from pathlib import Path

from kreassign.executor.events import MovesSubmitted, Refusal, StopRequested
from kreassign.executor.history.run_history import fold, history, read_history
from kreassign.executor.journal import Journal
from kreassign.model.run import MoveHistory
from tests.executor.run_events import A0, A1, OVERRIDES, RATE, SUBMITTED, WHOLE, started


def test_a_run_that_went_well_is_told_in_full(tmp_path: Path) -> None:
    with Journal.create(tmp_path, started()) as journal:
        for event in WHOLE[1:]:
            journal.append(event)
    told = read_history(journal.path)
    assert (told.run_id, told.cluster_id, told.state) == ("run-1", "cluster-1", "done")
    assert (told.started_ms, told.ended_ms, told.throttle_bytes_per_s) == (0, 12_000, RATE)
    assert (told.throttle_residue, told.problems, told.bytes_copied) == ((), (), 1_500)
    assert told.moves[0] == MoveHistory(
        "a", 0, (0, 1), (2, 1), (2,), 1_000, 3_000, 7_000, 1_000, "complete", None, left=((2, 1),)
    )  # fmt: skip


def test_a_paused_run_tells_what_it_has_to_restore() -> None:
    told = history(fold([*SUBMITTED, StopRequested(9_000)]))
    assert (told.state, told.ended_ms, len(told.throttle_residue)) == ("paused", None, len(OVERRIDES))


def test_a_run_that_goes_on_has_left_no_throttle_behind() -> None:
    going_on = history(fold(SUBMITTED), is_active=True)
    assert (going_on.throttle_residue, going_on.open_settings) == ((), len(OVERRIDES))
    assert len(history(fold(SUBMITTED)).throttle_residue) == len(OVERRIDES), "its process is gone"


def test_a_refused_move_carries_its_reason() -> None:
    answer = MovesSubmitted(4_000, (A1,), (Refusal(A0, "not enough brokers"),))
    told = history(fold([*SUBMITTED[:-1], answer]))
    assert told.moves[0].problem == "the cluster refused it: not enough brokers"
