"""Partition reassignment for Apache Kafka, done right.

The road: cluster → snapshot → load model → plan → rehearsal → run → audit → report. Each stop is a package;
`docs/design/architecture.md` draws the road and says who may import whom.
"""

__version__ = "0.1.0"
