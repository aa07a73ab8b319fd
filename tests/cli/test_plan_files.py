from pathlib import Path

import pytest

from kreassign.cli.plan_files import read_plan, write_plan
from kreassign.errors import MalformedPlan
from kreassign.model import TopicPartition
from kreassign.model.plan import PartitionAssignment, Plan


def test_a_plan_that_was_written_is_read_back(tmp_path: Path) -> None:
    wishes = Plan((PartitionAssignment(TopicPartition("t", 0), (2, 1)),))
    write_plan(tmp_path / "plan.json", wishes)
    assert read_plan(tmp_path / "plan.json") == wishes
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


@pytest.mark.parametrize("content", [b"once upon a time", b"\xff\xfe", b'{"version":7}'])
def test_what_is_no_plan_is_refused_with_the_name_of_the_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(MalformedPlan) as refused:
        read_plan(path)
    assert refused.value.path == str(path)
    assert str(path) in str(refused.value)
