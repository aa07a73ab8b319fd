"""Each case in a fresh interpreter, because what is imported stays imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

CLIENTS = "{name for name in sys.modules if name.startswith(('kafka.producer', 'kafka.consumer', 'kafka.admin'))}"


@pytest.mark.parametrize(
    "program",
    [
        f"import sys, kreassign.wire.api; assert not {CLIENTS}, {CLIENTS}",
        "import kreassign.wire.api; from kafka import KafkaProducer; assert KafkaProducer.__name__ == 'KafkaProducer'",
        "import kreassign.wire.api, kafka; assert kafka.__version__.startswith('3.')",
        "import kreassign.wire.api, kafka; assert kafka.KafkaProducer and type(kafka).__name__ == 'module'",
        "import kreassign.wire.api; from kafka import consumer; assert consumer.KafkaConsumer",
        "import kafka, kreassign.wire.api, sys; assert sys.modules['kafka'] is kafka and kafka.KafkaProducer",
    ],
    ids=["no clients", "from import", "attribute", "whole", "submodule", "library first"],
)
def test_the_library_is_whole_for_others_and_lean_for_us(program: str) -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_name_that_the_library_does_not_have_is_an_error_as_ever() -> None:
    program = "import kreassign.wire.api, kafka; kafka.no_such_thing"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)
    assert "AttributeError" in done.stderr
    assert "no_such_thing" in done.stderr
