"""A page of metrics, read back by the parser of Prometheus' own client library."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

Labels = dict[str, str]


class Page:
    """The samples of a page of one run: by name, and by the labels that a metric has of its own."""

    def __init__(self, text: str) -> None:
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self.samples = [sample for family in self.families.values() for sample in family.samples]

    def value(self, name: str, **labels: str) -> float | None:
        """The value with these labels; None where there is no such sample."""
        of_name = (one for one in self.samples if one.name == f"kreassign_{name}")
        found = [one.value for one in of_name if labels.items() <= one.labels.items()]
        assert len(found) <= 1, f"{name} {labels} is there {len(found)} times"
        return found[0] if found else None

    def by(self, label: str, name: str) -> dict[str, float]:
        """Values by one label, without those that are 0."""
        samples = [one for one in self.samples if one.name == f"kreassign_{name}"]
        return {one.labels[label]: one.value for one in samples if one.value}
