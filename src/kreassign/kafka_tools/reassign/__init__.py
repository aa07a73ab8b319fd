"""The parts of `kafka-reassign-partitions`: options, requests, messages, and one module per action."""
