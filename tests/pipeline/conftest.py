"""One Spark session for all tests of a run: it takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from kreassign.model.load import SparkOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Pass over one warning that PySpark itself causes: it leaves the socket of each `collect` to the collector."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket.*127.0.0.1:ResourceWarning"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from kreassign.pipeline.spark_session import spark_session  # noqa: PLC0415 - tests without Spark must not pay for its import

    with pytest.MonkeyPatch.context() as environment:
        # Or pyspark.testing warns of it, on behalf of a part of Spark that we do not use.
        environment.setenv("PYARROW_IGNORE_TIMEZONE", "1")
        options = SparkOptions("local[2]", {"spark.ui.enabled": "false"})
        with spark_session(tmp_path_factory.mktemp("spark") / "spark.log", options, is_small=True) as session:
            yield session


@pytest.fixture(autouse=True)
def nothing_stays_cached(request: pytest.FixtureRequest) -> Iterator[None]:
    """A session may live for weeks, so a job releases its cached data."""
    yield
    if "spark" in request.fixturenames:
        session: SparkSession = request.getfixturevalue("spark")
        kept = session._jsparkSession.sharedState().cacheManager()  # PySpark has no public way to ask
        is_empty = kept.isEmpty() and session.sparkContext._jsc.getPersistentRDDs().size() == 0
        kept.clearCache()
        assert is_empty, "a job left a DataFrame cached"
