"""Knowledge of brokers that have not read the latest records."""

from __future__ import annotations

from kreassign.twin.metadata import ClusterMetadata, StaleViews, TopicCreated, TopicDeleted


class Log:
    """Metadata that records are written to, with node 1 held back and node 2 not."""

    def __init__(self) -> None:
        self.metadata = ClusterMetadata()
        self.views = StaleViews(self.metadata)
        self.create("first")

    def create(self, *names: str) -> None:
        for name in names:
            self.write(TopicCreated(name, f"id of {name}"))

    def write(self, record: TopicCreated | TopicDeleted) -> None:
        self.metadata.apply(record)
        self.views.apply([record])

    def known(self, node: int = 1) -> list[str]:
        return list(self.views.of(node).topics)


def test_a_node_that_keeps_up_has_no_copy() -> None:
    log = Log()
    log.views.hold_back(1)
    assert log.views.of(2) is log.metadata
    log.views.release(1)
    assert log.views.of(1) is log.metadata


def test_a_node_that_stands_still_learns_nothing_until_it_is_released() -> None:
    log = Log()
    log.views.hold_back(1)
    log.create("second")
    log.write(TopicDeleted("first"))
    assert log.known() == ["first"]
    log.views.release(1)
    log.views.release(1)
    assert log.known() == ["second"]


def test_a_node_can_always_be_so_many_records_late() -> None:
    log = Log()
    log.views.hold_back(1, behind=2)
    seen = []
    for name in ("second", "third", "fourth"):
        log.create(name)
        seen.append(len(log.known()))
    assert seen == [1, 1, 2]


def test_a_lagging_node_reads_all_missed_records_in_order() -> None:
    log = Log()
    log.views.hold_back(1)
    log.create("second")
    log.views.hold_back(1, behind=1)
    log.write(TopicDeleted("second"))
    assert log.known() == ["first", "second"]
    log.views.hold_back(1, behind=0)
    log.create("third")
    assert log.known() == ["first", "third"]
