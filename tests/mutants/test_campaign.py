"""The campaign of generated mutants: which there are, which are drawn, and what the share says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.mutants.campaign import Verdicts, known_equivalent
from tests.mutants.generated import Generated, mutated, prepared
from tests.mutants.packages import PACKAGES, Package
from tests.mutants.sampling import Tally, sample, wilson

ROOT = Path(__file__).parents[2]
MODULE = "src/kreassign/model/made_up.py"


def mutants(source: str) -> set[tuple[str, str, str]]:
    return {(one.function, one.before, one.after) for one in mutated(MODULE, prepared(source)).mutants}


def test_a_mutant_has_a_function_and_the_line_that_changes() -> None:
    assert mutants("def less(a, b):\n    return a < b\n") == {("less", "return a < b", "return a <= b")}


def test_a_property_has_mutants_as_any_method() -> None:
    source = "class Box:\n    @property\n    def is_full(self):\n        return self.left == self.right\n"
    assert mutants(source) == {("Box.is_full", "return self.left == self.right", "return self.left != self.right")}


def test_a_program_with_its_properties_made_afterwards_does_the_same() -> None:
    names: dict[str, Any] = {}
    exec(prepared("class Box:\n    @property\n    def size(self):\n        return 3\n    other = 4\n"), names)
    assert (names["Box"]().size, names["Box"].other) == (3, 4)


@pytest.mark.parametrize(
    "line", ['raise ValueError("it\'s not so")', "assert a == b", "return [*zip(a, b, strict=True)][0:]"]
)
def test_words_of_messages_assertions_and_strictness_are_left_out(line: str) -> None:
    found = {after for _, _, after in mutants(f"def made(a, b):\n    {line}\n")}
    assert not any("XX" in one or "assert" in one or "strict=None" in one for one in found)
    assert not any(one == "return [*zip(a, b)][0:]" for one in found)


def test_a_text_that_is_no_message_is_not_left_out() -> None:
    assert ("kind", "return 'topics'", "return 'XXtopicsXX'") in mutants("def kind():\n    return 'topics'\n")


def test_a_sample_is_the_same_for_a_seed_and_stays_when_others_come() -> None:
    all_of_them = [Generated(f"m.x_f__mutmut_{number}", MODULE, "f", str(number), "0") for number in range(50)]
    drawn = sample(all_of_them[:40], 10, seed=1)
    assert drawn == sample(reversed(all_of_them[:40]), 10, seed=1) != sample(all_of_them[:40], 10, seed=2)
    assert sample(all_of_them[:40], 5, seed=1) == drawn[:5]
    kept = [one for one in sample(all_of_them, 10, seed=1) if one in all_of_them[:40]]
    assert kept == drawn[: len(kept)]


def test_the_interval_is_that_of_wilson() -> None:
    assert wilson(90, 100) == pytest.approx((0.8256, 0.9448), abs=1e-4)
    assert wilson(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


def test_a_share_is_of_those_that_could_be_killed() -> None:
    tally = Tally("model", 3, 1_000, tried=100, equivalent=4, killed=90)
    assert str(tally) == "| `model` | 3 | 1,000 | 100 | 4 | 90 | 93.8 % | 87.0 % to 97.1 % |"


def test_every_package_has_modules_and_tests_that_are_there() -> None:
    assert [one.path for one in PACKAGES if not one.modules(ROOT) or not one.test_files(ROOT)] == []
    missing = {test for one in PACKAGES for test in one.tests if not (ROOT / "tests" / test).exists()}
    assert missing == set()


def test_what_is_said_to_be_equivalent_is_of_functions_that_are_there() -> None:
    lost = [
        (module, function)
        for module, function, _, _ in known_equivalent()
        if f"def {function.rpartition('.')[2]}(" not in (ROOT / module).read_text(encoding="utf-8")
    ]
    assert lost == []


def test_what_survived_other_tests_and_was_not_tried_since_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = Path(MODULE)
    module.parent.mkdir(parents=True)
    module.write_text("def f(): pass\n")
    first, second, third = (f"kreassign.model.made_up.x_f__mutmut_{number}" for number in range(3))

    def verdicts(tests: str) -> Verdicts:
        return Verdicts(Package("model", ()), [module], tests, keep_killed=True)

    verdicts("old").add({first: "survived", second: "survived", third: "killed"})
    now = verdicts("new")
    assert now.doubtful == {first, second}
    now.add({first: "survived"})
    assert verdicts("new").known == {first: "survived", third: "killed"}
