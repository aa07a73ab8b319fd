"""One Spark session for all tests of a run: it takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Pass over one warning that PySpark itself causes: it leaves the socket of each `collect` to the collector."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket.*127.0.0.1:ResourceWarning"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from kreassign.pipeline.spark.session import spark_session  # noqa: PLC0415 - tests without Spark must not pay for its import

    with pytest.MonkeyPatch.context() as environment:
        # Or pyspark.testing warns of it, on behalf of a part of Spark that we do not use.
        environment.setenv("PYARROW_IGNORE_TIMEZONE", "1")
        with spark_session(tmp_path_factory.mktemp("spark") / "spark.log", "local[2]", is_small=True) as session:
            yield session
